"""``:streamGenerateContent``. No server was recorded: frames by its reference and by public recordings."""

import json
from typing import Any

import pytest

from llmstream_cli.decode import StreamDecoder
from llmstream_cli.errors import UsageError
from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    KeepAlive,
    ReasoningDelta,
    RefusalDelta,
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
from llmstream_cli.shapes.gemini_calls import ArgumentsWriter
from tests.support.captures import decode, fold
from tests.support.cuts import end_of, everywhere

SHAPE = get_shape("gemini")
SSE, ARRAY = "text/event-stream", "application/json; charset=UTF-8"
STOP = Finish(reason=FinishReason.STOP, raw_reason="STOP")


def answer(body: bytes, kind: str = SSE, **config: Any) -> list[Event]:
    return everywhere(body, shape="gemini", request={"generationConfig": config}, kind=kind)


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks)


def array(*chunks: Any) -> bytes:
    """As Google lays it out: every element over many lines."""
    elements = (json.dumps(chunk, indent=2, ensure_ascii=False) for chunk in chunks)
    return ("[" + "\n,\r\n".join(elements) + "\n]\n").encode()


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [{**candidate, **more.pop("candidate", {})}], **more}


def text(*texts: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return chunk(*({"text": piece} for piece in texts), finish=finish, **more)


IDENTITY = {"modelVersion": "gemini-3-flash", "responseId": "r1"}
COUNTS = {
    "promptTokenCount": 9,
    "candidatesTokenCount": 4,
    "thoughtsTokenCount": 30,
    "cachedContentTokenCount": 2,
    "totalTokenCount": 43,
}
PLAIN = (
    text("Red", usageMetadata={"promptTokenCount": 9, "totalTokenCount": 9}, **IDENTITY),
    text(" 👩‍👧\n", usageMetadata={"promptTokenCount": 9, "totalTokenCount": 9}, **IDENTITY),
    chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP", usageMetadata=COUNTS, **IDENTITY),
)
PLAIN_EVENTS = [
    StreamStart(response_id="r1", model="gemini-3-flash"),
    TextDelta(text="Red"),
    UsageReport(
        usage=Usage(prompt_tokens=9, total_tokens=9, raw={"promptTokenCount": 9, "totalTokenCount": 9})
    ),
    TextDelta(text=" 👩‍👧\n"),
    STOP,
    UsageReport(
        usage=Usage(
            prompt_tokens=9,
            completion_tokens=34,
            reasoning_tokens=30,
            cached_tokens=2,
            total_tokens=43,
            raw=COUNTS,
        )
    ),
]


# The request


def test_request_with_everything() -> None:
    http = SHAPE.build(
        Request(
            messages=(
                Message(role="system", content="Be brief."),
                Message(role="user", content="Hi"),
                Message(role="assistant", content="Hello"),
                Message(role="user", content="Why?"),
            ),
            model="gemini-3-flash",
            sampling=Sampling(max_tokens=9, temperature=0.7, top_p=0.9, seed=3, stop=("END",)),
            schema={"type": "object"},
            options={"generationConfig": {"topK": 5}, "safetySettings": []},
        )
    )
    assert (http.method, http.path) == ("POST", "/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse")
    assert http.body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"text": "Hello"}]},
            {"role": "user", "parts": [{"text": "Why?"}]},
        ],
        "generationConfig": {
            "maxOutputTokens": 9,
            "temperature": 0.7,
            "topP": 0.9,
            "seed": 3,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
            "topK": 5,
        },
        "safetySettings": [],
    }


QUESTION = (Message(role="user", content="Hi"),)


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-3-flash", "models/gemini-3-flash"),
        ("models/gemini-3-flash", "models/gemini-3-flash"),
        ("tunedModels/a b?c", "tunedModels/a%20b%3Fc"),
    ],
)
def test_request_without_streaming(model: str, path: str) -> None:
    http = SHAPE.build(Request(messages=QUESTION, model=model, stream=False))
    assert http.path == f"/v1beta/{path}:generateContent"
    assert http.body == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


