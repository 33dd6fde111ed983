"""One turn, end to end: recordings replayed, real sockets asked; status, exit code and warnings of each."""

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmstream_cli.capture import Capture, CaptureWriter, read_capture
from llmstream_cli.errors import ExitCode, HttpStatusError
from llmstream_cli.events import EndStatus, Event, FinishReason, TextDelta
from llmstream_cli.notices import notices
from llmstream_cli.outcome import Outcome
from llmstream_cli.request import Message, Request, Sampling
from llmstream_cli.session import Plan, ask, live, replay
from llmstream_cli.shapes import get_shape
from llmstream_cli.stops import LocalStop
from llmstream_cli.transport import Target, Timeouts
from tests.support.outcomes import SilentRenderer, replayed
from tests.support.transport import CtrlC
from tests.support.wire_server import NO_ANSWER, Reply, WireServer, Write, json_reply


def codes(outcome: Outcome) -> list[str]:
    return [notice.code for notice in notices(outcome)]


def sse(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def text(content: str, choice: int = 0) -> bytes:
    return sse({"choices": [{"index": choice, "delta": {"content": content}, "finish_reason": None}]})


def finish(reason: str, choice: int = 0) -> bytes:
    return sse({"choices": [{"index": choice, "delta": {}, "finish_reason": reason}]})


DONE = b"data: [DONE]\n\n"
ANSWER = [text("Hello"), text(" there!"), finish("stop"), DONE]


# Recordings

RECORDINGS: dict[str, tuple[str, int, list[str]]] = {
    # natural end, stop string, cap, context
    "vllm/chat_eos_stream": ("complete", 0, []),
    "llama.cpp/native_eos": ("complete", 0, []),
    "vllm/chat_stop_string_stream": ("complete", 0, []),
    "vllm/chat_stop_string_included_stream": ("complete", 0, []),
    "vllm/chat_length_stream": ("complete", 0, ["truncated"]),
    "llama.cpp/native_limit_stream": ("complete", 0, ["truncated"]),
    "llama.cpp/ctx_full_native_stream": ("complete", 0, ["context_exhausted"]),
    # tools, reasoning, nothing at all
    "llama.cpp/tiny_chat_tool_stream": ("complete", 0, []),
    "vllm/chat_tool_cut_stream": ("complete", 0, ["truncated"]),
    "vllm/chat_reasoning_stream": ("complete", 0, []),
    "vllm/chat_reasoning_cut_stream": ("complete", 0, ["truncated", "budget_spent_on_reasoning"]),
    "llama.cpp-2024/native_empty_stream": ("complete", 0, ["empty_answer"]),
    # servers that break their own rules
    "llama.cpp-2024/chat_eos_stream": ("complete", 0, ["no_terminal_marker"]),
    "vllm/chat_min_tokens_stop_stream": ("complete", 0, ["stop_ignored"]),
    "vllm/chat_special_shown_stream": ("complete", 0, ["control_tokens"]),
    # errors inside the stream
    "llama.cpp/error_midstream_native_stream": ("error", 9, []),
    "vllm/engine_killed_stream": ("error", 9, []),
    "vllm/err_bad_schema": ("error", 9, []),
    # broken off
    "vllm/killed_chat_stream": ("incomplete", 8, ["incomplete"]),
    "llama.cpp/killed_native_stream": ("incomplete", 8, ["incomplete"]),
    "llama.cpp/killed_nonstream": ("incomplete", 8, ["incomplete"]),
    "llama-cpp-python/err_ctx_overflow_stream": ("incomplete", 8, ["incomplete"]),
    "llama-cpp-python/interrupted_stream": ("incomplete", 8, ["incomplete"]),
    "vllm/abort_fin_stream": ("cancelled", 130, []),
    "llama.cpp/abort_prefill_quiet_stream": ("cancelled", 130, []),
    # no stream at all
    "vllm/err_unknown_model": ("error", 4, []),
    "llama-cpp-python/auth_wrong": ("error", 4, []),
    "llama.cpp/loading_503_completion": ("error", 5, []),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_recording(name: str) -> None:
    outcome = replayed(name)
    status, code, warnings = RECORDINGS[name]
    assert (outcome.status, outcome.exit_code(), codes(outcome)) == (status, code, warnings)


def test_a_renderer_gets_every_event_and_the_outcome_once() -> None:
    renderer = SilentRenderer()
    outcome = replayed("vllm/chat_length_stream", renderer)
    assert renderer.outcomes == [outcome]
    assert [event for event in renderer.events if isinstance(event, TextDelta)]
    assert renderer.events[-1] == outcome.turn.end
    assert outcome.exit_code(fail_on_truncation=True) is ExitCode.TRUNCATED


def test_what_was_asked_is_read_from_the_recorded_request() -> None:
    asked = replayed("vllm/chat_stop_string_stream").asked
    assert (asked.shape, asked.model, asked.url) == ("openai-chat", "tiny-llama", "/v1/chat/completions")
    assert asked.sampling.stop == ("zzz", " four")
    assert asked.terminal_marker == "[DONE]"
    assert replayed("vllm/chat_stop_string").asked.terminal_marker is None
    assert replayed("vllm/chat_length_stream").asked.sampling.max_tokens == 4
    assert replayed("llama.cpp/native_limit_stream").asked.sampling.max_tokens is not None


def test_recorded_times_are_kept() -> None:
    timing = replayed("vllm/killed_chat_stream").timing
    assert timing.ttft_s is not None
    assert timing.total_s is not None
    assert 0 < timing.ttft_s < timing.total_s


def test_a_recorded_http_error_keeps_the_servers_words() -> None:
    outcome = replayed("vllm/err_unknown_model")
    assert outcome.turn.end.error is not None
    assert "no-such-model" in outcome.turn.end.error.message
    assert isinstance(outcome.failure, HttpStatusError)
    assert outcome.failure.status == outcome.turn.end.error.http_status == 404


# Recordings made for one question


def recording(
    *reads: bytes,
    end: str | None = "chunked-end",
    status: int | None = 200,
    content_type: str = "text/event-stream",
    **body: Any,
) -> Capture:
    return Capture(
        request={"path": "/v1/chat/completions?key=abc", "body": {"stream": True, **body}},
        status=status,
        headers=(("content-type", content_type),),
        reads=tuple((index / 10, data) for index, data in enumerate(reads, 1)),
        end=end,
        end_s=9.0,
    )


def play(capture: Capture, *stops: str, shape: str = "openai-chat") -> Outcome:
    return replay(capture, get_shape(shape), SilentRenderer(), stops=stops)


def test_secrets_of_a_recorded_url_are_not_shown() -> None:
    assert play(recording(*ANSWER)).asked.url == "/v1/chat/completions?key=***"


@pytest.mark.parametrize(
    ("end", "status", "kind", "code"),
    [
        ("chunked-end", "incomplete", None, 8),
        (None, "incomplete", None, 8),
        ("eof", "incomplete", "connection_closed", 8),
        ("reset", "incomplete", "connection_reset", 8),
        ("timeout", "timeout", "timeout", 7),
        ("client-abort", "cancelled", None, 130),
    ],
)
def test_how_a_recording_ended(end: str | None, status: str, kind: str | None, code: int) -> None:
    outcome = play(recording(text("Hel"), end=end))
    error = outcome.turn.end.error
    assert (outcome.status, error.kind if error else None, outcome.exit_code()) == (status, kind, code)
    assert play(recording(*ANSWER, end=end)).status is EndStatus.COMPLETE


def test_an_http_error_without_a_body_still_says_something() -> None:
    outcome = play(recording(status=401, content_type=""))
    assert outcome.exit_code() == 4
    assert outcome.turn.end.error is not None
    assert outcome.turn.end.error.message == "HTTP status 401"


def test_a_recorded_cap_of_minus_one_is_none() -> None:
    assert play(recording(*ANSWER, max_tokens=-1)).asked.sampling.max_tokens is None
    assert play(recording(*ANSWER, max_tokens="many", stop=["", 5, "x"])).asked.sampling == Sampling(
        stop=("x",)
    )


# Stop strings


def test_a_stop_string_over_several_deltas() -> None:
    outcome = play(recording(text("one\nUs"), text("e"), text("r: two"), *ANSWER), "\nUser:")
    assert outcome.turn.first.text == "one"
    assert outcome.local_stop == LocalStop(stop="\nUser:", server_went_on=True)
    assert codes(outcome) == ["stop_enforced_locally"]
    found = outcome.turn.first.finish
    assert found is not None
    assert (found.reason, found.stop_sequence) == (FinishReason.STOP_SEQUENCE, "\nUser:")
    assert (outcome.status, outcome.exit_code()) == ("complete", 0)


@pytest.mark.parametrize("end", [[finish("stop"), DONE], [finish("length"), DONE], []])
def test_what_was_held_back_comes_out_at_the_end(end: list[bytes]) -> None:
    outcome = play(recording(text("one\nUs"), *end), "\nUser:")
    assert outcome.turn.first.text == "one\nUs"
    assert outcome.local_stop is None
    assert outcome.status is (EndStatus.COMPLETE if end else EndStatus.INCOMPLETE)


@pytest.mark.parametrize("end", ["client-abort", "eof", "reset", "timeout", "chunked-end"])
def test_cut_at_a_stop_string_is_complete_however_the_connection_ended(end: str) -> None:
    outcome = play(recording(text("one END"), end=end), "END")
    assert (outcome.status, outcome.turn.end.error, codes(outcome)) == ("complete", None, [])
    outcome = play(recording(text("one E"), text("ND")[:-1], end=end), "END")
    assert (outcome.status, outcome.turn.first.text) == ("complete", "one ")


def test_an_error_after_the_stop_string_is_still_told() -> None:
    outcome = play(recording(text("one END"), sse({"error": {"message": "boom"}})), "END")
    assert (outcome.status, outcome.exit_code()) == ("error", 9)


def test_reads_after_the_server_went_on_are_not_taken() -> None:
    outcome = play(recording(text("one END two"), text("three"), text("four"), *ANSWER), "END")
    assert outcome.turn.first.text == "one "
    assert outcome.timing.total_s == 0.2


def test_vllm_that_leaves_the_stop_string_in_the_text() -> None:
    assert replayed("vllm/chat_stop_string_included_stream").turn.first.text == "one two three four"
    outcome = replayed("vllm/chat_stop_string_included_stream", stops=(" four",))
    assert outcome.turn.first.text == "one two three"
    assert outcome.local_stop == LocalStop(stop=" four", server_went_on=False)
    assert codes(outcome) == []


def test_tgi_that_leaves_the_stop_string_in_the_text() -> None:
    def token(content: str, **more: Any) -> bytes:
        frame = {"index": 1, "token": {"id": 5, "text": content, "special": False}, "generated_text": None}
        return sse({**frame, "details": None, **more})

    last = {"finish_reason": "stop_sequence", "generated_tokens": 3, "input_length": 7, "seed": None}
    capture = recording(token("one"), token("\nUser"), token(":", generated_text="one\nUser:", details=last))
    outcome = play(capture, "\nUser:", shape="tgi")
    assert outcome.turn.first.text == "one"
    assert outcome.local_stop == LocalStop(stop="\nUser:", server_went_on=False)
    assert (outcome.status, codes(outcome)) == ("complete", [])


def test_every_choice_is_cut_at_its_own_stop() -> None:
    reads = [
        text("a END x"),
        text("b", 1),
        text("y"),
        text(" END", 1),
        text(" and on", 1),
        finish("length", 0),
    ]
    outcome = play(recording(*reads, finish("length", 1), DONE, n=2), "END")
    assert [choice.text for choice in outcome.turn.choices] == ["a ", "b "]
    reasons = [choice.finish.reason for choice in outcome.turn.choices if choice.finish]
    assert reasons == [FinishReason.STOP_SEQUENCE] * 2
    assert not outcome.turn.truncated


def test_one_choice_stops_and_the_other_ends_by_itself() -> None:
    reads = [text("a END"), text("b", 1), finish("stop", 1), text(" and on"), text(" and on"), DONE]
    outcome = play(recording(*reads, n=2), "END")
    assert [choice.text for choice in outcome.turn.choices] == ["a ", "b"]
    assert outcome.status is EndStatus.COMPLETE
    assert codes(outcome) == ["stop_enforced_locally"]


def test_a_recording_that_was_cut_at_its_stop_string_is_not_called_stopped_by_the_user() -> None:
    cut = recording(text("one END two"), end="client-abort", stop=["END"])
    outcome = play(cut)
    assert (outcome.status, outcome.turn.first.text) == ("complete", "one ")
    whole = recording(text("one END two"), finish("stop"), DONE, stop="END")
    outcome = play(whole)
    assert (outcome.turn.first.text, codes(outcome)) == ("one END two", ["stop_ignored"])


# Real sockets


def make_plan(base_url: str, **changes: Any) -> Plan:
    sampling = Sampling(stop=changes.pop("stop", ()))
    request = Request(
        messages=(Message(role="user", content="Hi"),),
        model="m",
        sampling=sampling,
        usage=changes.pop("usage", False),
    )
    plan = Plan(
        target=Target(base_url=base_url, secrets=("sk-0123456789",)),
        timeouts=Timeouts(),
        shape=get_shape("openai-chat"),
        request=request,
        retries=0,
    )
    return replace(plan, **changes)


def asked(reply: Reply, **changes: Any) -> Outcome:
    with WireServer(reply) as server:
        return ask(make_plan(server.base_url, **changes), SilentRenderer())


def test_ask() -> None:
    with WireServer(Reply(writes=ANSWER)) as server:
        outcome = ask(make_plan(server.base_url, profile="p"), SilentRenderer())
        assert len(server.requests) == 1
        assert server.requests[0].json()["messages"] == [{"role": "user", "content": "Hi"}]
    assert (outcome.status, outcome.turn.first.text, codes(outcome)) == ("complete", "Hello there!", [])
    assert outcome.asked.url == f"{server.base_url}/v1/chat/completions"
    assert (outcome.asked.profile, outcome.asked.model, outcome.failure) == ("p", "m", None)
    times = outcome.timing
    assert times.headers_s is not None
    assert times.ttft_s is not None
    assert times.total_s is not None
    assert 0 < times.headers_s <= times.ttft_s <= times.total_s


def test_missing_usage_is_told_where_it_was_asked_for() -> None:
    assert codes(asked(Reply(writes=ANSWER), usage=True)) == ["usage_missing"]


def test_a_server_that_goes_on_is_cut_off() -> None:
    with WireServer(Reply(writes=[text("one E"), text("ND two"), text(" three")], end="hold")) as server:
        outcome = ask(make_plan(server.base_url, stop=("END",)), SilentRenderer())
        server.requests[0].wait_closed()
    assert (outcome.turn.first.text, codes(outcome)) == ("one ", ["stop_enforced_locally"])
    assert outcome.exit_code() is ExitCode.OK


def test_a_server_that_stops_too_is_given_the_time_to_say_so() -> None:
    gate = threading.Event()
    threading.Timer(0.05, gate.set).start()
    outcome = asked(Reply(writes=[text("one END"), gate, finish("stop"), DONE]), stop=("END",))
    assert (outcome.turn.first.text, codes(outcome)) == ("one ", [])
    assert outcome.turn.end.marker_seen is True


def test_a_server_that_falls_silent_after_the_stop_string_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "STOP_GRACE_S", 0.02)
    outcome = asked(Reply(writes=[text("one END")], end="hold"), stop=("END",))
    assert (outcome.status, outcome.turn.first.text, codes(outcome)) == ("complete", "one ", [])


def test_stop_strings_need_not_be_enforced() -> None:
    outcome = asked(
        Reply(writes=[text("one END two"), finish("stop"), DONE]), stop=("END",), enforce_stop=False
    )
    assert (outcome.turn.first.text, codes(outcome)) == ("one END two", ["stop_ignored"])


def test_a_marker_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MARKER_GRACE_S", 0.02)
    outcome = asked(Reply(writes=[text("Hi"), finish("stop")], end="hold"))
    assert (outcome.status, codes(outcome)) == ("complete", ["no_terminal_marker"])


def test_nothing_is_waited_for_after_the_marker() -> None:
    began_s = time.monotonic()
    outcome = asked(Reply(writes=ANSWER, end="hold"))
    assert outcome.status is EndStatus.COMPLETE
    assert time.monotonic() - began_s < live.MARKER_GRACE_S


@pytest.mark.parametrize(
    ("reply", "status", "code", "kind"),
    [
        (Reply(writes=[text("Hel")]), "incomplete", 8, None),
        (Reply(writes=[text("Hel")], end="truncate"), "incomplete", 8, "connection_closed"),
        (Reply(writes=[text("Hel")], end="reset"), "incomplete", 8, "connection_reset"),
        (Reply(), "incomplete", 8, None),
        (NO_ANSWER, "incomplete", 8, "connection_closed"),
        (Reply(writes=[sse({"error": {"message": "boom", "type": "bad"}})]), "error", 9, "bad"),
        (json_reply({"error": {"message": "no", "type": "auth"}}, status=401), "error", 4, "auth"),
        (json_reply({"detail": "down"}, status=500), "error", 5, "server_error"),
    ],
    ids=["no-finish", "cut", "reset", "empty", "no-answer", "error", "401", "500"],
)
def test_bad_endings(reply: Reply, status: str, code: int, kind: str | None) -> None:
    outcome = asked(reply)
    error = outcome.turn.end.error
    assert (outcome.status, outcome.exit_code(), error.kind if error else None) == (status, code, kind)
    assert outcome.timing.total_s is not None


@pytest.mark.parametrize(
    ("writes", "limits", "kind"),
    [
        ([], {"first_token_s": 0.05}, "timeout_first_token"),
        ([text("Hel")], {"idle_s": 0.05}, "timeout_idle"),
        ([text("Hel")], {"total_s": 0.1}, "timeout_total"),
    ],
)
def test_time_outs(writes: Sequence[Write], limits: dict[str, float], kind: str) -> None:
    outcome = asked(Reply(writes=writes, end="hold"), timeouts=Timeouts(**limits))
    assert outcome.turn.end.error is not None
    assert (outcome.status, outcome.exit_code(), outcome.turn.end.error.kind) == ("timeout", 7, kind)
    assert outcome.failure is not None


def test_nobody_there() -> None:
    with WireServer(NO_ANSWER) as server:
        base_url = server.base_url
    outcome = ask(make_plan(base_url), SilentRenderer())
    assert (outcome.status, outcome.exit_code()) == ("error", 6)
    assert outcome.asked.url == f"{base_url}/v1/chat/completions"


def test_a_server_that_refuses_stream_options_is_asked_without(tmp_path: Path) -> None:
    refusal = json_reply({"error": {"message": "unknown field stream_options"}}, status=400)
    path = tmp_path / "a.jsonl"
    renderer = SilentRenderer()
    with WireServer(refusal, Reply(writes=ANSWER)) as server:
        outcome = ask(make_plan(server.base_url, usage=True), renderer, record=lambda: CaptureWriter(path))
        bodies = [request.json() for request in server.requests]
    assert ["stream_options" in body for body in bodies] == [True, False]
    assert renderer.outcomes == [outcome]
    assert (outcome.status, codes(outcome)) == ("complete", [])
    capture = read_capture(path)
    assert (capture.status, "stream_options" in capture.body) == (200, False)


SENT_CAPS = ("max_tokens", "max_completion_tokens")
UNSUPPORTED = "Unsupported parameter: '{}' is not supported with this model. Use '{}' instead."


def caps_asked(*replies: Reply, first: str | None = None, shape: str = "openai-chat") -> list[str]:
    """The fields for the token cap in the requests of one question."""
    with WireServer(*replies) as server:
        plan = make_plan(server.base_url, shape=get_shape(shape), usage=True)
        sampling = Sampling(max_tokens=7)
        ask(
            replace(plan, request=replace(plan.request, prompt="Hi", sampling=sampling, cap_field=first)),
            SilentRenderer(),
        )
        bodies = [request.json() for request in server.requests]
    return [next(field for field in SENT_CAPS if body.get(field) == 7) for body in bodies]


def refused(message: str, status: int = 400) -> Reply:
    return json_reply({"error": {"message": message}}, status=status)


@pytest.mark.parametrize("first", SENT_CAPS)
def test_a_cap_that_is_refused_is_sent_in_the_other_field(first: str) -> None:
    other = SENT_CAPS[1 - SENT_CAPS.index(first)]
    assert caps_asked(refused(UNSUPPORTED.format(first, other)), Reply(writes=ANSWER), first=first) == [
        first,
        other,
    ]


def test_a_strict_server_names_the_field_in_its_own_way() -> None:
    detail = [{"loc": ["body", "max_completion_tokens"], "msg": "Extra inputs are not permitted"}]
    replies = (json_reply({"detail": detail}, status=422), Reply(writes=ANSWER))
    assert caps_asked(*replies, first="max_completion_tokens") == ["max_completion_tokens", "max_tokens"]


def test_each_refusal_is_met_once() -> None:
    usage = refused("unknown field stream_options")
    both = refused("max_tokens and max_completion_tokens are not supported")
    assert caps_asked(usage, both, both, both) == ["max_tokens", "max_tokens", "max_completion_tokens"]


@pytest.mark.parametrize(
    "reply",
    [
        refused("max_tokens is too large: 7. This model supports at most 5 completion tokens"),
        refused("max_completion_tokens is not supported"),
        refused("unsupported model"),
        refused(UNSUPPORTED.format(*SENT_CAPS), status=500),
    ],
)
def test_a_cap_that_is_taken_is_not_sent_in_another_field(reply: Reply) -> None:
    assert caps_asked(reply) == ["max_tokens"]


def test_a_shape_with_one_field_for_the_cap_has_no_other() -> None:
    reply = refused(UNSUPPORTED.format(*SENT_CAPS))
    assert caps_asked(reply, shape="openai-completions") == ["max_tokens"]


def test_another_refusal_is_final() -> None:
    with WireServer(json_reply({"error": {"message": "no such model"}}, status=400)) as server:
        assert ask(make_plan(server.base_url, usage=True), SilentRenderer()).exit_code() == 4
        assert len(server.requests) == 1


# Interrupts


def test_ctrl_c_before_the_headers() -> None:
    with WireServer(Reply(transfer="none", end="hold")) as server:
        url = server.base_url.replace("http://", "http://me:secret@")
        CtrlC(server.wait_for_request)
        outcome = ask(make_plan(url), SilentRenderer())
        server.requests[0].wait_closed()
    assert (outcome.status, outcome.exit_code()) == ("cancelled", 130)
    assert outcome.asked.url == f"{server.base_url}/v1/chat/completions"
    assert outcome.timing.total_s is not None
    assert outcome.timing.total_s > 0


class WaitingRenderer(SilentRenderer):
    """Tells when the first text came."""

    def __init__(self) -> None:
        super().__init__()
        self.first = threading.Event()

    def event(self, event: Event) -> None:
        super().event(event)
        if isinstance(event, TextDelta):
            self.first.set()


def test_ctrl_c_in_the_middle_keeps_what_came() -> None:
    renderer = WaitingRenderer()
    with WireServer(Reply(writes=[text("Hel"), text("lo")[:-9]], end="hold")) as server:
        press = CtrlC(renderer.first.wait)
        outcome = ask(make_plan(server.base_url), renderer)
        assert server.requests[0].wait_closed() - press.at < 0.5
    assert (outcome.status, outcome.exit_code()) == ("cancelled", 130)
    assert outcome.turn.first.text == "Hel"
    assert codes(outcome) == []
    assert renderer.outcomes == [outcome]


class GoneRenderer(SilentRenderer):
    """As one that writes to ``head``."""

    def event(self, event: Event) -> None:
        super().event(event)
        if isinstance(event, TextDelta):
            raise BrokenPipeError


def test_a_reader_that_has_seen_enough_ends_the_request() -> None:
    renderer = GoneRenderer()
    with WireServer(Reply(writes=[text("Hel"), text("lo"), text("!")], end="hold")) as server:
        outcome = ask(make_plan(server.base_url), renderer)
        server.requests[0].wait_closed()
    assert (outcome.reader_gone, outcome.exit_code()) == (True, 141)
    assert [event for event in renderer.events if isinstance(event, TextDelta)] == [TextDelta(text="Hel")]


class GoneAtOnceRenderer(SilentRenderer):
    def raw(self, data: bytes) -> None:
        raise BrokenPipeError


def test_a_reader_of_raw_bytes_that_has_seen_enough() -> None:
    with WireServer(Reply(writes=ANSWER[:2], end="hold")) as server:
        outcome = ask(make_plan(server.base_url), GoneAtOnceRenderer())
        server.requests[0].wait_closed()
    assert outcome.exit_code() == 141


# What is recorded replays as what happened


@pytest.mark.parametrize(
    ("reply", "end", "stop"),
    [
        (Reply(writes=ANSWER), "chunked-end", ()),
        (Reply(writes=ANSWER, end="hold"), "client-abort", ()),
        (Reply(writes=[text("one END two")], end="hold"), "client-abort", ("END",)),
        (Reply(writes=[text("one END"), text("more")], end="hold"), "client-abort", ("END",)),
        (Reply(writes=[text("Hel")]), "chunked-end", ()),
        (Reply(writes=[text("Hel")], end="truncate"), "eof", ()),
        (Reply(writes=[text("Hel")], end="reset"), "reset", ()),
        (Reply(writes=[text("Hel")], end="hold"), "timeout", ()),
        (NO_ANSWER, "eof", ()),
        (json_reply({"error": {"message": "no", "type": "auth"}}, status=401), "chunked-end", ()),
        (Reply(transfer="none", end="hold"), "timeout", ()),
    ],
    ids=[
        "whole",
        "held",
        "silent-stop",
        "went-on",
        "no-finish",
        "cut",
        "reset",
        "idle",
        "none",
        "401",
        "first-token",
    ],
)
def test_record_and_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, end: str, stop: tuple[str, ...]
) -> None:
    monkeypatch.setattr(live, "STOP_GRACE_S", 0.05)
    path = tmp_path / "a.jsonl"
    with WireServer(reply) as server:
        plan = make_plan(server.base_url, stop=stop, timeouts=Timeouts(first_token_s=0.1, idle_s=0.1))
        outcome = ask(plan, SilentRenderer(), record=lambda: CaptureWriter(path))
    capture = read_capture(path)
    assert capture.end == end
    again = play(capture)
    assert (again.status, again.exit_code(), codes(again)) == (
        outcome.status,
        outcome.exit_code(),
        codes(outcome),
    )
    assert again.turn.choices == outcome.turn.choices
    assert again.local_stop == outcome.local_stop
    assert again.asked.sampling == outcome.asked.sampling


def test_waiting_for_the_end_of_the_body_is_not_counted_as_the_answers_time(tmp_path: Path) -> None:
    with WireServer(Reply(writes=ANSWER, end="hold")) as server:
        outcome = ask(
            make_plan(server.base_url), SilentRenderer(), record=lambda: CaptureWriter(tmp_path / "a.jsonl")
        )
    assert outcome.timing.total_s is not None
    assert outcome.timing.total_s < live.STOP_GRACE_S


def test_a_recorded_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    renderer = WaitingRenderer()
    with WireServer(Reply(writes=[text("Hel")], end="hold")) as server:
        CtrlC(renderer.first.wait)
        ask(make_plan(server.base_url), renderer, record=lambda: CaptureWriter(path))
    again = play(read_capture(path))
    assert (again.status, again.turn.first.text) == ("cancelled", "Hel")
