"""The same bytes through OpenAI's SDK and through us: the same is said, if not how it ended.

Every recording of ``/v1/responses`` and ``/v1/chat/completions`` that is a whole stream, and responses of
OpenAI itself built from its documented events.
"""

from importlib import import_module
from typing import Any

import pytest

from llmstream_cli.events import EndStatus
from tests.support.captures import load
from tests.support.sdk import HI, Said, client, ours, parsed, said_in, whole_streams, wire

openai = import_module("openai")


def ask_responses(body: bytes) -> list[Any]:
    """The events that the SDK yields."""
    return list(client(openai.OpenAI, body).responses.create(model="m", input="Hi", stream=True))


def joined(events: list[Any], *kinds: str) -> str:
    return "".join(
        event.delta for event in events if event.type in [f"response.{kind}.delta" for kind in kinds]
    )


def said_by_responses(events: list[Any]) -> Said:
    response = events[-1].response
    details, usage = response.incomplete_details, response.usage
    calls = [
        (item.call_id, item.name, parsed(item.arguments))
        for item in response.output
        if item.type == "function_call"
    ]
    return Said(
        text=joined(events, "output_text"),
        reasoning=joined(events, "reasoning_text", "reasoning_summary_text"),
        refusal=joined(events, "refusal"),
        calls=calls,
        finish=f"{response.status}:{details.reason}" if details else response.status,
        usage=(usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens),
    )


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt",
    "status": "in_progress",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "incomplete_details": None,
    "error": None,
    "usage": None,
}
COUNTS = {
    "input_tokens": 50,
    "input_tokens_details": {"cached_tokens": 40},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 6},
    "total_tokens": 59,
}


def event(kind: str, at: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "type": f"response.{kind}",
        "output_index": at,
        "item_id": f"i{at}",
        "sequence_number": 0,
        **fields,
    }


def created() -> dict[str, Any]:
    return {"type": "response.created", "sequence_number": 0, "response": RESPONSE}


