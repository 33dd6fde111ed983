"""The shapes for back ends of applications, against the streams that such back ends are known to send."""

from collections.abc import Mapping
from typing import Any

import pytest

from llmstream_cli.decode import StreamDecoder
from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    StreamEnd,
    StreamError,
    TextDelta,
    UnknownFrame,
)
from llmstream_cli.request import HttpRequest, Message, Request, Sampling
from llmstream_cli.shapes import get_shape
from llmstream_cli.turn import Turn
from tests.support.built.back_ends import data
from tests.support.captures import fold, joined, one_by_one

SSE, NDJSON, TEXT = "text/event-stream", "application/x-ndjson", "text/plain; charset=utf-8"
QUESTION = Message(role="user", content="Why?")
SYSTEM = Message(role="system", content="Be brief.")
CUT = StreamError(kind="connection_closed", message="the connection was closed")
Table = Mapping[str, Any]


def run(
    shape_name: str,
    body: str | bytes,
    table: Table | None = None,
    *,
    content_type: str = "",
    status: EndStatus = EndStatus.INCOMPLETE,
    error: StreamError | None = None,
    pieces: list[bytes] | None = None,
) -> list[Event]:
    """The events of `body`; `status` and `error` are what the client saw of its end."""
    shape = get_shape(shape_name).configured(table or {})
    kind = content_type or {"sse": SSE, "ndjson": NDJSON, "text": TEXT}[shape_name]
    decoder = StreamDecoder(shape.decoder({}), shape.framing, content_type=kind)
    raw = body.encode() if isinstance(body, str) else body
    events = [event for piece in pieces or [raw] for event in decoder.feed(piece)]
    return events + decoder.close(status, error)


def turn(shape_name: str, body: str | bytes, table: Table | None = None, **seen: Any) -> Turn:
    return fold(run(shape_name, body, table, **seen))


def said(found: Turn) -> tuple[str, EndStatus, bool | None]:
    return found.first.text, found.end.status, found.end.marker_seen


COMPLETE, INCOMPLETE, ERROR = EndStatus.COMPLETE, EndStatus.INCOMPLETE, EndStatus.ERROR

STREAMS = {
    "handwritten text": data("The", " sky", "  is", "[DONE]"),
    "text that looks like JSON": data("The", " answer: ", "42", ' "yes" ', "{}", "null", "[DONE]"),
    "FastAPI's own event stream": data('"The"', '" sky\\n"', '"[DONE]"'),
    "a bare event as the end": data("a", "b") + "event: end\r\n\r\n",
    "LangServe": 'event: metadata\r\ndata: {"run_id": "1"}\r\n\r\n'
    'event: data\r\ndata: "a"\r\n\r\nevent: data\r\ndata: "b"\r\n\r\nevent: end\r\n\r\n',
    "lines in one event": "data: a\ndata: b\ndata:\n\ndata: c\n\ndata: [DONE]\n\n",
    "objects": data('{"token": "a"}', '{"token": "b"}', '{"done": true}'),
    "the end with the last text": data('{"text": "a", "done": false}', '{"text": "b", "done": true}'),
    "the end by its type": data('{"type": "token", "content": "a"}', '{"type": "end"}'),
    "the whole answer again at the end": data(
        '{"delta": "a"}', '{"delta": "b"}', '{"type": "done", "content": "ab"}'
    ),
    "the whole answer in an event done": data("a", "b") + 'event: done\ndata: {"response": "ab"}\n\n',
    "cumulative text beside the delta": data(
        '{"delta": "a", "response": "a"}', '{"delta": "b", "response": "ab"}', "[DONE]"
    ),
    "asides": data('{"type": "status", "message": "searching"}', '{"type": "token", "content": "a"}')
    + "event: sources\ndata: doc1.pdf\n\nevent: ping\ndata: x\n\n: ping\n\n"
    + data("[DONE]"),
    "like OpenAI": data(
        '{"choices": [{"delta": {"content": "a"}}]}', '{"choices": [{"delta": {}}]}', "[DONE]"
    ),
}
TEXTS = {
    "handwritten text": "The sky  is",
    "text that looks like JSON": 'The answer: 42 "yes" {}null',
    "FastAPI's own event stream": "The sky\n",
    "lines in one event": "a\nb\nc",
    "objects": "ab",
    "the end by its type": "a",
    "asides": "a",
    "like OpenAI": "a",
}


@pytest.mark.parametrize("name", STREAMS)
def test_without_any_table(name: str) -> None:
    assert said(turn("sse", STREAMS[name])) == (TEXTS.get(name, "ab"), COMPLETE, True)


