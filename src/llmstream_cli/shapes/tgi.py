"""``POST /generate_stream`` and ``/generate`` of Hugging Face's text-generation-inference.

Sources: TGI ``router/src/{server,lib,validation}.rs``, ``server/.../utils/tokens.py`` (3.3.7).
"""

from collections.abc import Mapping

from llmstream_cli.events import (
    Event,
    FinishReason,
    Json,
    KeepAlive,
    LogprobsDelta,
    TextDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.fields import as_int, as_list, as_object, as_text
from llmstream_cli.framing import Frame
from llmstream_cli.request import HttpRequest, Request, Sampling, merge, without_none
from llmstream_cli.shapes.base import FrameDecoder, Shape, bare_error, error_from, parse_frame, text_events

_REASONS = {
    "length": FinishReason.LENGTH,
    "eos_token": FinishReason.EOS,
    "stop_sequence": FinishReason.STOP_SEQUENCE,
}
_COUNTS = ("input_length", "generated_tokens")


class Tgi(Shape):
    name = "tgi"
    path = "/generate_stream"
    takes = "prompt"
    stop_field = "parameters.stop"
    max_tokens_field = "parameters.max_new_tokens"
    also_at = ("/generate",)
    speakers = "Hugging Face text-generation-inference"
    completeness = "a `generated_text` that is not null; there is no marker"
    finish_reasons = _REASONS
    usage_field = "details.generated_tokens"

    def build(self, request: Request) -> HttpRequest:
        """Streaming or not is a matter of the path. ``details`` is what brings a finish reason."""
        sampling = request.sampling
        parameters = {
            "details": True,
            "max_new_tokens": sampling.max_tokens,
            **_sampling(sampling),
            "stop": list(sampling.stop) or None,
            "grammar": {"type": "json", "value": request.schema} if request.schema is not None else None,
        }
        body = {"inputs": request.prompt, "parameters": without_none(parameters)}
        path = self.path if request.stream else "/generate"
        return HttpRequest(path=path, body=merge(without_none(body), request.options))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _GenerateDecoder(body)


def _sampling(sampling: Sampling) -> dict[str, Json]:
    """Greedy unless something asks for sampling.

    TGI refuses a temperature of 0, which means greedy everywhere else, and a top_p of 1, which means
    nothing. A top_p makes it sample even where ``do_sample`` is false.
    """
    if sampling.temperature == 0:
        return {"do_sample": False}
    top_p = None if sampling.top_p == 1 else sampling.top_p
    asked = (sampling.temperature, top_p, sampling.seed)
    return {
        "do_sample": True if any(value is not None for value in asked) else None,
        "temperature": sampling.temperature,
        "top_p": top_p,
        "seed": sampling.seed,
    }


class _GenerateDecoder(FrameDecoder):
    """There is no terminal marker: the last frame is the one whose ``generated_text`` is not null."""

    def __init__(self, body: Mapping[str, Json]) -> None:
        super().__init__()
        stops = as_list(as_object(body.get("parameters")).get("stop"))
        self._stops = [stop for stop in map(as_text, stops) if stop]

    def decode(self, frame: Frame) -> list[Event]:
        value = parse_frame(frame)
        if frame.name == "error":
            return self.fail(bare_error(frame.data if isinstance(value, KeepAlive | UnknownFrame) else value))
        if isinstance(value, KeepAlive | UnknownFrame):
            return [value]
        if isinstance(value, list) and value:
            # The route `/` answers with a list where it does not stream.
            value = value[0]
        if not isinstance(value, dict):
            return [UnknownFrame(name=frame.name, data=frame.data)]
        if "error" in value and (error := error_from(value)):
            return self.fail(error)
        if "token" not in value and "generated_text" not in value:
            return [UnknownFrame(name=frame.name, data=frame.data)]
        return self._token(value)

    def _token(self, value: Mapping[str, Json]) -> list[Event]:
        events: list[Event] = []
        whole = value.get("generated_text")
        if "token" in value:
            token = as_object(value["token"])
            if token.get("special") is not True:
                events += text_events(token.get("text"))
            if value.get("top_tokens"):
                events.append(LogprobsDelta(data={"token": token, "top_tokens": value["top_tokens"]}))
        elif isinstance(whole, str) and whole:
            events.append(TextDelta(text=whole))
        if isinstance(whole, str):
            self._end(whole, as_object(value.get("details")), events)
        return events

    def _end(self, whole: str, details: Mapping[str, Json], events: list[Event]) -> None:
        self.done = True
        raw = as_text(details.get("finish_reason"))
        # Without details (not asked for) the text itself proves that the answer is finished.
        reason = FinishReason.STOP if raw is None else _REASONS.get(raw, FinishReason.OTHER)
        matched = self._matched_stop(whole) if reason is FinishReason.STOP_SEQUENCE else None
        events.append(self.finish(reason, raw, stop_sequence=matched))
        prompt, completion = (as_int(details.get(key)) for key in _COUNTS)
        if prompt is not None or completion is not None:
            raw_counts = {key: details[key] for key in _COUNTS if key in details}
            usage = Usage(prompt_tokens=prompt, completion_tokens=completion, raw=raw_counts)
            events.append(UsageReport(usage=usage))

    def _matched_stop(self, whole: str) -> str | None:
        """The server does not say which, but leaves it in the text, at the end or before a last line feed."""
        fitting = {stop for stop in self._stops if whole.endswith((stop, f"{stop}\n"))}
        return fitting.pop() if len(fitting) == 1 else None


SHAPE = Tgi()
