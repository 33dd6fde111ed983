"""``/api/chat`` and ``/api/generate`` of Ollama: requests, lines, endings. No server of it was recorded."""

import json
from typing import Any

import pytest

from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    KeepAlive,
    LogprobsDelta,
    ReasoningDelta,
    ServerTimings,
    StreamEnd,
    StreamError,
    StreamStart,
    TextDelta,
    TimingsReport,
    ToolCallDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.request import Message, Request, Sampling
from llmstream_cli.shapes import get_shape
from tests.support.captures import decode, fold, one_by_one

CHAT = get_shape("ollama-chat")
GENERATE = get_shape("ollama-generate")
NDJSON = "application/x-ndjson"

SYSTEM = Message(role="system", content="Be brief.")
QUESTION = Message(role="user", content="Why?")
ANSWER = Message(role="assistant", content="Because.")

EVERYTHING = Sampling(max_tokens=9, temperature=0, top_p=0.9, seed=0, stop=("END",))
EVERY_OPTION = {"num_predict": 9, "temperature": 0, "top_p": 0.9, "seed": 0, "stop": ["END"]}


def answer(body: bytes, shape: str = "ollama-chat", kind: str = NDJSON, **request: Any) -> list[Event]:
    """The events of `body`, the same however it is cut in two and for reads of one byte."""
    request = {"stream": True, **request}
    whole = decode([body], shape=shape, body=request, content_type=kind)
    assert decode(one_by_one(body), shape=shape, body=request, content_type=kind) == whole
    for at in range(len(body)):
        assert decode([body[:at], body[at:]], shape=shape, body=request, content_type=kind) == whole
    return whole


def lines(*items: Any) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def said(text: str, **message: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text, **message}, "done": False}


DONE = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}


def end_of(events: list[Event]) -> StreamEnd:
    assert isinstance(events[-1], StreamEnd)
    return events[-1]


def test_chat_request_with_everything() -> None:
    http = CHAT.build(
        Request(
            messages=(SYSTEM, QUESTION, ANSWER, QUESTION),
            model="llama3",
            sampling=EVERYTHING,
            schema={"type": "object"},
            options={"think": False, "keep_alive": "5m", "options": {"num_ctx": 8192, "seed": 4}},
        )
    )
    assert (http.method, http.path) == ("POST", "/api/chat")
    assert http.body == {
        "model": "llama3",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": "Because."},
            {"role": "user", "content": "Why?"},
        ],
        "stream": True,
        "format": {"type": "object"},
        "options": {**EVERY_OPTION, "num_ctx": 8192, "seed": 4},
        "think": False,
        "keep_alive": "5m",
    }


def test_chat_request_with_nothing() -> None:
    body = CHAT.build(Request(messages=(QUESTION,), stream=False)).body
    assert body == {"messages": [{"role": "user", "content": "Why?"}], "stream": False}


def test_options_of_the_user_need_no_other() -> None:
    body = CHAT.build(Request(messages=(), options={"options": {"num_ctx": 8192}})).body
    assert body == {"messages": [], "stream": True, "options": {"num_ctx": 8192}}


@pytest.mark.parametrize("shape", [CHAT, GENERATE])
def test_where_things_are_read(shape: Any) -> None:
    assert shape.stop_field == "options.stop"
    assert shape.max_tokens_field == "options.num_predict"
    assert (shape.framing, shape.takes) == ("ndjson", "messages")


def test_generate_leaves_the_template_to_the_server() -> None:
    http = GENERATE.build(
        Request(messages=(SYSTEM, QUESTION), model="m", sampling=EVERYTHING, schema={"type": "object"})
    )
    assert http.path == "/api/generate"
    assert http.body == {
        "model": "m",
        "prompt": "Why?",
        "system": "Be brief.",
        "stream": True,
        "format": {"type": "object"},
        "options": EVERY_OPTION,
    }


def test_generate_without_a_system_text() -> None:
    assert GENERATE.build(Request(messages=(QUESTION,))).body == {"prompt": "Why?", "stream": True}


