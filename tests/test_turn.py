"""Events to a turn: what is appended, what replaces, what is never made up."""

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
    StreamStart,
    TextDelta,
    TimingsReport,
    ToolCallDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.turn import ToolCall, Turn, TurnBuilder

END = StreamEnd(status=EndStatus.COMPLETE, marker_seen=True, offset=9)


def turn(*events: Event) -> Turn:
    builder = TurnBuilder()
    for event in (*events, END):
        builder.add(event)
    return builder.turn()


def test_an_empty_answer_is_one_empty_choice() -> None:
    empty = turn()
    assert empty.first.text == ""
    assert empty.first.reasoning is None
    assert empty.first.refusal is None
    assert empty.first.finish is None
    assert empty.usage is None
    assert empty.end == END
    assert not empty.truncated


def test_a_turn_needs_its_end() -> None:
    builder = TurnBuilder()
    builder.add(TextDelta(text="a"))
    with pytest.raises(RuntimeError, match="has not ended"):
        builder.turn()


def test_deltas_are_appended_choice_by_choice() -> None:
    said = turn(
        TextDelta(text="B", choice=1),
        ReasoningDelta(text="hm"),
        TextDelta(text="a"),
        TextDelta(text="1", choice=1),
        RefusalDelta(text="no", choice=1),
        TextDelta(text="b"),
        LogprobsDelta(data=[1]),
        LogprobsDelta(data=[2]),
    )
    first, second = said.choices
    assert (first.index, first.text, first.reasoning, first.refusal) == (0, "ab", "hm", None)
    assert (second.index, second.text, second.reasoning, second.refusal) == (1, "B1", None, "no")
    assert first.logprobs == ([1], [2])


def test_the_last_finish_reason_of_a_choice_wins() -> None:
    said = turn(
        Finish(reason=FinishReason.STOP, raw_reason="stop"),
        Finish(reason=FinishReason.LENGTH, raw_reason="length"),
    )
    assert said.first.finish is not None
    assert said.first.finish.raw_reason == "length"
    assert said.truncated


@pytest.mark.parametrize(
    ("reason", "truncated"),
    [(FinishReason.CONTEXT, True), (FinishReason.LENGTH, True), (FinishReason.EOS, False)],
)
def test_truncated_by_any_choice(reason: FinishReason, truncated: bool) -> None:
    said = turn(Finish(reason=FinishReason.STOP), Finish(reason=reason, choice=1))
    assert said.truncated is truncated


def test_tool_calls_are_joined_and_parsed_once_at_the_end() -> None:
    said = turn(
        ToolCallDelta(call=1, id="b", name="add", arguments=""),
        ToolCallDelta(call=0, id="a", name="wea", arguments=""),
        ToolCallDelta(call=0, name="ther", arguments='{"city":'),
        ToolCallDelta(call=0, arguments='"Ulm"}'),
        ToolCallDelta(call=1, arguments='{"a": 1, "b'),
    )
    assert said.first.tool_calls == (
        ToolCall(
            index=0,
            id="a",
            name="weather",
            arguments={"city": "Ulm"},
            arguments_text='{"city":"Ulm"}',
            valid=True,
        ),
        ToolCall(index=1, id="b", name="add", arguments=None, arguments_text='{"a": 1, "b', valid=False),
    )


@pytest.mark.parametrize("arguments", ["", "  \n"])
def test_a_call_without_arguments_has_empty_ones(arguments: str) -> None:
    (call,) = turn(ToolCallDelta(call=0, name="now", arguments=arguments)).first.tool_calls
    assert (call.arguments, call.arguments_text, call.valid) == ({}, arguments, True)


def test_deeply_nested_arguments_are_invalid_not_a_crash() -> None:
    (call,) = turn(ToolCallDelta(call=0, name="deep", arguments="[" * 100_000)).first.tool_calls
    assert not call.valid


def test_usage_replaces_what_it_reports_and_never_adds() -> None:
    said = turn(
        UsageReport(usage=Usage(prompt_tokens=7, completion_tokens=1, raw={"a": 1, "b": 1})),
        UsageReport(usage=Usage(completion_tokens=5, cached_tokens=3, raw={"b": 2})),
    )
    assert said.usage == Usage(prompt_tokens=7, completion_tokens=5, cached_tokens=3, raw={"a": 1, "b": 2})
    assert said.usage.total_tokens is None


def test_facts_about_the_answer_are_kept() -> None:
    builder = TurnBuilder()
    start = StreamStart(response_id="1", model="m")
    timings = ServerTimings(prefill_s=0.5)
    progress = PrefillProgress(processed_tokens=1, total_tokens=2)
    for event in (
        StreamStart(response_id="1"),
        start,
        progress,
        TimingsReport(timings=timings),
        ServerDetail(data={"a": 1}),
        ServerDetail(data={"b": 2}),
        UnknownFrame(name=None, data="{}"),
        UnknownFrame(name=None, data="{", readable=False),
        KeepAlive(),
        END,
    ):
        builder.add(event)
    said = builder.turn()
    assert (said.start, said.timings, said.detail) == (start, timings, {"a": 1, "b": 2})
    assert builder.prefill == progress
    assert (said.events, said.keep_alives, said.unreadable) == (6, 1, 1)
