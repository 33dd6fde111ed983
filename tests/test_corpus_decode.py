"""The corpus of public failures, decoded offline: what was said, how it ended.

What a case expects of the connection, the terminal or the exit code is checked where those are.
"""

from collections.abc import Iterator

import pytest

from llmstream_cli.decode import StreamDecoder
from llmstream_cli.events import EndStatus, Event, StreamEnd, TextDelta
from llmstream_cli.shapes import get_shape
from llmstream_cli.stops import StopEnforcer
from llmstream_cli.turn import Turn
from tests.support.captures import fold, one_by_one
from tests.support.corpus import FINISHED_ALL_THE_SAME, Case, body_of, own_reads
from tests.support.corpus import cases as all_cases

DECODED_HERE = (
    "openai-chat-sse",
    "generic-sse",
    "ollama-ndjson",
    "anthropic-sse",
    "openai-responses-sse",
)
SHAPE_OF_PATH = {
    "/v1/chat/completions": "openai-chat",
    "/api/chat": "ollama-chat",
    "/api/generate": "ollama-generate",
    "/v1/messages": "anthropic",
    "/v1/responses": "openai-responses",
}


def cases() -> dict[str, Case]:
    return {name: case for name, case in all_cases().items() if case["shape"] in DECODED_HERE}


def run(case: Case, reads: Iterator[bytes] | list[bytes]) -> list[Event]:
    repro = case["repro"]
    shape = get_shape(SHAPE_OF_PATH[repro["path"]])
    decoder = StreamDecoder(
        shape.decoder({"stream": True}),
        shape.framing,
        content_type=repro["headers"]["Content-Type"],
        content_encoding=repro["headers"].get("Content-Encoding", ""),
    )
    events = []
    for data in reads:
        events += decoder.feed(data)
        if decoder.ended:
            break
    return events + decoder.close(EndStatus.TIMEOUT if repro["end"] == "hold-open" else EndStatus.INCOMPLETE)


def check(case: Case, turn: Turn) -> None:
    expect = case["repro"]["expect"]
    first = turn.first
    calls = [[call.id or "", call.name, call.arguments_text] for call in first.tool_calls]
    found = {
        "text": first.text,
        "raw_text": first.text,
        "text_written": first.text,
        "text_len": len(first.text),
        "reasoning": first.reasoning,
        "finish": first.finish and first.finish.raw_reason,
        "usage": turn.usage and {"in": turn.usage.prompt_tokens, "out": turn.usage.completion_tokens},
        "tool_calls": calls,
        "tool_calls_incomplete": calls,
        "choices": {
            str(choice.index): [choice.text, choice.finish and choice.finish.raw_reason]
            for choice in turn.choices
        },
    }
    told = {key: expect[key] for key in expect if key in found}
    assert {key: found[key] for key in told} == told
    check_end(case, turn.end)


def check_end(case: Case, end: StreamEnd) -> None:
    expect = case["repro"]["expect"]
    wants_failure = expect.get("exit", "0").startswith("nonzero")
    finished = not wants_failure or case["id"] in FINISHED_ALL_THE_SAME
    assert (end.status is EndStatus.COMPLETE) == finished
    words = expect.get("stderr", "").split(";")[0]
    if words.startswith("contains "):
        assert end.error is not None
        for word in words.removeprefix("contains ").split(" and "):
            assert word in f"{end.error.kind}: {end.error.message}"


@pytest.mark.parametrize("name", cases())
def test_case_as_it_came(name: str) -> None:
    case = cases()[name]
    check(case, fold(run(case, own_reads(case, body_of(case)))))


@pytest.mark.parametrize("name", [name for name in cases() if name != "blank-line-never-comes"])
def test_case_byte_by_byte(name: str) -> None:
    case = cases()[name]
    check(case, fold(run(case, one_by_one(body_of(case)))))


def test_an_event_without_end_names_its_limit() -> None:
    case = cases()["blank-line-never-comes"]
    error = fold(run(case, own_reads(case, body_of(case)))).end.error
    assert error is not None
    assert error.kind == "event_too_large"
    assert "16,777,216 bytes" in error.message


def test_plain_bytes_declared_as_gzip_are_shown() -> None:
    case = cases()["plain-bytes-before-brotli"]
    error = fold(run(case, [body_of(case)])).end.error
    assert error is not None
    assert "not gzip" in error.message
    assert body_of(case)[:4].hex(" ") in error.message


def test_a_finished_answer_on_an_open_connection_is_settled() -> None:
    case = cases()["done-missing-connection-held"]
    shape = get_shape("openai-chat")
    decoder = StreamDecoder(shape.decoder({"stream": True}), shape.framing, content_type="text/event-stream")
    decoder.feed(body_of(case))
    assert decoder.settled
    assert not decoder.ended


def test_a_stop_string_across_deltas_is_cut_here_too() -> None:
    case = cases()["stop-string-across-tokens"]
    turn = fold(StopEnforcer(["END"]).filter(run(case, [body_of(case)])))
    assert turn.first.text == case["repro"]["expect"]["text_with_client_stop_END"]


def test_the_stop_string_that_fired_is_told() -> None:
    case = cases()["cannot-tell-which-stop-fired"]
    finish = fold(run(case, [body_of(case)])).first.finish
    assert finish is not None
    assert finish.stop_sequence == "?"


def test_a_role_is_no_output() -> None:
    case = cases()["role-chunk-counted-as-token"]
    events = run(case, [body_of(case)])
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "three tokens here",
        " and two",
    ]