def test_generate_joins_system_texts() -> None:
    assert GENERATE.build(Request(messages=(SYSTEM, SYSTEM, QUESTION))).body == {
        "prompt": "Why?",
        "system": "Be brief.\n\nBe brief.",
        "stream": True,
    }


def test_generate_sends_a_flattened_prompt_raw() -> None:
    body = GENERATE.build(Request(messages=(SYSTEM, QUESTION), prompt="User: Why?\nAssistant:")).body
    assert body == {"prompt": "User: Why?\nAssistant:", "raw": True, "stream": True}


@pytest.mark.parametrize(
    ("messages", "needed"),
    [
        ((QUESTION,), False),
        ((SYSTEM, QUESTION), False),
        ((QUESTION, ANSWER, QUESTION), True),
        ((QUESTION, ANSWER), True),
        ((SYSTEM,), True),
    ],
)
def test_generate_takes_one_question(messages: tuple[Message, ...], needed: bool) -> None:
    assert GENERATE.needs_prompt(messages) is needed
    assert not CHAT.needs_prompt(messages)
    if needed:
        with pytest.raises(ValueError, match="one question"):
            GENERATE.build(Request(messages=messages))


METRICS = {
    "total_duration": 9_000_000_000,
    "load_duration": 5_900_000_000,
    "prompt_eval_count": 26,
    "prompt_eval_duration": 130_000_000,
    "eval_count": 10,
    "eval_duration": 2_500_000_000,
}
COUNTS = {"prompt_eval_count": 26, "eval_count": 10}
REPORTS = [
    UsageReport(usage=Usage(prompt_tokens=26, completion_tokens=10, raw=COUNTS)),
    TimingsReport(timings=ServerTimings(load_s=5.9, prefill_s=0.13, decode_s=2.5)),
]


def test_chat_answer() -> None:
    body = lines(
        {"model": "m", "created_at": "2026-08-21T09:00:00Z", **said("", thinking="Hm.")},
        {"model": "m", **said("Blue 👩‍👧")},
        {"model": "m", **DONE, **METRICS},
    )
    events = answer(body)
    assert events[:-1] == [
        StreamStart(model="m"),
        ReasoningDelta(text="Hm."),
        TextDelta(text="Blue 👩‍👧"),
        Finish(reason=FinishReason.STOP, raw_reason="stop"),
        *REPORTS,
    ]
    assert end_of(events).status is EndStatus.COMPLETE
    assert end_of(events).marker_seen is True
    assert end_of(events).offset == body.rindex(b'{"model"')


def test_generate_answer() -> None:
    body = lines(
        {"model": "m", "response": "", "thinking": "Hm.", "done": False},
        {"model": "m", "response": "Blue", "done": False},
        {"model": "m", "response": ".", "done": True, "done_reason": "length", "context": [1, 2], **METRICS},
    )
    events = answer(body, "ollama-generate")
    assert events[:-1] == [
        StreamStart(model="m"),
        ReasoningDelta(text="Hm."),
        TextDelta(text="Blue"),
        TextDelta(text="."),
        Finish(reason=FinishReason.LENGTH, raw_reason="length"),
        *REPORTS,
    ]


def test_generate_answer_that_is_all_thinking() -> None:
    events = answer(lines({"thinking": "Hm."}, {"done": True, "done_reason": "length"}), "ollama-generate")
    assert events[:-1] == [
        ReasoningDelta(text="Hm."),
        Finish(reason=FinishReason.LENGTH, raw_reason="length"),
    ]