def test_the_model_is_needed() -> None:
    with pytest.raises(UsageError, match="-m"):
        SHAPE.build(Request(messages=QUESTION))
    assert SHAPE.needs_model


def test_five_stop_sequences_are_sent() -> None:
    stops = tuple("abcdefg")
    body = SHAPE.build(Request(messages=QUESTION, model="m", sampling=Sampling(stop=stops))).body
    assert body["generationConfig"] == {"stopSequences": ["a", "b", "c", "d", "e"]}
    assert SHAPE.stop_limit == 5


def test_facts() -> None:
    assert (SHAPE.auth, SHAPE.framing, SHAPE.terminal_marker) == ("x-goog-api-key", "json-array", None)
    for method in ("streamGenerateContent?alt=sse", "generateContent"):
        assert shape_for_path(f"/v1/models/m:{method}", {}) == "gemini"
    assert not SHAPE.needs_prompt(QUESTION)


# Both forms of the stream


def test_event_stream() -> None:
    events = answer(sse(*PLAIN))
    assert events[:-1] == PLAIN_EVENTS
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.COMPLETE, None)
    assert answer(sse(*PLAIN).replace(b"\r\n", b"\n"))[:-1] == PLAIN_EVENTS


@pytest.mark.parametrize("kind", [ARRAY, SSE, ""])
def test_json_array(kind: str) -> None:
    events = answer(array(*PLAIN), kind)
    assert events[:-1] == PLAIN_EVENTS
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.COMPLETE, True)


@pytest.mark.parametrize("kind", [ARRAY, ""])
def test_an_event_stream_under_another_name(kind: str) -> None:
    events = answer(b": hello\n\n" + sse(*PLAIN), kind)
    assert events[:-1] == [KeepAlive(comment="hello"), *PLAIN_EVENTS]


def test_an_array_that_is_not_closed_is_cut() -> None:
    body = array(*PLAIN)
    events = answer(body[: body.rindex(b"]")], ARRAY)
    assert events[:-1] == PLAIN_EVENTS
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.INCOMPLETE, False)
    assert end_of(events).error == StreamError(
        kind="array_not_closed", message="the JSON array was not closed"
    )


@pytest.mark.parametrize("status", [EndStatus.TIMEOUT, EndStatus.CANCELLED])
def test_an_array_that_was_given_up_says_so(status: EndStatus) -> None:
    body = array(*PLAIN)[:-3]
    events = decode([body], shape="gemini", body={}, content_type=ARRAY, status=status)
    assert (end_of(events).status, end_of(events).error) == (status, None)


def test_one_document() -> None:
    whole = text("Red!", finish="STOP", usageMetadata=COUNTS, **IDENTITY)
    turn = fold(answer(json.dumps(whole, indent=2).encode(), ARRAY))
    assert (turn.first.text, turn.first.finish) == ("Red!", STOP)
    assert (turn.end.status, turn.end.marker_seen) == (EndStatus.COMPLETE, None)
    assert turn.usage is not None
    assert turn.usage.completion_tokens == 34


def test_the_end_mark_of_a_gateway() -> None:
    body = sse(*PLAIN) + b"data: [DONE]\n\n"
    assert answer(body)[:-1] == PLAIN_EVENTS
    assert end_of(answer(sse(PLAIN[0]) + b"data: [DONE]\n\n")).status is EndStatus.INCOMPLETE


# How answers end


def test_no_finish_reason_is_incomplete() -> None:
    for body, kind in (
        (sse(PLAIN[0]), SSE),
        (array(PLAIN[0]), ARRAY),
        (b"", SSE),
        (b"", ARRAY),
        (b"[]", ARRAY),
    ):
        assert end_of(answer(body, kind)).status is EndStatus.INCOMPLETE


