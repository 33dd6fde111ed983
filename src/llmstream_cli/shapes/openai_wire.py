"""How ``/v1/chat/completions`` and ``/v1/completions`` answer, in every server's dialect of them.

Sources: the OpenAI API reference; llama.cpp ``tools/server``, vLLM ``entrypoints/openai``, Ollama ``openai``,
TGI ``router``, SGLang ``entrypoints/openai``; the recordings under ``tests/captures``.
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
    ReasoningDelta,
    ServerDetail,
    StreamError,
    TimingsReport,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.fields import EMPTY, as_int, as_object, as_text, objects
from llmstream_cli.framing import Frame
from llmstream_cli.request import without_none
from llmstream_cli.shapes.base import DEFAULT_ERROR_KIND, FrameDecoder, bare_error, error_from, parse_frame
from llmstream_cli.shapes.llamacpp_wire import context_full, read_progress, read_timings

MARKER = "[DONE]"
COMPLETENESS = "a `finish_reason` for every choice; `[DONE]` alone is no proof"

REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    # TGI
    "eos_token": FinishReason.EOS,
    "stop_sequence": FinishReason.STOP_SEQUENCE,
    # Mistral
    "model_length": FinishReason.CONTEXT,
    # llama.cpp's own words
    "eos": FinishReason.EOS,
    "word": FinishReason.STOP_SEQUENCE,
    "limit": FinishReason.LENGTH,
}
_FAILURES = ("error", "insufficient_system_resource")
"""Finish reasons that are none: of OpenRouter and Mistral, of DeepSeek."""
_REPORTS = ("usage", "timings", "prompt_progress")


class OpenAIDecoder(FrameDecoder):
    """Decodes both endpoints; `output` is what differs: where a choice keeps what the model said.

    `prompts`: how many prompts the request holds, each with the same number of choices.

    Some gateways put "stop" on every chunk of reasoning and then send the answer, while vLLM may truly end
    on such a chunk. So a finish reason beside reasoning, before any text, is early: it stands if nothing
    more comes, and is taken back by more output.
    """

    def __init__(self, body: Mapping[str, Json], *, prompts: int = 1) -> None:
        super().__init__(prompts * max(1, as_int(body.get("n")) or 1))
        self.marker_seen = False if body.get("stream") else None
        self._prompts = prompts
        self._answered: set[int] = set()
        self._reasoned: set[int] = set()
        self._early: set[int] = set()
        self._verbose: dict[int, Mapping[str, Json]] = {}
        self._usage: Usage | None = None

    @abstractmethod
    def output(self, choice: Mapping[str, Json], index: int) -> list[Event]:
        """The text, reasoning, refusal and tool calls in one choice of a chunk."""

    @property
    def complete(self) -> bool:
        # Some servers send more choices than the request asked for.
        return super().complete and self._answered | self._reasoned <= self.finished

    @property
    def settled(self) -> bool:
        return self.complete and not self._early

    def decode(self, frame: Frame) -> list[Event]:
        if frame.data.startswith(MARKER):
            self.marker_seen = self.done = True
            return []
        chunk = parse_frame(frame)
        if frame.name == "error":
            return self.fail(bare_error(frame.data if isinstance(chunk, KeepAlive | UnknownFrame) else chunk))
        if isinstance(chunk, dict):
            return self._chunk(chunk, frame)
        if isinstance(chunk, KeepAlive | UnknownFrame):
            return [chunk]
        # llama.cpp sends `data: null` between the answers to several prompts.
        return [] if chunk is None else [UnknownFrame(name=frame.name, data=frame.data)]

    def _chunk(self, chunk: Mapping[str, Json], frame: Frame) -> list[Event]:
        if "x_groq" in chunk:
            chunk = _with_groq(chunk)
        choices = chunk.get("choices")
        if not choices or "error" in chunk:
            error = error_from(chunk)
            if error:
                self.fail(error)
                if not choices:
                    return []
        events = self.start(
            response_id=chunk.get("id"),
            model=chunk.get("model"),
            fingerprint=chunk.get("system_fingerprint"),
        )
        if "__verbose" in chunk:
            events += self._native_report(as_object(chunk["__verbose"]))
        if isinstance(choices, list):
            for choice in objects(choices):
                self._choice(choice, events)
        elif "choices" not in chunk and not any(key in chunk for key in _REPORTS):
            events.append(UnknownFrame(name=frame.name, data=frame.data))
        for key in _REPORTS:
            if chunk.get(key):
                events += self._report(key, chunk)
        return events

    def _choice(self, choice: Mapping[str, Json], events: list[Event]) -> None:
        index = as_int(choice.get("index")) or 0
        output = self.output(choice, index)
        for event in output:
            (self._reasoned if isinstance(event, ReasoningDelta) else self._answered).add(index)
        events += output
        if output and index in self._early:
            self._early.discard(index)
            self.finished.discard(index)
        if logprobs := choice.get("logprobs"):
            events.append(LogprobsDelta(data=logprobs, choice=index))
        # Older versions of Ollama and TGI's completions say "" where they mean null.
        if raw := as_text(choice.get("finish_reason")):
            self._finish(choice, index, raw, events)
            if output and index not in self._answered:
                self._early.add(index)

    def _finish(self, choice: Mapping[str, Json], index: int, raw: str, events: list[Event]) -> None:
        reason, stop_sequence, stop_token = REASONS.get(raw, FinishReason.OTHER), None, None
        native = self._verbose.get(index, EMPTY)
        if raw in ("stop", "word", "eos") and (told := _native_stop(native)):
            reason, stop_sequence, stop_token = told
        elif raw == "stop":
            reason, stop_sequence, stop_token = _matched_stop(choice)
        elif raw in ("length", "limit") and context_full(native):
            reason = FinishReason.CONTEXT
        events.append(
            self.finish(reason, raw, choice=index, stop_sequence=stop_sequence, stop_token=stop_token)
        )
        if raw in _FAILURES:
            message = f'the answer ended with finish reason "{raw}"'
            self.fail(error_from(choice) or StreamError(kind=DEFAULT_ERROR_KIND, message=message))

    def _native_report(self, native: Mapping[str, Json]) -> list[Event]:
        """llama.cpp's own terminal object, added to an OpenAI chunk on ``"verbose": true``."""
        if "stop_type" not in native:
            return []
        self._verbose[as_int(native.get("index")) or 0] = native
        return [ServerDetail(data={key: native[key] for key in native if key not in ("content", "tokens")})]

    def _report(self, key: str, chunk: Mapping[str, Json]) -> list[Event]:
        value = as_object(chunk[key])
        if key == "timings":
            return [TimingsReport(timings=read_timings(value))]
        if key == "prompt_progress":
            return [read_progress(value)]
        usage = read_usage(value)
        if usage and self.choices > 1 and "timings" in chunk:
            usage = self._add_choice(usage)
        if usage is None or usage == self._usage:
            return []
        self._usage = usage
        return [UsageReport(usage=usage)]

    def _add_choice(self, usage: Usage) -> Usage:
        """llama.cpp (told by its ``timings``) reports once per choice and counts only that choice.

        The prompt of parallel answers is the same one; the counts of different prompts and the totals
        cannot be joined without guessing. Captures: llama.cpp/chat_n2_stream, llama.cpp/cmpl_n2_stream.
        """
        before = (self._usage and self._usage.completion_tokens) or 0
        return replace(
            usage,
            prompt_tokens=usage.prompt_tokens if self._prompts == 1 else None,
            completion_tokens=before + (usage.completion_tokens or 0),
            total_tokens=None,
        )


