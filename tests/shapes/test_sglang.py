"""``/generate`` of SGLang. No server was recorded: frames by its source."""

import json
from typing import Any

import pytest

from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    LogprobsDelta,
    StreamError,
    StreamStart,
    TextDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.request import Request, Sampling
from llmstream_cli.shapes import get_shape, shape_for_path
from tests.support.built.sglang import ABORT, DONE, piece, stream
from tests.support.captures import decode, fold
from tests.support.cuts import end_of, everywhere

SHAPE = get_shape("sglang")


def answer(body: bytes, *, kind: str = "text/event-stream", **more: Any) -> list[Event]:
    request = {"text": "Hi", "stream": "event-stream" in kind, **more}
    return everywhere(body, shape="sglang", request=request, kind=kind)


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


def counts(completion: int) -> UsageReport:
    raw = {"prompt_tokens": 7, "completion_tokens": completion, "cached_tokens": 2}
    return UsageReport(usage=Usage(prompt_tokens=7, completion_tokens=completion, cached_tokens=2, raw=raw))


STOPPED = {"type": "stop", "matched": 2}
STOP = Finish(reason=FinishReason.STOP, raw_reason="stop", stop_token=2)


def test_request_with_everything() -> None:
    http = SHAPE.build(
        Request(
            messages=(),
            prompt="Once",
            model="the only one there is",
            sampling=Sampling(max_tokens=9, temperature=0.7, top_p=0.9, seed=3, stop=("END",)),
            schema={"type": "object"},
            options={"sampling_params": {"top_k": 5}},
        )
    )
    assert (http.method, http.path) == ("POST", "/generate")
    assert http.body == {
        "text": "Once",
        "sampling_params": {
            "max_new_tokens": 9,
            "temperature": 0.7,
            "top_p": 0.9,
            "sampling_seed": 3,
            "stop": ["END"],
            "json_schema": '{"type":"object"}',
            "top_k": 5,
        },
        "stream": True,
    }


def test_request_with_nothing() -> None:
    http = SHAPE.build(Request(messages=(), prompt="Once", stream=False))
    assert http.body == {"text": "Once", "stream": False}
    assert SHAPE.needs_prompt(())
    assert (SHAPE.stop_field, SHAPE.terminal_marker) == ("sampling_params.stop", "[DONE]")
    assert shape_for_path("/generate", http.body) == "sglang"
    assert shape_for_path("/generate", {"input_ids": [1]}) == "sglang"
    assert shape_for_path("/generate", {"inputs": "Once"}) == "tgi"
    assert shape_for_path("/generate", {}) is None


def test_cumulative_text() -> None:
    body = stream(piece("Red", 1), piece("Red 👩‍👧", 3), piece("Red 👩‍👧", 4, STOPPED)) + DONE
    events = answer(body)
    assert events[:-1] == [
        StreamStart(response_id="g1"),
        TextDelta(text="Red"),
        counts(1),
        TextDelta(text=" 👩‍👧"),
        counts(3),
        STOP,
        counts(4),
    ]
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.COMPLETE, True)


def test_incremental_text() -> None:
    body = stream(piece("Red", 1), piece(" 👩‍👧", 3, ids=2), piece("", 4, STOPPED, ids=0)) + DONE
    assert (
        answer(body)[:-1]
        == answer(stream(piece("Red", 1), piece("Red 👩‍👧", 3), piece("Red 👩‍👧", 4, STOPPED)) + DONE)[:-1]
    )


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        # What repeats a text is told by the token ids from what holds everything.
        ([piece("ha", 1), piece("ha", 2, ids=1), piece("haha", 4, ids=2)], ["ha", "ha", "haha"]),
        ([piece("ha", 1), piece("haha", 2), piece("hahaha", 3)], ["ha", "ha", "ha"]),
        # Without them, by the texts.
        ([{"text": "a"}, {"text": "ab"}, {"text": "abc"}], ["a", "b", "c"]),
        ([{"text": "a"}, {"text": "b"}, {"text": "bc"}], ["a", "b", "bc"]),
        # The token that ended the answer is counted, and not shown.
        ([piece("ha", 1), piece("haha", 3, STOPPED, ids=2)], ["ha", "ha"]),
        ([piece("ha", 1), piece("ha", 2, STOPPED, ids=1)], ["ha"]),
        # Nothing to tell by in the first frames.
        ([piece("", 1), piece("a", 2), piece("a", 3), piece("ab", 4)], ["a", "b"]),
        # Decided once: a text that is taken back in part is not said again.
        ([piece("abc", 1), piece("abcd", 2), piece("abc", 3), piece("abcde", 4)], ["abc", "d", "e"]),
        ([piece("abc", 1), piece("abcd", 2), piece("xyz", 3), piece("xyz!", 4)], ["abc", "d", "xyz", "!"]),
    ],
)
def test_what_is_new_in_a_frame(frames: list[Any], said: list[str]) -> None:
    assert texts(decode([stream(*frames)], shape="sglang", body={}, content_type="text/event-stream")) == said


