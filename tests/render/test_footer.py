"""The last lines on stderr: every ending in exact words."""

from typing import Any

import pytest

from llmstream_cli.errors import (
    ConnectError,
    HttpStatusError,
    ServerTimeoutError,
    StreamBrokenError,
    TimeoutKind,
    TransportError,
)
from llmstream_cli.events import (
    EndStatus,
    FinishReason,
    ReasoningDelta,
    StreamError,
    StreamStart,
    TextDelta,
    Usage,
    UsageReport,
)
from llmstream_cli.identity import ServerIdentity
from llmstream_cli.outcome import Outcome
from llmstream_cli.render.console import StandardError
from llmstream_cli.render.footer import footer_line, print_ending
from llmstream_cli.stops import LocalStop
from llmstream_cli.timing import Timing
from tests.render.test_sanitize import unsafe_in
from tests.support.outcomes import HELLO, STOPPED, URL, finish, make_outcome
from tests.support.streams import streams

TIMING = Timing(ttft_s=0.18, tokens_per_s=39.62, total_s=0.45)
USAGE = UsageReport(usage=Usage(prompt_tokens=52, completion_tokens=10))
STOP = finish(FinishReason.STOP_SEQUENCE, stop_sequence="\nUser:")
HOSTILE = "\x1b]52;c;AAAA\x07\x9b2J\r\n\u202eevil"


def ending(
    monkeypatch: pytest.MonkeyPatch,
    outcome: Outcome,
    *,
    footer: bool = True,
    warnings: bool = True,
    verbose: int = 0,
) -> list[str]:
    """The lines on stderr; nothing of it goes to stdout."""
    with streams(monkeypatch) as both:
        print_ending(outcome, StandardError(), footer=footer, warnings=warnings, verbose=verbose)
        out, err = both.texts()
    assert out == ""
    return err.splitlines()


# The examples of the contract


def test_a_stop_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = make_outcome(
        HELLO, STOP, USAGE, timing=TIMING, model="gemma-3-270m", profile="local", stop=("\nUser:",)
    )
    assert ending(monkeypatch, outcome) == [
        r'✓ stopped at "\nUser:" · 52 in + 10 out tokens · first token 0.18 s · 39.6 tok/s · 0.45 s '
        "· gemma-3-270m @ local"
    ]


def test_cut_off_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    used = UsageReport(usage=Usage(completion_tokens=128))
    outcome = make_outcome(HELLO, finish(FinishReason.LENGTH), used, max_tokens=128)
    assert ending(monkeypatch, outcome) == [
        "⚠ Cut off at 128 tokens (the cap set by -n). The answer is not complete: raise -n.",
        "⚠ cut off by the token limit · ? in + 128 out tokens · gemma",
    ]


def test_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    error = StreamError(kind="connection_closed", message="the connection was closed in the middle")
    events = [TextDelta(text="abcd")] * 301
    outcome = make_outcome(
        *events, status=EndStatus.INCOMPLETE, marker_seen=False, error=error, timing=TIMING
    )
    assert ending(monkeypatch, outcome) == [
        "✗ Incomplete: the connection closed after 301 events without a finish reason or [DONE]. "
        "1,204 characters kept.",
        "✗ incomplete; 1,204 characters kept · ? in + ? out tokens · first token 0.18 s · 39.6 tok/s "
        "· 0.45 s · gemma",
    ]


def test_stopped_by_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = make_outcome(
        HELLO, status=EndStatus.CANCELLED, marker_seen=False, timing=Timing(ttft_s=0.2, total_s=2.1)
    )
    assert ending(monkeypatch, outcome) == [
        "■ stopped by you after 2.1 s; the answer is cut, 12 characters kept; the connection is closed "
        "· ? in + ? out tokens · first token 0.20 s · 2.10 s · gemma"
    ]
    nothing = make_outcome(status=EndStatus.CANCELLED, marker_seen=None, timing=Timing(total_s=0.1))
    assert footer_line(nothing).startswith(
        "■ stopped by you after 0.1 s; no text came; the connection is closed ·"
    )
    thinking = make_outcome(ReasoningDelta(text="Hm."), status=EndStatus.CANCELLED)
    assert footer_line(thinking).startswith(
        "■ stopped by you; no answer yet, only 3 characters of reasoning; the connection is closed ·"
    )