FILTERS = [
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "LANGUAGE",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "ESCALATION",
    "PUP_LIMITED_DISABLED",
]
FAILURES = [
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        *((raw, FinishReason.CONTENT_FILTER) for raw in FILTERS),
        ("OTHER", FinishReason.OTHER),
        ("NO_IMAGE", FinishReason.OTHER),
        ("IMAGE_OTHER", FinishReason.OTHER),
        ("FINISH_REASON_UNSPECIFIED", FinishReason.OTHER),
        ("METEOR", FinishReason.OTHER),
    ],
)
def test_finish_reasons(raw: str, reason: FinishReason) -> None:
    # A candidate without content, with empty content, or with the last text.
    for last in ({"finishReason": raw}, {"content": {"role": "model"}, "finishReason": raw}):
        events = answer(sse(text("Red"), {"candidates": [last]}))
        assert events[:-1] == [TextDelta(text="Red"), Finish(reason=reason, raw_reason=raw)]
        assert end_of(events).status is EndStatus.COMPLETE
    assert answer(sse(text("Red", finish=raw)))[:-1] == events[:-1]
    assert SHAPE.finish_reasons.get(raw, FinishReason.OTHER) is reason


@pytest.mark.parametrize("raw", FAILURES)
def test_finish_reasons_that_are_failures(raw: str) -> None:
    told = chunk(finish=raw, candidate={"finishMessage": "no such tool"}, usageMetadata=COUNTS)
    events = answer(sse(text("Red"), told, text("more")))
    assert events[:2] == [TextDelta(text="Red"), Finish(reason=FinishReason.OTHER, raw_reason=raw)]
    assert isinstance(events[2], UsageReport)
    assert end_of(events).status is EndStatus.ERROR
    assert end_of(events).error == StreamError(kind=raw, message="no such tool")
    silent = end_of(answer(sse(chunk(finish=raw)))).error
    assert silent == StreamError(kind=raw, message=f"the answer ended with {raw}")


def test_a_pause_is_no_end() -> None:
    events = answer(sse(text("Red", finish="CONTINUATION", candidate={"continuationToken": "t"})))
    assert events[:-1] == [
        TextDelta(text="Red"),
        Finish(reason=FinishReason.OTHER, raw_reason="CONTINUATION"),
    ]
    assert end_of(events).status is EndStatus.INCOMPLETE
    assert end_of(events).error is not None


def test_why_a_filter_ended_the_answer() -> None:
    last = {"candidates": [{"finishReason": "SAFETY", "finishMessage": "Too hot."}]}
    assert answer(sse(text("Red"), last))[:-1] == [
        TextDelta(text="Red"),
        RefusalDelta(text="Too hot."),
        Finish(reason=FinishReason.CONTENT_FILTER, raw_reason="SAFETY"),
    ]


@pytest.mark.parametrize("raw", ["SAFETY", "OTHER", "PROHIBITED_CONTENT", "JAILBREAK"])
@pytest.mark.parametrize("choices", [1, 2])
def test_a_prompt_that_is_refused(raw: str, choices: int) -> None:
    feedback = {"blockReason": raw, "blockReasonMessage": "Not that."}
    blocked = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 9}}
    events = answer(sse(blocked), candidateCount=choices)
    assert events[:-2] == [
        RefusalDelta(text="Not that."),
        *(
            Finish(reason=FinishReason.CONTENT_FILTER, raw_reason=raw, choice=choice)
            for choice in range(choices)
        ),
    ]
    assert end_of(events).status is EndStatus.COMPLETE


def test_ratings_of_the_prompt_are_no_refusal() -> None:
    events = answer(sse({**text("Red"), "promptFeedback": {"safetyRatings": []}}))
    assert events[:-1] == [TextDelta(text="Red")]
    assert end_of(events).status is EndStatus.INCOMPLETE


def test_a_finish_reason_in_every_frame_counts_when_nothing_follows() -> None:
    body = sse(text("Red", finish="STOP"), text("!", finish="STOP"))
    whole = decode([body], shape="gemini", body={}, content_type=SSE)
    assert whole[:-1] == [TextDelta(text="Red"), STOP, TextDelta(text="!"), STOP]
    assert end_of(whole).status is EndStatus.COMPLETE
    taken_back = decode(
        [sse(text("Red", finish="STOP"), text("!"))], shape="gemini", body={}, content_type=SSE
    )
    assert end_of(taken_back).status is EndStatus.INCOMPLETE


