"""Newline-delimited JSON: every non-blank line is a frame; a last line without its newline counts."""

from collections.abc import Iterator

from llmstream_cli.framing.base import Frame, FramingFault, Unit
from llmstream_cli.framing.lines import DEFAULT_LIMIT_BYTES, LineSplitter, OversizedLineError

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

    def _run(self, lines: Iterator[tuple[int, bytes]]) -> list[Unit]:
        units: list[Unit] = []
        if self._dead:
            return units
        try:
            for offset, line in lines:
                text = line.removeprefix(_BOM) if offset == 0 else line
                if text.strip():
                    units.append(Frame(text.decode("utf-8", "replace"), offset))
        except OversizedLineError as error:
            self._dead = True
            units.append(FramingFault.oversized(error.offset, self._limit))
        return units
