"""An event stream written by hand, ``f"data: {token}\\n\\n"``, of texts that have line feeds in them.

To the standard, what follows such a line feed is an unknown field, and dropped. Here it is read as it was
meant: a line that is no field goes on with the text, and a blank line more than ends an event is a line feed.
"""

from llmstream_cli.framing.base import Frame, Unit
from llmstream_cli.framing.lines import DEFAULT_LIMIT_BYTES
from llmstream_cli.framing.sse import SseFramer

_FIELDS = frozenset({b"", b"data", b"event", b"id", b"retry", b"error"})


class SseTextFramer(SseFramer):
    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        super().__init__(limit_bytes)
        self._last: Frame | None = None
        """The event that blank lines and lines without a field belong to."""

    def _line(self, offset: int, line: bytes, units: list[Unit]) -> None:
        field, colon, _ = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        if field in _FIELDS and (colon or not (self._data or self._last)):
            self._last = None
            super()._line(offset, line, units)
        elif self._data:
            self._append(offset, line, units)
        elif self._last:
            # Two line feeds before it: the end of the text's last line, and the blank line.
            self._name = self._last.name
            for part in (b"", b"", line):
                self._append(offset, part, units)

    def _blank(self, offset: int, units: list[Unit]) -> None:
        if self._data:
            self._dispatch(units)
            last = units[-1]
            self._last = last if isinstance(last, Frame) else None
        elif self._last:
            units.append(Frame("\n", offset, self._last.name))
        else:
            super()._blank(offset, units)
