"""One JSON array that arrives element by element (Gemini without ``alt=sse``).

Every element is a frame as soon as its last byte came, however it is laid out over lines. The brackets of the
array are frames too, ``[`` and ``]``: only they tell whether it was closed. A body that is no array is taken
as one value after another.
"""

import re

from llmstream_cli.framing.base import Frame, FramingFault, Unit
from llmstream_cli.framing.lines import DEFAULT_LIMIT_BYTES

_BLANK = b"\xef\xbb\xbf \t\r\n"
_IN_STRING = re.compile(rb'["\\]')
_IN_ELEMENT = re.compile(rb'["{}\[\]]')
_BETWEEN = re.compile(rb'["{}\[\],]')


class JsonArrayFramer:
    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._offset = 0
        """Where the next byte to keep stands in the body."""
        self._depth = 0
        self._base = 0
        """The depth at which elements stand: 1 inside the array, 0 where there is none."""
        self._in_string = False
        self._escaped = False
        self._over = False

    def feed(self, data: bytes) -> list[Unit]:
        units: list[Unit] = []
        if self._over or not data:
            return units
        kept = 0
        at = 1 if self._escaped else 0
        self._escaped = False
        while not self._over and (found := self._next(data, at)):
            at = found.end()
            match found[0]:
                case b"\\":
                    self._escaped = at == len(data)
                    at += 1
                case b'"':
                    self._in_string = not self._in_string
                case b"{" | b"[" if self._opens_array(found[0], data[kept : found.start()]):
                    self._skip(data[kept:at])
                    kept = at
                    units.append(Frame("[", self._offset - 1))
                case b"{" | b"[":
                    if self._depth == self._base:
                        self._deliver(data[kept : found.start()], units)
                        kept = found.start()
                    self._depth += 1
                case b"," | b"}" | b"]":
                    kept = self._end(found[0], data, kept, at, units)
        if not self._over:
            self._keep(data[kept:], units)
        return units

    def close(self) -> list[Unit]:
        """The element that the body broke off in, or a body that is no JSON."""
        units: list[Unit] = []
        if not self._over:
            self._deliver(b"", units)
        return units

    def _next(self, data: bytes, at: int) -> re.Match[bytes] | None:
        if self._in_string:
            return _IN_STRING.search(data, at)
        return (_IN_ELEMENT if self._depth > self._base else _BETWEEN).search(data, at)

    def _opens_array(self, bracket: bytes, before: bytes) -> bool:
        """The first thing in the body is an array: its elements are what is wanted."""
        at_start = self._offset == self._size and not b"".join([*self._pieces, before]).strip(_BLANK)
        if bracket != b"[" or self._depth or self._base or not at_start:
            return False
        self._base = self._depth = 1
        return True

    def _end(self, mark: bytes, data: bytes, kept: int, at: int, units: list[Unit]) -> int:
        """A bracket closes, or a comma stands between elements; returns where the next element begins."""
        if mark == b",":
            self._deliver(data[kept : at - 1], units)
            self._skip(b",")
            return at
        if self._depth > self._base:
            self._depth -= 1
            if self._depth > self._base:
                return kept
            self._deliver(data[kept:at], units)
            return at
        if mark == b"]" and self._base:
            self._deliver(data[kept : at - 1], units)
            if not self._over:
                self._over = True
                units.append(Frame("]", self._offset))
        return kept

    def _skip(self, data: bytes) -> None:
        self._pieces.clear()
        self._size = 0
        self._offset += len(data)

    def _keep(self, data: bytes, units: list[Unit]) -> None:
        if data:
            self._pieces.append(data)
            self._size += len(data)
            self._offset += len(data)
        if self._size > self._limit:
            self._fail(units)

    def _deliver(self, last: bytes, units: list[Unit]) -> None:
        """The element that ends with `last`; white space alone is none."""
        self._keep(last, units)
        if self._over:
            return
        raw = b"".join(self._pieces)
        element = raw.lstrip(_BLANK)
        if element:
            start = self._offset - len(element)
            units.append(Frame(element.rstrip(_BLANK).decode("utf-8", "replace"), start))
        self._skip(b"")

    def _fail(self, units: list[Unit]) -> None:
        self._over = True
        units.append(FramingFault.oversized(self._offset - self._size, self._limit))
        self._pieces.clear()