def test_settled_is_what_nothing_can_follow() -> None:
    decoder = StreamDecoder(SHAPE.decoder({}), SHAPE.framing, content_type=SSE)
    decoder.feed(sse(text("Red", finish="STOP")))
    beside_text = decoder.settled
    decoder.feed(sse(chunk(finish="STOP")))
    assert (beside_text, decoder.settled, decoder.ended) == (False, True, False)


def test_several_candidates() -> None:
    def of(index: int, **more: Any) -> dict[str, Any]:
        return {"candidates": [{"index": index, **more}]}

    said = [of(index, content={"parts": [{"text": str(index)}]}) for index in (1, 0)]
    body = sse(*said, of(0, finishReason="STOP"))
    events = answer(body, candidateCount=2)
    assert events[:3] == [TextDelta(text="1", choice=1), TextDelta(text="0"), STOP]
    assert end_of(events).status is EndStatus.INCOMPLETE
    whole = answer(body + sse(of(1, finishReason="STOP")), candidateCount=2)
    assert end_of(whole).status is EndStatus.COMPLETE


# What answers hold


def test_thoughts() -> None:
    body = sse(
        chunk({"text": "Hmm", "thought": True}), chunk({"text": "Red", "thought": False}, finish="STOP")
    )
    assert answer(body)[:-1] == [ReasoningDelta(text="Hmm"), TextDelta(text="Red"), STOP]


def test_budget_spent_on_thoughts() -> None:
    counts = {"promptTokenCount": 9, "thoughtsTokenCount": 64, "totalTokenCount": 73}
    body = sse(
        {
            "candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}],
            "usageMetadata": counts,
        }
    )
    turn = fold(answer(body))
    assert turn.truncated
    assert turn.usage == Usage(
        prompt_tokens=9, completion_tokens=64, reasoning_tokens=64, total_tokens=73, raw=counts
    )


def test_counts_are_reported_when_they_change() -> None:
    body = sse(
        text("a", usageMetadata={"trafficType": "ON_DEMAND"}),
        text("b", usageMetadata={"candidatesTokenCount": 1}),
        text("c", usageMetadata={"candidatesTokenCount": 1}),
        {"usageMetadata": {"candidatesTokenCount": 3}},
    )
    reports = [event.usage.completion_tokens for event in answer(body) if isinstance(event, UsageReport)]
    assert reports == [1, 3]


def test_tool_calls() -> None:
    body = sse(
        chunk(
            {
                "functionCall": {"name": "weather", "args": {"city": "Zürich"}, "id": "c1"},
                "thoughtSignature": "s",
            }
        ),
        chunk({"functionCall": {"name": "now"}}, finish="STOP"),
    )
    events = answer(body)
    assert events[:-1] == [
        ToolCallDelta(call=0, id="c1", name="weather", arguments='{"city":"Zürich"}'),
        ToolCallDelta(call=1, name="now", arguments="{}"),
        Finish(reason=FinishReason.TOOL_CALLS, raw_reason="STOP"),
    ]
    assert end_of(events).status is EndStatus.COMPLETE


def test_a_tool_call_cut_by_the_cap_is_told_as_that() -> None:
    body = sse(chunk({"functionCall": {"name": "now"}}, finish="MAX_TOKENS"))
    assert answer(body)[1] == Finish(reason=FinishReason.LENGTH, raw_reason="MAX_TOKENS")


def call(goes_on: bool | None = True, name: str | None = None, **pieces: Any) -> dict[str, Any]:
    told: dict[str, Any] = {} if goes_on is None else {"willContinue": goes_on}
    if name:
        told["name"] = name
    if pieces:
        told["partialArgs"] = [{"jsonPath": f"$.{path}", **piece} for path, piece in pieces.items()]
    return chunk({"functionCall": told})


PARTIAL = (
    call(name="weather"),
    call(city={"stringValue": "Zü", "willContinue": True}),
    call(city={"stringValue": 'rich "'}),
    call(days={"numberValue": 3}, past={"boolValue": False}, note={"nullValue": "NULL_VALUE"}),
)


