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
        self._offset = 0  # of the next byte to keep
        self._depth = 0
        self._base = 0  # the depth at which elements stand: 1 in the array, 0 where there is none
        self._begun = False
        self._in_string = False
        self._escaped = False
        self._over = False

    def feed(self, data: bytes) -> list[Unit]:
        units: list[Unit] = []
        if self._over or not data:
            return units
        kept, at = 0, int(self._escaped)
        self._escaped = False
        while not self._over and (found := self._next(data, at)):
            mark, at = found[0], found.end()
            if mark == b"\\":
                self._escaped = at == len(data)
                at += 1
            elif mark == b'"':
                self._in_string = not self._in_string
            elif mark in (b"{", b"["):
                kept = self._open(mark, data, kept, at, units)
            else:
                kept = self._end(mark, data, kept, at, units)
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

    def _open(self, mark: bytes, data: bytes, kept: int, at: int, units: list[Unit]) -> int:
        """A bracket opens; returns where in `data` the element begins that is being read."""
        if self._depth > self._base:
            self._depth += 1
            return kept
        self._deliver(data[kept : at - 1], units)
        is_array = mark == b"[" and not self._begun
        self._begun = True
        self._depth += 1
        if not is_array:
            return at - 1
        self._base = 1
        units.append(Frame("[", self._offset))
        self._skip(b"[")
        return at

    def _end(self, mark: bytes, data: bytes, kept: int, at: int, units: list[Unit]) -> int:
        """A bracket closes, or a comma stands between elements; returns as `_open` does."""
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
            self._begun = True
            start = self._offset - len(element)
            units.append(Frame(element.rstrip(_BLANK).decode("utf-8", "replace"), start))
        self._skip(b"")

    def _fail(self, units: list[Unit]) -> None:
        self._over = True
        units.append(FramingFault.oversized(self._offset - self._size, self._limit))
        self._pieces.clear()