@pytest.mark.parametrize(
    ("finish", "wanted"),
    [
        (STOPPED, STOP),
        (
            {"type": "stop", "matched": "\nUser:"},
            Finish(reason=FinishReason.STOP_SEQUENCE, raw_reason="stop", stop_sequence="\nUser:"),
        ),
        ({"type": "stop", "matched": None}, Finish(reason=FinishReason.STOP, raw_reason="stop")),
        ({"type": "stop"}, Finish(reason=FinishReason.STOP, raw_reason="stop")),
        ({"type": "length", "length": 4}, Finish(reason=FinishReason.LENGTH, raw_reason="length")),
        ({"type": "meteor"}, Finish(reason=FinishReason.OTHER, raw_reason="meteor")),
        ("length", Finish(reason=FinishReason.LENGTH, raw_reason="length")),
        (7, Finish(reason=FinishReason.OTHER)),
    ],
)
def test_finish(finish: Any, wanted: Finish) -> None:
    events = answer(stream(piece("Red", 4, finish)) + DONE)
    assert events[2] == wanted
    assert end_of(events).status is EndStatus.COMPLETE


def test_a_cap_that_the_server_lowered_is_the_context() -> None:
    body = stream(piece("Red", 4, {"type": "length", "length": 4})) + DONE
    full = Finish(reason=FinishReason.CONTEXT, raw_reason="length")
    assert answer(body, sampling_params={"max_new_tokens": 9})[2] == full
    assert fold(answer(body, sampling_params={"max_new_tokens": 4})).first.finish == Finish(
        reason=FinishReason.LENGTH, raw_reason="length"
    )


@pytest.mark.parametrize(
    ("finish", "error"),
    [
        (
            ABORT,
            StreamError(kind="InternalServerError", message="Out of memory", http_status=500),
        ),
        ({"type": "abort"}, StreamError(kind="abort", message="the server aborted the request")),
        (
            {"type": "stop", "matched": "NaN happened"},
            StreamError(kind="numeric_failure", message="NaN happened"),
        ),
    ],
)
def test_an_abort_is_an_error(finish: Any, error: StreamError) -> None:
    events = answer(stream(piece("Red", 4, finish)) + DONE)
    assert (end_of(events).status, end_of(events).error) == (EndStatus.ERROR, error)
    assert events[2] == Finish(reason=FinishReason.OTHER, raw_reason=finish["type"])


def test_the_marker_alone_proves_nothing() -> None:
    events = answer(stream(piece("Red", 1)) + DONE)
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.INCOMPLETE, True)


def test_a_finish_reason_without_the_marker_is_complete() -> None:
    events = answer(stream(piece("Red", 1, STOPPED)))
    assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.COMPLETE, False)


@pytest.mark.parametrize(
    "bad",
    [
        {"error": {"message": "too long"}},
        {"error": {"object": "error", "message": "too long", "type": "server_error", "code": 400}},
        {"object": "error", "message": "too long"},
    ],
)
def test_an_error_in_a_200_stream(bad: Any) -> None:
    events = answer(stream(piece("Red", 1), bad) + DONE)
    assert texts(events) == ["Red"]
    error = end_of(events).error
    assert end_of(events).status is EndStatus.ERROR
    assert error is not None
    assert (error.kind, error.message) == ("server_error", "too long")


