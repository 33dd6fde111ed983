"""Output for programs: exactly the object of the contract, one line per event, the bytes as received."""

import json
from typing import Any

import pytest

from llmstream_cli.errors import HttpStatusError
from llmstream_cli.events import (
    EndStatus,
    Event,
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
from llmstream_cli.identity import ServerIdentity
from llmstream_cli.outcome import Outcome
from llmstream_cli.render.base import Renderer
from llmstream_cli.render.console import StandardOutput
from llmstream_cli.render.machine import (
    JsonLinesRenderer,
    JsonRenderer,
    RawRenderer,
    event_object,
    turn_object,
)
from llmstream_cli.render.waiting import WaitingLine
from llmstream_cli.timing import Timing
from tests.render.test_sanitize import unsafe_in
from tests.support.captures import load
from tests.support.outcomes import HELLO, STOPPED, URL, finish, make_outcome, replayed
from tests.support.streams import Kind, streams

NO_USAGE = dict.fromkeys(
    ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "total_tokens")
)
NO_TIMING = dict.fromkeys(
    ("headers_s", "ttft_s", "total_s", "max_gap_s", "tokens_per_s", "prefill_s", "decode_s", "load_s")
)
EMPTY: dict[str, Any] = {
    "schema": "llmstream.turn/1",
    "status": "incomplete",
    "text": "",
    "reasoning": None,
    "refusal": None,
    "tool_calls": [],
    "finish": {"reason": None, "raw": None, "stop_sequence": None},
    "truncated": False,
    "usage": NO_USAGE,
    "timing": NO_TIMING,
    "request": {"profile": None, "shape": "openai-chat", "url": URL, "model": None},
    "server": {"kind": None, "version": None},
    "warnings": [
        {
            "code": "incomplete",
            "message": "Incomplete: the stream ended without a single event. No text came.",
        }
    ],
    "error": None,
}


def line() -> WaitingLine:
    return WaitingLine(enabled=False)


def written(
    monkeypatch: pytest.MonkeyPatch,
    kind: type[JsonRenderer] | type[JsonLinesRenderer] | type[RawRenderer],
    events: list[Event],
    outcome: Outcome,
    *,
    out: Kind = "pipe",
) -> str:
    with streams(monkeypatch, out=out) as both:
        renderer: Renderer = kind(StandardOutput(), line())
        for event in events:
            renderer.event(event)
        renderer.finish(outcome)
        text, err = both.texts()
    assert err == ""
    return text


def test_nothing_known_is_null() -> None:
    assert turn_object(make_outcome(status=EndStatus.INCOMPLETE, marker_seen=False, model=None)) == EMPTY


def test_everything_known() -> None:
    outcome = make_outcome(
        StreamStart(response_id="r1", model="gemma-3-270m", fingerprint="b7000-abc"),
        ReasoningDelta(text="Hm."),
        HELLO,
        RefusalDelta(text="No."),
        ToolCallDelta(call=0, id="c1", name="get_weather", arguments='{"city": "Oslo"}'),
        ToolCallDelta(call=1, name="get_time", arguments='{"zone": "CE'),
        finish(FinishReason.LENGTH, "length"),
        UsageReport(
            usage=Usage(
                prompt_tokens=31, completion_tokens=58, reasoning_tokens=5, cached_tokens=0, total_tokens=89
            )
        ),
        timing=Timing(
            headers_s=0.1,
            first_byte_s=0.15,
            ttft_s=0.2,
            last_output_s=2.0,
            total_s=2.123456,
            max_gap_s=0.3,
            tokens_per_s=39.61234,
            prefill_s=0.05,
            decode_s=1.8,
        ),
        server=ServerIdentity(kind="llama.cpp", version="b7000"),
        profile="local",
        max_tokens=58,
    )
    assert turn_object(outcome) == {
        "schema": "llmstream.turn/1",
        "status": "complete",
        "text": "Hello there!",
        "reasoning": "Hm.",
        "refusal": "No.",
        "tool_calls": [
            {
                "index": 0,
                "id": "c1",
                "name": "get_weather",
                "arguments": {"city": "Oslo"},
                "arguments_text": '{"city": "Oslo"}',
                "valid": True,
            },
            {
                "index": 1,
                "id": None,
                "name": "get_time",
                "arguments": None,
                "arguments_text": '{"zone": "CE',
                "valid": False,
            },
        ],
        "finish": {"reason": "length", "raw": "length", "stop_sequence": None},
        "truncated": True,
        "usage": {
            "prompt_tokens": 31,
            "completion_tokens": 58,
            "reasoning_tokens": 5,
            "cached_tokens": 0,
            "total_tokens": 89,
        },
        "timing": {
            "headers_s": 0.1,
            "ttft_s": 0.2,
            "total_s": 2.1235,
            "max_gap_s": 0.3,
            "tokens_per_s": 39.6123,
            "prefill_s": 0.05,
            "decode_s": 1.8,
            "load_s": None,
        },
        "request": {"profile": "local", "shape": "openai-chat", "url": URL, "model": "gemma-3-270m"},
        "server": {"kind": "llama.cpp", "version": "b7000"},
        "warnings": [
            {
                "code": "truncated",
                "message": "Cut off at 58 tokens (the cap set by -n). The answer is not complete: raise -n.",
            }
        ],
        "error": None,
    }


