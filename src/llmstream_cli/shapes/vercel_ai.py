"""The streams of the Vercel AI SDK, which back ends of applications send to their own front ends.

Since version 5 a UI message stream (events with ``{"type": ...}``, then ``[DONE]``), before that lines like
``0:"text"``. Sources: vercel/ai ``packages/ai/src/ui-message-stream``; "Stream Protocol" in the documentation
of version 4.
"""

import json
import re
from collections.abc import Mapping

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
from llmstream_cli.fields import as_int, as_object, as_text, compact
from llmstream_cli.framing import Frame
from llmstream_cli.request import HttpRequest, Message, Request, merge, without_none
from llmstream_cli.shapes.base import (
    DEFAULT_ERROR_KIND,
    FrameDecoder,
    Shape,
    ToolCallMerger,
    bare_error,
    error_from,
    parse_frame,
    reasoning_events,
    text_events,
)

MARKER = "[DONE]"
_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool-calls": FinishReason.TOOL_CALLS,
    "content-filter": FinishReason.CONTENT_FILTER,
    "error": FinishReason.OTHER,
    "other": FinishReason.OTHER,
    "unknown": FinishReason.OTHER,
}
_LINE = re.compile(r"([0-9a-z]):")
_SILENT = frozenset(
    {"start-step", "finish-step", "text-start", "text-end", "reasoning-start", "reasoning-end"}
)
_SILENT_CODES = "eij"
"""The end of a step (the end of the message repeats its counts), reasoning that is not to be read."""


class VercelAi(Shape):
    """What an application wants in its request is its own affair: a profile's ``options`` say it."""

    name = "vercel-ai"
    path = "/api/chat"
    takes = "messages"
    terminal_marker = MARKER
    stop_field = None
    max_tokens_field = None
    takes_seed = False
    speakers = "back ends of applications with the Vercel AI SDK (useChat), in TypeScript and in Python"
    completeness = "`finish`, and no `error` or `abort`; of version 4 the line `d:`, and no line `3:`"
    finish_reasons = _REASONS
    usage_field = "messageMetadata.usage"

    def build(self, request: Request) -> HttpRequest:
        body = {
            "messages": [_message(number, item) for number, item in enumerate(request.messages)],
            "model": request.model,
        }
        return HttpRequest(path=self.path, body=merge(without_none(body), request.options))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:  # noqa: ARG002
        return _MessageDecoder()


def _message(number: int, message: Message) -> Json:
    """``parts`` are what version 5 reads, ``content`` what version 4 does; an ``id`` is wanted by both."""
    return {
        "id": str(number),
        "role": message.role,
        "content": message.content,
        "parts": [{"type": "text", "text": message.content}],
    }


