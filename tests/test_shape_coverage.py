"""Every shape in every situation, cut at every byte: a shape without a stream for one of them fails.

A stream is a recording under ``tests/captures``, or, where no server could be had, one of ``support/built``,
whose modules name the documents that they are built from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from llmstream_cli.events import EndStatus, FinishReason, StreamError
from llmstream_cli.shapes import SHAPES, get_shape
from llmstream_cli.turn import Turn
from tests.support.built import back_ends, gemini, ollama, sglang, tgi, vercel_ai
from tests.support.captures import cut_points, decode, fold, joined, load, one_by_one
from tests.support.cuts import everywhere

SITUATIONS = ("plain", "cap", "stop", "tool_call", "error", "reasoning")
JSON, SSE, TEXT = "application/json", "text/event-stream", "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    body: bytes
    content_type: str = SSE
    request: Mapping[str, Any] = field(default_factory=lambda: {"stream": True})


def recorded(**names: str) -> dict[str, Stream]:
    """Situation -> name of a capture."""
    streams = {}
    for situation, name in names.items():
        capture = load(name)
        assert capture.status == 200, name
        streams[situation] = Stream(
            body=capture.body, content_type=capture.content_type, request=capture.request_body
        )
    return streams


def built(bodies: Mapping[str, bytes], **more: Any) -> dict[str, Stream]:
    return {situation: Stream(body=body, **more) for situation, body in bodies.items()}


STREAMS: dict[str, dict[str, Stream]] = {
    "openai-chat": recorded(
        plain="vllm/chat_eos_stream",
        cap="vllm/chat_length_stream",
        stop="vllm/chat_stop_string_stream",
        tool_call="llama.cpp/tiny_chat_tool_stream",
        error="vllm/engine_killed_stream",
        reasoning="llama.cpp/tiny_chat_reasoning_stream",
    ),
    "openai-completions": recorded(
        plain="llama.cpp/tiny_cmpl_eos_stream",
        cap="llama.cpp/cmpl_usage_stream",
        stop="vllm/cmpl_stop_string_stream",
        error="llama.cpp/error_midstream_cmpl_stream",
    ),
    "llamacpp": recorded(
        plain="llama.cpp/tiny_native_eos_stream",
        cap="llama.cpp/native_limit_stream",
        stop="llama.cpp/native_word_at_limit_stream",
        error="llama.cpp/error_midstream_native_stream",
    ),
    "anthropic": recorded(
        plain="llama.cpp/tiny_messages_eos_stream",
        cap="llama.cpp/messages_length_stream",
        stop="llama.cpp/messages_stop_stream",
        tool_call="llama.cpp/tiny_messages_tool_stream",
        error="llama.cpp/error_midstream_messages_stream",
        reasoning="llama.cpp/tiny_messages_thinking_stream",
    ),
    "openai-responses": recorded(
        plain="llama.cpp/tiny_responses_eos_stream",
        cap="llama.cpp/responses_length_stream",
        tool_call="llama.cpp/tiny_responses_tool_stream",
        error="llama.cpp/error_midstream_responses_stream",
        reasoning="llama.cpp/tiny_responses_reasoning_stream",
    ),
    "ollama-chat": built(ollama.STREAMS, content_type=ollama.CONTENT_TYPE),
    "ollama-generate": built(ollama.GENERATED, content_type=ollama.CONTENT_TYPE),
    "tgi": built(tgi.STREAMS, request=tgi.REQUEST),
    "gemini": built(gemini.STREAMS, request={}),
    "sglang": built(sglang.STREAMS),
    "vercel-ai": built(vercel_ai.STREAMS),
    "sse": built(back_ends.SSE),
    "ndjson": built(back_ends.NDJSON, content_type=ollama.CONTENT_TYPE),
    "text": {
        "plain": Stream(body=back_ends.TEXT["plain"], content_type=TEXT),
        "error": Stream(body=back_ends.TEXT["error"], content_type=JSON),
    },
}

NO_TOOLS = "the endpoint takes a prompt and answers with text; tools are the chat endpoint's"
NO_THOUGHTS = "the endpoint sends what the model wrote as one text; thoughts are not told apart"
NO_PLACE = "the table of an application's stream has places for text, error, usage, finish and end only"
BARE_TEXT = "bare text ends with its body, and says nothing of why"
EXEMPT: dict[str, dict[str, str]] = {
    "openai-completions": {"tool_call": NO_TOOLS, "reasoning": NO_THOUGHTS},
    "llamacpp": {"tool_call": NO_TOOLS, "reasoning": NO_THOUGHTS},
    "openai-responses": {"stop": "the API has no stop sequences"},
    "ollama-generate": {"tool_call": NO_TOOLS},
    "tgi": {"tool_call": NO_TOOLS, "reasoning": NO_THOUGHTS},
    "sglang": {"tool_call": NO_TOOLS, "reasoning": NO_THOUGHTS},
    "vercel-ai": {"stop": "the application chooses the stop sequences; its client cannot name any"},
    "sse": {"tool_call": NO_PLACE, "reasoning": NO_PLACE},
    "ndjson": {"tool_call": NO_PLACE, "reasoning": NO_PLACE},
    "text": {"cap": BARE_TEXT, "stop": BARE_TEXT, "tool_call": NO_PLACE, "reasoning": NO_PLACE},
}
"""What an API does not have, and why: shape -> situation -> reason."""

CASES = [(shape, situation) for shape, streams in STREAMS.items() for situation in streams]
CLOSED = StreamError(kind="connection_closed", message="the connection was closed")


@pytest.mark.parametrize("shape", SHAPES)
def test_no_situation_is_missing(shape: str) -> None:
    had, exempt = set(STREAMS[shape]), set(EXEMPT.get(shape, {}))
    assert had | exempt == set(SITUATIONS)
    assert not had & exempt


def test_no_shape_is_unknown() -> None:
    assert set(STREAMS) == set(SHAPES)
    assert set(EXEMPT) <= set(SHAPES)


@pytest.mark.parametrize("shape", [shape for shape, lacks in EXEMPT.items() if "stop" in lacks])
def test_what_has_no_stop_takes_none(shape: str) -> None:
    assert get_shape(shape).stop_field is None


@pytest.mark.parametrize(("shape", "situation"), CASES)
def test_cut_anywhere(shape: str, situation: str) -> None:
    stream = STREAMS[shape][situation]
    if shape == "text":
        turn = _bare_text_everywhere(stream)
    else:
        points = cut_points(stream.body, every_below=2000, sample=300)
        events = everywhere(
            stream.body, shape=shape, request=stream.request, kind=stream.content_type, points=points[:-1]
        )
        turn = fold(events)
    _check(situation, turn)


def _bare_text_everywhere(stream: Stream) -> Turn:
    """Its pieces are the reads, and only the connection tells that it was cut."""

    def events(*pieces: bytes, error: StreamError | None = None) -> Turn:
        said = decode(
            list(pieces), shape="text", body=stream.request, content_type=stream.content_type, error=error
        )
        return fold(joined(said))

    body, whole = stream.body, events(stream.body)
    assert events(*one_by_one(body)) == whole
    for at in range(len(body)):
        assert events(body[:at], body[at:]) == whole, at
        cut = events(body[:at], error=CLOSED)
        assert body.decode().startswith(cut.first.text), at
        assert cut.end.status is EndStatus.INCOMPLETE, at
    return whole


def _check(situation: str, turn: Turn) -> None:
    """The stream really is what it stands for."""
    reason = turn.first.finish.reason if turn.first.finish else None
    assert turn.end.status is (EndStatus.ERROR if situation == "error" else EndStatus.COMPLETE)
    assert turn.unreadable == 0
    match situation:
        case "plain":
            assert turn.first.text
            assert reason in (FinishReason.EOS, FinishReason.STOP)
        case "cap":
            assert turn.truncated
        case "stop":
            assert turn.first.text
            assert reason in (FinishReason.STOP, FinishReason.STOP_SEQUENCE)
        case "tool_call":
            assert turn.first.tool_calls
            assert all(call.name and call.valid for call in turn.first.tool_calls)
        case "error":
            assert turn.end.error
            assert turn.end.error.message
        case "reasoning":
            assert turn.first.reasoning
        case _:
            raise ValueError(situation)
