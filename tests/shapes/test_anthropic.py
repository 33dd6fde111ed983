"""``/v1/messages``: the request, and every event of the stream.

Anthropic's own streams are built here from its documented event tables; what llama.cpp and vLLM send is
recorded under ``tests/captures`` and, for llama.cpp, asked for in ``test_real_messages_and_responses.py``.
"""

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
    ServerDetail,
    StreamEnd,
    StreamError,
    StreamStart,
    TextDelta,
    ToolCallDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.framing import Frame
from llmstream_cli.request import Message, Request, Sampling
from llmstream_cli.shapes import get_shape
from tests.support.captures import cut_points, decode, fold, one_by_one

SHAPE = get_shape("anthropic")
COUNTS = {"input_tokens": 25, "output_tokens": 1}
STOP = {"type": "message_stop"}


def start(message_id: Any = "msg_1", **fields: Any) -> dict[str, Any]:
    message = {"id": message_id, "model": "m", "content": [], "stop_reason": None, "usage": COUNTS, **fields}
    return {"type": "message_start", "message": message}


def opening(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def text(said: str, index: int = 0) -> dict[str, Any]:
    return delta(index, type="text_delta", text=said)


def ending(reason: Any = "end_turn", sequence: Any = None, **fields: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": sequence, **fields}}


def events_of(*events: Any, **body: Any) -> list[Event]:
    frames = SHAPE.decoder({"stream": True, **body})
    return [said for event in events for said in frames.decode(Frame(json.dumps(event), name=event["type"]))]


def wire(*events: Any) -> bytes:
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events if event
    )


def stream(data: bytes, **body: Any) -> list[Event]:
    """The events of a stream, the same for one read and for reads of one byte."""
    body = {"stream": True, **body}
    whole = decode([data], shape="anthropic", body=body, content_type="text/event-stream")
    single = decode(one_by_one(data), shape="anthropic", body=body, content_type="text/event-stream")
    assert single == whole
    return whole


def end_of(events: list[Event]) -> StreamEnd:
    assert isinstance(events[-1], StreamEnd)
    return events[-1]


def finish_of(*event: Any, **body: Any) -> Finish:
    (finish,) = [said for said in events_of(*event, **body) if isinstance(said, Finish)]
    return finish


class TestRequest:
    def test_everything_in_its_place(self) -> None:
        request = Request(
            messages=(
                Message(role="system", content="Be brief."),
                Message(role="user", content="Hi"),
                Message(role="assistant", content="Hello"),
                Message(role="tool", content="sun"),
            ),
            model="m",
            sampling=Sampling(max_tokens=5, temperature=0.0, top_p=0.5, seed=1, stop=("\nUser:", "END")),
            schema={"type": "object"},
        )
        http = SHAPE.build(request)
        assert (http.method, http.path) == ("POST", "/v1/messages")
        assert http.body == {
            "model": "m",
            "max_tokens": 5,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello"},
                {"role": "user", "content": "sun"},
            ],
            "stream": True,
            "temperature": 0.0,
            "top_p": 0.5,
            "stop_sequences": ["\nUser:", "END"],
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        }

    def test_the_cap_is_always_sent_and_nothing_else_that_is_not_given(self) -> None:
        body = SHAPE.build(Request(messages=(Message(role="user", content="Hi"),))).body
        assert sorted(body) == ["max_tokens", "messages", "stream"]
        assert body["max_tokens"] == 4096

    def test_options_come_last(self) -> None:
        options = {"max_tokens": 0, "system": None, "thinking": {"type": "disabled"}}
        messages = (Message(role="system", content="a"), Message(role="system", content="b"))
        assert SHAPE.build(Request(messages=messages)).body["system"] == "a\n\nb"
        body = SHAPE.build(Request(messages=messages, options=options)).body
        assert (body["max_tokens"], body["thinking"]) == (0, {"type": "disabled"})
        assert "system" not in body

    def test_where_things_are_read_and_what_is_sent_beside_them(self) -> None:
        assert (SHAPE.stop_field, SHAPE.max_tokens_field) == ("stop_sequences", "max_tokens")
        assert (SHAPE.auth, dict(SHAPE.headers)) == ("x-api-key", {"anthropic-version": "2023-06-01"})
        assert SHAPE.terminal_marker == "message_stop"