def test_a_total_is_never_computed() -> None:
    usage = UsageReport(usage=Usage(prompt_tokens=1, completion_tokens=2))
    assert turn_object(make_outcome(HELLO, STOPPED, usage))["usage"]["total_tokens"] is None


@pytest.mark.parametrize("status", EndStatus)
def test_every_status_has_the_name_of_the_contract(status: EndStatus) -> None:
    found = turn_object(make_outcome(HELLO, status=status))["status"]
    assert found in ("complete", "incomplete", "error", "timeout", "cancelled")
    assert found == status


@pytest.mark.parametrize("reason", FinishReason)
def test_every_finish_reason_has_the_name_of_the_contract(reason: FinishReason) -> None:
    found = turn_object(make_outcome(HELLO, finish(reason, "raw", stop_sequence="x")))["finish"]
    names = {"eos", "stop", "stop_sequence", "length", "context", "tool_calls", "content_filter"}
    assert found["reason"] in names | {"refusal", "other"}
    assert found == {"reason": reason.value, "raw": "raw", "stop_sequence": "x"}


def test_an_error() -> None:
    error = StreamError(kind="auth", message="Invalid API key", code="invalid_api_key", http_status=401)
    failure = HttpStatusError("401", url=URL, status=401)
    found = turn_object(make_outcome(status=EndStatus.ERROR, error=error, failure=failure))
    assert found["status"] == "error"
    assert found["error"] == {
        "kind": "auth",
        "message": "Invalid API key",
        "code": "invalid_api_key",
        "http_status": 401,
    }


def test_more_where_there_is_more() -> None:
    outcome = make_outcome(
        HELLO,
        LogprobsDelta(data={"token": "Hello"}),
        finish(FinishReason.STOP_SEQUENCE, "stop", stop_token=7),
        TextDelta(text="Hi", choice=1),
        finish(FinishReason.LENGTH, "length", choice=1),
    )
    found = turn_object(outcome)
    assert found["finish"]["stop_token"] == 7
    assert found["logprobs"] == [{"token": "Hello"}]
    assert [(choice["index"], choice["text"]) for choice in found["choices"]] == [
        (0, "Hello there!"),
        (1, "Hi"),
    ]
    assert found["truncated"] is True


