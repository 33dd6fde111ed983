"""``POST /completion``, llama.cpp's native endpoint: a text prompt in, its continuation out.

The only endpoint of llama.cpp that says why an answer ended and which stop string matched. There is no
terminal marker: an answer is over when a frame with ``"stop": true`` came for every prompt, ``n`` times.
"""

from collections.abc import Mapping

from llmstream_cli.events import (
    Event,
    FinishReason,
    Json,
    KeepAlive,
    LogprobsDelta,
    ServerDetail,
    TimingsReport,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.fields import as_int, as_list, as_object, as_text, objects
from llmstream_cli.framing import Frame
from llmstream_cli.request import HttpRequest, Request, merge, without_none
from llmstream_cli.shapes.base import FrameDecoder, Shape, bare_error, error_from, parse_frame, text_events
from llmstream_cli.shapes.llamacpp_wire import context_full, read_progress, read_stop_type, read_timings
from llmstream_cli.shapes.prompts import count_prompts

_REASONS = {
    "eos": FinishReason.EOS,
    "word": FinishReason.STOP_SEQUENCE,
    "limit": FinishReason.LENGTH,
}
_CAP_FIELDS = ("n_predict", "max_completion_tokens", "max_tokens")
"""The names of the cap; the first one in a request counts."""
_KNOWN_FIELDS = frozenset({"content", "stop", "stop_type", "prompt_progress", "timings"})
_COUNTS = ("tokens_evaluated", "tokens_predicted", "tokens_cached")
_NO_DETAIL = frozenset({"content", "tokens", "completion_probabilities"})


class LlamaCpp(Shape):
    name = "llamacpp"
    path = "/completion"
    takes = "prompt"
    stop_field = "stop"
    max_tokens_field = "n_predict"
    also_at = ("/completions",)
    speakers = "llama.cpp `llama-server`"
    completeness = '`"stop": true` for every answer; the connection closes after it, there is no marker'
    finish_reasons = _REASONS
    usage_field = "tokens_evaluated, tokens_predicted"

    def build(self, request: Request) -> HttpRequest:
        """``model`` chooses one where the server is a router; a server with one model ignores it."""
        sampling = request.sampling
        body = {
            "model": request.model,
            "prompt": request.prompt,
            "stream": request.stream,
            "return_progress": True if request.stream else None,
            "n_predict": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            "json_schema": request.schema,
        }
        return HttpRequest(path=self.path, body=merge(without_none(body), request.options))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _CompletionDecoder(body)


class _CompletionDecoder(FrameDecoder):
    def __init__(self, body: Mapping[str, Json]) -> None:
        copies = as_int(body.get("n_cmpl")) or as_int(body.get("n")) or 1
        super().__init__(count_prompts(body.get("prompt")) * max(1, copies))
        caps = (as_int(body[key]) for key in _CAP_FIELDS if body.get(key) is not None)
        self._cap = next(caps, None)
        self._with_logprobs: set[int] = set()
        self._usage: Usage | None = None

    def decode(self, frame: Frame) -> list[Event]:
        value = parse_frame(frame)
        if frame.name == "error":
            # `error: {...}` of old builds. Capture: llama.cpp-2024/err_bad_grammar_stream.
            return self.fail(bare_error(frame.data if isinstance(value, KeepAlive | UnknownFrame) else value))
        if isinstance(value, KeepAlive | UnknownFrame):
            return [value]
        if isinstance(value, dict):
            events = self._object(value, frame)
        elif isinstance(value, list):
            events = self._answers(value, frame)
        else:
            # `data: null` stands between the answers. Capture: llama.cpp/native_array_prompts_stream.
            events = [] if value is None else [UnknownFrame(name=frame.name, data=frame.data)]
        self.done = self.done or self.complete
        return events

    def _object(self, value: Mapping[str, Json], frame: Frame) -> list[Event]:
        if "error" in value and (error := error_from(value)):
            return self.fail(error)
        if "results" in value:
            return self._answers(as_list(value["results"]), frame)
        if not _KNOWN_FIELDS.isdisjoint(value):
            return self._answer(value, as_int(value.get("index")) or 0)
        return [UnknownFrame(name=frame.name, data=frame.data)]

    def _answers(self, items: list[Json], frame: Frame) -> list[Event]:
        """Several answers in one document: a list, in 2024 ``{"results": [...]}`` without ``index``.

        A stream of 2024 puts the pieces of all answers into such a list, and nothing tells whose they are.
        Captures: llama.cpp-2024/native_array, llama.cpp-2024/native_array_stream.
        """
        answers = list(objects(items))
        if not answers:
            return [UnknownFrame(name=frame.name, data=frame.data)]
        whole = all(answer.get("stop") is True for answer in answers)
        events: list[Event] = []
        for position, answer in enumerate(answers):
            index = as_int(answer.get("index"))
            events += self._answer(answer, (position if whole else 0) if index is None else index)
        return events

    def _answer(self, answer: Mapping[str, Json], index: int) -> list[Event]:
        events = text_events(answer.get("content"), index)
        if "prompt_progress" in answer:
            events.append(read_progress(as_object(answer["prompt_progress"])))
        ended = answer["stop"] is True if "stop" in answer else read_stop_type(answer) is not None
        # The terminal frame of 2024 repeats them all. Capture: llama.cpp-2024/native_n_probs_stream.
        logprobs = answer.get("completion_probabilities")
        if logprobs and not (ended and index in self._with_logprobs):
            self._with_logprobs.add(index)
            events.append(LogprobsDelta(data=logprobs, choice=index))
        if ended:
            self._end(answer, index, events)
        # Parallel answers overlap in time: no duration of one stands for all.
        if self.choices == 1 and (timings := as_object(answer.get("timings"))):
            events.append(TimingsReport(timings=read_timings(timings)))
        return events

    def _end(self, answer: Mapping[str, Json], index: int, events: list[Event]) -> None:
        """A terminal frame; the option ``response_fields`` may have left little of it."""
        events += self.start(model=answer.get("model"))
        events.append(ServerDetail(data={key: answer[key] for key in answer if key not in _NO_DETAIL}))
        stop_type = read_stop_type(answer)
        reason = FinishReason.STOP if stop_type is None else _REASONS.get(stop_type, FinishReason.OTHER)
        if reason is FinishReason.LENGTH and context_full(answer, cap=self._cap):
            reason = FinishReason.CONTEXT
        word = as_text(answer.get("stopping_word"))
        events.append(self.finish(reason, stop_type, choice=index, stop_sequence=word))
        if any(key in answer for key in _COUNTS):
            self._usage = self._with_counts(answer)
            events.append(UsageReport(usage=self._usage))

    def _with_counts(self, answer: Mapping[str, Json]) -> Usage:
        """The sum so far: each terminal frame counts its own answer only."""
        before = self._usage or Usage()
        cached = as_int(as_object(answer.get("timings")).get("cache_n"))
        return Usage(
            prompt_tokens=_add(before.prompt_tokens, as_int(answer.get("tokens_evaluated"))),
            completion_tokens=_add(before.completion_tokens, as_int(answer.get("tokens_predicted"))),
            # Not `tokens_cached`: that is how much the cache holds after the answer.
            cached_tokens=_add(before.cached_tokens, cached),
            raw={key: answer[key] for key in _COUNTS if key in answer},
        )


def _add(before: int | None, more: int | None) -> int | None:
    return more if before is None else before + (more or 0)


SHAPE = LlamaCpp()