class TestAnswer:
    def test_a_plain_one(self) -> None:
        events = stream(
            wire(
                start(),
                {"type": "ping"},
                opening(0, type="text", text=""),
                {"type": "ping"},
                text("Hel"),
                text("lo"),
                {"type": "content_block_stop", "index": 0},
                {**ending(), "usage": {"output_tokens": 15}},
                STOP,
            )
        )
        assert events[:-1] == [
            StreamStart(response_id="msg_1", model="m"),
            UsageReport(usage=Usage(prompt_tokens=25, raw={"input_tokens": 25})),
            KeepAlive(comment="ping"),
            KeepAlive(comment="ping"),
            TextDelta(text="Hel"),
            TextDelta(text="lo"),
            Finish(reason=FinishReason.EOS, raw_reason="end_turn"),
            UsageReport(
                usage=Usage(
                    prompt_tokens=25,
                    completion_tokens=15,
                    raw={"input_tokens": 25, "output_tokens": 15},
                )
            ),
        ]
        assert (end_of(events).status, end_of(events).marker_seen) == (EndStatus.COMPLETE, True)

    def test_frames_without_event_names(self) -> None:
        data = wire(start(), text("a"), ending(), STOP)
        bare = b"\n".join(line for line in data.split(b"\n") if not line.startswith(b"event:"))
        assert stream(bare)[:-1] == stream(data)[:-1]

    def test_frames_without_a_type(self) -> None:
        frames = SHAPE.decoder({"stream": True})
        value = {"index": 0, "delta": {"type": "text_delta", "text": "a"}}
        assert frames.decode(Frame(json.dumps(value), name="content_block_delta")) == [TextDelta(text="a")]

    def test_text_and_thoughts_that_stand_in_the_opening(self) -> None:
        assert events_of(opening(0, type="text", text="a"), opening(1, type="thinking", thinking="hm")) == [
            TextDelta(text="a"),
            ReasoningDelta(text="hm"),
        ]

    @pytest.mark.parametrize("said", ["", None, 3])
    def test_nothing_is_said(self, said: Any) -> None:
        assert events_of(text(said), delta(0, type="thinking_delta", thinking=said)) == []

    def test_a_document_in_place_of_a_stream(self) -> None:
        body = {
            "id": "msg_1",
            "type": "message",
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Hi"},
                {"type": "tool_use", "id": "t1", "name": "now", "input": {}},
                {"type": "tool_use", "id": "t2", "name": "get", "input": {"city": "Köln"}},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            ],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 5, "output_tokens": 7},
        }
        for asked in (True, False):
            events = decode(
                [json.dumps(body).encode()],
                shape="anthropic",
                body={"stream": asked},
                content_type="application/json",
            )
            turn = fold(events)
            assert (turn.end.status, turn.end.marker_seen) == (EndStatus.COMPLETE, None)
            assert (turn.first.text, turn.first.reasoning) == ("Hi", "hm")
            calls = [(call.id, call.name, call.arguments_text) for call in turn.first.tool_calls]
            assert calls == [("t1", "now", "{}"), ("t2", "get", '{"city":"Köln"}')]
            assert turn.first.finish == Finish(reason=FinishReason.TOOL_CALLS, raw_reason="tool_use")
            assert turn.usage is not None
            assert (turn.usage.prompt_tokens, turn.usage.completion_tokens) == (5, 7)
            assert any(isinstance(event, UnknownFrame) and "web_search" in event.data for event in events)


