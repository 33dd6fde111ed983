"""``/v1/responses``: the request, and every event of the stream.

OpenAI's own streams are built here from its documented event tables; what llama.cpp and vLLM send is
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
    LogprobsDelta,
    ReasoningDelta,
    RefusalDelta,
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
from llmstream_cli.framing import Frame
from llmstream_cli.request import Message, Request, Sampling
from llmstream_cli.shapes import get_shape
from llmstream_cli.turn import Turn
from tests.support.captures import cut_points, decode, fold, one_by_one

SHAPE = get_shape("openai-responses")
USAGE = {
    "input_tokens": 50,
    "input_tokens_details": {"cached_tokens": 40},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 6},
    "total_tokens": 59,
}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def created(**response: Any) -> dict[str, Any]:
    return event("created", response={"id": "resp_1", "model": "m", "status": "in_progress", **response})


def text(said: str, at: int = 0, part: int = 0, **fields: Any) -> dict[str, Any]:
    return event("output_text.delta", output_index=at, content_index=part, delta=said, **fields)


def item(verb: str, at: int, kind: str, **fields: Any) -> dict[str, Any]:
    return event(f"output_item.{verb}", output_index=at, item={"id": f"i{at}", "type": kind, **fields})


def ended(kind: str = "completed", status: str | None = None, **response: Any) -> dict[str, Any]:
    return event(kind, response={"id": "resp_1", "model": "m", "status": status or kind, **response})


def wire(*events: Any) -> bytes:
    return b"".join(f"event: {said['type']}\ndata: {json.dumps(said)}\n\n".encode() for said in events)


def stream(data: bytes, **body: Any) -> list[Event]:
    """The events of a stream, the same for one read and for reads of one byte."""
    body = {"stream": True, **body}
    whole = decode([data], shape="openai-responses", body=body, content_type="text/event-stream")
    single = decode(one_by_one(data), shape="openai-responses", body=body, content_type="text/event-stream")
    assert single == whole
    return whole


def turn_of(*events: Any, **body: Any) -> Turn:
    return fold(stream(wire(*events), **body))


def events_of(*events: Any) -> list[Event]:
    frames = SHAPE.decoder({"stream": True})
    return [said for value in events for said in frames.decode(Frame(json.dumps(value), name=value["type"]))]


def document(body: Any, **request: Any) -> Turn:
    return fold(
        decode(
            [json.dumps(body).encode()],
            shape="openai-responses",
            body=request,
            content_type="application/json",
        )
    )


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
            sampling=Sampling(max_tokens=5, temperature=0.0, top_p=0.5, seed=1, stop=("END",)),
            schema={"type": "object"},
        )
        http = SHAPE.build(request)
        assert (http.method, http.path) == ("POST", "/v1/responses")
        assert http.body == {
            "model": "m",
            "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "user", "content": "Hi"},
                {"type": "message", "role": "assistant", "content": "Hello"},
                {"type": "message", "role": "user", "content": "sun"},
            ],
            "stream": True,
            "store": False,
            "max_output_tokens": 5,
            "temperature": 0.0,
            "top_p": 0.5,
            "text": {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}},
        }

    def test_what_is_not_given_is_not_sent(self) -> None:
        body = SHAPE.build(Request(messages=(Message(role="user", content="Hi"),))).body
        assert sorted(body) == ["input", "store", "stream"]

    def test_options_come_last(self) -> None:
        options = {"store": True, "reasoning": {"summary": "auto"}}
        body = SHAPE.build(Request(messages=(), options=options)).body
        assert (body["store"], body["reasoning"]) == (True, {"summary": "auto"})

    def test_where_things_are_read(self) -> None:
        assert (SHAPE.stop_field, SHAPE.max_tokens_field) == (None, "max_output_tokens")
        assert SHAPE.terminal_marker == "response.completed"


class TestText:
    def test_a_plain_answer(self) -> None:
        whole = "Hello"
        part = {"type": "output_text", "text": whole, "annotations": []}
        events = stream(
            wire(
                created(),
                event("in_progress", response={"id": "resp_1", "model": "m"}),
                item("added", 0, "message", content=[], role="assistant"),
                event("content_part.added", output_index=0, content_index=0, part={"text": ""}),
                text("Hel"),
                {"type": "keepalive", "sequence_number": 7},
                text("lo"),
                event("output_text.done", output_index=0, content_index=0, text=whole),
                event("content_part.done", output_index=0, content_index=0, part=part),
                item("done", 0, "message", content=[part]),
                ended(output=[{"type": "message", "content": [part]}], usage=USAGE),
            )
        )
        assert events[:-1] == [
            StreamStart(response_id="resp_1", model="m"),
            TextDelta(text="Hel"),
            KeepAlive(comment="keepalive"),
            TextDelta(text="lo"),
            UsageReport(
                usage=Usage(
                    prompt_tokens=50,
                    completion_tokens=9,
                    reasoning_tokens=6,
                    cached_tokens=40,
                    total_tokens=59,
                    raw=USAGE,
                )
            ),
            Finish(reason=FinishReason.STOP, raw_reason="completed"),
        ]
        end = events[-1]
        assert isinstance(end, StreamEnd)
        assert (end.status, end.marker_seen) == (EndStatus.COMPLETE, True)

    @pytest.mark.parametrize(
        "late",
        [
            event("output_text.done", output_index=0, content_index=0, text="Hi"),
            item("done", 0, "message", content=[{"type": "output_text", "text": "Hi"}]),
            ended(output=[{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}]),
        ],
    )
    def test_what_came_in_no_delta_is_told_from_a_later_event(self, late: dict[str, Any]) -> None:
        events = [created(), late] if late["type"] == "response.completed" else [created(), late, ended()]
        turn = turn_of(*events)
        assert (turn.first.text, turn.end.status) == ("Hi", EndStatus.COMPLETE)

    def test_messages_are_set_apart_and_their_parts_are_not(self) -> None:
        turn = turn_of(created(), text("a"), text("b", part=1), text("c", at=1), ended())
        assert turn.first.text == "ab\nc"

    def test_what_is_said_on_the_way_to_the_answer_is_reasoning(self) -> None:
        turn = turn_of(
            created(),
            item("added", 0, "message", phase="commentary", content=[]),
            text("I am going to search."),
            item("added", 1, "message", phase="final_answer", content=[]),
            text("Paris.", at=1),
            ended(),
        )
        assert (turn.first.text, turn.first.reasoning) == ("Paris.", "I am going to search.")

    def test_ids_that_change_with_every_event(self) -> None:
        turn = turn_of(
            created(),
            item("added", 0, "message", content=[]),
            text("a", item_id="x1"),
            text("b", item_id="x2"),
            event("output_text.done", output_index=0, content_index=0, item_id="x3", text="ab"),
            ended(),
        )
        assert turn.first.text == "ab"

    def test_items_without_an_index_are_told_apart_by_their_id(self) -> None:
        def said(said: str, item_id: str) -> dict[str, Any]:
            return event("output_text.delta", item_id=item_id, delta=said)

        assert turn_of(said("a", "m1"), said("b", "m1"), said("c", "m2"), ended()).first.text == "ab\nc"

    def test_refusal(self) -> None:
        events = events_of(
            event("refusal.delta", output_index=0, content_index=0, delta="I can"),
            event("refusal.delta", output_index=0, content_index=0, delta="not"),
            event("refusal.done", output_index=0, content_index=0, refusal="I cannot"),
        )
        assert events == [RefusalDelta(text="I can"), RefusalDelta(text="not")]
        assert events_of(item("done", 0, "message", content=[{"type": "refusal", "refusal": "No"}])) == [
            RefusalDelta(text="No")
        ]

    def test_logprobs_are_kept_as_sent(self) -> None:
        logprobs = [{"token": "a", "logprob": -0.5}]
        assert events_of(text("a", logprobs=logprobs), text("b", logprobs=[])) == [
            TextDelta(text="a"),
            LogprobsDelta(data=logprobs),
            TextDelta(text="b"),
        ]

    @pytest.mark.parametrize("said", ["", None, 3, ["a"]])
    def test_nothing_is_said(self, said: Any) -> None:
        assert events_of(text(said)) == []


class TestReasoning:
    def test_summaries_are_set_apart_by_a_blank_line(self) -> None:
        def summary(said: str, part: int) -> dict[str, Any]:
            return event("reasoning_summary_text.delta", output_index=0, summary_index=part, delta=said)

        turn = turn_of(
            created(),
            event("reasoning_summary_part.added", output_index=0, summary_index=0, part={}),
            summary("One ", 0),
            summary("thought.", 0),
            event("reasoning_summary_text.done", output_index=0, summary_index=0, text="One thought."),
            summary("Another.", 1),
            item("done", 0, "reasoning", summary=[{"type": "summary_text", "text": "One thought."}]),
            ended(),
        )
        assert turn.first.reasoning == "One thought.\n\nAnother."

    def test_raw_thoughts(self) -> None:
        def thought(verb: str, **fields: Any) -> dict[str, Any]:
            return event(f"reasoning_text.{verb}", output_index=0, content_index=0, **fields)

        assert events_of(thought("delta", delta="hm"), thought("done", text="hm")) == [
            ReasoningDelta(text="hm")
        ]

    def test_an_encrypted_item_says_nothing(self) -> None:
        assert events_of(item("done", 0, "reasoning", summary=[], encrypted_content="gAAA")) == []


class TestToolCalls:
    @staticmethod
    def arguments(verb: str, at: int, **fields: Any) -> dict[str, Any]:
        return event(f"function_call_arguments.{verb}", output_index=at, **fields)

    def test_fragments_are_joined_by_output_index(self) -> None:
        turn = turn_of(
            created(),
            item("added", 1, "function_call", call_id="c1", name="get", arguments=""),
            self.arguments("delta", 1, delta='{"city": '),
            item("added", 2, "function_call", call_id="c2", name="now", arguments=""),
            self.arguments("delta", 1, delta='"Oslo"}'),
            self.arguments("done", 2, arguments="{}"),
            self.arguments("done", 1, arguments='{"city": "Oslo"}'),
            item("done", 1, "function_call", call_id="c1", name="get", arguments='{"city": "Oslo"}'),
            ended(),
        )
        calls = [(call.id, call.name, call.arguments_text) for call in turn.first.tool_calls]
        assert calls == [("c1", "get", '{"city": "Oslo"}'), ("c2", "now", "{}")]
        assert turn.first.finish == Finish(reason=FinishReason.TOOL_CALLS, raw_reason="completed")

    def test_a_call_that_only_its_end_tells(self) -> None:
        call = item("done", 0, "function_call", call_id="c", name="f", arguments="{}")
        assert events_of(call) == [ToolCallDelta(call=0, id="c", name="f", arguments="{}")]

    def test_a_name_that_comes_after_the_arguments(self) -> None:
        assert events_of(
            self.arguments("delta", 0, delta="{}"),
            item("done", 0, "function_call", call_id="c", name="f", arguments="{}"),
        ) == [ToolCallDelta(call=0, arguments="{}"), ToolCallDelta(call=0, id="c", name="f")]

    def test_the_input_of_a_custom_tool_is_no_json(self) -> None:
        turn = turn_of(
            created(),
            item("added", 0, "custom_tool_call", call_id="c", name="sql", input=""),
            event("custom_tool_call_input.delta", output_index=0, delta="SELECT "),
            event("custom_tool_call_input.delta", output_index=0, delta="1"),
            event("custom_tool_call_input.done", output_index=0, input="SELECT 1"),
            ended(),
        )
        (call,) = turn.first.tool_calls
        assert (call.name, call.arguments_text, call.valid) == ("sql", "SELECT 1", False)

    def test_what_the_servers_own_tools_do_is_kept_and_is_no_call(self) -> None:
        shown = [
            item("added", 0, "web_search_call", status="in_progress"),
            event("web_search_call.searching", output_index=0),
            event("mcp_call_arguments.delta", output_index=0, delta="{}"),
            event("output_text.annotation.added", output_index=0, annotation={"url": "x"}),
            event("something.new"),
        ]
        events = events_of(*shown)
        assert [type(said) for said in events] == [UnknownFrame] * len(shown)
        assert all(isinstance(said, UnknownFrame) and said.readable for said in events)


class TestEnd:
    @pytest.mark.parametrize(
        ("why", "reason"),
        [("max_output_tokens", FinishReason.LENGTH), ("content_filter", FinishReason.CONTENT_FILTER)],
    )
    @pytest.mark.parametrize("kind", ["incomplete", "completed"])
    def test_incomplete_whatever_the_event_is_called(self, kind: str, why: str, reason: FinishReason) -> None:
        # vLLM says it in an event called response.completed.
        turn = turn_of(created(), ended(kind, "incomplete", incomplete_details={"reason": why}))
        assert turn.end.status is EndStatus.COMPLETE
        assert turn.first.finish == Finish(reason=reason, raw_reason=f"incomplete:{why}")

    @pytest.mark.parametrize(
        ("status", "details", "raw"),
        [
            ("incomplete", {"reason": "max_messages"}, "incomplete:max_messages"),
            ("incomplete", None, "incomplete"),
            ("cancelled", None, "cancelled"),
            ("queued", None, "queued"),
        ],
    )
    def test_any_other_status_is_no_complete_answer(self, status: str, details: Any, raw: str) -> None:
        turn = turn_of(created(), text("a"), ended("completed", status, incomplete_details=details))
        assert (turn.end.status, turn.end.marker_seen) == (EndStatus.INCOMPLETE, True)
        assert turn.end.error == StreamError(kind=raw, message=f"the server calls the response {raw}")
        assert turn.first.text == "a"

    @pytest.mark.parametrize(
        ("cap", "reason"), [(9, FinishReason.LENGTH), (10, FinishReason.STOP), (None, FinishReason.STOP)]
    )
    def test_a_cap_that_was_reached_counts_as_a_cut(self, cap: int | None, reason: FinishReason) -> None:
        # llama.cpp and Ollama say completed all the same.
        turn = turn_of(created(), text("a"), ended(usage=USAGE), max_output_tokens=cap)
        assert turn.first.finish == Finish(reason=reason, raw_reason="completed")

    def test_no_status_is_that_of_the_events_name(self) -> None:
        assert turn_of(text("a"), event("completed", response={})).end.status is EndStatus.COMPLETE
        assert turn_of(text("a"), event("incomplete")).end.status is EndStatus.INCOMPLETE

    def test_done_of_another_api_proves_nothing(self) -> None:
        turn = fold(stream(wire(created(), text("a")) + b"data: [DONE]\n\n"))
        assert (turn.end.status, turn.end.error) == (EndStatus.INCOMPLETE, None)

    def test_what_comes_after_the_end_is_not_read(self) -> None:
        events = stream(wire(text("a"), ended()) + b"data: [DONE]\n\n" + wire(text("late")))
        assert [said.text for said in events if isinstance(said, TextDelta)] == ["a"]
        assert not [said for said in events if isinstance(said, UnknownFrame)]

    def test_nothing_but_the_whole_stream_is_complete(self) -> None:
        data = wire(created(), text("a"), ended())
        for at in cut_points(data, every_below=2000, sample=0):
            events = decode(
                [data[:at]],
                shape="openai-responses",
                body={"stream": True},
                content_type="text/event-stream",
            )
            is_whole = at >= len(data.rstrip(b"\n"))
            assert (fold(events).end.status is EndStatus.COMPLETE) == is_whole, at

    def test_llama_cpp_tells_its_times(self) -> None:
        timings = {"prompt_ms": 250, "predicted_ms": 500, "predicted_n": 5}
        assert TimingsReport(timings=ServerTimings(prefill_s=0.25, decode_s=0.5)) in events_of(
            {**ended(), "timings": timings}
        )


class TestErrors:
    @pytest.mark.parametrize(
        "error",
        [
            {"type": "error", "code": "slow_down", "message": "no", "param": None, "sequence_number": 2},
            {"type": "error", "error": {"type": "server_error", "code": "slow_down", "message": "no"}},
            ended("failed", error={"code": "slow_down", "message": "no"}),
        ],
    )
    def test_the_three_forms_and_none_is_told_twice(self, error: dict[str, Any]) -> None:
        failed = ended("failed", error={"code": "other", "message": "again"})
        turn = turn_of(created(), text("Part"), error, failed)
        assert turn.end.status is EndStatus.ERROR
        assert turn.end.error == StreamError(kind="server_error", message="no", code="slow_down")
        assert turn.first.text == "Part"

    def test_a_failure_without_an_explanation(self) -> None:
        error = turn_of(created(), ended("failed", usage=None)).end.error
        assert error is not None
        assert error.message == "the server says that the response failed"

    def test_the_form_of_llama_cpp(self) -> None:
        data = b'data: {"error":{"code":500,"message":"Context full.","type":"server_error"}}\n\n'
        end = fold(stream(wire(created()) + data)).end
        assert end.error == StreamError(kind="server_error", message="Context full.", code=500)

    def test_an_error_that_is_no_json(self) -> None:
        error = fold(stream(b"event: error\ndata: upstream gone\n\n")).end.error
        assert error == StreamError(kind="server_error", message="upstream gone")


class TestDocument:
    def test_everything(self) -> None:
        turn = document(
            {
                "id": "resp_1",
                "object": "response",
                "model": "m",
                "status": "completed",
                "error": None,
                "output": [
                    {
                        "type": "reasoning",
                        "summary": [{"type": "summary_text", "text": "hm"}],
                        "content": [{"type": "reasoning_text", "text": "raw"}],
                    },
                    {"type": "web_search_call", "id": "w"},
                    {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}},
                ],
                "usage": USAGE,
            }
        )
        assert (turn.end.status, turn.end.marker_seen) == (EndStatus.COMPLETE, None)
        assert (turn.first.text, turn.first.reasoning) == ("Hi", "hm\n\nraw")
        assert [(call.id, call.arguments_text) for call in turn.first.tool_calls] == [("c", '{"a":1}')]
        assert turn.first.finish == Finish(reason=FinishReason.TOOL_CALLS, raw_reason="completed")
        assert turn.start == StreamStart(response_id="resp_1", model="m")

    def test_in_the_background(self) -> None:
        turn = document({"object": "response", "status": "in_progress", "output": []})
        assert turn.end.status is EndStatus.INCOMPLETE

    def test_failed(self) -> None:
        error = {"code": "invalid_prompt", "message": "no"}
        turn = document({"object": "response", "status": "failed", "error": error, "output": []})
        assert turn.end.error == StreamError(kind="server_error", message="no", code="invalid_prompt")


@pytest.mark.parametrize("data", ["[]", "null", "3", '"text"', "{}", '{"type": 3}', '{"delta": []}'])
def test_odd_frames_are_kept(data: str) -> None:
    assert SHAPE.decoder({"stream": True}).decode(Frame(data)) == [UnknownFrame(name=None, data=data)]
