"""What the back ends of applications send, read as the table ``stream`` of a profile says.

An answer is complete when its end mark or a finish reason came. The end of the body is the end of the answer
only where the profile says ``done = "eof"`` (and in plain text, which has nothing else), and only if the
transport saw the whole body.
"""

import json
from collections.abc import Mapping
from typing import ClassVar, Literal

from llmstream_cli.events import (
    Event,
    FinishReason,
    Json,
    KeepAlive,
    StreamError,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.fields import as_int, as_object, as_text, look_up
from llmstream_cli.framing import Frame
from llmstream_cli.request import HttpRequest, Request, merge
from llmstream_cli.shapes.base import FrameDecoder, Shape, bare_error, error_from, text_events
from llmstream_cli.shapes.end_marks import EndMarks
from llmstream_cli.shapes.request_template import fill_template, find_place
from llmstream_cli.shapes.stream_table import DONE, TEXT, StreamTable

REASONS = {
    "stop": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "eos": FinishReason.EOS,
    "eos_token": FinishReason.EOS,
    "stop_sequence": FinishReason.STOP_SEQUENCE,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.REFUSAL,
}
_PROMPT_COUNTS = ("prompt_tokens", "input_tokens", "prompt_eval_count")
_COMPLETION_COUNTS = ("completion_tokens", "output_tokens", "generated_tokens", "eval_count")
_KEEP_ALIVES = frozenset({"ping", "heartbeat", "keepalive", "keep-alive", "keep_alive"})
_ASIDES = _KEEP_ALIVES | {
    "start",
    "status",
    "progress",
    "metadata",
    "info",
    "debug",
    "source",
    "sources",
    "citation",
    "citations",
    "context",
    "tool_call",
    "tool_result",
}
"""Values of ``type`` or ``event`` in an object whose texts are not the answer."""
UNNAMED = "message"
"""What the standard calls an event without a name."""
_NO_JSON = object()

Language = Literal["auto", "json", "text"]


class GenericShape(Shape):
    takes = "messages"
    completeness = "an end mark or a finish reason; the end of the body only where the profile says so"
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = REASONS
    usage_field: ClassVar[str | None] = "usage"
    default_data: ClassVar[Language]
    default_done: ClassVar[tuple[str, ...]] = DONE
    has_events: ClassVar[bool] = False

    def __init__(self, table: StreamTable | None = None) -> None:
        self.table = table or StreamTable()
        self.marks = EndMarks.parse(self.table.done or self.default_done)
        self.path = self.table.path
        self.stop_field = find_place(self.table.body, "stop")
        self.max_tokens_field = find_place(self.table.body, "max_tokens")
        self.takes_seed = find_place(self.table.body, "seed") is not None
        if not self.marks.body:
            configured = " or ".join(self.table.done or ())
            self.terminal_marker = configured or 'an end mark ("done" in the profile)'

    def configured(self, table: Mapping[str, Json]) -> Shape:
        if "events" in table and not self.has_events:
            raise ValueError(f"has events, which the shape {self.name} has not")
        return type(self)(StreamTable.from_mapping(table))

    def build(self, request: Request) -> HttpRequest:
        body = merge(fill_template(self.table.body, request), request.options)
        return HttpRequest(path=self.path, body=body, method=self.table.method)

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:  # noqa: ARG002
        return GenericDecoder(self.table, self.marks, self.table.data or self.default_data)


class GenericDecoder(FrameDecoder):
    """Reads objects, JSON strings and bare text.

    `language` "auto": the first text decides, so that a model's own ``42`` or ``"yes"`` in a stream of bare
    texts is not taken for JSON, nor half an object for text.
    """

    def __init__(self, table: StreamTable, marks: EndMarks, language: Language) -> None:
        super().__init__()
        self.marker_seen = None if table.done is None or marks.body else False
        self._table = table
        self._marks = marks
        self._language = language
        self._json_is_text = language == "text"
        self._text_paths = table.text
        self._said = self._cut = False

    def decode(self, frame: Frame) -> list[Event]:
        return self._document(frame) if frame.whole else self._event(frame)

    def end_of_body(self, *, clean: bool) -> list[Event]:
        if clean and self._marks.body and not self._cut and not self.finished:
            return [self.finish(FinishReason.STOP, None)]
        return []

    def _event(self, frame: Frame) -> list[Event]:
        if self._marks.in_data(frame.data):
            return self._end([])
        value = self._parse(frame.data)
        if frame.name == "error":
            return self.fail(bare_error(frame.data if value is _NO_JSON else value))
        if self._marks.in_name(frame.name):
            return self._end(self._report(as_object(value), with_text=not self._said))
        if frame.name in _KEEP_ALIVES or not frame.data:
            return [KeepAlive(comment=frame.name or "")]
        if (frame.name or UNNAMED) not in self._table.events:
            return [UnknownFrame(name=frame.name, data=frame.data)]
        return self._payload(value, frame)

    def _parse(self, data: str) -> Json:
        if self._json_is_text:
            return _NO_JSON
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return _NO_JSON

    def _payload(self, value: Json, frame: Frame) -> list[Event]:
        self._cut = False
        if isinstance(value, dict) and value:
            events = self._report(value, with_text=self._language != "text")
            if events or self.done:
                return events
        elif isinstance(value, str) and self._language != "text":
            return self._say(value, "json")
        if self._language == "text" or (
            self._language == "auto" and not isinstance(value, dict) and frame.data[:1] != "{"
        ):
            return self._bare_text(frame)
        self._cut = value is _NO_JSON
        return [UnknownFrame(name=frame.name, data=frame.data, readable=not self._cut)]

    def _bare_text(self, frame: Frame) -> list[Event]:
        """Half an event may be half a character, or half of the end mark: it is kept, and not said."""
        self._cut = frame.cut
        if frame.cut:
            return [UnknownFrame(name=frame.name, data=frame.data, readable=False, cut=True)]
        return self._say(frame.data, "text")

    def _say(self, text: str, language: Language) -> list[Event]:
        self._language = language
        self._said = True
        # More output takes an early finish reason back.
        self.finished.clear()
        return text_events(text)

    def _report(self, value: Mapping[str, Json], *, with_text: bool) -> list[Event]:
        """Everything that one object says: error, text, usage, finish reason, end."""
        if error := self._error(value):
            return self.fail(error)
        is_end = self._marks.in_field(value)
        events: list[Event] = []
        # An object that is the end by its type repeats the whole answer where it has text at all.
        if with_text and not (is_end and self._said) and (text := self._text(value)):
            events += self._say(text, "json")
        if usage := self._usage(value):
            events.append(UsageReport(usage=usage))
        raw = self._first_text(value, self._table.finish)
        if raw and not self.finished:
            events.append(self.finish(REASONS.get(raw, FinishReason.OTHER), raw))
        return self._end(events) if is_end or self._marks.in_flag(value) else events

    def _end(self, events: list[Event]) -> list[Event]:
        if self.error is None:
            self.marker_seen = self.done = True
            if not self.finished:
                events.append(self.finish(FinishReason.STOP, None))
        return events

    def _error(self, value: Mapping[str, Json]) -> StreamError | None:
        found = next((item for path in self._table.error if (item := look_up(value, path))), None)
        if found is None:
            return error_from(value) if value.get("type") == "error" else None
        if found is True:
            return bare_error({key: item for key, item in value.items() if item is not True})
        return (error_from(value) if found is value.get("error") else None) or bare_error(found)

    def _text(self, value: Mapping[str, Json]) -> str | None:
        """The text at the first path that ever held one: what another holds later repeats it."""
        if self._table.text is TEXT and (value.get("type") or value.get("event")) in _ASIDES:
            return None
        for path in self._text_paths:
            if text := as_text(look_up(value, path)):
                self._text_paths = (path,)
                return text
        return None

    def _usage(self, value: Mapping[str, Json]) -> Usage | None:
        counts = next((found for path in self._table.usage if (found := as_object(look_up(value, path)))), {})
        usage = Usage(
            prompt_tokens=_first_count(counts, _PROMPT_COUNTS),
            completion_tokens=_first_count(counts, _COMPLETION_COUNTS),
            total_tokens=as_int(counts.get("total_tokens")),
            raw=counts,
        )
        known = (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
        return usage if any(known) else None

    @staticmethod
    def _first_text(value: Mapping[str, Json], paths: tuple[str, ...]) -> str | None:
        return next((text for path in paths if (text := as_text(look_up(value, path)))), None)

    def _document(self, frame: Frame) -> list[Event]:
        """One JSON document is proof of its own end; lines of JSON may bear its content type too."""
        value = self._parse(frame.data)
        if value is _NO_JSON:
            return self._mislabelled(frame)
        events = self._payload(value, frame)
        if self._said and not self.done:
            self.done = True
            if not self.finished:
                events.append(self.finish(FinishReason.STOP, None))
        return events

    def _mislabelled(self, frame: Frame) -> list[Event]:
        events: list[Event] = []
        if frame.data.lstrip()[:1] != "{":
            self._cut = True
            return [UnknownFrame(name=None, data=frame.data, readable=False)]
        for line in filter(str.strip, frame.data.split("\n")):
            if self.done:
                break
            events += self._event(Frame(line, frame.offset))
        return events


def _first_count(counts: Mapping[str, Json], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := as_int(counts.get(name))) is not None), None)