class TestThinking:
    def test_thoughts_and_their_signature(self) -> None:
        events = events_of(
            opening(0, type="thinking", thinking="", signature=""),
            delta(0, type="thinking_delta", thinking="hm"),
            delta(0, type="signature_delta", signature="c2ln"),
            {"type": "content_block_stop", "index": 0},
        )
        assert events == [
            ReasoningDelta(text="hm"),
            ServerDetail(data={"thinking": [{"signature": "c2ln"}]}),
        ]

    def test_thoughts_that_only_the_server_can_read_are_kept_and_not_shown(self) -> None:
        turn = fold(
            stream(
                wire(
                    start(),
                    opening(0, type="redacted_thinking", data="b3Bh"),
                    opening(1, type="thinking", thinking=""),
                    delta(1, type="signature_delta", signature="c2ln"),
                    text("Yes", 2),
                    ending(),
                    STOP,
                )
            )
        )
        assert (turn.first.text, turn.first.reasoning) == ("Yes", None)
        assert turn.detail == {"thinking": [{"data": "b3Bh"}, {"signature": "c2ln"}]}

    def test_the_empty_signature_of_llama_cpp_is_nothing(self) -> None:
        assert events_of(delta(0, type="signature_delta", signature="")) == []


class TestToolCalls:
    def test_fragments_are_joined_by_index(self) -> None:
        turn = fold(
            stream(
                wire(
                    start(),
                    text("Let me see. "),
                    opening(1, type="tool_use", id="t1", name="get", input={}),
                    delta(1, type="input_json_delta", partial_json=""),
                    delta(1, type="input_json_delta", partial_json='{"city": "\\ud83d'),
                    opening(2, type="tool_use", id="t2", name="now"),
                    delta(1, type="input_json_delta", partial_json='\\ude00"}'),
                    delta(2, type="input_json_delta", partial_json=""),
                    {"type": "content_block_stop", "index": 1},
                    {"type": "content_block_stop", "index": 2},
                    ending("tool_use"),
                    STOP,
                )
            )
        )
        first, second = turn.first.tool_calls
        assert (first.id, first.name, first.arguments) == ("t1", "get", {"city": "😀"})
        # A tool without parameters: the empty text means {}.
        assert (second.id, second.name, second.arguments, second.valid) == ("t2", "now", {}, True)

    def test_arguments_that_stand_in_the_opening(self) -> None:
        assert events_of(opening(0, type="tool_use", id="t", name="f", input={"a": 1})) == [
            ToolCallDelta(call=0, id="t", name="f", arguments='{"a":1}')
        ]

    def test_a_fragment_without_an_opening(self) -> None:
        assert events_of(delta(4, type="input_json_delta", partial_json="{")) == [
            ToolCallDelta(call=0, arguments="{")
        ]

    def test_what_the_servers_own_tools_do_is_kept_and_is_no_call(self) -> None:
        shown = [
            opening(0, type="server_tool_use", id="s", name="web_search", input={}),
            delta(0, type="input_json_delta", partial_json='{"query": "x"}'),
            opening(1, type="web_search_tool_result", tool_use_id="s", content=[]),
            delta(2, type="citations_delta", citation={"url": "https://example.org"}),
            delta(3, type="something_new"),
            {"type": "something_new"},
        ]
        events = events_of(*shown)
        assert [type(event) for event in events] == [UnknownFrame] * len(shown)
        assert all(isinstance(event, UnknownFrame) and event.readable for event in events)
        assert "web_search" in str(events[0])

    def test_a_call_that_is_cut_is_no_answer(self) -> None:
        turn = fold(
            stream(
                wire(
                    start(),
                    opening(0, type="tool_use", id="t", name="edit", input={}),
                    delta(0, type="input_json_delta", partial_json='{"path": "a'),
                )
            )
        )
        assert turn.end.status is EndStatus.INCOMPLETE
        assert [(call.name, call.valid) for call in turn.first.tool_calls] == [("edit", False)]


