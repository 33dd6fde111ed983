"""``/v1/chat/completions``: the request, and each dialect's way to say things."""

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
    PrefillProgress,
    ReasoningDelta,
    RefusalDelta,
    ServerDetail,
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
from llmstream_cli.shapes import FrameDecoder, get_shape
from tests.support.captures import decode, fold, load

SHAPE = get_shape("openai-chat")
END = StreamEnd(status=EndStatus.COMPLETE, marker_seen=True, offset=0)
WHOLE = {"role": "assistant", "content": "one two", "reasoning": "hm"}
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
MESSAGES = (Message(role="system", content="Be brief."), Message(role="user", content="Hi"))


def decoder(**body: Any) -> FrameDecoder:
    return SHAPE.decoder({"stream": True, **body})


def events_of(*chunks: Any, name: str | None = None, **body: Any) -> list[Event]:
    frames = decoder(**body)
    return [event for chunk in chunks for event in frames.decode(Frame(json.dumps(chunk), name=name))]


def chunk(delta: Any = None, finish: Any = None, index: int = 0, **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish, **choice}]}


def finish_of(raw: str, **choice: Any) -> Finish:
    (finish,) = events_of(chunk({}, raw, **choice))
    assert isinstance(finish, Finish)
    assert finish.raw_reason == raw
    return finish


def stream(*chunks: Any, **body: Any) -> list[Event]:
    data = b"".join(
        b"data: " + (item.encode() if isinstance(item, str) else json.dumps(item).encode()) + b"\n\n"
        for item in chunks
    )
    return decode(
        [data], shape="openai-chat", body={"stream": True, **body}, content_type="text/event-stream"
    )


def end_of(events: list[Event]) -> StreamEnd:
    end = events[-1]
    assert isinstance(end, StreamEnd)
    return end


class TestRequest:
    def test_everything_in_its_place(self) -> None:
        request = Request(
            messages=MESSAGES,
            model="m",
            sampling=Sampling(max_tokens=5, temperature=0.0, top_p=0.5, seed=1, stop=("\nUser:", "END")),
            schema={"type": "object"},
        )
        http = SHAPE.build(request)
        assert (http.method, http.path) == ("POST", "/v1/chat/completions")
        assert http.body == {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 5,
            "temperature": 0.0,
            "top_p": 0.5,
            "seed": 1,
            "stop": ["\nUser:", "END"],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": {"type": "object"}},
            },
        }

    def test_what_is_not_given_is_not_sent(self) -> None:
        body = SHAPE.build(Request(messages=MESSAGES, usage=False)).body
        assert sorted(body) == ["messages", "stream"]

    def test_usage_is_asked_for_in_streams_only(self) -> None:
        # vLLM refuses stream_options without a stream.
        assert SHAPE.build(Request(messages=MESSAGES, stream=False)).body["stream"] is False
        assert "stream_options" not in SHAPE.build(Request(messages=MESSAGES, stream=False)).body

    def test_options_come_last_and_may_remove(self) -> None:
        request = Request(
            messages=MESSAGES,
            sampling=Sampling(max_tokens=5, stop=("a",)),
            options={
                "max_tokens": None,
                "max_completion_tokens": 7,
                "stop": "b",
                "stream_options": {"continuous_usage_stats": True},
            },
        )
        body = SHAPE.build(request).body
        assert "max_tokens" not in body
        assert (body["max_completion_tokens"], body["stop"]) == (7, "b")
        assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}

    def test_where_things_are_read(self) -> None:
        assert (SHAPE.takes, SHAPE.stop_field, SHAPE.max_tokens_field) == ("messages", "stop", "max_tokens")
        assert SHAPE.terminal_marker == "[DONE]"


