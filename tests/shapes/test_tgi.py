"""``/generate_stream`` of text-generation-inference. No server of it was recorded: frames by its source."""

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
    StreamEnd,
    StreamError,
    TextDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.request import Request, Sampling
from llmstream_cli.shapes import get_shape
from tests.support.captures import decode, fold, one_by_one

SHAPE = get_shape("tgi")


def answer(body: bytes, *stops: str, kind: str = "text/event-stream") -> list[Event]:
    """The events of `body`, the same however it is cut in two and for reads of one byte."""
    request = {"inputs": "Hi", "parameters": {"details": True, "stop": list(stops)}}
    whole = decode([body], shape="tgi", body=request, content_type=kind)
    assert decode(one_by_one(body), shape="tgi", body=request, content_type=kind) == whole
    for at in range(len(body)):
        assert decode([body[:at], body[at:]], shape="tgi", body=request, content_type=kind) == whole
    return whole


def stream(*frames: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)


def token(text: str, *, special: bool = False, whole: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "index": 1,
        "token": {"id": 5, "text": text, "logprob": -0.5, "special": special},
        "generated_text": whole,
        "details": None,
        **more,
    }


def details(reason: str, **more: Any) -> dict[str, Any]:
    return {
        "details": {"finish_reason": reason, "generated_tokens": 3, "seed": None, "input_length": 7, **more}
    }


USAGE = UsageReport(
    usage=Usage(prompt_tokens=7, completion_tokens=3, raw={"input_length": 7, "generated_tokens": 3})
)


def end_of(events: list[Event]) -> StreamEnd:
    assert isinstance(events[-1], StreamEnd)
    return events[-1]


def test_request_with_everything() -> None:
    http = SHAPE.build(
        Request(
            messages=(),
            prompt="Once",
            model="the only one there is",
            sampling=Sampling(max_tokens=9, temperature=0.7, top_p=0.9, seed=3, stop=("END",)),
            schema={"type": "object"},
            options={"parameters": {"top_k": 5}},
        )
    )
    assert (http.method, http.path) == ("POST", "/generate_stream")
    assert http.body == {
        "inputs": "Once",
        "parameters": {
            "details": True,
            "max_new_tokens": 9,
            "do_sample": True,
            "temperature": 0.7,
            "top_p": 0.9,
            "seed": 3,
            "stop": ["END"],
            "grammar": {"type": "json", "value": {"type": "object"}},
            "top_k": 5,
        },
    }


def test_request_with_nothing() -> None:
    http = SHAPE.build(Request(messages=(), prompt="Once", stream=False))
    assert http.path == "/generate"
    assert http.body == {"inputs": "Once", "parameters": {"details": True}}
    assert SHAPE.needs_prompt(())
    assert SHAPE.stop_field == "parameters.stop"
    assert SHAPE.max_tokens_field == "parameters.max_new_tokens"


@pytest.mark.parametrize(
    ("sampling", "sent"),
    [
        (Sampling(temperature=0), {"do_sample": False}),
        # A top_p would make it sample in spite of that.
        (Sampling(temperature=0, top_p=0.9, seed=4), {"do_sample": False}),
        (Sampling(temperature=0.5), {"do_sample": True, "temperature": 0.5}),
        (Sampling(top_p=0.9), {"do_sample": True, "top_p": 0.9}),
        (Sampling(seed=0), {"do_sample": True, "seed": 0}),
        # Refused by the server, and without effect elsewhere.
        (Sampling(top_p=1), {}),
        (Sampling(temperature=-1), {"do_sample": True, "temperature": -1}),
    ],
)
def test_sampling_is_switched_on_only_where_it_is_asked_for(sampling: Sampling, sent: dict[str, Any]) -> None:
    body = SHAPE.build(Request(messages=(), prompt="Once", sampling=sampling)).body
    assert body["parameters"] == {"details": True, **sent}


def test_answer() -> None:
    body = stream(
        token("Red"),
        token(" 👩‍👧"),
        token("</s>", special=True, whole="Red 👩‍👧", **details("eos_token")),
    )
    events = answer(b":\n\n" + body)
    assert events[:-1] == [
        KeepAlive(),
        TextDelta(text="Red"),
        TextDelta(text=" 👩‍👧"),
        Finish(reason=FinishReason.EOS, raw_reason="eos_token"),
        USAGE,
    ]
    assert end_of(events).status is EndStatus.COMPLETE
    assert end_of(events).marker_seen is None


def test_old_versions_write_no_space() -> None:
    body = stream(token("Red"), token("!", whole="Red!", **details("length")))
    assert answer(body.replace(b"data: ", b"data:"))[:-1] == answer(body)[:-1]


@pytest.mark.parametrize(
    ("more", "reason", "raw"),
    [
        (details("length"), FinishReason.LENGTH, "length"),
        (details("eos_token"), FinishReason.EOS, "eos_token"),
        (details("stop_sequence"), FinishReason.STOP_SEQUENCE, "stop_sequence"),
        (details("meteor"), FinishReason.OTHER, "meteor"),
        ({"details": None}, FinishReason.STOP, None),
        ({"details": {}}, FinishReason.STOP, None),
    ],
)
@pytest.mark.parametrize("whole", ["Red!", ""])
def test_finish(more: dict[str, Any], reason: FinishReason, raw: str | None, whole: str) -> None:
    events = answer(stream(token("!", whole=whole, **more)))
    assert events[:2] == [TextDelta(text="!"), Finish(reason=reason, raw_reason=raw)]
    assert end_of(events).status is EndStatus.COMPLETE


