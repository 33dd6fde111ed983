r"""Stop strings: escapes on the command line, and stopping locally what the server did not stop. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([ntr\\]))")
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


def decode_escapes(text: str) -> str:
    r"""Decode ``\n \t \r \\ \uXXXX \xXX``; any other backslash stays as it is.

    >>> decode_escapes(r"\nUser:")
    '\nUser:'
    """

    def replace(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _NAMED[match[3]]

    decoded = _ESCAPE.sub(replace, text)
    # Two \uXXXX escapes may spell one character outside the basic plane.
    return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@dataclass(frozen=True, slots=True)
class Match:
    """A stop string was completed: what may be shown before it, and which one it was."""

    text: str
    stop: str


class StopGuard:
    """Finds stop strings in a text that comes in pieces and holds back what may be the start of one.

    The string that is complete first wins; of two that end at the same place, the longer. So the result does
    not depend on how the text was cut, and nothing is held back for longer than needed.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""

    def feed(self, text: str) -> str | Match:
        """What may be shown now, or the match that ends the answer."""
        text = self._held + text
        found = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            _, start, stop = min(found)
            return Match(text[:start], stop)
        hold = self._partial(text)
        self._held = text[hold:]
        return text[:hold]

    def release(self) -> str:
        """The answer is over: what was held back is text after all."""
        held, self._held = self._held, ""
        return held

    def _partial(self, text: str) -> int:
        """Where the longest proper prefix of a stop string begins at the end of `text`, else its length."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            tail = text[start:]
            if any(len(stop) > len(tail) and stop.startswith(tail) for stop in self._stops):
                return start
        return len(text)
