"""The same bytes through Anthropic's SDK and through us: the same is said, if not how it ended.

Every recording of ``/v1/messages`` that is a whole stream, and streams of Anthropic itself built from its
documented events.
"""

from importlib import import_module
from typing import Any

import pytest

from llmstream_cli.events import EndStatus
from tests.support.captures import load
from tests.support.sdk import HI, Said, client, ours, said_in, whole_streams, wire

anthropic = import_module("anthropic")


def ask_anthropic(body: bytes) -> Any:
    """The message that the SDK puts together from a stream."""
    with client(anthropic.Anthropic, body).messages.stream(model="m", max_tokens=9, messages=HI) as stream:
        return stream.get_final_message()


def said_by_anthropic(message: Any) -> Said:
    blocks, usage = message.content, message.usage
    counts = (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
    return Said(
        text="".join(block.text for block in blocks if block.type == "text"),
        reasoning="".join(block.thinking for block in blocks if block.type == "thinking"),
        calls=[(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"],
        finish=message.stop_reason,
        stop_sequence=message.stop_sequence,
        usage=(sum(count or 0 for count in counts), usage.output_tokens, usage.cache_read_input_tokens),
    )


MESSAGE_START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 100,
            "output_tokens": 1,
        },
    },
}
PING = {"type": "ping"}
MESSAGE_STOP = {"type": "message_stop"}


def block(index: int, opening: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": opening},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def message_delta(reason: str | None, sequence: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {"stop_reason": reason, "stop_sequence": sequence, **more}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 15}}


TEXT = block(
    0,
    {"type": "text", "text": ""},
    {"type": "text_delta", "text": "Hel"},
    {"type": "text_delta", "text": "lo 👩‍👧"},
)
MESSAGES = {
    "plain": wire(MESSAGE_START, PING, *TEXT, message_delta("end_turn"), MESSAGE_STOP),
    "cap": wire(MESSAGE_START, *TEXT, message_delta("max_tokens"), MESSAGE_STOP),
    "stop": wire(MESSAGE_START, *TEXT, message_delta("stop_sequence", "\nUser:"), MESSAGE_STOP),
    "two reports": wire(
        MESSAGE_START,
        *TEXT,
        {**message_delta(None), "usage": {"input_tokens": 61, "output_tokens": 12}},
        message_delta("end_turn"),
        MESSAGE_STOP,
    ),
    "thinking": wire(
        MESSAGE_START,
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Hm"},
            {"type": "thinking_delta", "thinking": "m."},
            {"type": "signature_delta", "signature": "c2ln"},
        ),
        *block(1, {"type": "redacted_thinking", "data": "b3Bh"}),
        *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Yes"}),
        message_delta("end_turn"),
        MESSAGE_STOP,
    ),
    "tools": wire(
        MESSAGE_START,
        *TEXT,
        *block(
            1,
            {"type": "tool_use", "id": "t1", "name": "get", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"city": "Z\\u00f'},
            {"type": "input_json_delta", "partial_json": 'crich"}'},
        ),
        *block(
            2,
            {"type": "tool_use", "id": "t2", "name": "now", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
        ),
        message_delta("tool_use"),
        MESSAGE_STOP,
    ),
    "refusal": wire(MESSAGE_START, PING, message_delta("refusal"), MESSAGE_STOP),
    "pause": wire(MESSAGE_START, *TEXT, message_delta("pause_turn"), MESSAGE_STOP),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_anthropics_own_messages(name: str) -> None:
    turn = ours("anthropic", MESSAGES[name])
    assert said_in(turn) == said_by_anthropic(ask_anthropic(MESSAGES[name]))
    # The SDK has no word for it, but a paused answer is not a whole one.
    assert turn.end.status is (EndStatus.INCOMPLETE if name == "pause" else EndStatus.COMPLETE)


@pytest.mark.parametrize("name", whole_streams("/v1/messages"))
def test_recorded_messages(name: str) -> None:
    capture = load(name)
    mine = said_in(ours("anthropic", capture.body, request=capture.request_body))
    theirs = said_by_anthropic(ask_anthropic(capture.body))
    if name == "llama.cpp/messages_tool_stream":
        # The cap cut the last call. The SDK makes whole arguments of the half that came.
        assert (theirs.calls[-1][2], mine.calls[-1][2]) == ({"a": 1}, None)
        mine.calls[-1] = theirs.calls[-1]
    assert mine == theirs


@pytest.mark.parametrize(
    "name", ["vllm/messages_tool", "llama.cpp/messages_stop", "llama.cpp/messages_thinking"]
)
def test_a_message_in_one_piece(name: str) -> None:
    capture = load(name)
    sdk = client(anthropic.Anthropic, capture.body, "application/json")
    message = sdk.messages.create(model="m", max_tokens=9, messages=HI)
    turn = ours("anthropic", capture.body, request={}, content_type="application/json")
    assert said_in(turn) == said_by_anthropic(message)


@pytest.mark.parametrize("name", ["plain", "tools"])
def test_the_anthropic_sdk_calls_a_cut_message_finished(name: str) -> None:
    whole = MESSAGES[name]
    cut = whole[: whole.index(b"event: message_delta")]
    message = ask_anthropic(cut)
    assert (message.stop_reason, message.content[0].text) == (None, "Hello 👩‍👧")
    assert ours("anthropic", cut).end.status is EndStatus.INCOMPLETE


def test_an_error_in_a_message() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    for body in (wire(error), wire(MESSAGE_START, *TEXT[:2], error)):
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            ask_anthropic(body)
        mine = ours("anthropic", body).end.error
        assert mine is not None
        assert (mine.kind, mine.message) == ("overloaded_error", "Overloaded")


def test_the_error_of_llama_cpp_in_a_message() -> None:
    capture = load("llama.cpp/error_midstream_messages_stream")
    with pytest.raises(anthropic.APIStatusError, match="Context size has been exceeded"):
        ask_anthropic(capture.body)
    assert ours("anthropic", capture.body).end.status is EndStatus.ERROR
