"""The same bytes through the official SDK of Gemini and through us: the same is said, if not how it ended."""

import json
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest

from llmstream_cli.events import EndStatus
from llmstream_cli.turn import Turn
from tests.support.built.gemini import COUNTS, OVERLOADED, RED, STREAMS, chunk, sse
from tests.support.captures import decode, fold
from tests.support.wire_server import Reply, WireServer

# Not imported by name: its types alone would take mypy longer than all the rest.
genai = import_module("google.genai")

ANSWERS = {
    **{name: body for name, body in STREAMS.items() if name != "error"},
    "nothing but thoughts": sse(
        chunk({"text": "Hmm", "thought": True}),
        {
            "candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}],
            "usageMetadata": COUNTS,
        },
    ),
    "filtered": sse(RED, {"candidates": [{"finishReason": "SAFETY"}]}),
    "refused": sse({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}}),
}
BROKEN = {
    "an event": STREAMS["error"],
    "raw, over many lines": sse(RED) + json.dumps(OVERLOADED, indent=2).encode(),
}


@dataclass(slots=True)
class Said:
    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str | None, str, Any]] = field(default_factory=list)
    finish: str | None = None
    usage: tuple[int | None, int | None, int | None, int | None] | None = None


def ask_sdk(body: bytes, said: Said) -> None:
    """Fill `said` with what the SDK makes of `body`; raises what it raises."""
    with WireServer(Reply(writes=[body])) as server:
        options = {"base_url": server.base_url, "api_version": "v1beta"}
        with genai.Client(api_key="k", http_options=options) as client:
            for response in client.models.generate_content_stream(model="gemini-3", contents="Hi"):
                read(response, said)


def read(response: Any, said: Said) -> None:
    if response.prompt_feedback and response.prompt_feedback.block_reason:
        said.finish = response.prompt_feedback.block_reason.value
    for candidate in response.candidates or []:
        for part in (candidate.content and candidate.content.parts) or []:
            if part.function_call:
                call = part.function_call
                said.calls.append((call.id, call.name, call.args or {}))
            elif part.thought:
                said.reasoning += part.text or ""
            else:
                said.text += part.text or ""
        said.finish = candidate.finish_reason.value if candidate.finish_reason else said.finish
    if counts := response.usage_metadata:
        answer, thoughts = counts.candidates_token_count, counts.thoughts_token_count
        completion = None if answer is None else answer + (thoughts or 0)
        if counts.prompt_token_count is not None:
            said.usage = (counts.prompt_token_count, completion, thoughts, counts.total_token_count)


def ours(body: bytes) -> Turn:
    return fold(decode([body], shape="gemini", body={}, content_type="text/event-stream"))


def as_said(turn: Turn) -> Said:
    usage, finish = turn.usage, turn.first.finish
    return Said(
        text=turn.first.text,
        reasoning=turn.first.reasoning or "",
        calls=[(call.id, call.name, call.arguments) for call in turn.first.tool_calls],
        finish=finish.raw_reason if finish else None,
        usage=(usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.total_tokens)
        if usage
        else None,
    )


@pytest.fixture(autouse=True)
def no_key_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_sdk_says_the_same(name: str) -> None:
    said = Said()
    ask_sdk(ANSWERS[name], said)
    turn = ours(ANSWERS[name])
    assert said == as_said(turn)
    assert turn.end.status is EndStatus.COMPLETE


@pytest.mark.parametrize("name", BROKEN)
def test_the_sdk_finds_the_same_error(name: str) -> None:
    said = Said()
    with pytest.raises(genai.errors.ServerError) as caught:
        ask_sdk(BROKEN[name], said)
    turn = ours(BROKEN[name])
    assert turn.end.error is not None
    assert (caught.value.status, caught.value.message, caught.value.code) == (
        turn.end.error.kind,
        turn.end.error.message,
        turn.end.error.code,
    )
    assert said == as_said(turn)


def test_a_stream_that_is_cut_ends_well_for_the_sdk_and_not_for_us() -> None:
    said = Said()
    ask_sdk(sse(RED), said)
    assert (said.text, said.finish) == ("Red", None)
    assert ours(sse(RED)).end.status is EndStatus.INCOMPLETE
