"""Split bytes into lines at LF, CRLF and CR only, in time linear in the bytes.

Never ``str.splitlines``: it also splits at U+2028, U+0085, VT and FF, which are text inside JSON strings.
"""

import re

DEFAULT_LIMIT_BYTES = 16 * 1024 * 1024
"""Largest frame accepted: far above any real event, far below what would hurt the machine."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_LF, _CR = 0x0A, 0x0D


Line = tuple[int, bytes]
"""Offset of the line's first byte, and the line without its end."""


class LineSplitter:
    """Incremental line splitter.

    A CR at the very end of a read ends its line at once (waiting for a possible LF would delay the event);
    an LF that comes next then belongs to it and is skipped. ``oversized_at``: where a line begins that is
    longer than the limit; no line from there on is delivered.
    """

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.oversized_at: int | None = None
        self._limit = limit_bytes
        self._pieces: list[bytes] = []
        self._pending = 0
        self._line_start = 0
        self._skip_lf = False

    def feed(self, data: bytes) -> list[Line]:
        if self._skip_lf and data:
            self._skip_lf = False
            if data[0] == _LF:
                self._line_start += 1
                data = data[1:]
        if not data or self.oversized_at is not None:
            return []
        may_be_oversized = self._pending + len(data) > self._limit
        lines = self._split_any(data) if b"\r" in data else self._split_lf(data)
        return self._within_limit(lines) if may_be_oversized else lines

    def close(self) -> list[Line]:
        """The unterminated last line, if there is one."""
        return [(self._line_start, self._take(b""))] if self._pending else []

    def _split_lf(self, data: bytes) -> list[Line]:
        *ended, rest = data.split(b"\n")
        if ended and self._pending:
            ended[0] = self._take(ended[0])
        start = self._line_start
        lines = []
        for line in ended:
            lines.append((start, line))
            start += len(line) + 1
        self._line_start = start
        self._keep(rest)
        return lines

    def _split_any(self, data: bytes) -> list[Line]:
        lines = []
        start = 0
        for match in _LINE_END.finditer(data):
            line = self._take(data[start : match.start()])
            lines.append((self._line_start, line))
            self._line_start += len(line) + match.end() - match.start()
            start = match.end()
        self._skip_lf = start == len(data) and data[-1] == _CR
        self._keep(data[start:])
        return lines

    def _within_limit(self, lines: list[Line]) -> list[Line]:
        for number, (start, line) in enumerate(lines):
            if len(line) > self._limit:
                self.oversized_at = start
                return lines[:number]
        if self._pending > self._limit:
            self.oversized_at = self._line_start
            self._pieces.clear()
            self._pending = 0
        return lines

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._pieces.append(rest)
            self._pending += len(rest)

    def _take(self, last: bytes) -> bytes:
        if not self._pending:
            return last
        self._pieces.append(last)
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._pending = 0
        return line