@pytest.mark.parametrize(
    ("last", "reason", "raw"),
    [
        ({"done_reason": "stop"}, FinishReason.STOP, "stop"),
        ({"done_reason": "length"}, FinishReason.LENGTH, "length"),
        ({"done_reason": "load"}, FinishReason.OTHER, "load"),
        ({"done_reason": "unload"}, FinishReason.OTHER, "unload"),
        ({"done_reason": "meteor"}, FinishReason.OTHER, "meteor"),
        ({"done_reason": ""}, FinishReason.STOP, None),
        ({"done_reason": None}, FinishReason.STOP, None),
        ({}, FinishReason.STOP, None),
    ],
)
@pytest.mark.parametrize("shape", ["ollama-chat", "ollama-generate"])
def test_done_is_the_servers_word(
    shape: str, last: dict[str, Any], reason: FinishReason, raw: str | None
) -> None:
    events = answer(lines({"done": True, **last}), shape)
    assert events[:-1] == [Finish(reason=reason, raw_reason=raw)]
    assert end_of(events).status is EndStatus.COMPLETE


def test_the_last_line_may_carry_text_and_lack_its_line_feed() -> None:
    events = answer(lines(said("Hel"), {**DONE, "message": {"content": "lo"}}).rstrip())
    assert events[:-1] == [
        TextDelta(text="Hel"),
        TextDelta(text="lo"),
        Finish(reason=FinishReason.STOP, raw_reason="stop"),
    ]


def test_a_proper_end_without_the_done_line_is_incomplete() -> None:
    # What the repetition guard of Ollama does.
    events = answer(lines(said("ha"), said("ha")))
    assert end_of(events).status is EndStatus.INCOMPLETE
    assert end_of(events).marker_seen is False


@pytest.mark.parametrize("body", [b"", b"\n", lines({"done": False})])
def test_an_empty_body_is_incomplete(body: bytes) -> None:
    events = answer(body)
    assert events == [end_of(events)]
    assert end_of(events).status is EndStatus.INCOMPLETE


def test_nothing_is_read_after_done() -> None:
    assert answer(lines(DONE) + b"{broken\n")[:-1] == [Finish(reason=FinishReason.STOP, raw_reason="stop")]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ({"error": "model crashed"}, StreamError(kind="server_error", message="model crashed")),
        (
            {"error": "too long", "status": 400},
            StreamError(kind="server_error", message="too long", http_status=400),
        ),
        (
            {"error": {"message": "no", "type": "api_error", "code": 7}},
            StreamError(kind="api_error", message="no", code=7),
        ),
    ],
)
@pytest.mark.parametrize("shape", ["ollama-chat", "ollama-generate"])
def test_an_error_line_ends_the_answer_and_keeps_the_text(
    shape: str, line: dict[str, Any], error: StreamError
) -> None:
    events = answer(lines({**said("I"), "response": "I"}, line, DONE), shape)
    assert events[:-1] == [TextDelta(text="I")]
    assert (end_of(events).status, end_of(events).error) == (EndStatus.ERROR, error)
    assert end_of(events).marker_seen is False


def call(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments}}


def test_tool_calls_are_whole_and_come_on_any_line() -> None:
    events = answer(
        lines(
            said("", tool_calls=[call("weather", {"city": "Malmö", "days": 2}, id="call_a")]),
            said("", tool_calls=[call("add", {"a": 1}), call("add", {"a": 2})]),
            {**DONE, "message": {"content": "", "tool_calls": [call("now", {})]}},
        )
    )
    assert events[:-2] == [
        ToolCallDelta(call=0, id="call_a", name="weather", arguments='{"city":"Malmö","days":2}'),
        ToolCallDelta(call=1, name="add", arguments='{"a":1}'),
        ToolCallDelta(call=2, name="add", arguments='{"a":2}'),
        ToolCallDelta(call=3, name="now", arguments="{}"),
    ]
    assert all(made.valid for made in fold(events).first.tool_calls)


def test_every_call_numbered_zero_is_a_call_of_its_own() -> None:
    first, second = call("add", {"a": 1}), call("add", {"a": 2})
    first["function"]["index"] = second["function"]["index"] = 0
    made = fold(
        answer(lines(said("", tool_calls=[first]), said("", tool_calls=[second]), DONE))
    ).first.tool_calls
    assert [item.arguments for item in made] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(("sent", "text"), [('{"a": 1}', '{"a": 1}'), (None, "{}"), ([1], "[1]")])