@pytest.mark.parametrize(
    ("event", "value"),
    [
        (HELLO, {"type": "text", "text": "Hello there!"}),
        (TextDelta(text="b", choice=1), {"type": "text", "text": "b", "choice": 1}),
        (ReasoningDelta(text="r"), {"type": "reasoning", "text": "r"}),
        (RefusalDelta(text="r"), {"type": "refusal", "text": "r"}),
        (
            ToolCallDelta(call=0, id="c", name="f", arguments="{"),
            {"type": "tool_call", "index": 0, "id": "c", "name": "f", "arguments": "{"},
        ),
        (LogprobsDelta(data=[1]), {"type": "logprobs", "data": [1]}),
        (STOPPED, {"type": "finish", "reason": "stop", "raw": "stop", "stop_sequence": None}),
        (UsageReport(usage=Usage(prompt_tokens=3)), {"type": "usage", **NO_USAGE, "prompt_tokens": 3}),
        (KeepAlive(comment="ping"), {"type": "keepalive", "comment": "ping"}),
        (StreamStart(model="m"), {"type": "start", "id": None, "model": "m", "fingerprint": None}),
        (
            PrefillProgress(processed_tokens=1, total_tokens=2),
            {"type": "prefill", "processed_tokens": 1, "total_tokens": 2, "cached_tokens": None},
        ),
        (
            TimingsReport(timings=ServerTimings(decode_s=1.5)),
            {"type": "timings", "load_s": None, "prefill_s": None, "decode_s": 1.5},
        ),
        (ServerDetail(data={"a": 1}), {"type": "detail", "data": {"a": 1}}),
        (
            UnknownFrame(name="x", data="{", readable=False, cut=True),
            {"type": "unknown", "name": "x", "data": "{", "readable": False, "cut": True},
        ),
        (StreamEnd(status=EndStatus.COMPLETE, marker_seen=True, offset=0), None),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_every_event_as_a_line(event: Event, value: dict[str, Any] | None) -> None:
    assert event_object(event) == value


def test_json_is_one_line_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = make_outcome(HELLO, STOPPED)
    with streams(monkeypatch) as both:
        renderer = JsonRenderer(StandardOutput(), line())
        renderer.event(HELLO)
        renderer.raw(b"data: x")
        both.out.file.write("|")
        both.out.file.flush()
        renderer.finish(outcome)
        out, err = both.texts()
    assert (out[0], err) == ("|", "")
    assert out.count("\n") == 1
    assert json.loads(out[1:]) == turn_object(outcome)


def test_json_lines_come_one_by_one_and_end_with_the_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = make_outcome(ReasoningDelta(text="Hm."), HELLO, STOPPED)
    with streams(monkeypatch) as both:
        renderer = JsonLinesRenderer(StandardOutput(), line())
        renderer.event(ReasoningDelta(text="Hm."))
        assert both.out.read() == b'{"type": "reasoning", "text": "Hm."}\n'
        renderer.event(HELLO)
        assert both.out.read() == b'{"type": "text", "text": "Hello there!"}\n'
        renderer.event(outcome.turn.end)
        renderer.finish(outcome)
        out, err = both.texts()
    assert (out.count("\n"), err) == (1, "")
    wanted = {"type": "end", **turn_object(outcome)}
    del wanted["text"], wanted["reasoning"]
    assert json.loads(out) == wanted


def test_a_recording_as_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch) as both:
        outcome = replayed("vllm/chat_reasoning_stream", JsonLinesRenderer(StandardOutput(), line()))
        out, _ = both.texts()
    *events, end = map(json.loads, out.splitlines())
    assert "".join(event["text"] for event in events if event["type"] == "text") == outcome.turn.first.text
    thoughts = "".join(event["text"] for event in events if event["type"] == "reasoning")
    assert thoughts == outcome.turn.first.reasoning
    assert [event["type"] for event in events].count("finish") == 1
    assert (end["type"], end["status"]) == ("end", "complete")
    assert end["tool_calls"] == turn_object(outcome)["tool_calls"]


def test_raw_is_what_was_received(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = load("vllm/chat_multibyte_ids_stream")
    with streams(monkeypatch) as both:
        replayed(capture.name, RawRenderer(StandardOutput(), line()))
        assert both.out.rest() == capture.body


def test_after_the_reader_has_gone_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = make_outcome(HELLO, status=EndStatus.CANCELLED, reader_gone=True)
    assert written(monkeypatch, JsonLinesRenderer, [], outcome) == ""


@pytest.mark.parametrize("out", ["pipe", "terminal"])
def test_json_never_drives_a_terminal_and_keeps_its_value(monkeypatch: pytest.MonkeyPatch, out: Kind) -> None:
    hostile = TextDelta(text="\x1b]0;x\x07\x9b2J\x7f\u202e\u2028 é👩‍👧\ud800")
    outcome = make_outcome(hostile, STOPPED)
    text = written(monkeypatch, JsonRenderer, [], outcome, out=out)
    assert unsafe_in(text) == set()
    assert "é👩‍👧" in text
    assert json.loads(text)["text"] == hostile.text
    text = written(monkeypatch, JsonLinesRenderer, [hostile], outcome, out=out)
    assert unsafe_in(text) == set()
    assert json.loads(text.splitlines()[0])["text"] == hostile.text


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def test_what_json_cannot_express_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    call = ToolCallDelta(call=0, name="f", arguments='{"a": 1e999, "b": [NaN, 1.5], "c": -Infinity}')
    event = LogprobsDelta(data={"logprob": float("-inf"), "rank": 1})
    text = written(monkeypatch, JsonLinesRenderer, [event], make_outcome(call, STOPPED))
    logprobs, end = (json.loads(line, parse_constant=refuse) for line in text.splitlines())
    assert logprobs["data"] == {"logprob": None, "rank": 1}
    assert end["tool_calls"][0]["arguments"] == {"a": None, "b": [None, 1.5], "c": None}


@pytest.mark.parametrize("depth", [90, 500, 900, 940, 980, 990, 5000, 20_000])
def test_no_nesting_is_too_deep(monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    arguments = "[" * depth + "]" * depth
    call = ToolCallDelta(call=0, name="f", arguments=arguments)
    text = written(monkeypatch, JsonRenderer, [], make_outcome(call, STOPPED))
    assert json.loads(text)["tool_calls"][0]["arguments_text"] == arguments