@pytest.mark.parametrize(
    "end",
    [
        chunk({"functionCall": {}}),
        chunk({"functionCall": {"willContinue": False}}),
        # Missing, as has been seen where the last argument is a list.
        chunk({"text": ""}),
    ],
)
def test_a_tool_call_in_pieces(end: Any) -> None:
    body = sse(*PARTIAL, end, chunk(finish="STOP"))
    assert answer(body)[:-1] == [
        ToolCallDelta(call=0, name="weather"),
        ToolCallDelta(call=0, arguments='{"city":"Zü'),
        ToolCallDelta(call=0, arguments='rich \\"'),
        ToolCallDelta(call=0, arguments='","days":3,"past":false,"note":null'),
        ToolCallDelta(call=0, arguments="}"),
        Finish(reason=FinishReason.TOOL_CALLS, raw_reason="STOP"),
    ]
    (made,) = fold(answer(body)).first.tool_calls
    assert made.valid
    assert made.arguments == {"city": 'Zürich "', "days": 3, "past": False, "note": None}


def test_two_tool_calls_in_pieces() -> None:
    second = call(None, name="now", zone={"stringValue": "UTC"})
    turn = fold(answer(sse(*PARTIAL, second, call(name="later"), chunk({"functionCall": {}}, finish="STOP"))))
    assert [(made.name, made.valid) for made in turn.first.tool_calls] == [
        ("weather", True),
        ("now", True),
        ("later", True),
    ]
    assert [made.arguments_text for made in turn.first.tool_calls[1:]] == ['{"zone":"UTC"}', "{}"]


def test_the_end_of_a_tool_call_that_never_began_is_none() -> None:
    assert answer(sse(chunk({"functionCall": {}}, finish="STOP")))[:-1] == [STOP]


def test_a_tool_call_that_breaks_off_is_not_valid() -> None:
    turn = fold(answer(sse(*PARTIAL)))
    assert turn.end.status is EndStatus.INCOMPLETE
    assert not turn.first.tool_calls[0].valid


@pytest.mark.parametrize(
    ("pieces", "value"),
    [
        ([], {}),
        ([("$.a.b", 1), ("$.a.c", 2), ("$.d", 3)], {"a": {"b": 1, "c": 2}, "d": 3}),
        ([("$.a[0]", "x"), ("$.a[1]", "y"), ("$.b", "z")], {"a": ["x", "y"], "b": "z"}),
        ([("$.a[0].b", 1), ("$.a[0].c", 2), ("$.a[1].b", 3)], {"a": [{"b": 1, "c": 2}, {"b": 3}]}),
        ([("$.a[0][0]", 1), ("$.a[0][1]", 2), ("$.a[1][0]", 3)], {"a": [[1, 2], [3]]}),
        ([("$['a b']", 1), ('$["c.d"].e', 2)], {"a b": 1, "c.d": {"e": 2}}),
        ([("$.a", "x"), ("$.a", "y"), ("$.b", "")], {"a": "xy", "b": ""}),
        ([("$.a", 'q"\\\n')], {"a": 'q"\\\n'}),
        ([("", 1)], {"": 1}),
        ([("$[0]", 1)], {"0": 1}),
    ],
)
def test_arguments_by_path(pieces: list[tuple[str, Any]], value: Any) -> None:
    writer = ArgumentsWriter()
    written = ""
    for path, item in pieces:
        key = "stringValue" if isinstance(item, str) else "numberValue"
        written += writer.write({"jsonPath": path, key: item})
    assert json.loads(written + writer.close()) == value


def test_other_parts_are_kept() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s"}
    events = answer(sse(chunk(image, code, {"thoughtSignature": "s"}, finish="STOP")))
    assert events[:-1] == [
        UnknownFrame(name="inlineData", data='{"inlineData":{"mimeType":"image/png","data":"aGk="}}'),
        UnknownFrame(
            name="executableCode",
            data='{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"s"}',
        ),
        STOP,
    ]


# Errors