def _native_stop(native: Mapping[str, Json]) -> tuple[FinishReason, str | None, int | None] | None:
    word = as_text(native.get("stopping_word"))
    match native.get("stop_type"):
        case "eos":
            return FinishReason.EOS, word, None
        case "word":
            return FinishReason.STOP_SEQUENCE, word, None
        case _:
            return None


def _matched_stop(choice: Mapping[str, Json]) -> tuple[FinishReason, str | None, int | None]:
    """Which stop it was: vLLM's ``stop_reason``, SGLang's ``matched_stop``; a string, a token id or null.

    A token id may be the caller's or an end-of-sequence token of the model: the server does not say. null in
    ``stop_reason`` does say: vLLM fills it for every other cause of "stop", so what is left is the primary
    end-of-sequence token. SGLang names that token too, its null says nothing.
    """
    matched = choice.get("stop_reason")
    if matched is None:
        matched = choice.get("matched_stop")
    if isinstance(matched, str):
        return FinishReason.STOP_SEQUENCE, matched or None, None
    if (token := as_int(matched)) is not None:
        return FinishReason.STOP, None, token
    proves_eos = "stop_reason" in choice and "matched_stop" not in choice
    return FinishReason.EOS if proves_eos else FinishReason.STOP, None, None


def _with_groq(chunk: Mapping[str, Json]) -> Mapping[str, Json]:
    """Groq's own object in its last chunk: the counts, and in a string why the stream was cut short."""
    own = as_object(chunk["x_groq"])
    return {**{key: own[key] for key in ("usage", "error") if own.get(key)}, **without_none(chunk)}


def read_usage(value: Mapping[str, Json]) -> Usage | None:
    """The counts; None where there are none, and for all zeros, which stand for "not known yet" (Ollama)."""
    prompt = as_int(value.get("prompt_tokens"))
    completion = as_int(value.get("completion_tokens"))
    total = as_int(value.get("total_tokens"))
    if not (prompt or completion or total):
        return None
    reasoning = as_int(as_object(value.get("completion_tokens_details")).get("reasoning_tokens"))
    cached = as_int(as_object(value.get("prompt_tokens_details")).get("cached_tokens"))
    if reasoning is None:
        # Azure, for models of others
        reasoning = as_int(value.get("reasoning_tokens"))
    if reasoning and total == (prompt or 0) + (completion or 0) + reasoning:
        # xAI does not count reasoning as a part of the completion; everybody else does.
        completion = (completion or 0) + reasoning
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        reasoning_tokens=reasoning,
        # DeepSeek
        cached_tokens=as_int(value.get("prompt_cache_hit_tokens")) if cached is None else cached,
        total_tokens=total,
        raw=value,
    )