def test_an_error_event() -> None:
    assert end_of(answer(b"event: error\ndata: gone\n\n")).error == StreamError(
        kind="server_error", message="gone"
    )


def test_error_bodies() -> None:
    flat = b'{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}'
    assert SHAPE.read_error(400, flat) == StreamError(
        kind="BadRequestError", message="too long", code=400, http_status=400
    )
    assert SHAPE.read_error(401, b'{"error":"Unauthorized"}').message == "Unauthorized"


def test_several_answers() -> None:
    frames = [
        piece("a", 1, index=0),
        piece("b", 1, index=1),
        piece("bb", 2, STOPPED, index=1),
        piece("aa", 2, STOPPED, index=0),
    ]
    body = stream(*frames) + DONE
    turn = fold(answer(body, sampling_params={"n": 2}))
    assert [choice.text for choice in turn.choices] == ["aa", "bb"]
    assert turn.end.status is EndStatus.COMPLETE
    assert turn.usage is not None
    assert (turn.usage.prompt_tokens, turn.usage.completion_tokens) == (7, 4)
    half = answer(stream(*frames[:3]) + DONE, sampling_params={"n": 2})
    assert end_of(half).status is EndStatus.INCOMPLETE
    several = fold(answer(body, text=["Hi", "Ho"]))
    assert several.end.status is EndStatus.COMPLETE


@pytest.mark.parametrize("document", [piece("Red!", 4, STOPPED), [piece("Red!", 4, STOPPED)]])
def test_one_document(document: Any) -> None:
    turn = fold(answer(json.dumps(document).encode(), kind="application/json"))
    assert (turn.first.text, turn.first.finish) == ("Red!", STOP)
    assert (turn.end.status, turn.end.marker_seen) == (EndStatus.COMPLETE, None)
    assert turn.usage == counts(4).usage


def test_the_answers_to_several_prompts_are_one_list() -> None:
    body = json.dumps([piece("a", 1, STOPPED), piece("b", 1, STOPPED)]).encode()
    turn = fold(answer(body, kind="application/json", text=["Hi", "Ho"]))
    assert [choice.text for choice in turn.choices] == ["a", "b"]
    assert turn.end.status is EndStatus.COMPLETE


def test_reasoning_is_counted() -> None:
    turn = fold(answer(stream(piece("Red", 4, STOPPED, reasoning_tokens=3)) + DONE))
    assert turn.usage is not None
    assert turn.usage.reasoning_tokens == 3


def test_logprobs_come_once() -> None:
    first, second = [-0.5, 5, "Red"], [-0.1, 6, "!"]
    cumulative = stream(
        piece("Red", 1, output_token_logprobs=[first]),
        piece("Red!", 2, output_token_logprobs=[first, second]),
        piece("Red!", 3, STOPPED, output_token_logprobs=[first, second]),
    )
    incremental = stream(
        piece("Red", 1, output_token_logprobs=[first]),
        piece("!", 2, ids=1, output_token_logprobs=[second]),
    )
    for body in (cumulative, incremental):
        found = [event for event in answer(body) if isinstance(event, LogprobsDelta)]
        assert found == [LogprobsDelta(data=[first]), LogprobsDelta(data=[second])]


@pytest.mark.parametrize("data", ["17", "null", "[]", "[3]", "{}", '{"texts": "x"}'])
def test_frames_of_another_kind_are_kept(data: str) -> None:
    events = answer(f"data: {data}\n\n".encode())
    assert events[:-1] == [UnknownFrame(name=None, data=data)]
    assert end_of(events).status is EndStatus.INCOMPLETE


def test_fields_of_the_wrong_type_do_no_harm() -> None:
    odd = [
        {"text": None, "meta_info": None},
        {"text": 7, "meta_info": [], "index": "x"},
        {"meta_info": {"completion_tokens": "x", "output_token_logprobs": {}}},
        {"text": "a", "output_ids": "x"},
    ]
    assert texts(answer(stream(*odd))) == ["a"]
