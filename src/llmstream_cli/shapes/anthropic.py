"""``POST /v1/messages``, as Anthropic defined it and as many servers of other models speak it.

Sources: Anthropic's Messages API reference (versions 2023-06-01 and 2026-10-21); llama.cpp ``tools/server``,
vLLM ``entrypoints/anthropic``, Ollama ``anthropic``; the recordings under ``tests/captures``.
"""

from collections.abc import Mapping
from typing import ClassVar

from llmstream_cli.events import (
    Event,
    FinishReason,
    Json,
    KeepAlive,
    ServerDetail,
    StreamError,
    ToolCallDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.fields import as_int, as_object, as_text, compact, objects
from llmstream_cli.framing import Frame
from llmstream_cli.request import HttpRequest, Request, merge, split_system, without_none
from llmstream_cli.shapes.base import (
    FrameDecoder,
    Shape,
    bare_error,
    error_from,
    parse_frame,
    reasoning_events,
    refusal_events,
    text_events,
)

DEFAULT_MAX_TOKENS = 4096
"""The API wants a cap; this one is sent where the user gives none. It is llama.cpp's own default here."""

_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP_SEQUENCE,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.CONTEXT,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.REFUSAL,
    "pause_turn": FinishReason.OTHER,
    "compaction": FinishReason.OTHER,
}
_PAUSES = frozenset({"pause_turn", "compaction"})
"""The message is over, the answer is not: it goes on when the whole conversation is sent again."""


class Anthropic(Shape):
    """The key goes into ``x-api-key``; vLLM accepts only a bearer token (``auth = "bearer"`` in the profile).

    ``anthropic-version`` is `headers`' unless the user sets it; from 2026-10-21 on Anthropic itself refuses
    ``temperature`` and ``top_p``. Anthropic also refuses stop sequences of nothing but white space, as "\\n".
    """

    name = "anthropic"
    path = "/v1/messages"
    takes = "messages"
    terminal_marker = "message_stop"
    stop_field = "stop_sequences"
    max_tokens_field = "max_tokens"
    takes_seed = False
    headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}
    auth = "x-api-key"
    speakers = "Anthropic; llama.cpp, vLLM, Ollama, SGLang, LM Studio"
    completeness = "a `stop_reason`, then `message_stop`; not `pause_turn`, `compaction` or an `error` event"
    finish_reasons = _REASONS
    usage_field = "usage"

    def build(self, request: Request) -> HttpRequest:
        """``output_config`` carries the schema; llama.cpp drops it without a word."""
        sampling = request.sampling
        system, messages = split_system(request.messages)
        body = {
            "model": request.model,
            "max_tokens": sampling.max_tokens or DEFAULT_MAX_TOKENS,
            "system": system,
            "messages": [
                {"role": "assistant" if message.role == "assistant" else "user", "content": message.content}
                for message in messages
            ],
            "stream": request.stream,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "stop_sequences": list(sampling.stop) or None,
            "output_config": _output_config(request.schema),
        }
        return HttpRequest(path=self.path, body=merge(without_none(body), request.options))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _MessagesDecoder(body)


def _output_config(schema: Mapping[str, Json] | None) -> Json:
    return None if schema is None else {"format": {"type": "json_schema", "schema": schema}}


