"""``POST /v1/responses``, as OpenAI defined it and as many servers of other models speak it.

Sources: the OpenAI API reference; llama.cpp ``tools/server``, vLLM ``entrypoints/openai/responses``, Ollama
``openai/responses.go``; the recordings under ``tests/captures``.
"""

from collections.abc import Mapping

from llmstream_cli.events import (
    Event,
    FinishReason,
    Json,
    KeepAlive,
    LogprobsDelta,
    StreamError,
    TimingsReport,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.fields import as_int, as_object, as_text
from llmstream_cli.framing import Frame
from llmstream_cli.request import HttpRequest, Message, Request, merge, split_system, without_none
from llmstream_cli.shapes.base import (
    DEFAULT_ERROR_KIND,
    FrameDecoder,
    Shape,
    bare_error,
    error_from,
    parse_frame,
)
from llmstream_cli.shapes.llamacpp_wire import read_timings
from llmstream_cli.shapes.responses_output import ARGUMENTS, TEXTS, Output

_REASONS = {
    "completed": FinishReason.STOP,
    "incomplete:max_output_tokens": FinishReason.LENGTH,
    "incomplete:content_filter": FinishReason.CONTENT_FILTER,
}
_UNEXPLAINED = StreamError(kind=DEFAULT_ERROR_KIND, message="the server says that the response failed")


class OpenAIResponses(Shape):
    """There is no stop parameter. ``max_output_tokens`` counts reasoning too.

    OpenAI's own models stream a summary of their reasoning only if asked: ``-o reasoning.summary=auto``.
    """

    name = "openai-responses"
    path = "/v1/responses"
    takes = "messages"
    terminal_marker = "response.completed"
    stop_field = None
    max_tokens_field = "max_output_tokens"
    takes_seed = False
    speakers = "OpenAI; llama.cpp, vLLM, Ollama, SGLang, LM Studio"
    completeness = "`response.completed` or `response.incomplete`; not `response.failed` or an `error` event"
    finish_reasons = _REASONS
    usage_field = "response.usage"

    def build(self, request: Request) -> HttpRequest:
        """``store`` is true by default, which keeps the conversation at the server; nothing here needs that.

        llama.cpp drops ``text``, which carries the schema, without a word.
        """
        sampling = request.sampling
        system, messages = split_system(request.messages)
        body = {
            "model": request.model,
            "instructions": system,
            "input": [_item(message) for message in messages],
            "stream": request.stream,
            "store": False,
            "max_output_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "text": _text_format(request.schema),
        }
        return HttpRequest(path=self.path, body=merge(without_none(body), request.options))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _ResponsesDecoder(body)


def _item(message: Message) -> Json:
    """llama.cpp takes an earlier answer only with its ``type``."""
    role = "assistant" if message.role == "assistant" else "user"
    return {"type": "message", "role": role, "content": message.content}


def _text_format(schema: Mapping[str, Json] | None) -> Json:
    return None if schema is None else {"format": {"type": "json_schema", "name": "answer", "schema": schema}}


_SILENT = frozenset(
    {
        "response.content_part.added",
        "response.content_part.done",
        "response.reasoning_part.added",
        "response.reasoning_part.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
    }
)
"""They only frame what other events tell."""
_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class _ResponsesDecoder(FrameDecoder):
    def __init__(self, body: Mapping[str, Json]) -> None:
        super().__init__()
        self.marker_seen = False if body.get("stream") else None
        self._cap = as_int(body.get("max_output_tokens"))
        self._output = Output()
        self._shortfall: StreamError | None = None

    @property
    def unfinished(self) -> StreamError | None:
        return self._shortfall

    def decode(self, frame: Frame) -> list[Event]:
        if frame.data.startswith("[DONE]"):
            # Not of this API: some servers add it. It proves nothing.
            self.done = True
            return []
        value = parse_frame(frame)
        if frame.name == "error":
            return self.fail(bare_error(frame.data if isinstance(value, KeepAlive | UnknownFrame) else value))
        if isinstance(value, KeepAlive | UnknownFrame):
            return [value]
        event = as_object(value)
        kind = as_text(event.get("type")) or frame.name or ""
        events = self._event(kind, event)
        if events is not None:
            return events
        if event.get("object") == "response":
            # The whole answer of a server that does not stream.
            return self._end("", event, event)
        if error := error_from(value):
            return self.fail(error)
        return [UnknownFrame(name=frame.name, data=frame.data)]

    def _event(self, kind: str, event: Mapping[str, Json]) -> list[Event] | None:
        """The events of one of the stream; None for a kind that is not known."""
        name, _, verb = kind.rpartition(".")
        if name in TEXTS and verb in ("delta", "done"):
            events = self._output.text(name, event, is_whole=verb == "done")
            if events and (logprobs := event.get("logprobs")):
                events.append(LogprobsDelta(data=logprobs))
            return events
        if name in ARGUMENTS and verb in ("delta", "done"):
            return self._output.arguments(name, event, is_whole=verb == "done")
        if kind in _TERMINAL:
            return self._end(verb, as_object(event.get("response")), event)
        match kind:
            case "response.created" | "response.queued" | "response.in_progress":
                response = as_object(event.get("response"))
                return self.start(response_id=response.get("id"), model=response.get("model"))
            case "response.output_item.added" | "response.output_item.done":
                return self._output.item(event)
            case "keepalive" | "ping":
                return [KeepAlive(comment=kind)]
            case _:
                return [] if kind in _SILENT else None

    def _end(self, verb: str, response: Mapping[str, Json], event: Mapping[str, Json]) -> list[Event]:
        """The last event. Its ``status`` counts, not its name: vLLM says completed for every end."""
        self.marker_seen = self.done = True
        events = self.start(response_id=response.get("id"), model=response.get("model"))
        if self._output.is_empty:
            events += self._output.all_items(response.get("output"))
        usage = _read_usage(as_object(response.get("usage")))
        if usage:
            events.append(UsageReport(usage=usage))
        if "timings" in event:
            events.append(TimingsReport(timings=read_timings(as_object(event["timings"]))))
        status = as_text(response.get("status")) or verb
        if status == "failed":
            return events + self.fail(error_from(response) or _UNEXPLAINED)
        return [*events, self._finish(status, response, usage)]

    def _finish(self, status: str, response: Mapping[str, Json], usage: Usage | None) -> Event:
        why = as_text(as_object(response.get("incomplete_details")).get("reason"))
        raw = f"{status}:{why}" if status == "incomplete" and why else status
        reason = _REASONS.get(raw, FinishReason.OTHER)
        if reason is FinishReason.OTHER:
            message = f"the server calls the response {raw}"
            self._shortfall = StreamError(kind=raw, message=message)
        elif reason is FinishReason.STOP:
            # llama.cpp and Ollama call a response completed that the cap cut.
            used = usage.completion_tokens if usage else None
            if self._cap is not None and used is not None and used >= self._cap:
                reason = FinishReason.LENGTH
            elif self._output.calls:
                reason = FinishReason.TOOL_CALLS
        return self.finish(reason, raw)


def _read_usage(value: Mapping[str, Json]) -> Usage | None:
    if not value:
        return None
    return Usage(
        prompt_tokens=as_int(value.get("input_tokens")),
        completion_tokens=as_int(value.get("output_tokens")),
        reasoning_tokens=as_int(as_object(value.get("output_tokens_details")).get("reasoning_tokens")),
        cached_tokens=as_int(as_object(value.get("input_tokens_details")).get("cached_tokens")),
        total_tokens=as_int(value.get("total_tokens")),
        raw=value,
    )


SHAPE = OpenAIResponses()
