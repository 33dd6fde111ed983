"""The joint of framing and shape: how streams end, what is no stream at all, and bytes nobody planned for."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmstream_cli.decode import StreamDecoder, choose_framing
from llmstream_cli.events import (
    EndStatus,
    Event,
    FinishReason,
    Json,
    KeepAlive,
    ReasoningDelta,
    StreamEnd,
    StreamError,
    TextDelta,
    UnknownFrame,
)
from llmstream_cli.framing import Frame, FramingName
from llmstream_cli.shapes import SHAPES, get_shape
from llmstream_cli.shapes.base import FrameDecoder
from tests.support.captures import fold, joined, one_by_one

PROPERTY = settings(deadline=None, derandomize=True, database=None, max_examples=150)

TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


def chat_decoder(*, content_type: str = "text/event-stream", limit_bytes: int = 100_000) -> StreamDecoder:
    shape = get_shape("openai-chat")
    return StreamDecoder(
        shape.decoder({"stream": True}), shape.framing, content_type=content_type, limit_bytes=limit_bytes
    )


def chat(*pieces: bytes, content_type: str = "text/event-stream") -> list[Event]:
    decoder = chat_decoder(content_type=content_type)
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()


def end_of(events: list[Event]) -> StreamEnd:
    assert [type(event) for event in events].count(StreamEnd) == 1
    end = events[-1]
    assert isinstance(end, StreamEnd)
    return end


@pytest.mark.parametrize(
    ("body", "status", "marker_seen", "offset"),
    [
        (TEXT + STOP + DONE, EndStatus.COMPLETE, True, len(TEXT + STOP)),
        (TEXT + STOP, EndStatus.COMPLETE, False, len(TEXT + STOP)),
        (TEXT + DONE, EndStatus.INCOMPLETE, True, len(TEXT)),
        (TEXT, EndStatus.INCOMPLETE, False, len(TEXT)),
        (b"", EndStatus.INCOMPLETE, False, 0),
        (DONE, EndStatus.INCOMPLETE, True, 0),
    ],
    ids=["finish-marker", "finish", "marker", "neither", "nothing", "only-marker"],
)
def test_complete_only_if_the_server_said_so(
    body: bytes, status: EndStatus, marker_seen: bool, offset: int
) -> None:
    assert end_of(chat(body)) == StreamEnd(status=status, marker_seen=marker_seen, offset=offset)


def test_what_the_client_saw_of_the_end_counts_unless_the_server_had_finished() -> None:
    reset = StreamError(kind="connection_reset", message="reset")
    decoder = chat_decoder()
    decoder.feed(TEXT)
    assert end_of(decoder.close(EndStatus.TIMEOUT, reset)).status is EndStatus.TIMEOUT
    decoder = chat_decoder()
    decoder.feed(TEXT + STOP)
    end = end_of(decoder.close(EndStatus.INCOMPLETE, reset))
    assert (end.status, end.error) == (EndStatus.COMPLETE, None)


def test_settled_then_ended() -> None:
    decoder = chat_decoder()
    decoder.feed(TEXT)
    assert (decoder.settled, decoder.ended) == (False, False)
    decoder.feed(STOP)
    assert (decoder.settled, decoder.ended) == (True, False)
    decoder.feed(DONE)
    assert (decoder.settled, decoder.ended) == (True, True)
    assert decoder.feed(TEXT) == []


def test_an_error_ends_the_stream_whatever_follows() -> None:
    error = b'data: {"error":{"message":"boom","type":"server_error","code":500}}\n\n'
    end = end_of(chat(TEXT + error + STOP + DONE))
    assert end.status is EndStatus.ERROR
    assert end.error == StreamError(kind="server_error", message="boom", code=500)
    assert end.offset == len(TEXT)


def test_misuse_raises() -> None:
    decoder = chat_decoder()
    decoder.close()
    with pytest.raises(RuntimeError, match="feed after close"):
        decoder.feed(b"x")
    with pytest.raises(RuntimeError, match="closed twice"):
        decoder.close()


def test_a_surrogate_pair_cut_over_two_deltas_is_joined() -> None:
    halves = [
        b'data: {"choices":[{"index":0,"delta":{"%s":"%s"}}]}\n\n' % (key, text)
        for key, text in [
            (b"content", b"a\\ud83d"),
            (b"reasoning", b"\\ud83c"),
            (b"content", b"\\ude00b"),
            (b"reasoning", b"x"),
            (b"content", b"\\ud83d"),
        ]
    ]
    events = chat(*halves)
    assert [event for event in events if not isinstance(event, StreamEnd)] == [
        TextDelta(text="a"),
        TextDelta(text="😀b"),
        ReasoningDelta(text="\ufffdx"),
        TextDelta(text="\ufffd"),
    ]


def test_too_large_an_event_is_said_with_its_limit_and_place() -> None:
    decoder = chat_decoder(limit_bytes=200)
    assert decoder.feed(TEXT) == [TextDelta(text="hi")]
    decoder.feed(b"data: " + b"z" * 500)
    assert decoder.ended
    end = end_of(decoder.close())
    assert (end.status, end.offset) == (EndStatus.INCOMPLETE, len(TEXT))
    assert end.error is not None
    assert end.error.kind == "event_too_large"
    assert "200 bytes" in end.error.message


def test_a_web_page_is_named_by_its_title() -> None:
    page = b"<html><head><title>502 Bad\n Gateway</title></head><body>nginx</body></html>"
    end = end_of(chat(page, content_type="text/html"))
    assert end.status is EndStatus.INCOMPLETE
    assert end.error == StreamError(
        kind="unreadable_stream",
        message="the body is not the expected stream (text/html): 502 Bad Gateway",
    )


def test_one_unreadable_event_does_not_spoil_a_finished_answer() -> None:
    events = chat(TEXT + b"data: {oops\n\n" + STOP + DONE)
    assert UnknownFrame(name=None, data="{oops", readable=False) in events
    assert end_of(events) == StreamEnd(
        status=EndStatus.COMPLETE, marker_seen=True, offset=len(TEXT + STOP) + 13
    )


@pytest.mark.parametrize("read", [b"", TEXT], ids=["first", "later"])
def test_a_stream_that_breaks_off_inside_an_event_is_still_a_stream(read: bytes) -> None:
    events = chat(read + STOP[:-20])
    assert UnknownFrame(name=None, data=STOP[6:-20].decode(), readable=False, cut=True) in events
    assert end_of(events) == StreamEnd(
        status=EndStatus.INCOMPLETE, marker_seen=False, offset=len(read + STOP[:-20])
    )
    assert fold(events).unreadable == 0


def test_one_unreadable_event_does_not_make_a_broken_answer_no_stream() -> None:
    events = chat(TEXT + b"data: {oops\n\n" + TEXT)
    assert end_of(events).error is None
    assert fold(events).unreadable == 1


WHOLE = {
    "id": "c1",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", ""])
def test_a_whole_answer_to_a_stream_request(content_type: str) -> None:
    events = chat(json.dumps(WHOLE).encode(), content_type=content_type)
    assert fold(events).first.text == "hi"
    assert end_of(events).status is EndStatus.COMPLETE


def test_a_whole_answer_has_no_marker_to_miss() -> None:
    assert end_of(chat(json.dumps(WHOLE, indent=1).encode(), content_type="application/json")) == StreamEnd(
        status=EndStatus.COMPLETE, marker_seen=None, offset=len(json.dumps(WHOLE, indent=1))
    )


@pytest.mark.parametrize(
    ("default", "content_type", "first", "chosen"),
    [
        ("ndjson", "text/event-stream; charset=utf-8", b"", "sse"),
        ("sse", "Application/X-NDJSON", b"", "ndjson"),
        ("sse", "application/json", b"", "json"),
        ("sse", "text/html", b"", "json"),
        ("sse", "", b"\xef\xbb\xbf {", "ndjson"),
        ("sse", "text/plain", b"<html>", "json"),
        ("ndjson", "", b"data: x", "sse"),
        ("ndjson", "", b": ping", "sse"),
        ("ndjson", "", b"{", "ndjson"),
        ("sse", "", b"data: x", "sse"),
        ("json-array", "text/event-stream", b"data: x", "sse"),
        ("json-array", "application/json", b"[{", "json-array"),
        ("json-array", "application/json; charset=UTF-8", b"\xef\xbb\xbf\n{", "json-array"),
        ("json-array", "application/json", b": ping", "sse"),
        ("json-array", "text/event-stream", b"[", "json-array"),
        ("json-array", "", b"d", "sse"),
        ("json-array", "text/plain", b"Bad Gateway", "json-array"),
        ("json-array", "text/event-stream", b"Bad Gateway", "sse"),
        ("json-array", "text/html", b"<html>", "json"),
        ("json-array", "application/json", b"<html>", "json"),
    ],
)
def test_choice_of_framing(
    default: FramingName, content_type: str, first: bytes, chosen: FramingName
) -> None:
    assert choose_framing(default, content_type, first) == chosen


@pytest.mark.parametrize("blank", [b"", b"\xef\xbb\xbf", b" \r\n\n", b"\n" * 3000])
def test_without_a_content_type_the_choice_waits_for_a_telling_byte(blank: bytes) -> None:
    body = blank + json.dumps(WHOLE).encode()
    whole = chat(body, content_type="")
    assert chat(*one_by_one(body), content_type="") == whole
    assert chat(*one_by_one(TEXT + STOP), content_type="")[0] == TextDelta(text="hi")


class EchoDecoder(FrameDecoder):
    """The simplest shape: every frame is text, ``end`` is the finish."""

    def decode(self, frame: Frame) -> list[Event]:
        if frame.data == "end":
            return [self.finish(FinishReason.STOP, "end")]
        return [TextDelta(text=frame.data)]


def test_what_a_shape_must_do_is_small() -> None:
    decoder = StreamDecoder(EchoDecoder(), "ndjson", content_type="application/x-ndjson")
    events = decoder.feed(b"one\ntwo\nend\n") + decoder.close()
    turn = fold(events)
    assert turn.first.text == "onetwo"
    assert turn.end == StreamEnd(status=EndStatus.COMPLETE, marker_seen=None, offset=12)
    assert decoder.frames_seen == 3


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
KEYS = st.sampled_from(
    [
        "choices",
        "delta",
        "message",
        "content",
        "text",
        "finish_reason",
        "index",
        "usage",
        "error",
        "tool_calls",
        "function",
        "arguments",
        "name",
        "id",
        "response",
        "done",
        "done_reason",
        "stop",
        "stop_type",
        "token",
        "generated_text",
        "details",
        "timings",
        "prompt_progress",
    ]
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS | st.sampled_from(["stop", "length", "", "eos"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("shape_name", SHAPES)
@PROPERTY
@given(values=st.lists(VALUES, max_size=4), name=st.sampled_from(["", "event: error\n", "event: x\n"]))
def test_any_json_in_any_place_is_survived(shape_name: str, values: list[Any], name: str) -> None:
    shape = get_shape(shape_name)
    bodies: dict[str, bytes] = {
        "text/event-stream": "".join(f"{name}data: {json.dumps(value)}\n\n" for value in values).encode(),
        "application/x-ndjson": "".join(f"{json.dumps(value)}\n" for value in values).encode(),
    }
    for content_type, body in bodies.items():
        decoder = StreamDecoder(shape.decoder({"stream": True}), shape.framing, content_type=content_type)
        events = decoder.feed(body) + decoder.close()
        end_of(events)
        fold(events)


@pytest.mark.parametrize("shape_name", SHAPES)
@pytest.mark.parametrize(
    "content_type", ["", "text/event-stream", "application/x-ndjson", "application/json"]
)
@settings(PROPERTY, max_examples=60)
@given(pieces=st.lists(st.binary(max_size=40) | st.sampled_from([TEXT, STOP, DONE, b"data: ", b"\n\n"])))
def test_arbitrary_bytes_never_raise_and_cuts_never_matter(
    shape_name: str, content_type: str, pieces: list[bytes]
) -> None:
    def run(reads: list[bytes]) -> list[Event]:
        shape = get_shape(shape_name)
        decoder = StreamDecoder(shape.decoder({}), shape.framing, content_type=content_type)
        events = [event for data in reads for event in decoder.feed(data)] + decoder.close()
        return joined(events) if shape.framing == "text" else events

    events = run(pieces)
    end_of(events)
    assert run([b"".join(pieces)]) == events
    assert run(one_by_one(b"".join(pieces))) == events


def test_keep_alives_are_events_in_their_order() -> None:
    assert chat(b": a\n\n" + TEXT + b":\n\ndata: : b\n\ndata:\n\n")[:-1] == [
        KeepAlive(comment="a"),
        TextDelta(text="hi"),
        KeepAlive(),
        KeepAlive(comment="b"),
        KeepAlive(),
    ]