OVERLOADED = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
OVERLOADED_ERROR = StreamError(kind="UNAVAILABLE", message="The model is overloaded.", code=503)


@pytest.mark.parametrize(
    "tail",
    [
        sse(OVERLOADED),
        # Raw, without a field and without a blank line, as one object and as the array of one.
        json.dumps(OVERLOADED, indent=2).encode(),
        json.dumps(OVERLOADED, indent=2).encode() + b"\n",
        json.dumps(OVERLOADED).encode(),
        json.dumps([OVERLOADED], indent=2).encode(),
        b"[" + json.dumps(OVERLOADED, indent=2).encode() + b"\n]\n",
        b"event: error\n" + sse(OVERLOADED),
    ],
)
def test_an_error_in_the_middle_of_an_event_stream(tail: bytes) -> None:
    body = sse(text("Red")) + tail
    events = answer(body)
    assert events[:-1] == [TextDelta(text="Red")]
    assert (end_of(events).status, end_of(events).error) == (EndStatus.ERROR, OVERLOADED_ERROR)
    first = decode([tail], shape="gemini", body={}, content_type=SSE)
    assert end_of(first).error == OVERLOADED_ERROR


@pytest.mark.parametrize(
    "body",
    [
        array(text("Red"), OVERLOADED),
        array(text("Red"), OVERLOADED).rstrip().removesuffix(b"]"),
        b"[" + json.dumps(text("Red")).encode() + b"\n" + json.dumps(OVERLOADED, indent=2).encode(),
    ],
)
def test_an_error_in_the_middle_of_an_array(body: bytes) -> None:
    events = answer(body, ARRAY)
    assert events[:-1] == [TextDelta(text="Red")]
    assert (end_of(events).status, end_of(events).error) == (EndStatus.ERROR, OVERLOADED_ERROR)


def test_an_error_after_the_finish_reason_counts() -> None:
    body = sse(text("Red", finish="STOP"), OVERLOADED)
    assert end_of(decode([body], shape="gemini", body={}, content_type=SSE)).status is EndStatus.ERROR


@pytest.mark.parametrize("wrapped", [False, True])
def test_error_bodies(wrapped: bool) -> None:
    told = {
        "error": {
            "code": 429,
            "message": "Quota exceeded.",
            "status": "RESOURCE_EXHAUSTED",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "46s"}],
        }
    }
    body = json.dumps([told] if wrapped else told, indent=2).encode()
    error = SHAPE.read_error(429, body, ARRAY)
    assert error == StreamError(
        kind="RESOURCE_EXHAUSTED", message="Quota exceeded.", code=429, http_status=429
    )
    events = answer(body, ARRAY)
    assert (end_of(events).status, end_of(events).marker_seen) == (
        EndStatus.ERROR,
        False if wrapped else None,
    )


@pytest.mark.parametrize("data", ["17", "null", "[]", "[3]", "{}", '{"text": "x"}'])
def test_frames_of_another_kind_are_kept(data: str) -> None:
    events = answer(f"data: {data}\n\n".encode())
    assert events[:-1] == [UnknownFrame(name=None, data=data)]
    assert end_of(events).status is EndStatus.INCOMPLETE


@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
def test_a_body_that_is_no_json_is_told(kind: str) -> None:
    error = end_of(answer(b"Bad Gateway", kind)).error
    assert error is not None
    assert error.kind == "unreadable_stream"
    assert "Bad Gateway" in error.message


def test_fields_of_the_wrong_type_do_no_harm() -> None:
    odd = [
        {"candidates": {}},
        {
            "candidates": [
                None,
                {"content": []},
                {"content": {"parts": {}}},
                {"index": "x", "finishReason": 7},
            ]
        },
        {"candidates": [{"content": {"parts": [None, {"text": 3}, {"functionCall": []}, {}]}}]},
        {"promptFeedback": [], "usageMetadata": 3, "modelVersion": 5},
        chunk(
            {"functionCall": {"partialArgs": {}}},
            {"functionCall": {"name": 5, "args": "x", "partialArgs": [1]}},
        ),
    ]
    assert fold(answer(sse(*odd))).first.text == ""