class TestText:
    @pytest.mark.parametrize(
        "delta",
        [
            None,
            {},
            {"role": "assistant"},
            {"role": "assistant", "content": None},
            {"role": "assistant", "content": ""},
            {"content": None, "tool_calls": None, "function_call": None, "refusal": None},
            {"content": []},
            "text",
        ],
    )
    def test_nothing_is_said(self, delta: Any) -> None:
        assert events_of(chunk(delta)) == []

    def test_content_as_a_list_of_parts(self) -> None:
        parts = [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": "yes"},
            {"type": "reference", "reference_ids": [1]},
            "odd",
        ]
        assert events_of(chunk({"content": parts})) == [ReasoningDelta(text="hm"), TextDelta(text="yes")]

    def test_refusal(self) -> None:
        assert events_of(chunk({"refusal": "I cannot"})) == [RefusalDelta(text="I cannot")]

    @pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
    def test_reasoning_under_each_name(self, key: str) -> None:
        events = events_of(chunk({key: "hm", "content": "yes"}))
        assert events == [ReasoningDelta(text="hm"), TextDelta(text="yes")]

    def test_reasoning_under_two_names_is_told_once(self) -> None:
        assert events_of(chunk({"reasoning": "hm", "reasoning_content": "hm"})) == [ReasoningDelta(text="hm")]

    def test_text_comes_before_the_finish_of_the_same_chunk(self) -> None:
        assert events_of(chunk({"content": "end"}, "length")) == [
            TextDelta(text="end"),
            Finish(reason=FinishReason.LENGTH, raw_reason="length"),
        ]

    def test_choices_are_kept_apart(self) -> None:
        both = {"choices": [chunk({"content": text}, index=at)["choices"][0] for at, text in enumerate("ab")]}
        assert events_of(both) == [TextDelta(text="a"), TextDelta(text="b", choice=1)]

    def test_logprobs_are_kept_as_sent(self) -> None:
        logprobs = {"content": [{"token": "a", "logprob": -0.5}]}
        assert events_of(chunk({"content": "a"}, logprobs=logprobs)) == [
            TextDelta(text="a"),
            LogprobsDelta(data=logprobs),
        ]


class TestSnapshot:
    def test_is_passed_over_after_deltas(self) -> None:
        repeated = {"choices": [{"index": 0, "delta": {}, "message": WHOLE, "finish_reason": "stop"}]}
        events = events_of(chunk({"content": "one "}), chunk({"content": "two"}), repeated)
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "one two"
        assert not any(isinstance(event, ReasoningDelta) for event in events)

    def test_is_used_where_only_reasoning_came(self) -> None:
        events = events_of(chunk({"reasoning": "hm"}), {"choices": [{"index": 0, "message": WHOLE}]})
        assert events == [ReasoningDelta(text="hm"), TextDelta(text="one two")]

    def test_is_the_answer_of_a_server_that_does_not_stream(self) -> None:
        calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        message = {**WHOLE, "tool_calls": calls, "refusal": None, "function_call": None}
        events = events_of({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        assert events == [
            ReasoningDelta(text="hm"),
            TextDelta(text="one two"),
            ToolCallDelta(call=0, id="a", name="f", arguments="{}"),
            Finish(reason=FinishReason.STOP, raw_reason="stop"),
        ]


class TestToolCalls:
    @staticmethod
    def calls_of(*deltas: Any) -> list[tuple[str | None, str, str]]:
        events = [*events_of(*[chunk(delta) for delta in deltas]), END]
        return [(call.id, call.name, call.arguments_text) for call in fold(events).first.tool_calls]

    def test_fragments_are_merged_by_index(self) -> None:
        assert self.calls_of(
            {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]},
            {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "g"}}]},
            {"tool_calls": [{"index": 0, "function": {"name": None, "arguments": "{"}}]},
            {"tool_calls": [{"index": 1, "function": {"arguments": "[]"}}, {"index": 0, "function": None}]},
            {"tool_calls": [{"index": 0, "id": "", "function": {"arguments": "}"}}]},
        ) == [("a", "f", "{}"), ("b", "g", "[]")]

    def test_arguments_as_an_object(self) -> None:
        call = {"index": 0, "id": "a", "function": {"name": "w", "arguments": {"city": "Köln"}}}
        assert self.calls_of({"tool_calls": [call]}) == [("a", "w", '{"city":"Köln"}')]

    def test_one_object_in_place_of_a_list(self) -> None:
        call = {"index": 0, "id": "a", "function": {"name": "w", "arguments": "{}"}}
        assert self.calls_of({"tool_calls": call}) == [("a", "w", "{}")]

    def test_two_calls_without_index(self) -> None:
        calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"]
        assert self.calls_of({"tool_calls": calls}) == [("a", "a", "{}"), ("b", "b", "{}")]

    def test_the_older_function_call(self) -> None:
        assert self.calls_of(
            {"function_call": {"name": "f", "arguments": "{"}},
            {"function_call": {"arguments": "}"}},
        ) == [(None, "f", "{}")]

    def test_the_older_form_beside_the_newer_one_is_a_repeat(self) -> None:
        function = {"name": "f", "arguments": "{}"}
        call = {"index": 0, "id": "a", "function": function}
        assert self.calls_of({"function_call": function, "tool_calls": [call]}) == [("a", "f", "{}")]