@pytest.mark.parametrize("name", STREAMS)
def test_cut_anywhere_and_the_same_in_any_pieces(name: str) -> None:
    body = STREAMS[name].encode()
    whole = run("sse", body)
    assert run("sse", body, pieces=one_by_one(body)) == whole
    text = fold(whole).first.text
    for at in range(len(body)):
        events = run("sse", body[:at])
        found = fold(events)
        if found.end.status is COMPLETE:
            assert found.first.text == text, at
            # What is cut off can only be the rest of the mark's own event.
            assert not body[at:].strip().startswith(b"data"), at
        else:
            assert found.first.finish is None, at


@pytest.mark.parametrize("shape_name", ["sse", "ndjson"])
def test_the_end_of_the_body_is_no_end(shape_name: str) -> None:
    body = data('{"text": "a"}') if shape_name == "sse" else '{"text": "a"}\n'
    assert said(turn(shape_name, body)) == ("a", INCOMPLETE, None)
    assert said(turn(shape_name, body, {"done": "[DONE]"})) == ("a", INCOMPLETE, False)
    assert said(turn(shape_name, body, {"done": "eof"})) == ("a", COMPLETE, None)
    assert said(turn(shape_name, body, {"done": ["eof", "[DONE]"]})) == ("a", COMPLETE, None)


@pytest.mark.parametrize("shape_name", ["sse", "ndjson", "text"])
@pytest.mark.parametrize(
    ("status", "error"), [(INCOMPLETE, CUT), (EndStatus.TIMEOUT, None), (EndStatus.CANCELLED, None)]
)
def test_only_a_whole_body_ends_the_answer(
    shape_name: str, status: EndStatus, error: StreamError | None
) -> None:
    body = {"sse": data("a"), "ndjson": '{"text": "a"}\n', "text": "a"}[shape_name]
    found = turn(shape_name, body, {"done": "eof"}, status=status, error=error)
    assert (found.first.text, found.end.status, found.end.error) == ("a", status, error)


def test_half_a_line_at_the_end_is_no_end() -> None:
    found = turn("ndjson", '{"text": "a"}\n{"text": "b', {"done": "eof"})
    assert said(found) == ("a", INCOMPLETE, None)


@pytest.mark.parametrize("half", ["[DON", "Gr\xfc"])
@pytest.mark.parametrize("table", [{}, {"done": "eof"}, {"data": "text"}])
def test_half_an_event_of_bare_text_is_not_said_and_is_no_end(half: str, table: Table) -> None:
    found = turn("sse", data("a").encode() + f"data: {half}".encode()[:-1], table)
    assert (found.first.text, found.end.status, found.end.error) == ("a", INCOMPLETE, None)


def test_a_finish_reason_ends_an_answer_too() -> None:
    body = data('{"text": "a"}', '{"text": "", "finish_reason": "length"}')
    found = turn("sse", body)
    assert said(found) == ("a", COMPLETE, None)
    assert found.first.finish == Finish(reason=FinishReason.LENGTH, raw_reason="length")
    assert said(turn("sse", body, {"done": "[DONE]"})) == ("a", COMPLETE, False)


def test_more_text_takes_a_finish_reason_back() -> None:
    body = data('{"text": "a", "finish_reason": "stop"}', '{"text": "b"}')
    assert said(turn("sse", body)) == ("ab", INCOMPLETE, None)


@pytest.mark.parametrize(
    ("mark", "frame"),
    [
        ("[FIN]", "data: [FIN]\n\n"),
        ("=END", "data: END\n\n"),
        ("bye", "event: bye\ndata: x\n\n"),
        ("meta.last", 'data: {"meta": {"last": true}}\n\n'),
        ("state=finished", 'data: {"state": "finished"}\n\n'),
        ("left=0", 'data: {"left": 0}\n\n'),
    ],
)
def test_the_end_mark_is_configurable(mark: str, frame: str) -> None:
    told = {"done": mark, "text": "t"}
    body = data('{"t": "a", "left": 1, "done": true}')
    assert said(turn("sse", body + frame, told)) == ("a", COMPLETE, True)
    assert said(turn("sse", body, told)) == ("a", INCOMPLETE, False)


def test_a_word_as_the_end_mark_is_not_searched_in_text() -> None:
    assert said(turn("sse", data("done", " end"), {"done": ["done", "end"]})) == (
        "done end",
        INCOMPLETE,
        False,
    )


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ('data: {"error": "no index"}\n\n', "no index"),
        ('data: {"error": {"message": "no index"}}\n\n', "no index"),
        ('data: {"error": true, "message": "no index"}\n\n', "no index"),
        ('data: {"type": "error", "message": "no index"}\n\n', "no index"),
        ("event: error\ndata: no index\n\n", "no index"),
        ('event: error\ndata: {"detail": "no index"}\n\n', '{"detail": "no index"}'),
    ],
)
@pytest.mark.parametrize("before", [data("a"), data('{"text": "a"}')])
def test_an_error_in_the_stream(before: str, frame: str, message: str) -> None:
    found = turn("sse", before + frame + data("[DONE]"))
    assert (found.first.text, found.end.status) == ("a", ERROR)
    assert found.end.error is not None
    assert found.end.error.message == message