class TestFinish:
    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            ("max_tokens", FinishReason.LENGTH),
            ("stop_sequence", FinishReason.STOP_SEQUENCE),
            ("tool_use", FinishReason.TOOL_CALLS),
            ("refusal", FinishReason.REFUSAL),
            ("model_context_window_exceeded", FinishReason.CONTEXT),
            ("pause_turn", FinishReason.OTHER),
            ("something new", FinishReason.OTHER),
        ],
    )
    def test_reasons(self, raw: str, reason: FinishReason) -> None:
        finish = finish_of(ending(raw))
        assert (finish.reason, finish.raw_reason) == (reason, raw)

    def test_end_turn_proves_the_models_own_end_only_where_no_stop_was_sent(self) -> None:
        assert finish_of(ending()).reason is FinishReason.EOS
        # Ollama says end_turn for a matched stop sequence too.
        assert finish_of(ending(), stop_sequences=["END"]).reason is FinishReason.STOP

    @pytest.mark.parametrize("raw", ["stop_sequence", "end_turn"])
    def test_the_sequence_that_matched(self, raw: str) -> None:
        # llama.cpp says end_turn and fills stop_sequence all the same.
        finish = finish_of(ending(raw, "\nUser:"), stop_sequences=["\nUser:"])
        assert finish == Finish(reason=FinishReason.STOP_SEQUENCE, raw_reason=raw, stop_sequence="\nUser:")

    def test_a_tool_call_ended_by_a_sequence_is_a_tool_call(self) -> None:
        finish = finish_of(ending("tool_use", "</tool_call>"))
        assert (finish.reason, finish.stop_sequence) == (FinishReason.TOOL_CALLS, "</tool_call>")

    def test_a_refusal_tells_why(self) -> None:
        details = {"type": "refusal", "category": "cyber", "explanation": "This was blocked."}
        turn = fold(stream(wire(start(), {"type": "ping"}, ending("refusal", stop_details=details), STOP)))
        assert turn.end.status is EndStatus.COMPLETE
        assert (turn.first.text, turn.first.refusal) == ("", "This was blocked.")
        assert turn.detail == {"stop_details": details}

    @pytest.mark.parametrize("raw", ["pause_turn", "compaction"])
    def test_a_paused_answer_is_not_complete(self, raw: str) -> None:
        end = end_of(stream(wire(start(), text("a"), ending(raw), STOP)))
        assert (end.status, end.marker_seen) == (EndStatus.INCOMPLETE, True)
        assert end.error == StreamError(
            kind=raw, message=f"the server has only paused ({raw}), and wants the conversation sent back"
        )

    def test_the_opening_may_hold_the_whole_answer(self) -> None:
        call = {"type": "tool_use", "id": "t", "name": "f", "input": {"id": 1}}
        turn = fold(stream(wire(start(content=[call], stop_reason="tool_use"), STOP)))
        assert turn.end.status is EndStatus.COMPLETE
        assert [call.arguments for call in turn.first.tool_calls] == [{"id": 1}]

    def test_a_reason_without_message_stop_is_not_enough(self) -> None:
        end = end_of(stream(wire(start(), text("a"), ending())))
        assert (end.status, end.marker_seen) == (EndStatus.INCOMPLETE, False)
        assert end.error is not None
        assert end.error.message == "the stream ended before message_stop"

    def test_message_stop_without_a_reason_is_not_enough(self) -> None:
        end = end_of(stream(wire(start(), text("a"), STOP)))
        assert (end.status, end.marker_seen, end.error) == (EndStatus.INCOMPLETE, True, None)

    def test_nothing_but_the_whole_stream_is_complete(self) -> None:
        data = wire(start(), text("a"), {**ending(), "usage": {"output_tokens": 2}}, STOP)
        for at in cut_points(data, every_below=2000, sample=0):
            events = decode(
                [data[:at]], shape="anthropic", body={"stream": True}, content_type="text/event-stream"
            )
            # The last blank line may be missing.
            is_whole = at >= len(data.rstrip(b"\n"))
            assert (end_of(events).status is EndStatus.COMPLETE) == is_whole, at

    def test_what_comes_after_the_end_is_not_read(self) -> None:
        events = stream(wire(start(), ending(), STOP) + b"data: [DONE]\n\n" + wire(text("late")))
        assert not [event for event in events if isinstance(event, TextDelta | UnknownFrame)]