class TestFinish:
    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            ("stop", FinishReason.STOP),
            ("length", FinishReason.LENGTH),
            ("tool_calls", FinishReason.TOOL_CALLS),
            ("function_call", FinishReason.TOOL_CALLS),
            ("content_filter", FinishReason.CONTENT_FILTER),
            ("eos_token", FinishReason.EOS),
            ("stop_sequence", FinishReason.STOP_SEQUENCE),
            ("abort", FinishReason.OTHER),
            ("repetition", FinishReason.OTHER),
            ("something new", FinishReason.OTHER),
        ],
    )
    def test_reasons(self, raw: str, reason: FinishReason) -> None:
        assert finish_of(raw).reason is reason

    @pytest.mark.parametrize("raw", [None, "", 0, False])
    def test_not_finished(self, raw: Any) -> None:
        assert events_of(chunk({"content": "a"}, raw)) == [TextDelta(text="a")]

    @pytest.mark.parametrize(
        ("said", "reason", "sequence", "token"),
        [
            ({"stop_reason": "END"}, FinishReason.STOP_SEQUENCE, "END", None),
            ({"stop_reason": 106}, FinishReason.STOP, None, 106),
            ({"stop_reason": None}, FinishReason.EOS, None, None),
            ({"matched_stop": "END"}, FinishReason.STOP_SEQUENCE, "END", None),
            ({"matched_stop": 2}, FinishReason.STOP, None, 2),
            ({"matched_stop": None}, FinishReason.STOP, None, None),
            ({"stop_reason": None, "matched_stop": "END"}, FinishReason.STOP_SEQUENCE, "END", None),
            ({"stop_reason": None, "matched_stop": None}, FinishReason.STOP, None, None),
        ],
    )
    def test_what_matched(
        self, said: dict[str, Any], reason: FinishReason, sequence: str | None, token: int | None
    ) -> None:
        finish = finish_of("stop", **said)
        assert (finish.reason, finish.stop_sequence, finish.stop_token) == (reason, sequence, token)

    def test_what_matched_is_asked_for_stop_only(self) -> None:
        finish = finish_of("repetition", stop_reason="repetition_detected")
        assert (finish.reason, finish.stop_sequence) == (FinishReason.OTHER, None)
        assert finish_of("length", stop_reason=None).reason is FinishReason.LENGTH

    @pytest.mark.parametrize(
        ("raw", "native", "reason", "sequence"),
        [
            ("stop", {"stop_type": "eos", "stopping_word": ""}, FinishReason.EOS, None),
            ("stop", {"stop_type": "word", "stopping_word": "END"}, FinishReason.STOP_SEQUENCE, "END"),
            ("length", {"stop_type": "limit", "truncated": False}, FinishReason.LENGTH, None),
            ("length", {"stop_type": "limit", "truncated": True}, FinishReason.CONTEXT, None),
            (
                "length",
                {
                    "stop_type": "limit",
                    "truncated": True,
                    "tokens_predicted": 40,
                    "generation_settings": {"n_predict": 40, "max_tokens": 40},
                },
                FinishReason.LENGTH,
                None,
            ),
            ("tool_calls", {"stop_type": "eos"}, FinishReason.TOOL_CALLS, None),
        ],
    )
    def test_llama_cpp_tells_more_when_asked_to_be_verbose(
        self, raw: str, native: dict[str, Any], reason: FinishReason, sequence: str | None
    ) -> None:
        report = {**native, "index": 0, "content": "", "tokens": [], "prompt": "<bos>"}
        detail, finish = events_of({**chunk({}, raw), "__verbose": report})
        assert detail == ServerDetail(data={**native, "index": 0, "prompt": "<bos>"})
        assert finish == Finish(reason=reason, raw_reason=raw, stop_sequence=sequence)

    def test_a_full_context_is_only_length_without_verbose(self) -> None:
        capture = load("llama.cpp/ctx_full_chat_stream")
        events = decode(
            [capture.body], shape="openai-chat", body=capture.request_body, content_type=capture.content_type
        )
        finish = fold(events).first.finish
        assert finish == Finish(reason=FinishReason.LENGTH, raw_reason="length")


