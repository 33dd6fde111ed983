"""What ``/api/chat`` and ``/api/generate`` of Ollama have in common, in the request and in the answer.

Sources: Ollama ``api/types.go``, ``server/routes.go``.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from llmstream_cli.events import (
    Event,
    FinishReason,
    Json,
    KeepAlive,
    LogprobsDelta,
    ServerTimings,
    StreamError,
    TimingsReport,
    ToolCallDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.fields import as_int, as_object, as_text, compact, objects, seconds
from llmstream_cli.framing import Frame
from llmstream_cli.request import Request, merge, without_none
from llmstream_cli.shapes.base import FrameDecoder, bare_error, error_from, parse_frame

REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}
_NANOSECONDS = 1e9
_COUNTS = ("prompt_eval_count", "eval_count")
COMPLETENESS = '`"done": true`'


def build_body(request: Request, content: Mapping[str, Json]) -> dict[str, Json]:
    """The JSON body: `content` (messages or prompt), the settings under ``options``, the user's own over all.

    ``stream`` is always told, because its default is true; a top-level ``stop`` would be dropped in silence.
    """
    sampling = request.sampling
    options = {
        "num_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
    }
    body = {
        "model": request.model,
        **content,
        "stream": request.stream,
        "format": request.schema,
        "options": without_none(options) or None,
    }
    return merge(without_none(body), request.options)


class OllamaDecoder(FrameDecoder):
    """Decodes the lines of both endpoints; `output` is what differs: where a line keeps what the model said.

    The terminal marker is ``"done": true``. Without it an answer is not finished, even if the body ends
    properly: Ollama breaks off like that when a model repeats itself.
    """

    def __init__(self, body: Mapping[str, Json]) -> None:
        super().__init__()
        self.marker_seen = None if body.get("stream") is False else False
        self._calls = 0

    @abstractmethod
    def output(self, line: Mapping[str, Json]) -> list[Event] | None:
        """The reasoning, text and tool calls of a line; None if it has none of their fields."""

    def decode(self, frame: Frame) -> list[Event]:
        line = parse_frame(frame)
        if frame.name == "error":
            return self.fail(bare_error(frame.data if isinstance(line, KeepAlive | UnknownFrame) else line))
        if isinstance(line, KeepAlive | UnknownFrame):
            return [line]
        if not isinstance(line, dict):
            return [UnknownFrame(name=frame.name, data=frame.data)]
        if "error" in line and (error := _read_error(line)):
            return self.fail(error)
        output = self.output(line)
        if output is None and "done" not in line:
            return [UnknownFrame(name=frame.name, data=frame.data)]
        events = [*self.start(model=line.get("model")), *(output or ())]
        if logprobs := line.get("logprobs"):
            events.append(LogprobsDelta(data=logprobs))
        if line.get("done") is True:
            self._end(line, events)
        return events

    def tool_calls(self, calls: Json) -> list[Event]:
        """Whole calls. ``index`` is not relied on: it is missing in old versions and was once always 0."""
        events: list[Event] = []
        for call in objects(calls):
            function = as_object(call.get("function"))
            arguments = function.get("arguments")
            events.append(
                ToolCallDelta(
                    call=self._calls,
                    id=as_text(call.get("id")),
                    name=as_text(function.get("name")) or "",
                    arguments=arguments if isinstance(arguments, str) else compact(arguments or {}),
                )
            )
            self._calls += 1
        return events

    def _end(self, line: Mapping[str, Json], events: list[Event]) -> None:
        self.done = True
        if self.marker_seen is False:
            self.marker_seen = True
        raw = as_text(line.get("done_reason"))
        # Old versions give no reason: "done" alone says that the server ended the answer.
        reason = FinishReason.STOP if raw is None else REASONS.get(raw, FinishReason.OTHER)
        events.append(self.finish(reason, raw))
        counts = {key: line[key] for key in _COUNTS if key in line}
        if counts:
            prompt, completion = (as_int(counts.get(key)) for key in _COUNTS)
            usage = Usage(prompt_tokens=prompt, completion_tokens=completion, raw=counts)
            events.append(UsageReport(usage=usage))
        timings = _read_timings(line)
        if timings != ServerTimings():
            events.append(TimingsReport(timings=timings))


def _read_timings(line: Mapping[str, Json]) -> ServerTimings:
    """Ollama counts in nanoseconds."""
    return ServerTimings(
        load_s=seconds(line.get("load_duration"), per_second=_NANOSECONDS),
        prefill_s=seconds(line.get("prompt_eval_duration"), per_second=_NANOSECONDS),
        decode_s=seconds(line.get("eval_duration"), per_second=_NANOSECONDS),
    )


def _read_error(line: Mapping[str, Json]) -> StreamError | None:
    """``{"error": "text"}``; some versions add the HTTP status that could no longer be sent."""
    error = error_from(line)
    status = as_int(line.get("status"))
    return replace(error, http_status=status) if error and status else error