class TestUsage:
    @staticmethod
    def usage_of(*events: Any) -> Usage:
        usage = fold(stream(wire(*events, ending(), STOP))).usage
        assert usage is not None
        return usage

    def test_later_totals_replace_earlier_ones(self) -> None:
        cached = {"cache_read_input_tokens": 100, "cache_creation_input_tokens": 10}
        usage = self.usage_of(
            start(usage={"input_tokens": 43, "output_tokens": 8, **cached}),
            {**ending(None), "usage": {"output_tokens": 12, "cache_read_input_tokens": None}},
            {
                **ending(None),
                "usage": {
                    "input_tokens": 61,
                    "output_tokens": 40,
                    "output_tokens_details": {"thinking_tokens": 30},
                },
            },
        )
        assert usage.prompt_tokens == 61 + 100 + 10
        assert (usage.completion_tokens, usage.reasoning_tokens) == (40, 30)
        assert (usage.cached_tokens, usage.total_tokens) == (100, None)
        assert usage.raw["cache_creation_input_tokens"] == 10

    def test_the_openings_count_of_output_is_a_placeholder(self) -> None:
        usage = fold(stream(wire(start(), text("a b c")))).usage
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (25, None)

    def test_none_where_none_came(self) -> None:
        assert fold(stream(wire(start(usage=None), ending(), STOP))).usage is None


class TestErrors:
    @pytest.mark.parametrize("before", [(), (start(), text("Part"))])
    def test_an_error_event_at_any_point(self, before: tuple[Any, ...]) -> None:
        error = {"type": "overloaded_error", "message": "try later", "details": {"error_code": "busy"}}
        events = stream(wire(*before, {"type": "error", "error": error, "request_id": "req_1"}))
        end = end_of(events)
        assert end.status is EndStatus.ERROR
        assert end.error == StreamError(kind="overloaded_error", message="try later", code="busy")
        assert fold(events).first.text == ("Part" if before else "")

    def test_after_a_reason_too(self) -> None:
        error = {"type": "error", "error": {"type": "api_error", "message": "no"}}
        assert end_of(stream(wire(start(), ending(), error))).status is EndStatus.ERROR

    def test_without_an_event_name(self) -> None:
        data = b'data: {"type": "error", "error": {"type": "api_error", "message": "no"}}\n\n'
        assert end_of(stream(data)).error == StreamError(kind="api_error", message="no")

    def test_the_bare_form_of_llama_cpp(self) -> None:
        data = b'event: error\ndata: {"code":500,"message":"Context full.","type":"server_error"}\n\n'
        assert end_of(stream(data)).error == StreamError(
            kind="server_error", message="Context full.", code=500
        )

    def test_an_error_that_is_no_json(self) -> None:
        error = end_of(stream(b"event: error\ndata: upstream gone\n\n")).error
        assert error == StreamError(kind="server_error", message="upstream gone")

    def test_the_same_opening_twice_is_one(self) -> None:
        turn = fold(stream(wire(start(), start(), start(None), text("a"), ending(), STOP)))
        assert (turn.first.text, turn.end.status) == ("a", EndStatus.COMPLETE)

    def test_two_answers_in_one_stream_are_not_mixed(self) -> None:
        end = end_of(stream(wire(start(), text("a"), start("msg_2"), text("b"), ending(), STOP)))
        assert end.error == StreamError(
            kind="mixed_answers", message="the answer msg_2 began inside the answer msg_1"
        )

    def test_http_error_body(self) -> None:
        body = {
            "type": "error",
            "error": {
                "type": "rate_limit_error",
                "message": "slow down",
                "details": {"error_code": "enforced_spend_limit_reached"},
            },
            "request_id": "req_1",
        }
        assert SHAPE.read_error(429, json.dumps(body).encode(), "application/json") == StreamError(
            kind="rate_limit_error",
            message="slow down",
            code="enforced_spend_limit_reached",
            http_status=429,
        )


@pytest.mark.parametrize("data", ["[]", "null", "3", '"text"', "{}", '{"type": 3}', '{"delta": []}'])
def test_odd_frames_are_kept(data: str) -> None:
    assert SHAPE.decoder({"stream": True}).decode(Frame(data)) == [UnknownFrame(name=None, data=data)]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start", "message": []},
        {"type": "content_block_stop"},
        {"type": "message_delta", "delta": None, "usage": []},
    ],
)
def test_events_without_their_content_say_nothing(event: Any) -> None:
    assert events_of(event) == []