class _MessageDecoder(FrameDecoder):
    """Decodes both forms; only the newer one has a marker."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = ToolCallMerger()
        self._with_arguments: set[str | None] = set()
        self._usage: Usage | None = None

    def decode(self, frame: Frame) -> list[Event]:
        if frame.data.startswith(MARKER):
            self.marker_seen = self.done = True
            return []
        if _LINE.match(frame.data):
            return self._line(frame)
        value = parse_frame(frame)
        if isinstance(value, KeepAlive | UnknownFrame):
            return [value]
        part = as_object(value)
        kind = as_text(part.get("type"))
        if kind is None:
            error = bare_error(value) if frame.name == "error" else error_from(value)
            return self.fail(error) if error else [UnknownFrame(name=frame.name, data=frame.data)]
        self.marker_seen = self.marker_seen or False
        return self._part(kind, part, frame)

    def _part(self, kind: str, part: Mapping[str, Json], frame: Frame) -> list[Event]:
        match kind:
            case "text-delta":
                return text_events(part.get("delta"))
            case "reasoning-delta":
                return reasoning_events(part.get("delta"))
            case "tool-input-start" | "tool-input-delta":
                return self._call(part, part.get("inputTextDelta"))
            case "tool-input-available":
                return self._whole_call(part, part.get("input"))
            case "start" | "message-metadata":
                return self.start(response_id=part.get("messageId")) + self._metadata(part)
            case "finish":
                return self._finish(as_text(part.get("finishReason")), part)
            case "error":
                return self._error(part.get("errorText"))
            case "abort":
                message = as_text(part.get("reason")) or "the server broke the answer off"
                return self.fail(StreamError(kind="abort", message=message))
            case _ if kind in _SILENT:
                return []
            case _:
                return [UnknownFrame(name=kind, data=frame.data)]

    def _call(self, part: Mapping[str, Json], arguments: Json) -> list[Event]:
        """The beginning of a tool call, or a piece of its arguments."""
        call_id, text = as_text(part.get("toolCallId")), as_text(arguments) or ""
        if text:
            self._with_arguments.add(call_id)
        fragment = self._calls.fragment(
            choice=0, index=None, call_id=call_id, name=as_text(part.get("toolName")), arguments=text
        )
        return [fragment] if fragment else []

    def _whole_call(self, part: Mapping[str, Json], arguments: Json) -> list[Event]:
        """A whole call; where its arguments came in pieces, they come again."""
        known = as_text(part.get("toolCallId")) in self._with_arguments
        return self._call(part, None if known else compact({} if arguments is None else arguments))

    def _metadata(self, part: Mapping[str, Json]) -> list[Event]:
        """Applications put the model and the counts here, if they tell them at all."""
        metadata = as_object(part.get("messageMetadata"))
        counts = as_object(metadata.get("totalUsage")) or as_object(metadata.get("usage"))
        return [*self.start(model=metadata.get("model")), *self._report(counts)]

    def _report(self, counts: Mapping[str, Json]) -> list[Event]:
        usage = read_usage(counts)
        if usage is None or usage == self._usage:
            return []
        self._usage = usage
        return [UsageReport(usage=usage)]

    def _finish(self, raw: str | None, part: Mapping[str, Json]) -> list[Event]:
        """The end of the whole message. The reason is optional: then only that it ended is known."""
        reason = FinishReason.STOP if raw is None else _REASONS.get(raw, FinishReason.OTHER)
        events: list[Event] = [self.finish(reason, raw)]
        if raw == "error":
            self._error('the answer ended with finish reason "error"')
        return events + self._metadata(part) + self._report(as_object(part.get("usage")))

    def _error(self, text: Json) -> list[Event]:
        """An error need not be the end: what comes after it is shown, but the answer is not whole."""
        message = as_text(text) or compact(text)
        self.error = self.error or StreamError(kind=DEFAULT_ERROR_KIND, message=message)
        return []

    def _line(self, frame: Frame) -> list[Event]:
        """A line of version 4: a letter for the kind, then JSON."""
        code = frame.data[0]
        try:
            value = json.loads(frame.data[2:])
        except (ValueError, RecursionError):
            return [UnknownFrame(name=code, data=frame.data, readable=False)]
        part = as_object(value)
        match code:
            case "0":
                return text_events(value)
            case "g":
                return reasoning_events(value)
            case "3":
                return self._error(value)
            case "b" | "c":
                return self._call(part, part.get("argsTextDelta"))
            case "9":
                return self._whole_call(part, part.get("args"))
            case "f":
                return self.start(response_id=part.get("messageId"))
            case "d":
                return self._finish(as_text(part.get("finishReason")), part)
            case _ if code in _SILENT_CODES:
                return []
            case _:
                return [UnknownFrame(name=code, data=frame.data)]


def read_usage(counts: Mapping[str, Json]) -> Usage | None:
    """``inputTokens`` ... since version 5, ``promptTokens`` ... before; None where nothing is counted."""

    def count(*keys: str) -> int | None:
        return next((number for key in keys if (number := as_int(counts.get(key))) is not None), None)

    usage = Usage(
        prompt_tokens=count("inputTokens", "promptTokens"),
        completion_tokens=count("outputTokens", "completionTokens"),
        reasoning_tokens=count("reasoningTokens"),
        cached_tokens=count("cachedInputTokens"),
        total_tokens=count("totalTokens"),
        raw=counts,
    )
    return usage if usage != Usage(raw=counts) else None


SHAPE = VercelAi()
