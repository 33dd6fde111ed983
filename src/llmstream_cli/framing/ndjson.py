"""Newline-delimited JSON: every non-blank line is a frame; a last line without its newline counts."""

from llmstream_cli.framing.base import Frame, FramingFault, Unit
from llmstream_cli.framing.lines import DEFAULT_LIMIT_BYTES, Line, LineSplitter

_BOM = b"\xef\xbb\xbf"


class NdjsonFramer:
    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._lines = LineSplitter(limit_bytes)
        self._dead = False

    def feed(self, data: bytes) -> list[Unit]:
        return self._run(self._lines.feed(data))

    def close(self) -> list[Unit]:
        return self._run(self._lines.close())

    def _run(self, lines: list[Line]) -> list[Unit]:
        units: list[Unit] = []
        for offset, line in lines:
            text = line.removeprefix(_BOM) if offset == 0 else line
            if text.strip():
                units.append(Frame(text.decode("utf-8", "replace"), offset))
        if self._lines.oversized_at is not None and not self._dead:
            self._dead = True
            units.append(FramingFault.oversized(self._lines.oversized_at, self._limit))
        return units
