"""``POST /generate``, SGLang's native endpoint: a text prompt in, its continuation out.

Sources: SGLang ``entrypoints/http_server.py``, ``managers/{tokenizer_manager,schedule_batch}.py``,
``sampling/sampling_params.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from llmstream_cli.events import (
    Event,
    FinishReason,
    Json,
    KeepAlive,
    LogprobsDelta,
    StreamError,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.fields import as_int, as_list, as_object, as_text, compact, objects
from llmstream_cli.framing import Frame
from llmstream_cli.request import HttpRequest, Request, merge, without_none
from llmstream_cli.shapes.base import FrameDecoder, Shape, bare_error, error_from, parse_frame, text_events
from llmstream_cli.shapes.prompts import count_prompts

MARKER = "[DONE]"
_REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}
_COUNTS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
_NUMERIC_FAILURE = "NaN happened"


class Sglang(Shape):
    name = "sglang"
    path = "/generate"
    takes = "prompt"
    terminal_marker = MARKER
    stop_field = "sampling_params.stop"
    max_tokens_field = "sampling_params.max_new_tokens"
    speakers = "SGLang"
    completeness = "a `finish_reason` that is not `abort` for every choice"
    finish_reasons = _REASONS
    usage_field = "meta_info"

    def build(self, request: Request) -> HttpRequest:
        """There is no field for a model: a server has one."""
        sampling = request.sampling
        parameters = {
            "max_new_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "sampling_seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            # The schema is wanted as text.
            "json_schema": compact(request.schema) if request.schema is not None else None,
        }
        body = {
            "text": request.prompt,
            "sampling_params": without_none(parameters) or None,
            "stream": request.stream,
        }
        return HttpRequest(path=self.path, body=merge(without_none(body), request.options))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _GenerateDecoder(body)


@dataclass(slots=True)
class _SoFar:
    """What one choice has said. ``logprobs``: how many were delivered."""

    text: str = ""
    logprobs: int = 0
    usage: Usage | None = None


class _GenerateDecoder(FrameDecoder):
    """Every frame holds the whole text so far, or with ``--incremental-streaming-output`` only what is new.

    Which of the two is decided once for a stream, at the first frame that tells.
    """

    def __init__(self, body: Mapping[str, Json]) -> None:
        parameters = as_object(body.get("sampling_params"))
        self._prompts = count_prompts(body.get("text"))
        super().__init__(self._prompts * max(1, as_int(parameters.get("n")) or 1))
        self.marker_seen = False if body.get("stream") else None
        self._cap = as_int(parameters.get("max_new_tokens"))
        self._is_cumulative: bool | None = None
        self._said: dict[int, _SoFar] = {}

    def decode(self, frame: Frame) -> list[Event]:
        if frame.data.startswith(MARKER):
            self.marker_seen = self.done = True
            return []
        value = parse_frame(frame)
        if frame.name == "error":
            return self.fail(bare_error(frame.data if isinstance(value, KeepAlive | UnknownFrame) else value))
        if isinstance(value, KeepAlive | UnknownFrame):
            return [value]
        if error := error_from(value):
            return self.fail(error)
        # Where it does not stream, the answers to several prompts are one list.
        answers = list(objects(value)) if isinstance(value, list) else [as_object(value)]
        if not any("meta_info" in answer or "text" in answer for answer in answers):
            return [UnknownFrame(name=frame.name, data=frame.data)]
        events: list[Event] = []
        for position, answer in enumerate(answers):
            index = as_int(answer.get("index"))
            self._answer(answer, position if index is None else index, events)
        return events

    def _answer(self, answer: Mapping[str, Json], index: int, events: list[Event]) -> None:
        so_far = self._said.setdefault(index, _SoFar())
        meta = as_object(answer.get("meta_info"))
        if self.choices == 1:
            events += self.start(response_id=meta.get("id"))
        text = as_text(answer.get("text"))
        if text:
            if so_far.text and self._is_cumulative is None:
                self._is_cumulative = _is_cumulative(answer, meta, so_far.text)
            events += text_events(self._news(text, so_far), index)
        self._logprobs(as_list(meta.get("output_token_logprobs")), so_far, index, events)
        if finish := meta.get("finish_reason"):
            self._finish(finish, index, events)
        self._count(meta, so_far, events)

    def _news(self, text: str, so_far: _SoFar) -> str:
        """What `text` adds to what was said; it is not said again where it only repeats."""
        before = so_far.text
        if not (before and self._is_cumulative):
            so_far.text += text
            return text
        if before.startswith(text):
            return ""
        so_far.text = text
        # A server that takes back what it said cannot be followed: the rest is best.
        return text[len(before) :] if text.startswith(before) else text

    def _logprobs(self, entries: list[Json], so_far: _SoFar, index: int, events: list[Event]) -> None:
        new = entries if self._is_cumulative is False else entries[so_far.logprobs :]
        so_far.logprobs += len(new)
        if new:
            events.append(LogprobsDelta(data=new, choice=index))

    def _finish(self, finish: Json, index: int, events: list[Event]) -> None:
        """``{type: stop, matched}``, ``{type: length, length}`` or ``{type: abort, message}``.

        A matched token may be the caller's or an end-of-sequence token: the server does not say.
        """
        told = as_object(finish)
        raw = as_text(finish) or as_text(told.get("type"))
        matched = told.get("matched")
        reason = _REASONS.get(raw or "", FinishReason.OTHER)
        if raw == "abort" or matched == _NUMERIC_FAILURE:
            self._abort(told)
            reason, matched = FinishReason.OTHER, None
        elif raw == "stop" and as_text(matched):
            reason = FinishReason.STOP_SEQUENCE
        elif raw == "length" and self._context_is_full(as_int(told.get("length"))):
            reason = FinishReason.CONTEXT
        events.append(
            self.finish(reason, raw, choice=index, stop_sequence=as_text(matched), stop_token=as_int(matched))
        )

    def _context_is_full(self, length: int | None) -> bool:
        """The server lowers a cap that the context has no room for, and names the cap that it used."""
        return length is not None and self._cap is not None and length < self._cap

    def _abort(self, told: Mapping[str, Json]) -> None:
        own_kind = "abort" if told.get("type") == "abort" else "numeric_failure"
        message = as_text(told.get("message")) or as_text(told.get("matched"))
        self.fail(
            StreamError(
                kind=as_text(told.get("err_type")) or own_kind,
                message=message or "the server aborted the request",
                http_status=as_int(told.get("status_code")),
            )
        )

    def _count(self, meta: Mapping[str, Json], so_far: _SoFar, events: list[Event]) -> None:
        usage = _read_usage(meta)
        if usage is None or usage == so_far.usage:
            return
        so_far.usage = usage
        known = [item.usage for item in self._said.values() if item.usage]
        if len(known) > 1:
            # Each frame counts its own choice. The prompt of parallel answers is the same one.
            usage = Usage(
                prompt_tokens=usage.prompt_tokens if self._prompts == 1 else None,
                completion_tokens=sum(item.completion_tokens or 0 for item in known),
            )
        events.append(UsageReport(usage=usage))


def _is_cumulative(answer: Mapping[str, Json], meta: Mapping[str, Json], before: str) -> bool:
    """Whether a frame, not the first one, holds everything so far. Where texts repeat, the token ids tell."""
    if not (as_text(answer.get("text")) or "").startswith(before):
        return False
    tokens, count = len(as_list(answer.get("output_ids"))), as_int(meta.get("completion_tokens"))
    if not tokens or not count:
        return True
    # The token that ended the answer may be counted and not shown.
    return tokens >= (count - 1 if meta.get("finish_reason") else count)


def _read_usage(meta: Mapping[str, Json]) -> Usage | None:
    raw = {key: meta[key] for key in _COUNTS if meta.get(key) is not None}
    counts = {key: as_int(value) for key, value in raw.items()}
    return Usage(**counts, raw=raw) if any(count is not None for count in counts.values()) else None


SHAPE = Sglang()
