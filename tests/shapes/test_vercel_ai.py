"""The streams of the Vercel AI SDK. Nothing was recorded: frames by its source and its documentation."""

import json
from typing import Any

import pytest

from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    KeepAlive,
    ReasoningDelta,
    StreamError,
    StreamStart,
    TextDelta,
    ToolCallDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.request import Message, Request, Sampling
from llmstream_cli.shapes import get_shape, shape_for_path
from tests.support.built.vercel_ai import DONE, FINISH, PLAIN, REASONING, part, stream, text
from tests.support.cuts import end_of, everywhere

SHAPE = get_shape("vercel-ai")
SSE, TEXT = "text/event-stream", "text/plain; charset=utf-8"
STOP = Finish(reason=FinishReason.STOP, raw_reason="stop")


def answer(body: bytes | str, kind: str = SSE) -> list[Event]:
    raw = body.encode() if isinstance(body, str) else body
    return everywhere(raw, shape="vercel-ai", request={}, kind=kind)


def test_request() -> None:
    http = SHAPE.build(
        Request(
            messages=(Message(role="system", content="Be brief."), Message(role="user", content="Hi")),
            model="m",
            sampling=Sampling(max_tokens=9, stop=("END",)),
            options={"id": "chat1", "trigger": "submit-message"},
        )
    )
    assert (http.method, http.path) == ("POST", "/api/chat")
    assert http.body == {
        "messages": [
            {
                "id": "0",
                "role": "system",
                "content": "Be brief.",
                "parts": [{"type": "text", "text": "Be brief."}],
            },
            {"id": "1", "role": "user", "content": "Hi", "parts": [{"type": "text", "text": "Hi"}]},
        ],
        "model": "m",
        "id": "chat1",
        "trigger": "submit-message",
    }
    assert shape_for_path("/api/chat", http.body) == "vercel-ai"
    assert shape_for_path("/api/chat", {"messages": [{"role": "user", "content": "Hi"}]}) == "ollama-chat"


def test_facts() -> None:
    assert (SHAPE.stop_field, SHAPE.max_tokens_field, SHAPE.takes_seed) == (None, None, False)
    assert "model" not in SHAPE.build(Request(messages=())).body


# UI message stream


def test_ui_message_stream() -> None:
    events = answer(b": hello\n\n" + stream(*PLAIN) + DONE)
    assert events[:-1] == [
        KeepAlive(comment="hello"),
        StreamStart(response_id="m1"),
        TextDelta(text="Red"),
        TextDelta(text=" 👩‍👧\n"),
        STOP,
    ]
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.COMPLETE, True)


def test_the_end_without_the_marker_is_complete() -> None:
    events = answer(stream(*PLAIN))
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.COMPLETE, False)


def test_the_marker_without_the_end_is_not() -> None:
    events = answer(stream(*PLAIN[:-1]) + DONE)
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.INCOMPLETE, True)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"finishReason": "stop"}, FinishReason.STOP),
        ({"finishReason": "length"}, FinishReason.LENGTH),
        ({"finishReason": "tool-calls"}, FinishReason.TOOL_CALLS),
        ({"finishReason": "content-filter"}, FinishReason.CONTENT_FILTER),
        ({"finishReason": "other"}, FinishReason.OTHER),
        ({"finishReason": "unknown"}, FinishReason.OTHER),
        ({"finishReason": "meteor"}, FinishReason.OTHER),
        ({}, FinishReason.STOP),
        ({"finishReason": None}, FinishReason.STOP),
    ],
)
def test_finish(told: dict[str, Any], reason: FinishReason) -> None:
    wanted = Finish(reason=reason, raw_reason=told.get("finishReason"))
    for body, kind in (
        (stream(part("finish", **told)) + DONE, SSE),
        (f"d:{json.dumps(told)}\n", TEXT),
    ):
        events = answer(body, kind)
        assert events[:-1] == [wanted]
        assert end_of(events).status is EndStatus.COMPLETE


def test_reasoning() -> None:
    body = stream(*REASONING)
    assert answer(body)[:-1] == [ReasoningDelta(text="Hmm"), TextDelta(text="Red"), STOP]