def ended(kind: str, *output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    response = {**RESPONSE, "status": kind, "output": list(output), "usage": COUNTS, **fields}
    return {"type": f"response.{kind}", "sequence_number": 9, "response": response}


def message(at: int, *content: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"i{at}", "type": "message", "role": "assistant", "status": "completed", "content": content}


def part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def streamed(at: int, *deltas: str) -> list[dict[str, Any]]:
    """A message, told three times as OpenAI does."""
    whole = "".join(deltas)
    where = {"at": at, "content_index": 0}
    return [
        event("output_item.added", at, item={**message(at), "status": "in_progress"}),
        event("content_part.added", **where, part=part("")),
        *(event("output_text.delta", **where, delta=delta, logprobs=[]) for delta in deltas),
        event("output_text.done", **where, text=whole, logprobs=[]),
        event("content_part.done", **where, part=part(whole)),
        event("output_item.done", at, item=message(at, part(whole))),
    ]


CALL = {
    "id": "i1",
    "type": "function_call",
    "status": "completed",
    "call_id": "c1",
    "name": "get",
    "arguments": '{"city": "Zürich"}',
}
REFUSED = {"type": "refusal", "refusal": "I cannot."}
THOUGHT = {"type": "summary_text", "text": "Hmm."}
RESPONSES = {
    "plain": wire(
        created(), *streamed(0, "Hel", "lo 👩‍👧"), ended("completed", message(0, part("Hello 👩‍👧")))
    ),
    "cap": wire(
        created(),
        *streamed(0, "Hel"),
        ended("incomplete", message(0, part("Hel")), incomplete_details={"reason": "max_output_tokens"}),
    ),
    "filtered": wire(
        created(),
        *streamed(0, "Hel"),
        ended("incomplete", message(0, part("Hel")), incomplete_details={"reason": "content_filter"}),
    ),
    "summary": wire(
        created(),
        event("output_item.added", item={"id": "i0", "type": "reasoning", "summary": []}),
        event("reasoning_summary_part.added", summary_index=0, part={**THOUGHT, "text": ""}),
        event("reasoning_summary_text.delta", summary_index=0, delta="Hm"),
        event("reasoning_summary_text.delta", summary_index=0, delta="m."),
        event("reasoning_summary_text.done", summary_index=0, text="Hmm."),
        event("reasoning_summary_part.done", summary_index=0, part=THOUGHT),
        event("output_item.done", item={"id": "i0", "type": "reasoning", "summary": [THOUGHT]}),
        *streamed(1, "Yes"),
        ended("completed", message(1, part("Yes"))),
    ),
    "tools": wire(
        created(),
        *streamed(0, "Let me see."),
        event("output_item.added", 1, item={**CALL, "arguments": "", "status": "in_progress"}),
        event("function_call_arguments.delta", 1, delta='{"city": "Z'),
        event("function_call_arguments.delta", 1, delta='ürich"}'),
        event("function_call_arguments.done", 1, name="get", arguments=CALL["arguments"]),
        event("output_item.done", 1, item=CALL),
        ended("completed", message(0, part("Let me see.")), CALL),
    ),
    "refusal": wire(
        created(),
        event("output_item.added", item={**message(0), "status": "in_progress"}),
        event("refusal.delta", content_index=0, delta="I can"),
        event("refusal.delta", content_index=0, delta="not."),
        event("refusal.done", content_index=0, refusal="I cannot."),
        event("output_item.done", item=message(0, REFUSED)),
        ended("completed", message(0, REFUSED)),
    ),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_openais_own_responses(name: str) -> None:
    turn = ours("openai-responses", RESPONSES[name])
    assert said_in(turn) == said_by_responses(ask_responses(RESPONSES[name]))
    assert turn.end.status is EndStatus.COMPLETE


@pytest.mark.parametrize("name", whole_streams("/v1/responses"))
def test_recorded_responses(name: str) -> None:
    capture = load(name)
    mine = said_in(ours("openai-responses", capture.body, request=capture.request_body))
    assert mine == said_by_responses(ask_responses(capture.body))


@pytest.mark.parametrize(
    "name", ["llama.cpp/responses_tool", "vllm/responses_length", "vllm/responses_reasoning"]
)
def test_a_response_in_one_piece(name: str) -> None:
    capture = load(name)
    response = client(openai.OpenAI, capture.body, "application/json").responses.create(model="m", input="Hi")
    turn = ours("openai-responses", capture.body, request={}, content_type="application/json")
    details = response.incomplete_details
    assert turn.first.text == response.output_text
    assert turn.first.finish is not None
    assert turn.first.finish.raw_reason == response.status + (f":{details.reason}" if details else "")
    calls = [(item.name, parsed(item.arguments)) for item in response.output if item.type == "function_call"]
    assert [(call.name, call.arguments) for call in turn.first.tool_calls] == calls


def test_the_openai_sdk_calls_a_cut_response_finished() -> None:
    cut = RESPONSES["plain"][: RESPONSES["plain"].index(b"event: response.completed")]
    assert joined(ask_responses(cut), "output_text") == "Hello 👩‍👧"
    assert ours("openai-responses", cut).end.status is EndStatus.INCOMPLETE


def test_the_openai_sdk_cannot_put_together_what_llama_cpp_sends() -> None:
    """It wants an index that llama.cpp does not send."""
    body = load("llama.cpp/tiny_responses_reasoning_stream").body
    with (
        pytest.raises(RuntimeError, match="output index None"),
        client(openai.OpenAI, body).responses.stream(model="m", input="Hi") as stream,
    ):
        stream.get_final_response()
    assert ours("openai-responses", body).first.text == "It is two."


NESTED = {"type": "error", "sequence_number": 2, "error": {"type": "x", "code": "y", "message": "No quota"}}
FLAT = {"type": "error", "sequence_number": 2, "code": "y", "message": "No quota", "param": None}
FAILED = ended("failed", error={"code": "y", "message": "No quota"}, usage=None)


def test_an_error_in_a_response() -> None:
    with pytest.raises(openai.APIError, match="No quota"):
        ask_responses(wire(created(), NESTED, FAILED))
    # To the SDK these two are events like any other.
    assert ask_responses(wire(created(), FLAT))[-1].message == "No quota"
    assert ask_responses(wire(created(), FAILED))[-1].response.status == "failed"
    for body in (wire(created(), NESTED, FAILED), wire(created(), FLAT), wire(created(), FAILED)):
        end = ours("openai-responses", body).end
        assert end.status is EndStatus.ERROR
        assert end.error is not None
        assert (end.error.code, end.error.message) == ("y", "No quota")


# Chat.


def ask_chat(body: bytes) -> list[Any]:
    return list(client(openai.OpenAI, body).chat.completions.create(model="m", messages=HI, stream=True))


def said_by_chat(chunks: list[Any]) -> Said:
    """The first choice, put together as the users of the SDK do."""
    said = Said()
    calls: dict[int, list[Any]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            if choice.index:
                continue
            delta = choice.delta
            extra = delta.model_extra or {}
            said.text += delta.content or ""
            said.reasoning += extra.get("reasoning_content") or extra.get("reasoning") or ""
            said.finish = choice.finish_reason or said.finish
            for call in delta.tool_calls or ():
                told = calls.setdefault(call.index, [call.id, call.function.name, ""])
                told[2] += call.function.arguments or ""
        if chunk.usage:
            details = chunk.usage.prompt_tokens_details
            cached = details.cached_tokens if details else None
            said.usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens, cached)
    said.calls = [(call_id, name, parsed(arguments)) for call_id, name, arguments in calls.values()]
    return said


@pytest.mark.parametrize("name", whole_streams("/v1/chat/completions"))
def test_recorded_chats(name: str) -> None:
    capture = load(name)
    mine = said_in(ours("openai-chat", capture.body, request=capture.request_body))
    # The SDK's types have no place for which stop sequence it was.
    mine.stop_sequence = None
    theirs = said_by_chat(ask_chat(capture.body))
    if name == "llama.cpp/chat_n2_stream":
        # A report for each of two answers: to the SDK the last one is all.
        assert (theirs.usage, mine.usage) == ((25, 4, 0), (25, 8, 0))
        mine.usage = theirs.usage
    assert mine == theirs