@pytest.mark.parametrize(
    ("whole", "stops", "matched"),
    [
        ("one END", ["END"], "END"),
        ("one END", ["STOP", "END"], "END"),
        ("one END\n", ["END"], "END"),
        ("one\n", ["\n"], "\n"),
        ("one\n\n", ["\n"], "\n"),
        # More than one fits, or none: not said.
        ("one END", ["END", "ND"], None),
        ("one\n\n", ["\n", "\n\n"], None),
        ("one END.", ["END"], None),
        ("one", [], None),
    ],
)
def test_the_stop_string_is_named_where_only_one_fits(
    whole: str, stops: list[str], matched: str | None
) -> None:
    events = answer(stream(token("!", whole=whole, **details("stop_sequence"))), *stops)
    assert events[1] == Finish(
        reason=FinishReason.STOP_SEQUENCE, raw_reason="stop_sequence", stop_sequence=matched
    )


def test_an_answer_cut_at_a_stop_string_by_the_cap_names_none() -> None:
    events = answer(stream(token(" END", whole="one END", **details("length"))), "END")
    assert events[1] == Finish(reason=FinishReason.LENGTH, raw_reason="length")


def test_no_last_frame_is_incomplete() -> None:
    events = answer(stream(token("Red"), token(" green")))
    assert end_of(events).status is EndStatus.INCOMPLETE
    assert end_of(answer(b"")).status is EndStatus.INCOMPLETE


@pytest.mark.parametrize(
    "bad",
    [
        stream({"error": "Request failed during generation", "error_type": "generation"}),
        b'event: error\ndata: {"error": "Request failed during generation", "error_type": "generation"}\n\n',
    ],
)
def test_an_error_in_a_200_stream(bad: bytes) -> None:
    events = answer(stream(token("Red")) + bad + stream(token("!", whole="Red!")))
    assert events[:-1] == [TextDelta(text="Red")]
    assert end_of(events).status is EndStatus.ERROR
    assert end_of(events).error == StreamError(kind="generation", message="Request failed during generation")


def test_error_bodies() -> None:
    body = b'{"error":"`stop` supports up to 4 stop sequences","error_type":"validation"}'
    error = SHAPE.read_error(422, body, "application/json")
    assert (error.kind, error.http_status) == ("validation", 422)
    text = (
        b"Failed to deserialize the JSON body into the target type: invalid type: string, expected a sequence"
    )
    assert SHAPE.read_error(422, text, "text/plain").message == text.decode()


def test_logprobs_where_they_were_asked_for() -> None:
    top = [{"id": 5, "text": "Red", "logprob": -0.5, "special": False}]
    frame = token("Red", top_tokens=top)
    events = answer(stream(frame, token("!", top_tokens=[])))
    assert events[:-1] == [
        TextDelta(text="Red"),
        LogprobsDelta(data={"token": frame["token"], "top_tokens": top}),
        TextDelta(text="!"),
    ]


WHOLE = {"generated_text": "Red!", **details("eos_token", tokens=[], prefill=[])}


@pytest.mark.parametrize("document", [WHOLE, [WHOLE]])
def test_one_document(document: Any) -> None:
    turn = fold(answer(json.dumps(document).encode(), kind="application/json"))
    assert turn.first.text == "Red!"
    assert turn.first.finish == Finish(reason=FinishReason.EOS, raw_reason="eos_token")
    assert (turn.end.status, turn.end.marker_seen) == (EndStatus.COMPLETE, None)
    assert turn.usage == USAGE.usage


def test_one_document_without_text_or_details() -> None:
    events = answer(b'{"generated_text": ""}', kind="application/json")
    assert events[:-1] == [Finish(reason=FinishReason.STOP)]
    assert end_of(events).status is EndStatus.COMPLETE


def test_counts_may_be_known_in_part() -> None:
    events = answer(stream(token("!", whole="!", details={"generated_tokens": 1})))
    assert events[2] == UsageReport(usage=Usage(completion_tokens=1, raw={"generated_tokens": 1}))


@pytest.mark.parametrize("data", ["17", "null", "[]", "[3]", "{}", '{"text": "x"}'])
def test_frames_of_another_kind_are_kept(data: str) -> None:
    events = answer(f"data: {data}\n\n".encode())
    assert events[:-1] == [UnknownFrame(name=None, data=data)]
    assert end_of(events).status is EndStatus.INCOMPLETE


def test_a_broken_frame_is_told() -> None:
    events = answer(b"data: {broken\n\n" + stream(token("!", whole="!", details=None)))
    assert events[0] == UnknownFrame(name=None, data="{broken", readable=False)
    assert end_of(events).status is EndStatus.COMPLETE


def test_fields_of_the_wrong_type_do_no_harm() -> None:
    frames = [{"token": None}, {"token": "x", "generated_text": 7}, {"token": {"text": 3, "special": "no"}}]
    assert answer(stream(*frames))[:-1] == []
