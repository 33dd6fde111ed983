"""Plain text from an application's own back end: ``StreamingResponse(..., media_type="text/plain")``."""

from collections.abc import Mapping
from typing import ClassVar

from llmstream_cli.events import Event, FinishReason, Json
from llmstream_cli.framing import Frame
from llmstream_cli.shapes.base import FrameDecoder
from llmstream_cli.shapes.end_marks import END_OF_BODY, EndMarks
from llmstream_cli.shapes.generic import GenericDecoder, GenericShape
from llmstream_cli.shapes.stream_table import StreamTable


class Text(GenericShape):
    """Plain text has no end but the body's, unless the profile's ``done`` names a text that comes last."""

    name = "text"
    framing = "text"
    default_data = "text"
    speakers = "back ends that stream nothing but the text"
    completeness = "the whole body, in good order, or the end mark that the profile names"
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {}
    usage_field = None
    default_done = (END_OF_BODY,)

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:  # noqa: ARG002
        return _TextDecoder(self.table, self.marks)


class _TextDecoder(GenericDecoder):
    """Holds back what may be the beginning of an end mark."""

    def __init__(self, table: StreamTable, marks: EndMarks) -> None:
        super().__init__(table, marks, "text")
        self._held = ""

    def decode(self, frame: Frame) -> list[Event]:
        if frame.whole:
            self._json_is_text, self._language = False, "auto"
            return super().decode(frame)
        text = self._held + frame.data
        self._held = ""
        ends = [at for mark in self._marks.literals if (at := text.find(mark)) >= 0]
        if ends:
            return self._end(self._say(text[: min(ends)], "text"))
        if held := self._may_begin_a_mark(text):
            text, self._held = text[:-held], text[-held:]
        return self._say(text, "text")

    def end_of_body(self, *, clean: bool) -> list[Event]:
        held = self._say(self._held, "text") if self._held else []
        return held + super().end_of_body(clean=clean)

    def _may_begin_a_mark(self, text: str) -> int:
        """How many characters at the end of `text` are the beginning of a mark."""
        sizes = (
            size
            for mark in self._marks.literals
            for size in range(min(len(mark) - 1, len(text)), 0, -1)
            if text.endswith(mark[:size])
        )
        return max(sizes, default=0)

    def _mislabelled(self, frame: Frame) -> list[Event]:
        if frame.data.lstrip()[:1] == "<":
            return super()._mislabelled(frame)
        return self._say(frame.data, "text")


SHAPE = Text()
