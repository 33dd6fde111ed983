"""WHATWG event stream (HTML Living Standard, 9.2.6), with what real servers do to it.

Beyond the standard: a field ``error:`` (llama.cpp builds of 2024 and 2025) is a frame named ``error``, and a
last event without its blank line is delivered when the body ends. An event that has a name and no data is
a frame: several back ends end their streams with a bare ``event: end``. JSON outside of any field (Gemini's
errors in the middle of a stream, over many lines) is a frame, and so is a line like ``0:"text"`` (the older
stream of the Vercel AI SDK): both would be unknown fields, and lost.
"""

import re

from llmstream_cli.framing.base import Comment, Frame, FramingFault, Unit
from llmstream_cli.framing.lines import DEFAULT_LIMIT_BYTES, Line, LineSplitter

_BOM = b"\xef\xbb\xbf"
_CODED_LINE = re.compile(rb'[0-9a-z]:["\[{]')
_CLOSING = {b"{": b"}", b"[": b"]"}


class SseFramer:
    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._lines = LineSplitter(limit_bytes)
        self._dead = False
        self._reset()

    def _reset(self) -> None:
        self._data: list[bytes] = []
        self._size = 0
        self._name: str | None = None
        self._offset = -1
        self._closing = b""

    def feed(self, data: bytes) -> list[Unit]:
        return self._run(self._lines.feed(data))

    def close(self) -> list[Unit]:
        units = self._run(self._lines.close())
        # A bare name may be the beginning of an event whose data was cut off.
        if self._data and not self._dead:
            self._dispatch(units, cut=True)
        return units

    def _run(self, lines: list[Line]) -> list[Unit]:
        units: list[Unit] = []
        for offset, line in lines:
            if self._dead:
                return units
            if not line:
                self._blank(offset, units)
            elif line.startswith(b"data: ") and not self._data:
                # Nearly every line of every stream; `_line` would do the same.
                self._append(offset, line[6:], units)
            else:
                self._line(offset, line, units)
        if self._lines.oversized_at is not None and not self._dead:
            self._fail(self._lines.oversized_at, units)
        return units

    def _blank(self, offset: int, units: list[Unit]) -> None:  # noqa: ARG002
        if self._data or self._name:
            self._dispatch(units)
        else:
            self._name, self._offset = None, -1

    def _line(self, offset: int, line: bytes, units: list[Unit]) -> None:
        if offset == 0 and line.startswith(_BOM):
            line = line[len(_BOM) :]
        field, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if field == b"data" or field == b"error":
            if self._closing:
                self._dispatch(units)
            self._append(offset, value, units)
            if field == b"error":
                self._name = "error"
        elif not field:
            units.append(Comment(value.decode("utf-8", "replace")))
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
            if self._offset < 0:
                self._offset = offset
        elif self._closing or line[:1] in _CLOSING or _CODED_LINE.match(line):
            self._bare_json(offset, line, units)

    def _bare_json(self, offset: int, line: bytes, units: list[Unit]) -> None:
        """JSON without a field, over one line or many: then it ends where its bracket closes unindented."""
        first = not self._closing
        if first and self._data:
            self._dispatch(units)
        self._closing = self._closing or _CLOSING.get(line[:1], b"")
        self._append(offset, line, units)
        if self._data and line.endswith(self._closing) and (first or line[:1] in b"}]"):
            self._dispatch(units)

    def _append(self, offset: int, value: bytes, units: list[Unit]) -> None:
        if self._offset < 0:
            self._offset = offset
        self._data.append(value)
        self._size += len(value) + 1
        if self._size > self._limit:
            self._fail(self._offset, units)

    def _dispatch(self, units: list[Unit], *, cut: bool = False) -> None:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        units.append(Frame(data.decode("utf-8", "replace"), self._offset, self._name, cut=cut))
        self._reset()

    def _fail(self, offset: int, units: list[Unit]) -> None:
        self._dead = True
        self._reset()
        units.append(FramingFault.oversized(offset, self._limit))