@pytest.mark.parametrize("value", ["null", "false", '""'])
def test_an_empty_error_is_none(value: str) -> None:
    body = data(f'{{"text": "a", "error": {value}}}', "[DONE]")
    assert said(turn("sse", body)) == ("a", COMPLETE, True)


def test_every_place_is_configurable() -> None:
    table = {
        "text": ["out.0.piece", "rest"],
        "error": "problem",
        "usage": "stats.tokens",
        "finish": "why",
        "events": "update",
    }
    body = (
        data('{"out": [{"piece": "not this event"}]}')
        + 'event: update\ndata: {"out": [{"piece": "a"}], "text": "not this", "error": "nor this"}\n\n'
        + 'event: update\ndata: {"stats": {"tokens": {"input_tokens": 3, "output_tokens": 5}}}\n\n'
        + 'event: update\ndata: {"why": "eos"}\n\n'
    )
    found = turn("sse", body, table)
    assert said(found) == ("a", COMPLETE, None)
    assert found.first.finish == Finish(reason=FinishReason.EOS, raw_reason="eos")
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (3, 5)
    failed = turn("sse", body + 'event: update\ndata: {"problem": {"message": "full"}}\n\n', table)
    assert failed.end.error == StreamError(kind="server_error", message="full")


def test_the_first_text_decides_what_data_is() -> None:
    half = data('{"text": "a"}') + 'data: {"text": "b'
    assert [event for event in run("sse", half) if isinstance(event, UnknownFrame)] == [
        UnknownFrame(name=None, data='{"text": "b', readable=False, cut=True)
    ]
    assert turn("sse", data("a", '{"text": "b')).first.text == 'a{"text": "b'
    assert turn("sse", data('"a"', "b")).unreadable == 1


def test_an_unreadable_beginning_is_no_text() -> None:
    found = turn("sse", data('{"text": "b'), {"done": "eof"})
    assert (found.first.text, found.end.status, found.unreadable) == ("", INCOMPLETE, 1)


def test_data_that_is_text_is_never_read_as_json() -> None:
    table = {"data": "text"}
    body = data('{"text": 1}', '"a"', "b\n\nc\n", '{"error": "x"}', "[DONE]")
    assert said(turn("sse", body, table)) == ('{"text": 1}"a"b\n\nc\n{"error": "x"}', COMPLETE, True)


def test_lines_of_json() -> None:
    body = '{"response": "a"}\n\n{"response": "b", "usage": {"total_tokens": 9}}\r\n{"done": true}\n'
    found = turn("ndjson", body)
    assert said(found) == ("ab", COMPLETE, True)
    assert found.usage is not None
    assert found.usage.total_tokens == 9
    assert said(turn("ndjson", '"a"\n"b"\n"[DONE]"\n')) == ("ab", COMPLETE, True)
    assert turn("ndjson", "oops\n").unreadable == 1


@pytest.mark.parametrize("shape_name", ["sse", "ndjson"])
def test_lines_of_json_under_another_content_type(shape_name: str) -> None:
    body = '{"text": "a"}\n{"text": "b"}\n{"done": true}\n{"text": "c"}\n'
    assert said(turn(shape_name, body, content_type="application/json"))[:2] == ("ab", COMPLETE)
    assert said(turn(shape_name, body, content_type="text/plain")) == ("ab", COMPLETE, True)


@pytest.mark.parametrize("shape_name", ["sse", "ndjson", "text"])
def test_one_document_in_place_of_a_stream(shape_name: str) -> None:
    def answer(body: str) -> Turn:
        return turn(shape_name, body, content_type="application/json")

    assert said(answer('{\n "answer": "a",\n "sources": []\n}')) == ("a", COMPLETE, None)
    assert said(answer('"a"')) == ("a", COMPLETE, None)
    assert answer('{"error": "no index"}').end.error == StreamError(kind="server_error", message="no index")
    page = turn(shape_name, "<html><title>Login</title>", content_type="text/html")
    assert said(page) == ("", INCOMPLETE, None)
    assert page.end.error is not None
    assert "Login" in page.end.error.message


def test_text_is_taken_as_it_is() -> None:
    body = "\n déjà <think>\r\n{}\n\n".encode()
    for pieces in ([body], one_by_one(body)):
        events = joined(run("text", body, pieces=pieces))
        assert events[0] == TextDelta(text=body.decode())
        end = events[-1]
        assert isinstance(end, StreamEnd)
        assert (end.status, end.marker_seen) == (COMPLETE, None)


