"""Model text made harmless for a terminal: every code point that could drive it is shown instead.

Neutralising the introducer (ESC, C1, ...) turns the rest of any control sequence into plain text, so no
sequence parser is needed and a cut anywhere cannot fool the filter. State between pieces: a CR that may be
the first half of CRLF, and whether a flag emoji's tag characters are being read.
"""

import json
import re

# Categories Cc, Cf, Zl, Zp, Cs, noncharacters, variation selectors 17-256, tags, fillers; without LF, TAB,
# ZWJ, ZWNJ, the soft hyphen and the Arabic number signs, which are text. Computing it would take 0.3 s.
_UNSAFE = re.compile(
    r"["
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u034f\u061c\u115f-\u1160\u180e\u200b\u200e-\u200f"
    r"\u2028-\u202e\u2060-\u2064\u2066-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufeff"
    r"\uffa0\ufff9-\ufffb\ufffe-\uffff\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U0001fffe-\U0001ffff\U0002fffe-\U0002ffff"
    r"\U0003fffe-\U0003ffff\U0004fffe-\U0004ffff\U0005fffe-\U0005ffff"
    r"\U0006fffe-\U0006ffff\U0007fffe-\U0007ffff\U0008fffe-\U0008ffff"
    r"\U0009fffe-\U0009ffff\U000afffe-\U000affff\U000bfffe-\U000bffff"
    r"\U000cfffe-\U000cffff\U000dfffe-\U000e0fff\U000efffe-\U000effff"
    r"\U000ffffe-\U000fffff\U0010fffe-\U0010ffff"
    r"]"
)
_FLAG = "\U0001f3f4"
_TAG_END = 0xE007F
_LONGEST_FLAG = 8


class Sanitizer:
    """``feed`` pieces, then ``end``. ``neutralised`` counts what was made visible."""

    def __init__(self) -> None:
        self._cr = False
        self._flag_left = 0
        self.neutralised = 0

    def feed(self, text: str) -> str:
        if self._cr:
            text, self._cr = "\r" + text, False
        if text.endswith("\r"):
            text, self._cr = text[:-1], True
        text = text.replace("\r\n", "\n")
        if not self._flag_left and not _UNSAFE.search(text):
            self._flag_left = _LONGEST_FLAG if text.endswith(_FLAG) else 0
            return text
        return "".join(map(self._shown, text))

    def end(self) -> str:
        """What was held back."""
        if not self._cr:
            return ""
        self._cr = False
        self.neutralised += 1
        return _picture("\r")

    def _shown(self, character: str) -> str:
        code = ord(character)
        if self._flag_left and 0xE0020 <= code <= _TAG_END:
            self._flag_left = 0 if code == _TAG_END else self._flag_left - 1
            return character
        self._flag_left = _LONGEST_FLAG if character == _FLAG else 0
        if not _UNSAFE.match(character):
            return character
        self.neutralised += 1
        return _picture(character)


def harmless(text: str, *, one_line: bool = False) -> str:
    """Any foreign text (an error body, a model's name) made safe to print; optionally on one line."""
    sanitizer = Sanitizer()
    safe = sanitizer.feed(text) + sanitizer.end()
    return " ".join(line.strip() for line in safe.split("\n") if line.strip()) if one_line else safe


def harmless_json(text: str) -> str:
    """Encoded JSON with everything that could drive a terminal as ``\\u`` escapes: the value is the same."""
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    if 0xE0020 <= code < _TAG_END:
        return f"⟨tag {chr(code - 0xE0000)}⟩"
    return f"⟨U+{code:04X}⟩"