class TestCompleteness:
    REASONING_STOP = chunk({"reasoning_content": "hm"}, "stop")

    def test_a_finish_beside_reasoning_stands_if_nothing_follows(self) -> None:
        assert end_of(stream(self.REASONING_STOP)).status is EndStatus.COMPLETE

    def test_but_it_is_no_reason_to_hang_up(self) -> None:
        frames = decoder()
        frames.decode(Frame(json.dumps(self.REASONING_STOP)))
        assert (frames.complete, frames.settled) == (True, False)
        frames.decode(Frame(json.dumps(chunk({}, "stop"))))
        assert (frames.complete, frames.settled) == (True, False)

    def test_and_an_answer_that_follows_needs_its_own(self) -> None:
        cut = stream(self.REASONING_STOP, chunk({"content": "ans"}))
        assert end_of(cut).status is EndStatus.INCOMPLETE
        whole = stream(self.REASONING_STOP, chunk({"content": "answer"}), chunk({}, "length"), "[DONE]")
        assert end_of(whole).status is EndStatus.COMPLETE
        finish = fold(whole).first.finish
        assert finish is not None
        assert finish.raw_reason == "length"

    def test_every_choice_asked_for(self) -> None:
        one = [chunk({"content": "a"}), chunk({}, "stop")]
        assert end_of(stream(*one, "[DONE]", n=2)).status is EndStatus.INCOMPLETE
        other = [chunk({"content": "b"}, index=1), chunk({}, "stop", index=1)]
        assert end_of(stream(*one, *other, "[DONE]", n=2)).status is EndStatus.COMPLETE

    def test_a_choice_that_nobody_asked_for_must_finish_too(self) -> None:
        said = stream(chunk({"content": "a"}, "stop"), chunk({"content": "b"}, index=1), "[DONE]")
        assert end_of(said).status is EndStatus.INCOMPLETE

    def test_the_marker_alone_proves_nothing(self) -> None:
        end = end_of(stream(chunk({"content": "a"}), "[DONE]"))
        assert (end.status, end.marker_seen) == (EndStatus.INCOMPLETE, True)

    def test_no_marker_is_missed_where_none_was_asked_for(self) -> None:
        assert SHAPE.decoder({"stream": False}).marker_seen is None
        assert decoder().marker_seen is False