class _MessagesDecoder(FrameDecoder):
    """Blocks are told apart by ``index``; what the server's own tools do passes as `UnknownFrame`.

    ``end_turn`` proves the model's own end only where no stop sequence was sent: Ollama says it for a
    matched one too, and llama.cpp says it and fills ``stop_sequence``.
    """

    def __init__(self, body: Mapping[str, Json]) -> None:
        super().__init__()
        self.marker_seen = False if body.get("stream") else None
        self._end_turn = FinishReason.STOP if body.get("stop_sequences") else FinishReason.EOS
        self._pause: str | None = None
        self._calls = 0
        self._call_of_block: dict[int, int] = {}
        self._foreign: set[int] = set()
        self._opaque: tuple[Json, ...] = ()
        self._counts: Mapping[str, Json] = {}

    @property
    def unfinished(self) -> StreamError | None:
        if self._pause:
            message = f"the server has only paused ({self._pause}), and wants the conversation sent back"
            return StreamError(kind=self._pause, message=message)
        if self.finished and self.marker_seen is False:
            return StreamError(kind="no_terminal_marker", message="the stream ended before message_stop")
        return None

    def decode(self, frame: Frame) -> list[Event]:
        value = parse_frame(frame)
        if frame.name == "error":
            return self.fail(bare_error(frame.data if isinstance(value, KeepAlive | UnknownFrame) else value))
        if isinstance(value, KeepAlive | UnknownFrame):
            return [value]
        event = as_object(value)
        match as_text(event.get("type")) or frame.name:
            case "content_block_delta":
                return self._delta(event, frame)
            case "content_block_start":
                return self._block(as_int(event.get("index")) or 0, as_object(event.get("content_block")))
            case "content_block_stop":
                return []
            case "message_start":
                return self._begin(as_object(event.get("message")))
            case "message_delta":
                return self._end(as_object(event.get("delta")), as_object(event.get("usage")))
            case "message_stop":
                self.marker_seen = self.done = True
                return []
            case "message":
                # The whole answer of a server that does not stream.
                self.marker_seen, self.done = None, True
                return self._message(event)
            case "ping":
                return [KeepAlive(comment="ping")]
        if error := error_from(value):
            return self.fail(error)
        return [UnknownFrame(name=frame.name, data=frame.data)]

    def _begin(self, message: Mapping[str, Json]) -> list[Event]:
        """Relays send the opening twice; an opening of another message means that two answers got mixed."""
        known, named = self._start.response_id, as_text(message.get("id"))
        if known is None:
            return self._message(message)
        if named in (None, known):
            return []
        return self.fail(
            StreamError(kind="mixed_answers", message=f"the answer {named} began inside the answer {known}")
        )

    def _message(self, message: Mapping[str, Json]) -> list[Event]:
        """A whole message, or the opening of one, which may hold the first blocks and even the end."""
        events = self.start(response_id=message.get("id"), model=message.get("model"))
        for block in objects(message.get("content")):
            events += self._block(None, block)
        counts = as_object(message.get("usage"))
        if not message.get("stop_reason"):
            # The opening's count of output is a placeholder.
            counts = {key: count for key, count in counts.items() if key != "output_tokens"}
        return events + self._end(message, counts)

    def _block(self, index: int | None, block: Mapping[str, Json]) -> list[Event]:
        """A block, or its opening; `index` is None where nothing more of it follows."""
        match block.get("type"):
            case "text":
                return text_events(block.get("text"))
            case "thinking":
                return reasoning_events(block.get("thinking")) + self._keep("signature", block)
            case "redacted_thinking":
                return self._keep("data", block)
            case "tool_use":
                number = self._number(index)
                given = block.get("input")
                # In an opening, {} only holds the place.
                arguments = compact(given) if given or (index is None and given is not None) else ""
                name, call_id = as_text(block.get("name")) or "", as_text(block.get("id"))
                return [ToolCallDelta(call=number, id=call_id, name=name, arguments=arguments)]
            case other:
                if index is not None:
                    self._foreign.add(index)
                return [UnknownFrame(name=as_text(other), data=compact(block))]

    def _delta(self, event: Mapping[str, Json], frame: Frame) -> list[Event]:
        index, delta = as_int(event.get("index")) or 0, as_object(event.get("delta"))
        match delta.get("type"):
            case "text_delta":
                return text_events(delta.get("text"))
            case "thinking_delta":
                return reasoning_events(delta.get("thinking"))
            case "signature_delta":
                return self._keep("signature", delta)
            case "input_json_delta" if index not in self._foreign:
                fragment = as_text(delta.get("partial_json"))
                number = self._call_of_block.get(index)
                if number is None:
                    number = self._number(index)
                return [ToolCallDelta(call=number, arguments=fragment)] if fragment else []
            case _:
                return [UnknownFrame(name=frame.name, data=frame.data)]

    def _number(self, index: int | None) -> int:
        """The number of a new call."""
        number, self._calls = self._calls, self._calls + 1
        if index is not None:
            self._call_of_block[index] = number
        return number

    def _keep(self, key: str, holder: Mapping[str, Json]) -> list[Event]:
        """What nobody can read but the server wants back: signatures and redacted thinking."""
        value = as_text(holder.get(key))
        if value is None:
            return []
        self._opaque = (*self._opaque, {key: value})
        return [ServerDetail(data={"thinking": list(self._opaque)})]

    def _end(self, delta: Mapping[str, Json], counts: Mapping[str, Json]) -> list[Event]:
        events: list[Event] = []
        raw = as_text(delta.get("stop_reason"))
        if raw is not None:
            if details := as_object(delta.get("stop_details")):
                events += refusal_events(details.get("explanation"))
                events.append(ServerDetail(data={"stop_details": details}))
            self._pause = raw if raw in _PAUSES else None
            matched = as_text(delta.get("stop_sequence"))
            reason = _REASONS.get(raw, FinishReason.OTHER)
            if raw == "end_turn":
                reason = FinishReason.STOP_SEQUENCE if matched else self._end_turn
            events.append(self.finish(reason, raw, stop_sequence=matched))
        return events + self._report(counts)

    def _report(self, counts: Mapping[str, Json]) -> list[Event]:
        """Every report holds totals so far, and what it leaves out stays as it was."""
        known = {**self._counts, **without_none(counts)}
        if known == self._counts:
            return []
        self._counts = known
        return [UsageReport(usage=_read_usage(known))]


def _read_usage(counts: Mapping[str, Json]) -> Usage:
    """``input_tokens`` counts only what no cache held: the prompt is its sum with the two cache counts."""
    fresh, cached = as_int(counts.get("input_tokens")), as_int(counts.get("cache_read_input_tokens"))
    written = as_int(counts.get("cache_creation_input_tokens"))
    details = as_object(counts.get("output_tokens_details"))
    return Usage(
        prompt_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        completion_tokens=as_int(counts.get("output_tokens")),
        reasoning_tokens=as_int(details.get("thinking_tokens")),
        cached_tokens=cached,
        raw=counts,
    )


SHAPE = Anthropic()