def test_tool_calls_in_pieces_and_whole() -> None:
    body = stream(
        part("tool-input-start", toolCallId="c1", toolName="weather"),
        part("tool-input-delta", toolCallId="c1", inputTextDelta='{"city":'),
        part("tool-input-available", toolCallId="c2", toolName="now", input={}),
        part("tool-input-delta", toolCallId="c1", inputTextDelta='"Rome"}'),
        part("tool-input-available", toolCallId="c1", toolName="weather", input={"city": "Rome"}),
        part("tool-input-start", toolCallId="c3", toolName="later"),
        part("tool-input-available", toolCallId="c3", toolName="later", input={"h": 1}),
        part("finish", finishReason="tool-calls"),
    )
    assert answer(body)[:-1] == [
        ToolCallDelta(call=0, id="c1", name="weather"),
        ToolCallDelta(call=0, arguments='{"city":'),
        ToolCallDelta(call=1, id="c2", name="now", arguments="{}"),
        ToolCallDelta(call=0, arguments='"Rome"}'),
        ToolCallDelta(call=2, id="c3", name="later"),
        ToolCallDelta(call=2, arguments='{"h":1}'),
        Finish(reason=FinishReason.TOOL_CALLS, raw_reason="tool-calls"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        part("tool-output-available", toolCallId="c1", output={"t": 20}),
        part("source-url", sourceId="s1", url="https://example.com"),
        part("file", url="data:", mediaType="image/png"),
        part("data-weather", id="w1", data={}),
        part("reset-step"),
        part("brand-new"),
    ],
)
def test_other_parts_are_kept(other: dict[str, Any]) -> None:
    events = answer(stream(other, FINISH))
    assert events[:-1] == [UnknownFrame(name=other["type"], data=json.dumps(other)), STOP]


@pytest.mark.parametrize("where", ["usage", "totalUsage"])
def test_what_applications_put_into_the_metadata(where: str) -> None:
    counts = {
        "inputTokens": 9,
        "outputTokens": 4,
        "totalTokens": 13,
        "reasoningTokens": 1,
        "cachedInputTokens": 2,
    }
    report = UsageReport(
        usage=Usage(
            prompt_tokens=9,
            completion_tokens=4,
            reasoning_tokens=1,
            cached_tokens=2,
            total_tokens=13,
            raw=counts,
        )
    )
    body = stream(
        part("start", messageId="m1", messageMetadata={"model": "gpt"}),
        part("message-metadata", messageMetadata={where: counts}),
        part("finish", messageMetadata={where: counts, "other": 1}),
    )
    assert answer(body)[:-1] == [
        StreamStart(response_id="m1"),
        StreamStart(response_id="m1", model="gpt"),
        report,
        Finish(reason=FinishReason.STOP),
    ]


def test_an_error_is_not_the_end_but_the_answer_is_not_whole() -> None:
    body = stream(*text("Red"), part("error", errorText="Boom."), *text("!"), FINISH) + DONE
    events = answer(body)
    assert events[:-1] == [TextDelta(text="Red"), TextDelta(text="!"), STOP]
    assert end_of(events).status is EndStatus.ERROR
    assert end_of(events).error == StreamError(kind="server_error", message="Boom.")


@pytest.mark.parametrize("told", [{"reason": "too slow"}, {}])
def test_an_abort_is_an_error(told: dict[str, Any]) -> None:
    events = answer(stream(*text("Red"), part("abort", **told)) + DONE)
    assert end_of(events).status is EndStatus.ERROR
    message = told.get("reason", "the server broke the answer off")
    assert end_of(events).error == StreamError(kind="abort", message=message)


def test_the_finish_reason_error_is_an_error() -> None:
    events = answer(stream(*text("Red"), part("finish", finishReason="error")) + DONE)
    assert events[1] == Finish(reason=FinishReason.OTHER, raw_reason="error")
    assert end_of(events).status is EndStatus.ERROR


@pytest.mark.parametrize(
    "body", [b'data: {"error": "Boom."}\n\n', b'event: error\ndata: {"message": "Boom."}\n\n']
)
def test_errors_of_the_back_end_itself(body: bytes) -> None:
    assert end_of(answer(stream(*text("Red")) + body)).error == StreamError(
        kind="server_error", message="Boom."
    )


def test_an_error_document() -> None:
    assert end_of(answer('{"error": "Boom."}', "application/json")).error == StreamError(
        kind="server_error", message="Boom."
    )
    assert SHAPE.read_error(422, b'{"detail": "no messages"}').message == "no messages"


@pytest.mark.parametrize("data", ["17", "null", "[]", "{}", '{"type": 5}'])
def test_frames_of_another_kind_are_kept(data: str) -> None:
    events = answer(f"data: {data}\n\n")
    assert events[:-1] == [UnknownFrame(name=None, data=data)]
    assert end_of(events).status is EndStatus.INCOMPLETE