class TestUsage:
    def test_in_a_chunk_of_its_own(self) -> None:
        details = {
            **USAGE,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 1},
        }
        assert events_of({"choices": [], "usage": details}) == [
            UsageReport(
                usage=Usage(
                    prompt_tokens=5,
                    completion_tokens=2,
                    total_tokens=7,
                    cached_tokens=4,
                    reasoning_tokens=1,
                    raw=details,
                )
            )
        ]

    def test_beside_the_last_text(self) -> None:
        events = events_of({**chunk({"content": "a"}, "stop"), "usage": USAGE})
        assert [type(event) for event in events] == [TextDelta, Finish, UsageReport]

    @pytest.mark.parametrize(
        "usage",
        [
            None,
            {},
            [],
            {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            {"prompt_tokens_details": {"cached_tokens": 0}},
            {"prompt_tokens": None, "prompt_tokens_details": None},
        ],
    )
    def test_no_counts_are_no_report(self, usage: Any) -> None:
        assert events_of({**chunk({"content": "a"}), "usage": usage}) == [TextDelta(text="a")]

    def test_the_same_counts_are_told_once(self) -> None:
        repeated = {"choices": [], "usage": USAGE}
        assert len(events_of(repeated, repeated)) == 1

    def test_total_is_never_computed(self) -> None:
        (report,) = events_of({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
        assert isinstance(report, UsageReport)
        assert report.usage.total_tokens is None

    def test_llama_cpp_reports_each_of_several_choices(self) -> None:
        report = {"choices": [], "usage": USAGE, "timings": {"prompt_ms": 1}}
        events = [*events_of(report, report, n=2), END]
        usage = fold(events).usage
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (5, 4, None)

    def test_one_report_for_all_choices_stands(self) -> None:
        (report,) = events_of({"choices": [], "usage": USAGE}, n=2)
        assert isinstance(report, UsageReport)
        assert (report.usage.completion_tokens, report.usage.total_tokens) == (2, 7)


class TestRest:
    def test_identity_is_told_when_known_and_once(self) -> None:
        first = {"id": "c1", "model": "m", "choices": []}
        last = {"id": "c1", "model": "m", "system_fingerprint": "vllm-0.32.0", "choices": []}
        assert events_of(first, first, last, last) == [
            StreamStart(response_id="c1", model="m"),
            StreamStart(response_id="c1", model="m", fingerprint="vllm-0.32.0"),
        ]

    def test_timings_are_milliseconds(self) -> None:
        timings = {"prompt_ms": 250, "predicted_ms": 1500.0}
        assert events_of({"choices": [], "timings": timings}) == [
            TimingsReport(timings=ServerTimings(prefill_s=0.25, decode_s=1.5))
        ]

    def test_prefill_progress(self) -> None:
        progress = {"total": 924, "cache": 1, "processed": 408, "time_ms": 6132}
        opening = {**chunk({"role": "assistant", "content": None}), "prompt_progress": progress}
        assert events_of(opening) == [
            PrefillProgress(processed_tokens=408, total_tokens=924, cached_tokens=1)
        ]

    @pytest.mark.parametrize(
        ("data", "event"),
        [
            ("{", UnknownFrame(name=None, data="{", readable=False)),
            ('{"ping":1}', UnknownFrame(name=None, data='{"ping":1}')),
            ("[1]", UnknownFrame(name=None, data="[1]")),
            (": PROCESSING", KeepAlive(comment="PROCESSING")),
            ("", KeepAlive()),
        ],
    )
    def test_other_frames_are_kept(self, data: str, event: Event) -> None:
        assert decoder().decode(Frame(data)) == [event]

    @pytest.mark.parametrize(
        "data", ["null", '{"choices":null}', '{"choices":[],"prompt_filter_results":[]}', '{"choices":[7]}']
    )
    def test_frames_that_say_nothing(self, data: str) -> None:
        assert decoder().decode(Frame(data)) == []

    @pytest.mark.parametrize("data", ["[DONE]", "[DONE]  ", "[DONE]\r"])
    def test_marker(self, data: str) -> None:
        frames = decoder()
        assert frames.decode(Frame(data)) == []
        assert (frames.marker_seen, frames.done) == (True, True)


class TestErrors:
    @pytest.mark.parametrize(
        ("value", "error"),
        [
            (
                {"error": {"message": "boom", "type": "server_error", "code": 500}},
                StreamError(kind="server_error", message="boom", code=500),
            ),
            ({"error": "boom"}, StreamError(kind="server_error", message="boom")),
            (
                {"error": "boom", "error_type": "validation"},
                StreamError(kind="validation", message="boom"),
            ),
            (
                {"object": "error", "message": "boom", "type": "BadRequest", "code": 400},
                StreamError(kind="BadRequest", message="boom", code=400),
            ),
            (
                {
                    "object": "error",
                    "message": {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs"}]},
                    "type": "invalid_request_error",
                },
                StreamError(kind="invalid_request_error", message="body.seed: Extra inputs"),
            ),
            (
                {"error": {"message": "boom", "http_status_code": 422}},
                StreamError(kind="server_error", message="boom", http_status=422),
            ),
            ({"error": "boom", "code": "x"}, StreamError(kind="server_error", message="boom", code="x")),
            (
                {
                    "error": {
                        "message": "boom",
                        "code": 502,
                        "metadata": {"error_type": "provider_overloaded"},
                    }
                },
                StreamError(kind="provider_overloaded", message="boom", code=502),
            ),
        ],
    )
    def test_error_frames(self, value: Any, error: StreamError) -> None:
        frames = decoder()
        assert frames.decode(Frame(json.dumps(value))) == []
        assert (frames.error, frames.done, frames.complete) == (error, True, False)

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            ('{"error":{"message":"boom"},"message":"boom"}', "boom"),
            ('{"code":400,"message":"boom"}', "boom"),
            ('"boom"', "boom"),
            ("boom", "boom"),
            ("", ""),
        ],
    )
    def test_frames_named_error(self, data: str, message: str) -> None:
        frames = decoder()
        assert frames.decode(Frame(data, name="error")) == []
        assert frames.error is not None
        assert frames.error.message == message

    def test_an_error_beside_the_last_text(self) -> None:
        frames = decoder()
        said = {**chunk({"content": "a"}), "error": {"message": "boom"}}
        assert frames.decode(Frame(json.dumps(said))) == [TextDelta(text="a")]
        assert frames.error == StreamError(kind="server_error", message="boom")
        assert (frames.done, frames.complete) == (True, False)

    def test_error_null_is_no_error(self) -> None:
        assert events_of({**chunk({"content": "a"}), "error": None}) == [TextDelta(text="a")]

    @pytest.mark.parametrize(
        ("choice", "message"),
        [
            ({"error": {"code": 502, "message": "upstream"}}, "upstream"),
            ({}, 'the answer ended with finish reason "error"'),
        ],
    )
    def test_an_error_as_finish_reason_is_a_failure(self, choice: dict[str, Any], message: str) -> None:
        events = stream(chunk({"content": "a"}), chunk({}, "error", **choice), "[DONE]")
        assert Finish(reason=FinishReason.OTHER, raw_reason="error") in events
        end = end_of(events)
        assert end.status is EndStatus.ERROR
        assert end.error is not None
        assert end.error.message == message
