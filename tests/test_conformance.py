"""Every recording, through every way of cutting it, against what it is known to contain."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from llmstream_cli.events import EndStatus, Event, KeepAlive, StreamEnd, UnknownFrame
from llmstream_cli.fields import compact
from llmstream_cli.shapes import get_shape
from llmstream_cli.turn import Turn
from tests.support.captures import (
    Capture,
    cut_points,
    decode,
    expected,
    fold,
    load,
    names,
    one_by_one,
    partition,
)

HTTP_ERRORS = [name for name in names() if expected()[name]["outcome"] == "http-error"]
ANSWERS = [name for name in names() if name not in HTTP_ERRORS]
EVENT_STREAMS = [name for name in ANSWERS if load(name).content_type.startswith("text/event-stream")]

STATUS_OF_OUTCOME = {
    "complete": EndStatus.COMPLETE,
    "incomplete": EndStatus.INCOMPLETE,
    "no response": EndStatus.INCOMPLETE,
    "error": EndStatus.ERROR,
    "client-abort": EndStatus.CANCELLED,
}


def with_compact_arguments(name: str) -> dict[str, Any]:
    def compacted(call: dict[str, Any]) -> dict[str, Any]:
        return {**call, "arguments": compact(json.loads(call["arguments"]))}

    choices = expected()[name]["choices"]
    return {"choices": [{**choice, "tools": list(map(compacted, choice["tools"]))} for choice in choices]}


ARGUMENTS_ARE_AN_OBJECT = "the arguments came as an object, not as text, so that the spaces in them are ours"
ONE_REPORT_PER_CHOICE = "each of the two reports counts one choice, so that the answer cost their sum"
OTHER_OPINION: dict[str, tuple[dict[str, Any], str]] = {
    "llama.cpp/chat_n2_stream": ({"usage": {"prompt": 25, "completion": 8}}, ONE_REPORT_PER_CHOICE),
    "llama.cpp/cmpl_n2_stream": ({"usage": {"prompt": 3, "completion": 8}}, ONE_REPORT_PER_CHOICE),
    **{
        name: (with_compact_arguments(name), ARGUMENTS_ARE_AN_OBJECT)
        for name in ("llama.cpp/messages_tool", "vllm/messages_tool")
    },
}
"""Where the expectation is not ours: what we say instead, and why."""


def answer(capture: Capture, pieces: Iterable[bytes]) -> list[Event]:
    assert capture.shape_name is not None
    aborted = capture.end == "client-abort"
    return decode(
        list(pieces),
        shape=capture.shape_name,
        body=capture.request_body,
        content_type=capture.content_type,
        status=EndStatus.CANCELLED if aborted else EndStatus.INCOMPLETE,
    )


def wanted(name: str) -> dict[str, Any]:
    change, _ = OTHER_OPINION.get(name, ({}, ""))
    return {**expected()[name], **change}


def end_of(events: list[Event]) -> StreamEnd:
    ends = [event for event in events if isinstance(event, StreamEnd)]
    assert len(ends) == 1
    assert events[-1] is ends[0]
    return ends[0]


def what_was_said(turn: Turn) -> list[tuple[object, ...]]:
    return [
        (
            choice.index,
            choice.text,
            choice.reasoning or "",
            [(call.name, call.arguments_text) for call in choice.tool_calls],
            choice.finish.raw_reason if choice.finish else None,
            stop_of(turn, choice.index),
        )
        for choice in turn.choices
    ]


def stop_of(turn: Turn, index: int) -> str | int | None:
    finish = next(choice.finish for choice in turn.choices if choice.index == index)
    if finish is None:
        return None
    return finish.stop_token if finish.stop_sequence is None else finish.stop_sequence


@pytest.mark.parametrize("name", ANSWERS)
def test_says_what_the_recording_holds(name: str) -> None:
    capture, want = load(name), wanted(name)
    events = answer(capture, [data for _, data in capture.reads])
    turn = fold(events)

    assert end_of(events).status == STATUS_OF_OUTCOME[want["outcome"]]
    assert turn.keep_alives == want["comments"]
    assert what_was_said(turn) == [
        (
            choice["index"],
            choice["text"],
            choice["reasoning"],
            [(call["name"], call["arguments"]) for call in choice["tools"]],
            choice["finish"],
            choice["stop"],
        )
        for choice in want["choices"] or [{**NOTHING_SAID}]
    ]
    usage = turn.usage
    counts = usage and {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens}
    assert counts == want["usage"]


NOTHING_SAID = {"index": 0, "text": "", "reasoning": "", "tools": [], "finish": None, "stop": None}


@pytest.mark.parametrize("name", [name for name in ANSWERS if expected()[name]["outcome"] == "complete"])
def test_a_complete_answer_leaves_nothing_unread(name: str) -> None:
    capture, want = load(name), wanted(name)
    events = answer(capture, [capture.body])
    assert [event for event in events if isinstance(event, UnknownFrame)] == []
    assert capture.shape_name is not None
    terminal_marker = get_shape(capture.shape_name).terminal_marker
    if terminal_marker is not None:
        # The expectation counts only [DONE].
        marker = terminal_marker != "[DONE]" or want["done_marker"]
        assert end_of(events).marker_seen == (marker if want["stream"] else None)


@pytest.mark.parametrize("name", [name for name in ANSWERS if expected()[name]["outcome"] == "error"])
def test_an_error_keeps_the_servers_words(name: str) -> None:
    capture = load(name)
    error = end_of(answer(capture, [capture.body])).error
    told = json.loads(expected()[name]["error"])
    assert error is not None
    assert (error.message, error.kind, error.code) == (told["message"], told["type"], told["code"])


@pytest.mark.parametrize("name", HTTP_ERRORS)
def test_an_http_error_body_is_explained(name: str) -> None:
    capture = load(name)
    assert capture.shape_name is not None
    assert capture.status is not None
    error = get_shape(capture.shape_name).read_error(capture.status, capture.body, capture.content_type)
    assert error.http_status == capture.status
    assert error.message == message_in(json.loads(capture.body))


def message_in(body: Any) -> str:
    """The forms that these bodies have."""
    error = body.get("error", body.get("detail"))
    if isinstance(error, list):
        return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error)
    return str(error if isinstance(error, str) else error["message"])


@pytest.mark.parametrize("name", ANSWERS)
def test_the_borders_of_reads_mean_nothing(name: str) -> None:
    capture = load(name)
    whole = answer(capture, [capture.body])
    assert answer(capture, one_by_one(capture.body)) == whole
    for seed in "abc":
        assert answer(capture, partition(capture.body, seed)) == whole
    for at in cut_points(capture.body, every_below=700, sample=12):
        assert answer(capture, [capture.body[:at], capture.body[at:]]) == whole, at


@pytest.mark.parametrize("name", EVENT_STREAMS)
@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"], ids=["crlf", "cr"])
def test_all_line_ends_are_equal(name: str, line_end: bytes) -> None:
    capture = load(name)
    whole = answer(capture, [capture.body])
    rewritten = capture.body.replace(b"\n", line_end)
    for pieces in ([rewritten], one_by_one(rewritten), partition(rewritten, "lines")):
        events = answer(capture, pieces)
        # The byte offset is the only thing that may differ.
        assert [*events[:-1], replace(end_of(events), offset=0)] == [
            *whole[:-1],
            replace(end_of(whole), offset=0),
        ]


@pytest.mark.parametrize("name", ANSWERS)
def test_cut_short_is_a_prefix_and_never_complete_early(name: str) -> None:
    capture = load(name)
    whole = answer(capture, [capture.body])
    all_said = what_was_said(fold(whole))
    for at in cut_points(capture.body, every_below=700, sample=16):
        events = answer(capture, [capture.body[:at]])
        end = end_of(events)
        said = events[:-1]
        if said != whole[: len(said)]:
            # The last frame was cut, and is told as such.
            assert isinstance(said.pop(), UnknownFrame | KeepAlive), at
        assert said == whole[: len(said)], at
        if end.status is EndStatus.COMPLETE:
            assert end_of(whole).status is EndStatus.COMPLETE, at
            assert what_was_said(fold(events)) == all_said, at
