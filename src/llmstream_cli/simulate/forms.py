"""An answer in the form of each server API: the events of its stream, and an error inside it.

Written from the sources that the files in ``shapes/`` name, and checked against them: what a shape reads from
these bytes is the text that went in.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from llmstream_cli.events import Json

MODEL = "simulated"
PROMPT_TOKENS = 7
"""What every answer says that its prompt had; an answer has as many tokens as words."""
CREATED = 1767225600
_CREATED_TEXT = "2026-01-01T00:00:00Z"

StreamEvent = tuple[str | None, Json]
"""The event's name, where the API uses names, and its data; a text is sent as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """``events``: the stream for the words of an answer. ``error``: the data of an error for its message."""

    events: Callable[[Sequence[str]], Iterator[StreamEvent]]
    error: Callable[[str], Json]
    framing: Literal["sse", "ndjson"] = "sse"
    error_name: str | None = None


def _chat(words: Sequence[str]) -> Iterator[StreamEvent]:
    def chunk(delta: Json, reason: str | None = None) -> StreamEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return None, _openai_chunk("chat.completion.chunk", [choice])

    yield chunk({"role": "assistant", "content": ""})
    for word in words:
        yield chunk({"content": word})
    yield chunk({}, "stop")
    yield None, _openai_chunk("chat.completion.chunk", [], usage=_openai_usage(words))
    yield None, "[DONE]"


def _completions(words: Sequence[str]) -> Iterator[StreamEvent]:
    def chunk(text: str, reason: str | None = None) -> StreamEvent:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
        return None, _openai_chunk("text_completion", [choice])

    for word in words:
        yield chunk(word)
    yield chunk("", "stop")
    yield None, _openai_chunk("text_completion", [], usage=_openai_usage(words))
    yield None, "[DONE]"


def _openai_chunk(kind: str, choices: list[Json], **more: Json) -> Json:
    return {"id": "sim-1", "object": kind, "created": CREATED, "model": MODEL, "choices": choices, **more}


def _openai_usage(words: Sequence[str]) -> Json:
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": len(words),
        "total_tokens": PROMPT_TOKENS + len(words),
    }


def _llamacpp(words: Sequence[str]) -> Iterator[StreamEvent]:
    for count, word in enumerate(words, 1):
        yield (
            None,
            {
                "index": 0,
                "content": word,
                "tokens": [],
                "stop": False,
                "id_slot": -1,
                "tokens_predicted": count,
                "tokens_evaluated": PROMPT_TOKENS,
            },
        )
    yield (
        None,
        {
            "index": 0,
            "content": "",
            "tokens": [],
            "stop": True,
            "model": MODEL,
            "tokens_predicted": len(words),
            "tokens_evaluated": PROMPT_TOKENS,
            "truncated": False,
            "stop_type": "eos",
            "stopping_word": "",
        },
    )


def _tgi(words: Sequence[str]) -> Iterator[StreamEvent]:
    def token(index: int, text: str, *, special: bool = False, **end: Json) -> StreamEvent:
        told = {"id": index, "text": text, "logprob": -0.1, "special": special}
        return None, {"index": index, "token": told, "generated_text": None, "details": None, **end}

    for index, word in enumerate(words, 1):
        yield token(index, word)
    details = {
        "finish_reason": "eos_token",
        "generated_tokens": len(words),
        "seed": None,
        "input_length": PROMPT_TOKENS,
    }
    yield token(len(words) + 1, "</s>", special=True, generated_text="".join(words), details=details)


def _ollama(content: Callable[[str], dict[str, Json]]) -> Callable[[Sequence[str]], Iterator[StreamEvent]]:
    """`content`: where a line keeps a piece of the text."""

    def line(text: str, *, done: bool, **more: Json) -> StreamEvent:
        return None, {"model": MODEL, "created_at": _CREATED_TEXT, **content(text), "done": done, **more}

    def events(words: Sequence[str]) -> Iterator[StreamEvent]:
        for word in words:
            yield line(word, done=False)
        counts = {"prompt_eval_count": PROMPT_TOKENS, "eval_count": len(words)}
        times = {"load_duration": 1_000_000, "prompt_eval_duration": 2_000_000, "eval_duration": 3_000_000}
        yield line("", done=True, done_reason="stop", total_duration=6_000_000, **counts, **times)

    return events


