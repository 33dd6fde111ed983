"""Split bytes into lines at LF, CRLF and CR only, in time linear in the bytes.

Never ``str.splitlines``: it also splits at U+2028, U+0085, VT and FF, which are text inside JSON strings.
"""

import re
from collections.abc import Iterator

DEFAULT_LIMIT_BYTES = 16 * 1024 * 1024
"""Largest frame accepted: far above any real event, far below what would hurt the machine."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_LF, _CR = 0x0A, 0x0D


class OversizedLineError(Exception):
    """A line is longer than the limit; `offset` is where it starts."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class LineSplitter:
    """Incremental line splitter; yields ``(offset of the line's first byte, line without its end)``.

    A CR at the very end of a read ends its line at once (waiting for a possible LF would delay the event);
    an LF that comes next then belongs to it and is skipped.
    """

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._pieces: list[bytes] = []
        self._pending = 0
        self._line_start = 0
        self._skip_lf = False

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        if not data:
            return
        if self._skip_lf:
            self._skip_lf = False
            if data[0] == _LF:
                self._line_start += 1
                data = data[1:]
        if b"\r" in data:
            yield from self._feed_any(data)
        else:
            yield from self._feed_lf(data)
        if self._pending > self._limit:
            raise OversizedLineError(self._line_start)

    def close(self) -> Iterator[tuple[int, bytes]]:
        """The unterminated last line, if there is one."""
        if self._pending:
            yield self._line_start, self._take(b"")

    def _feed_lf(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        *lines, rest = data.split(b"\n")
        for line in lines:
            yield from self._complete(line, 1)
        self._keep(rest)

    def _feed_any(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        start = 0
        for match in _LINE_END.finditer(data):
            yield from self._complete(data[start : match.start()], match.end() - match.start())
            start = match.end()
        self._skip_lf = start == len(data) and data[-1] == _CR
        self._keep(data[start:])

    def _complete(self, line: bytes, end_length: int) -> Iterator[tuple[int, bytes]]:
        start = self._line_start
        if self._pending:
            line = self._take(line)
        if len(line) > self._limit:
            raise OversizedLineError(start)
        self._line_start = start + len(line) + end_length
        yield start, line

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._pieces.append(rest)
            self._pending += len(rest)

    def _take(self, last: bytes) -> bytes:
        self._pieces.append(last)
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._pending = 0
        return line