# Every finish reason


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (FinishReason.EOS, "✓ finished (end of sequence)"),
        (FinishReason.STOP, "✓ finished (stop)"),
        (FinishReason.STOP_SEQUENCE, "✓ stopped at a stop sequence"),
        (FinishReason.LENGTH, "⚠ cut off by the token limit"),
        (FinishReason.CONTEXT, "⚠ cut off by the full context window"),
        (FinishReason.TOOL_CALLS, "✓ stopped to call a tool"),
        (FinishReason.CONTENT_FILTER, "⚠ cut off by the content filter"),
        (FinishReason.REFUSAL, "⚠ refused by the model"),
        (FinishReason.OTHER, "✓ finished, the server does not say why"),
    ],
)
def test_every_finish_reason(reason: FinishReason, words: str) -> None:
    assert footer_line(make_outcome(HELLO, finish(reason))) == f"{words} · ? in + ? out tokens · gemma"


def test_every_finish_reason_has_words_of_its_own() -> None:
    lines = {footer_line(make_outcome(HELLO, finish(reason))) for reason in FinishReason}
    assert len(lines) == len(FinishReason)


def test_what_the_server_adds_to_its_reason() -> None:
    def ending_of(**fields: Any) -> str:
        return footer_line(make_outcome(HELLO, finish(**fields))).partition(" · ")[0]

    assert ending_of(reason=FinishReason.OTHER, raw="abort") == "✓ finished (abort)"
    assert ending_of(reason=FinishReason.STOP_SEQUENCE, stop_token=128009) == "✓ stopped at token 128009"
    assert ending_of(reason=FinishReason.EOS, stop_token=2) == "✓ finished (end of sequence)"


def test_with_stop_strings_the_doubt_is_told() -> None:
    assert footer_line(make_outcome(HELLO, STOPPED, stop=("END",))).startswith(
        "✓ stopped (end of sequence or a stop sequence, the server does not say which) ·"
    )


@pytest.mark.parametrize(("went_on", "by"), [(True, " (by llmstream)"), (False, "")])
def test_who_stopped(went_on: bool, by: str) -> None:
    outcome = make_outcome(HELLO, STOP, local_stop=LocalStop(stop="\nUser:", server_went_on=went_on))
    assert footer_line(outcome).startswith(rf'✓ stopped at "\nUser:"{by} · ')


def test_no_finish_reason_at_all() -> None:
    assert footer_line(make_outcome(HELLO)).startswith("✓ finished · ")


def test_the_bad_ending_among_several_choices_is_told() -> None:
    outcome = make_outcome(HELLO, STOPPED, finish(FinishReason.LENGTH, choice=1))
    assert footer_line(outcome).startswith("⚠ cut off by the token limit · ")


# The other facts


def test_unknown_is_a_question_mark_and_zero_is_zero() -> None:
    assert " · ? in + ? out tokens · " in footer_line(make_outcome(HELLO, STOPPED))
    usage = Usage(prompt_tokens=0, completion_tokens=1200, reasoning_tokens=0, cached_tokens=0)
    outcome = make_outcome(HELLO, STOPPED, UsageReport(usage=usage))
    assert " · 0 in + 1,200 out tokens · " in footer_line(outcome)
    usage = Usage(prompt_tokens=9, completion_tokens=7, reasoning_tokens=6, cached_tokens=8)
    outcome = make_outcome(HELLO, STOPPED, UsageReport(usage=usage))
    assert " · 9 in (8 cached) + 7 out (6 reasoning) tokens · " in footer_line(outcome)


def test_who_answered() -> None:
    def who(**fields: Any) -> str:
        return footer_line(make_outcome(HELLO, STOPPED, **fields)).rpartition(" · ")[2]

    vllm = ServerIdentity(kind="vllm", version="0.9")
    assert who(model="m", profile="p", server=vllm) == "m @ p"
    assert who(model="m", server=vllm) == "m @ vllm"
    assert who(model="m") == "m"
    assert who(model=None, profile="p") == "p"
    assert who(model=None) == "? in + ? out tokens"


