"""Places in a text, shown so that nothing is left to guess; and what nearly is a stop string. Pure."""

import re
import unicodedata
from collections.abc import Callable, Iterator

from llmstream_cli.stops import decode_escapes

_AROUND = 12
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\xa0": " "})


def escaped(text: str) -> str:
    r"""`text` in double quotes as JSON has it, other control characters too: ``"\nUser:"``."""
    named = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(named.get(character) or _plain(character) for character in text) + '"'


def _plain(character: str) -> str:
    return character if character.isprintable() else f"\\u{ord(character):04x}"


def code_points(text: str, limit: int = 8) -> str:
    """``U+005C U+006E``, at most `limit` of them."""
    points = " ".join(f"U+{ord(character):04X}" for character in text[:limit])
    return points + (" ..." if len(text) > limit else "")


def window(text: str, at: int, length: int) -> str:
    """The text around ``text[at:at + length]``, that part between guillemets."""
    start, end = max(0, at - _AROUND), at + length + _AROUND
    before, after = escaped(text[start:at])[1:-1], escaped(text[at + length : end])[1:-1]
    dots = ("..." if start else "", "..." if end < len(text) else "")
    return f'"{dots[0]}{before}«{escaped(text[at : at + length])[1:-1]}»{after}{dots[1]}"'


def positions(text: str, part: str, limit: int = 3) -> tuple[int, ...]:
    """Where `part` stands in `text`, at most `limit` places."""
    found: list[int] = []
    at = text.find(part) if part else -1
    while at >= 0 and len(found) < limit:
        found.append(at)
        at = text.find(part, at + 1)
    return tuple(found)


def unescaped(stop: str) -> str | None:
    r"""What `stop` means if its backslashes are escapes; None if it has none (``C:\temp`` is one too)."""
    decoded = decode_escapes(stop)
    return decoded if decoded != stop else None


_FOLDS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("upper and lower case", str.lower),
    ("typographic quotes, dashes or spaces", lambda text: text.translate(_QUOTES)),
    ("composed and decomposed characters", lambda text: unicodedata.normalize("NFC", text)),
    ("compatibility forms of characters", lambda text: unicodedata.normalize("NFKC", text)),
    ("CR LF and LF", lambda text: text.replace("\r\n", "\n")),
    ("the amount of white space", lambda text: re.sub(r"\s+", " ", text)),
    ("white space at the ends of the stop string", str.strip),
)
"""What differs -> how to make it equal."""


def near_misses(text: str, stop: str) -> Iterator[tuple[str, str]]:
    """What differs, and the piece of `text` that would have matched but for it."""
    if not stop.strip() or stop in text:
        return
    for what, fold in _FOLDS:
        wanted = fold(stop)
        if wanted and wanted in (text if fold is str.strip else fold(text)):
            yield what, _original(text, wanted, fold)
            return


def _original(text: str, wanted: str, fold: Callable[[str], str]) -> str:
    """The shortest piece of `text` that `fold` turns into `wanted`, else `wanted` itself."""
    if fold is str.strip:
        return wanted
    for length in range(1, len(wanted) * 3 + 1):
        for start in range(len(text) - length + 1):
            if fold(text[start : start + length]) == wanted:
                return text[start : start + length]
    return wanted