def test_fields_of_the_wrong_type_do_no_harm() -> None:
    odd = [
        part("text-delta"),
        part("text-delta", delta=5),
        part("tool-input-start"),
        part("tool-input-delta", toolCallId=5, inputTextDelta={}),
        part("error", errorText={"a": 1}),
        part("finish", finishReason=[], messageMetadata=7),
    ]
    error = end_of(answer(stream(*odd))).error
    assert error == StreamError(kind="server_error", message='{"a":1}')


# The lines of version 4

LINES = (
    'f:{"messageId":"m1"}\n'
    '0:"Red"\n'
    '0:" 👩‍👧\\n"\n'
    'e:{"finishReason":"stop","usage":{"promptTokens":9,"completionTokens":4},"isContinued":false}\n'
    'd:{"finishReason":"stop","usage":{"promptTokens":9,"completionTokens":4}}\n'
)


@pytest.mark.parametrize("kind", [TEXT, SSE, ""])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines(kind: str, end: str) -> None:
    events = answer(LINES.replace("\n", end), kind)
    assert events[:-1] == [
        StreamStart(response_id="m1"),
        TextDelta(text="Red"),
        TextDelta(text=" 👩‍👧\n"),
        STOP,
        UsageReport(
            usage=Usage(prompt_tokens=9, completion_tokens=4, raw={"promptTokens": 9, "completionTokens": 4})
        ),
    ]
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.COMPLETE, None)


def test_a_last_line_without_its_end_counts() -> None:
    events = answer(LINES.rstrip("\n"), TEXT)
    assert end_of(events).status is EndStatus.COMPLETE


def test_lines_without_the_last_one_are_cut() -> None:
    events = answer(LINES[: LINES.index("d:")], TEXT)
    assert end_of(events).status is EndStatus.INCOMPLETE
    broken = answer(LINES[: LINES.index("d:")] + '0:"Gr', TEXT)
    assert broken[-2] == UnknownFrame(name="0", data='0:"Gr', readable=False, cut=True)


def test_an_error_line() -> None:
    events = answer('0:"Red"\n3:"Boom."\n0:"!"\nd:{"finishReason":"error"}\n', TEXT)
    assert events[:-1] == [
        TextDelta(text="Red"),
        TextDelta(text="!"),
        Finish(reason=FinishReason.OTHER, raw_reason="error"),
    ]
    assert end_of(events).error == StreamError(kind="server_error", message="Boom.")


def test_lines_with_reasoning_and_tool_calls() -> None:
    body = (
        'g:"Hmm"\ni:{"data":"x"}\nj:{"signature":"s"}\n'
        'b:{"toolCallId":"c1","toolName":"weather"}\n'
        'c:{"toolCallId":"c1","argsTextDelta":"{\\"a\\":"}\n'
        'c:{"toolCallId":"c1","argsTextDelta":"1}"}\n'
        '9:{"toolCallId":"c1","toolName":"weather","args":{"a":1}}\n'
        '9:{"toolCallId":"c2","toolName":"now","args":{}}\n'
        'd:{"finishReason":"tool-calls"}\n'
    )
    assert answer(body, TEXT)[:-1] == [
        ReasoningDelta(text="Hmm"),
        ToolCallDelta(call=0, id="c1", name="weather"),
        ToolCallDelta(call=0, arguments='{"a":'),
        ToolCallDelta(call=0, arguments="1}"),
        ToolCallDelta(call=1, id="c2", name="now", arguments="{}"),
        Finish(reason=FinishReason.TOOL_CALLS, raw_reason="tool-calls"),
    ]


@pytest.mark.parametrize(
    "line",
    ['2:[{"a":1}]', "8:[1]", 'a:{"toolCallId":"c1","result":1}', 'h:{"url":"x"}', 'k:{"data":"x"}', "z:[]"],
)
def test_other_lines_are_kept(line: str) -> None:
    assert answer(f'{line}\n0:"Red"\n', TEXT)[:-1] == [
        UnknownFrame(name=line[0], data=line),
        TextDelta(text="Red"),
    ]


def test_counts_that_are_not_known() -> None:
    body = 'd:{"finishReason":"stop","usage":{"promptTokens":null,"completionTokens":NaN}}\n'
    assert answer(body, TEXT)[:-1] == [STOP]


def test_a_line_that_cannot_be_read_is_told() -> None:
    assert answer('0:"Red\nd:{}\n', TEXT)[0] == UnknownFrame(name="0", data='0:"Red', readable=False)