# Errors


def test_an_error_inside_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    error = StreamError(kind="server_error", message="Context size has been exceeded.", code=500)
    outcome = make_outcome(HELLO, status=EndStatus.ERROR, marker_seen=False, error=error)
    assert ending(monkeypatch, outcome) == [
        "✗ The server reported an error inside its answer, after 1 event (12 characters kept): "
        f"Context size has been exceeded. [server_error, 500] ({URL})",
        "✗ error; 12 characters kept · ? in + ? out tokens · gemma",
    ]
    outcome = make_outcome(status=EndStatus.ERROR, error=StreamError(kind="overloaded", message="overloaded"))
    assert ending(monkeypatch, outcome)[0] == (
        f"✗ The server reported an error in place of an answer: overloaded ({URL})"
    )


def test_a_time_out_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "the stream went silent: no event for 5 s (--idle-timeout)"
    failure = ServerTimeoutError(
        message, url=URL, which=TimeoutKind.IDLE, hint="--idle-timeout sets the limit"
    )
    outcome = make_outcome(
        HELLO,
        status=EndStatus.TIMEOUT,
        error=StreamError(kind="timeout_idle", message=message),
        failure=failure,
    )
    assert ending(monkeypatch, outcome) == [
        f"✗ {message} ({URL}); 12 characters kept",
        "  --idle-timeout sets the limit",
        "✗ timed out; 12 characters kept · ? in + ? out tokens · gemma",
    ]


def test_a_recorded_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    error = StreamError(kind="timeout", message="the recording ended in a time-out")
    outcome = make_outcome(HELLO, status=EndStatus.TIMEOUT, error=error)
    assert ending(monkeypatch, outcome, footer=False) == ["✗ Timed out: the recording ended in a time-out"]


@pytest.mark.parametrize(
    ("failure", "reported", "lines"),
    [
        (
            HttpStatusError("401 Unauthorized", url=URL, status=401, hint="check the API key"),
            "Invalid API key",
            [f"✗ 401 Unauthorized: Invalid API key ({URL})", "  check the API key"],
        ),
        (
            HttpStatusError(f"401 Unauthorized from POST {URL}: Invalid API key", url=URL, status=401),
            "Invalid API key",
            [f"✗ 401 Unauthorized from POST {URL}: Invalid API key"],
        ),
        (
            HttpStatusError("429 Too Many Requests", url=URL, status=429, retry_after_s=50),
            "slow down",
            [f"✗ 429 Too Many Requests: slow down ({URL})", "  the server asks to wait 50 s"],
        ),
        (
            ConnectError(f"nobody answers at {URL}", url=URL, hint="is the server running?"),
            f"nobody answers at {URL}",
            [f"✗ nobody answers at {URL}", "  is the server running?"],
        ),
        (
            StreamBrokenError("the server closed the connection without answering", url=URL),
            "the server closed the connection without answering",
            [f"✗ the server closed the connection without answering ({URL})"],
        ),
    ],
    ids=["status", "status-told", "retry-after", "connect", "broken"],
)
def test_no_answer(
    monkeypatch: pytest.MonkeyPatch, failure: TransportError, reported: str, lines: list[str]
) -> None:
    broken = isinstance(failure, StreamBrokenError)
    outcome = make_outcome(
        status=EndStatus.INCOMPLETE if broken else EndStatus.ERROR,
        error=StreamError(kind="x", message=reported),
        failure=failure,
        timing=Timing(total_s=0.25),
        profile="local",
    )
    assert ending(monkeypatch, outcome) == [*lines, "✗ no answer · 0.25 s · gemma @ local"]


# What is shown when