def test_arguments_that_are_no_object(sent: Any, text: str) -> None:
    events = answer(lines(said("", tool_calls=[call("f", sent)])))
    assert events[:-1] == [ToolCallDelta(call=0, name="f", arguments=text)]


def test_logprobs() -> None:
    logprobs = [{"token": "Hi", "logprob": -0.1, "top_logprobs": []}]
    events = answer(lines({**said("Hi"), "logprobs": logprobs}, {**said("!"), "logprobs": []}))
    assert events[:-1] == [TextDelta(text="Hi"), LogprobsDelta(data=logprobs), TextDelta(text="!")]


def test_counts_that_are_left_out_are_unknown() -> None:
    # A prompt that was cached whole has no prompt_eval_count.
    (usage,) = [event for event in answer(lines({**DONE, "eval_count": 7})) if isinstance(event, UsageReport)]
    assert usage.usage == Usage(prompt_tokens=None, completion_tokens=7, raw={"eval_count": 7})


@pytest.mark.parametrize("data", ["17", "[]", "null", '{"status": "pulling"}', '{"message": "text"}'])
def test_lines_of_another_kind_are_kept(data: str) -> None:
    events = answer(data.encode() + b"\n")
    assert events[:-1] == [UnknownFrame(name=None, data=data)]
    assert end_of(events).status is EndStatus.INCOMPLETE


def test_a_broken_line_is_told() -> None:
    events = answer(b'{"message": {"con\n' + lines(DONE))
    assert events[0] == UnknownFrame(name=None, data='{"message": {"con', readable=False)
    assert end_of(events).status is EndStatus.COMPLETE


def test_fields_of_the_wrong_type_do_no_harm() -> None:
    line = {"message": {"content": 7, "thinking": [], "tool_calls": {"a": 1}}, "done": "yes", "model": 3}
    assert answer(lines(line))[:-1] == []


@pytest.mark.parametrize("shape", ["ollama-chat", "ollama-generate"])
def test_one_document(shape: str) -> None:
    whole = {"model": "m", "message": {"content": "Hi!"}, "response": "Hi!", **COUNTS}
    body = json.dumps({**whole, "done": True, "done_reason": "stop"}).encode()
    turn = fold(answer(body, shape, "application/json; charset=utf-8", stream=False))
    assert (turn.first.text, turn.end.status, turn.end.marker_seen) == ("Hi!", EndStatus.COMPLETE, None)
    assert turn.usage is not None
    assert (turn.usage.prompt_tokens, turn.usage.completion_tokens) == (26, 10)


def test_loading_a_model_is_one_document_even_if_a_stream_was_asked() -> None:
    body = b'{"model":"m","message":{"role":"assistant","content":""},"done_reason":"load","done":true}'
    turn = fold(answer(body, kind="application/json"))
    assert turn.first.finish == Finish(reason=FinishReason.OTHER, raw_reason="load")
    assert (turn.end.status, turn.end.marker_seen) == (EndStatus.COMPLETE, None)


def test_a_relay_may_frame_the_lines_as_events() -> None:
    body = b": ping\n\n" + b"".join(
        b"data: " + line + b"\n\n" for line in lines(said("Hi"), DONE).splitlines()
    )
    events = answer(body, kind="text/event-stream")
    assert events[:2] == [KeepAlive(comment="ping"), TextDelta(text="Hi")]
    assert end_of(events).status is EndStatus.COMPLETE
    failed = answer(b'event: error\ndata: {"message": "gone"}\n\n', kind="text/event-stream")
    assert end_of(failed).error == StreamError(kind="server_error", message="gone")


def test_an_http_error() -> None:
    body = b'{"error":"model \'x\' not found"}'
    assert CHAT.read_error(404, body, "application/json") == StreamError(
        kind="server_error", message="model 'x' not found", http_status=404
    )
