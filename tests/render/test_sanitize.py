"""The sanitiser: nothing that drives a terminal comes out, however the text is cut, and no text is lost."""

import json
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmstream_cli.render.sanitize import Sanitizer, harmless, harmless_json

PROPERTY = settings(deadline=None, derandomize=True, database=None, max_examples=300)
TAGS = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
"""The flag of England, which is made of tag characters."""

ATTACKS = {
    "clear": "a\x1b[2J\x1b[Hb",
    "colour": "\x1b[31mred\x1b[0m",
    "8-bit CSI": "x\x9b2Jy",
    "8-bit OSC": "x\x9d0;title\x9cy",
    "title": "\x1b]0;PWNED\x07text",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x1b\\text",
    "link": "\x1b]8;;file:///etc/passwd\x1b\\click\x1b]8;;\x1b\\",
    "unterminated OSC": "\x1b]52;c;AAAA",
    "cursor report": "\x1b[6n\x1b[c",
    "DCS": '\x1bP$q"p\x1b\\',
    "APC, PM, SOS": "\x1b_G\x1b\\\x1b^x\x1b\\\x1bXy\x1b\\",
    "reset": "\x1bc",
    "overwrite": "rm -rf /\rls       ",
    "backspaces": "evil\b\b\b\bgood",
    "VT and FF": "a\x0bb\x0cc",
    "bell and NUL": "a\x07b\x00c",
    "delete": "a\x7fb",
    "next line": "a\x85b",
    "bidi": "a\u202eb\u202cc\u2066d\u2069e\u200f",
    "zero width": "a\u200bb\u2060c\ufeffd",
    "separators": "a\u2028b\u2029c",
    "tags": "a\U000e0041\U000e0042b",
    "tags behind a flag that never ends": "\U0001f3f4" + "\U000e0067" * 20,
    "variation selectors": "a\U000e0100b",
    "fillers": "a\u3164b\u115fc\u034fd",
    "surrogate": "a\ud800b\udfffc",
    "CR at the end": "text\r",
    "CRLF and lone CR": "a\r\nb\r\r\nc\rd",
    "charset": "\x1b(0lqqk\x1b(B\x0e\x0f",
    "ESC ESC": "\x1b\x1b[2J",
}

TEXTS = {
    "plain": "Hello, world!\n\tindented\n",
    "family": "👩‍👩‍👧 and 👨🏽‍🚀",
    "flags": f"🇩🇪 {TAGS} 🏴‍☠️",
    "Persian": "می‌خواهم",
    "Hindi": "क्‍ष श्री",
    "Arabic": "السلام عليكم \u0600123",
    "Hebrew": "שלום",
    "soft hyphen": "Donau\u00addampf",
    "combining": "e\u0301 ñ ẓ̌",
    "emoji style": "❤️ ✔︎",
    "Chinese": "你好，世界",
    "cuneiform": "𒀀",
    "maths": "∀x∈ℝ: ⌈x⌉ − ½",
}


def cleaned(*pieces: str) -> str:
    sanitizer = Sanitizer()
    return "".join(map(sanitizer.feed, pieces)) + sanitizer.end()


def is_unsafe(character: str) -> bool:
    """Independent of the module: from the Unicode data of Python."""
    category = unicodedata.category(character)
    return (
        (category in ("Cc", "Zl", "Zp", "Cs") and character not in "\n\t")
        or unicodedata.bidirectional(character)
        in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
        or character in "\u200b\u200e\u200f\u061c\u2060\ufeff"
    )


def unsafe_in(text: str) -> set[str]:
    return {character for character in text if is_unsafe(character)}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_an_attack_is_shown_and_not_done(attack: str) -> None:
    whole = cleaned(attack)
    assert unsafe_in(whole) == set()
    assert whole != attack
    shown = iter(whole)
    assert all(character in shown for character in attack if " " <= character <= "~"), "a letter is lost"


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_cuts_cannot_fool_it(attack: str) -> None:
    whole = cleaned(attack)
    assert cleaned(*attack) == whole
    for first in range(len(attack) + 1):
        for second in range(first, len(attack) + 1):
            assert cleaned(attack[:first], attack[first:second], attack[second:]) == whole


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_is_left_alone(text: str) -> None:
    assert cleaned(text) == text
    assert cleaned(*text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "␛[2J"),
        ("a\rb", "a␍b"),
        ("a\r\nb\r", "a\nb␍"),
        ("\x7f\x00", "␡␀"),
        ("\x9b", "⟨U+009B⟩"),
        ("\u202e", "⟨U+202E⟩"),
        ("\U000e0041", "⟨tag A⟩"),
        ("\ud800", "\ufffd"),
    ],
)
def test_what_is_shown_instead(text: str, shown: str) -> None:
    assert cleaned(text) == shown


def test_what_was_made_visible_is_counted() -> None:
    sanitizer = Sanitizer()
    assert sanitizer.feed("a\x1b[0m b\r\nc\u202e\r") == "a␛[0m b\nc⟨U+202E⟩"
    assert sanitizer.neutralised == 2
    assert (sanitizer.end(), sanitizer.end()) == ("␍", "")
    assert sanitizer.neutralised == 3


def test_every_code_point() -> None:
    """No control or format character passes, but for the few that are text; everything else does."""
    allowed = {
        *"\n\t\u00ad\u200c\u200d",
        *"\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2",
    }
    allowed |= {"\U000110bd", "\U000110cd"}
    for code in range(0x110000):
        character = chr(code)
        category = unicodedata.category(character)
        is_noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
        if category in ("Cc", "Cf", "Zl", "Zp", "Cs") or is_noncharacter:
            assert (harmless(character) == character) == (character in allowed), hex(code)
        elif category[0] in "LNPS":
            fillers = "\u115f\u1160\u3164\uffa0"
            assert (harmless(character) == character) == (character not in fillers), hex(code)


@PROPERTY
@given(
    st.text(st.characters() | st.sampled_from("\x1b\x9b\r\n\u202e\U0001f3f4\U000e0067\U000e007f")), st.data()
)
def test_any_text_cut_anywhere(text: str, data: st.DataObject) -> None:
    whole = cleaned(text)
    assert unsafe_in(whole) == set()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert cleaned(*pieces) == whole


@pytest.mark.parametrize("text", ["plain text ", "\x1b[31m\u202e", "\r", "\U0001f3f4\U000e0067"])
def test_time_is_linear(text: str) -> None:
    def seconds(count: int) -> float:
        began_s = time.process_time()
        cleaned(*[text] * count)
        cleaned(text * count)
        return time.process_time() - began_s

    small = min(seconds(2_000) for _ in range(3))
    assert min(seconds(20_000) for _ in range(3)) < 40 * small + 0.1


def test_one_line() -> None:
    assert harmless("  one\r\n\n  two  spaces \x1b[0m\n", one_line=True) == "one two  spaces ␛[0m"
    assert harmless("\u2028\x0b", one_line=True) == "⟨U+2028⟩␋"


@PROPERTY
@given(st.text(st.characters() | st.sampled_from('\x1b\x9b\u202e\x7f\\"\ud800')))
def test_json_stays_the_same_value(text: str) -> None:
    encoded = harmless_json(json.dumps({"text": text}, ensure_ascii=False))
    assert unsafe_in(encoded) == set()
    assert json.loads(encoded) == json.loads(json.dumps({"text": text}))