def test_errors_cannot_be_silenced(monkeypatch: pytest.MonkeyPatch) -> None:
    incomplete = make_outcome(HELLO, status=EndStatus.INCOMPLETE, marker_seen=False)
    assert len(ending(monkeypatch, incomplete, footer=False, warnings=False)) == 1
    error = make_outcome(status=EndStatus.ERROR, error=StreamError(kind="x", message="boom"))
    assert len(ending(monkeypatch, error, footer=False, warnings=False)) == 1
    truncated = make_outcome(HELLO, finish(FinishReason.LENGTH))
    assert ending(monkeypatch, truncated, footer=False, warnings=False) == []


def test_missing_usage_is_a_warning_only_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = make_outcome(HELLO, STOPPED, usage_asked=True)
    assert ending(monkeypatch, outcome, footer=False) == []
    assert ending(monkeypatch, outcome, footer=False, verbose=1) == ["⚠ The server reported no token counts."]


def test_nothing_for_a_reader_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = make_outcome(HELLO, status=EndStatus.CANCELLED, reader_gone=True)
    assert ending(monkeypatch, outcome) == []


def test_the_footer_begins_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch) as both:
        stderr = StandardError()
        stderr.fragment("thinking")
        print_ending(make_outcome(HELLO, STOPPED), stderr, footer=True, warnings=True)
        _, err = both.texts()
    assert err == "thinking\n✓ finished (stop) · ? in + ? out tokens · gemma\n"


def test_a_terminal_that_knows_no_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch, encoding="ascii") as both:
        print_ending(make_outcome(HELLO, STOPPED, model="é"), StandardError(), footer=True, warnings=True)
        _, err = both.texts()
    assert err == "* finished (stop) | ? in + ? out tokens | \\xe9\n"


def test_colours_only_on_a_terminal_or_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = make_outcome(HELLO, STOPPED)
    line = "✓ finished (stop) · ? in + ? out tokens · gemma"
    monkeypatch.setenv("TERM", "xterm-256color")
    with streams(monkeypatch, err="terminal") as both:
        print_ending(outcome, StandardError(), footer=True, warnings=True)
        assert both.texts()[1] == f"\x1b[32m{line}\x1b[0m\n"
    with streams(monkeypatch) as both:
        print_ending(outcome, StandardError("always"), footer=True, warnings=True)
        assert "\x1b[" in both.texts()[1]
    with streams(monkeypatch, err="terminal") as both:
        print_ending(outcome, StandardError("never"), footer=True, warnings=True)
        assert both.texts()[1] == f"{line}\n"


def hostile_outcomes() -> list[Outcome]:
    """The server's words wherever it has one."""
    words = StreamError(kind=HOSTILE, message=HOSTILE, code=HOSTILE)
    failure = HttpStatusError(HOSTILE, url=HOSTILE, status=500, hint=HOSTILE)
    other = finish(FinishReason.OTHER, HOSTILE)
    stop = finish(FinishReason.STOP_SEQUENCE, stop_sequence=HOSTILE)
    start = StreamStart(model=HOSTILE)
    token = TextDelta(text=f"<|im_end|>{HOSTILE}")
    return [
        make_outcome(start, token, other, url=HOSTILE),
        make_outcome(start, stop, stop=(HOSTILE,), local_stop=LocalStop(stop=HOSTILE, server_went_on=True)),
        *(
            make_outcome(start, *events, status=status, error=words, url=HOSTILE, failure=cause)
            for status in EndStatus
            for events in ([], [token])
            for cause in (None, failure)
        ),
    ]


@pytest.mark.parametrize("outcome", hostile_outcomes())
def test_a_server_cannot_drive_the_terminal(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> None:
    lines = ending(monkeypatch, outcome, verbose=2)
    assert unsafe_in("".join(lines)) == set()
    assert all(line[:2] in ("✓ ", "⚠ ", "✗ ", "■ ", "  ") for line in lines)
    assert any("evil" in line for line in lines)


def test_an_endless_error_message_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    error = StreamError(kind="x", message="long " * 100_000)
    outcome = make_outcome(status=EndStatus.ERROR, error=error)
    line, _ = ending(monkeypatch, outcome)
    assert line.endswith(" …")
    assert len(line) < 1100