def _messages(words: Sequence[str]) -> Iterator[StreamEvent]:
    def named(kind: str, **fields: Json) -> StreamEvent:
        return kind, {"type": kind, **fields}

    message: Json = {
        "id": "msg_sim_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": 1},
    }
    yield named("message_start", message=message)
    yield named("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield named("ping")
    for word in words:
        yield named("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
    yield named("content_block_stop", index=0)
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield named("message_delta", delta=delta, usage={"output_tokens": len(words)})
    yield named("message_stop")


def _responses(words: Sequence[str]) -> Iterator[StreamEvent]:
    number = -1

    def named(kind: str, **fields: Json) -> StreamEvent:
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number, **fields}

    text = "".join(words)
    place = {"item_id": "msg_sim_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "msg_sim_1", "type": "message", "role": "assistant"}
    begun = {**message, "status": "in_progress", "content": []}
    whole = {**message, "status": "completed", "content": [part]}
    usage = {
        "input_tokens": PROMPT_TOKENS,
        "output_tokens": len(words),
        "total_tokens": PROMPT_TOKENS + len(words),
    }
    response = {"id": "resp_sim_1", "object": "response", "created_at": CREATED, "model": MODEL}
    yield named("response.created", response={**response, "status": "in_progress", "output": []})
    yield named("response.output_item.added", output_index=0, item=begun)
    yield named("response.content_part.added", **place, part={**part, "text": ""})
    for word in words:
        yield named("response.output_text.delta", **place, delta=word)
    yield named("response.output_text.done", **place, text=text)
    yield named("response.content_part.done", **place, part=part)
    yield named("response.output_item.done", output_index=0, item=whole)
    completed = {**response, "status": "completed", "output": [whole], "usage": usage}
    yield named("response.completed", response=completed)


def _gemini(words: Sequence[str]) -> Iterator[StreamEvent]:
    def chunk(text: str, **more: Json) -> StreamEvent:
        content = {"role": "model", "parts": [{"text": text}]}
        candidate = {"index": 0, "content": content, **more}
        counts = {"promptTokenCount": PROMPT_TOKENS}
        if more:
            counts |= {"candidatesTokenCount": len(words), "totalTokenCount": PROMPT_TOKENS + len(words)}
        value = {"candidates": [candidate], "usageMetadata": counts}
        return None, {**value, "modelVersion": MODEL, "responseId": "sim-1"}

    for word in words:
        yield chunk(word)
    yield chunk("", finishReason="STOP")


def _openai_error(message: str) -> Json:
    return {"error": {"message": message, "type": "server_error", "param": None, "code": None}}


def _coded_error(message: str) -> Json:
    return {"error": {"code": 500, "message": message, "type": "server_error"}}


FORMS: dict[str, Form] = {
    "openai-chat": Form(events=_chat, error=_openai_error),
    "openai-completions": Form(events=_completions, error=_openai_error),
    "llamacpp": Form(events=_llamacpp, error=_coded_error),
    "ollama-chat": Form(
        events=_ollama(lambda text: {"message": {"role": "assistant", "content": text}}),
        error=lambda message: {"error": message},
        framing="ndjson",
    ),
    "ollama-generate": Form(
        events=_ollama(lambda text: {"response": text}),
        error=lambda message: {"error": message},
        framing="ndjson",
    ),
    "tgi": Form(events=_tgi, error=lambda message: {"error": message, "error_type": "generation"}),
    "anthropic": Form(
        events=_messages,
        error=lambda message: {"type": "error", "error": {"type": "overloaded_error", "message": message}},
        error_name="error",
    ),
    "openai-responses": Form(
        events=_responses,
        error=lambda message: {"type": "error", "code": "server_error", "message": message, "param": None},
        error_name="error",
    ),
    "gemini": Form(
        events=_gemini,
        error=lambda message: {"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}},
    ),
}
"""By the name of the shape."""

PLAIN_FORM = Form(events=lambda words: ((None, word) for word in words), error=_openai_error)
"""For the recordings of other shapes: only how an error looks is taken from it."""