@pytest.mark.parametrize("content_type", ["application/json", SSE, "application/octet-stream"])
def test_text_under_another_content_type(content_type: str) -> None:
    assert said(turn("text", "a b\n\nc", content_type=content_type)) == ("a b\n\nc", COMPLETE, None)


def test_text_that_ends_inside_a_character_is_cut() -> None:
    found = turn("text", "déjà".encode()[:-1])
    assert said(found) == ("déj", INCOMPLETE, None)
    assert found.end.error is not None
    assert found.end.error.kind == "cut_character"


def test_text_with_an_end_mark() -> None:
    table = {"done": "[[END]]"}
    body = b"a [[EN b[[END]]"
    for pieces in ([body], one_by_one(body)):
        assert said(turn("text", body, table, pieces=pieces)) == ("a [[EN b", COMPLETE, True)
    for at in range(len(body)):
        assert said(turn("text", body[:at], table)) == (body[:at].decode(), INCOMPLETE, False)


def built(shape_name: str, table: Table, request: Request) -> HttpRequest:
    return get_shape(shape_name).configured(table).build(request)


def test_the_usual_request() -> None:
    shape = get_shape("sse")
    assert shape.build(Request(messages=(QUESTION,))) == HttpRequest(path="/chat", body={"message": "Why?"})
    assert shape.build(Request(messages=(SYSTEM, QUESTION), options={"k": 3})).body == {
        "message": "Be brief.\n\nWhy?",
        "k": 3,
    }
    assert (shape.stop_field, shape.max_tokens_field) == (None, None)


def test_the_body_is_a_template() -> None:
    table = {
        "path": "/ask",
        "body": {
            "query": "Q: {prompt}",
            "history": "{messages}",
            "config": {"llm": "{model}", "system": "{system}", "cap": "{max_tokens}", "t": "{temperature}"},
            "ends": ["{stop}", "{seed}", "x"],
            "fixed": None,
            "stream": "{stream}",
            "note": "{model}/{seed}",
        },
    }
    request = Request(
        messages=(SYSTEM, QUESTION), model="m", sampling=Sampling(max_tokens=9, temperature=0.5, stop=("#",))
    )
    assert built("sse", table, request) == HttpRequest(
        path="/ask",
        body={
            "query": "Q: Why?",
            "history": [{"role": "user", "content": "Why?"}],
            "config": {"llm": "m", "system": "Be brief.", "cap": 9, "t": 0.5},
            "ends": [["#"], None, "x"],
            "fixed": None,
            "stream": True,
            "note": "m/",
        },
    )
    shape = get_shape("sse").configured(table)
    assert (shape.stop_field, shape.max_tokens_field) == ("ends.0", "config.cap")


def test_the_system_text_stands_in_the_messages_where_it_has_no_place_of_its_own() -> None:
    table = {"body": {"history": "{messages}", "q": "{prompt}"}}
    assert built("sse", table, Request(messages=(SYSTEM, QUESTION))).body == {
        "history": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
        "q": "Why?",
    }


def test_a_get_asks_in_the_query_string() -> None:
    table = {"path": "/ask?v=2", "method": "GET", "body": {"q": "{prompt}", "n": "{max_tokens}"}}
    request = Request(messages=(Message(role="user", content="a&b ü"),), sampling=Sampling(max_tokens=3))
    asked = built("text", table, request)
    assert asked == HttpRequest(path="/ask?v=2", body={"q": "a&b ü", "n": 3}, method="GET")
    assert asked.target == "/ask?v=2&q=a%26b+%C3%BC&n=3"


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"txt": "a"}, "unknown key 'txt'"),
        ({"body": {"q": "{promt}"}}, "unknown placeholder {promt}"),
        ({"body": "x"}, "not a table"),
        ({"path": "chat"}, "does not begin with"),
        ({"method": "PUT"}, "not one of GET, POST"),
        ({"data": "xml"}, "not one of auto, json, text"),
        ({"done": True}, "done that is neither"),
        ({"text": [""]}, "text that is neither"),
    ],
)
def test_a_table_that_makes_no_sense(table: Table, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        get_shape("sse").configured(table)


def test_only_event_streams_have_events() -> None:
    with pytest.raises(ValueError, match="the shape ndjson has not"):
        get_shape("ndjson").configured({"events": "token"})


def test_the_shape_of_a_known_server_takes_no_table() -> None:
    with pytest.raises(ValueError, match="only for sse, ndjson and text"):
        get_shape("openai-chat").configured({"path": "/chat"})
