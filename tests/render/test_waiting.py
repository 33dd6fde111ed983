"""The waiting line: only on a terminal, one row, gone without a trace."""

import re
import threading

import pyte
import pytest

from llmstream_cli.events import Event, KeepAlive, PrefillProgress, ReasoningDelta, TextDelta
from llmstream_cli.render import choose_renderer, open_output, waiting
from llmstream_cli.render.console import StandardError, StandardOutput
from llmstream_cli.render.plain import PlainRenderer
from llmstream_cli.render.waiting import WaitingLine
from tests.render.test_sanitize import unsafe_in
from tests.support.outcomes import STOPPED, make_outcome
from tests.support.streams import Streams, streams

ERASE = b"\r\x1b[2K"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line comes at once, and changes often."""
    monkeypatch.setattr(waiting, "_FIRST_S", 0.001)
    monkeypatch.setattr(waiting, "_EVERY_S", 0.001)


def painted(both: Streams, words: str = "") -> str:
    """The line once it holds `words`."""
    seen = b""
    while True:
        seen += both.err.read()
        for line in seen.split(ERASE)[1:]:
            if words in line.decode("utf-8", "replace") and line.endswith(b" s"):
                return line.decode()


def screen_after(data: bytes, columns: int = 80) -> list[str]:
    """The rows that a person sees at the end."""
    screen = pyte.Screen(columns, 10)
    pyte.ByteStream(screen).feed(data.replace(b"\n", b"\r\n"))
    return [row.rstrip() for row in screen.display if row.strip()]


def test_it_shows_what_is_waited_for_and_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch, err="terminal") as both:
        line = WaitingLine(enabled=True)
        line.start("loading the model")
        assert re.fullmatch(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] loading the model \d+\.\d s", painted(both))
        line.say("waiting")
        assert painted(both, " waiting ")
        line.thinking()
        assert painted(both, " thinking ")
        line.stop()


def test_it_is_erased_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch, err="terminal") as both:
        line = WaitingLine(enabled=True)
        line.start()
        painted(both)
        line.stop()
        line.stop()
        rest = both.err.rest()
    assert rest.endswith(ERASE)
    assert screen_after(rest) == []
    assert join_painter() == 0


def join_painter() -> int:
    """How many painting threads live on after they were told to stop."""
    painters = [thread for thread in threading.enumerate() if thread.name == "waiting-line"]
    for thread in painters:
        thread.join(10)
    return sum(thread.is_alive() for thread in painters)


def test_an_answer_that_comes_at_once_sees_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_FIRST_S", 60.0)
    with streams(monkeypatch, err="terminal") as both:
        line = WaitingLine(enabled=True)
        line.start()
        line.stop()
        assert join_painter() == 0
        assert both.err.rest() == b""


def test_disabled_it_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch, err="terminal") as both:
        line = WaitingLine(enabled=False)
        line.start("x")
        line.say("y")
        line.note(KeepAlive())
        assert not line.live
        line.stop()
        assert both.err.rest() == b""


@pytest.mark.parametrize(
    ("err", "plain", "term", "enabled"),
    [
        ("terminal", False, "xterm", True),
        ("terminal", False, None, True),
        ("terminal", True, "xterm", False),
        ("terminal", False, "dumb", False),
        ("pipe", False, "xterm", False),
    ],
)
def test_only_a_live_terminal_gets_it(
    monkeypatch: pytest.MonkeyPatch, err: str, plain: bool, term: str | None, enabled: bool
) -> None:
    with streams(monkeypatch, err="terminal" if err == "terminal" else "pipe") as both:
        output = open_output(color="auto", plain=plain, term=term)
        output.waiting.start()
        assert output.waiting.live is enabled
        if enabled:
            painted(both)
        output.waiting.stop()
        assert bool(both.err.rest()) is enabled


def test_without_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch, err="terminal", encoding="ascii") as both:
        line = WaitingLine(enabled=True)
        line.start()
        assert re.fullmatch(r"[-\\|/] waiting \d+\.\d s", painted(both))
        line.stop()


def test_what_events_tell_of_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch, err="terminal") as both:
        line = WaitingLine(enabled=True)
        line.start()
        line.note(PrefillProgress(processed_tokens=512, total_tokens=2048))
        assert painted(both, "reading the prompt 512/2,048 (25 %)")
        line.note(PrefillProgress(processed_tokens=1, total_tokens=0))
        line.note(PrefillProgress(processed_tokens=None, total_tokens=5))
        line.stop()
        assert "25 %" in line._words()


def test_keep_alives_are_counted() -> None:
    line = WaitingLine(enabled=False)
    line.note(KeepAlive())
    line.note(KeepAlive())
    assert line._words().endswith(" s, 2 keep-alives")


def test_a_long_or_hostile_reason_stays_on_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch, err="terminal") as both:
        line = WaitingLine(enabled=True)
        line.start("503 from \x1b[31m\x9b2J\n\u202e" + "proxy " * 50)
        seen = both.err.read()
        line.stop()
        seen += both.err.rest()
    rows = seen.split(ERASE)
    assert unsafe_in("".join(row.decode() for row in rows)) == set()
    assert max(len(row.decode()) for row in rows) == 79
    assert screen_after(seen) == []


def test_notes_stand_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch, err="terminal") as both:
        output = open_output(color="never", plain=False, term="xterm")
        output.waiting.start()
        seen = both.err.read()
        output.stderr.line("⚠ rate limited (429): waiting 2 s")
        output.stderr.line("⚠ rate limited (429): waiting 4 s")
        output.waiting.stop()
        seen += both.err.rest()
    assert screen_after(seen) == ["⚠ rate limited (429): waiting 2 s", "⚠ rate limited (429): waiting 4 s"]


@pytest.mark.parametrize(
    ("event", "reasoning", "stopped"),
    [
        (TextDelta(text="a"), "hide", True),
        (TextDelta(text="a"), "only", False),
        (ReasoningDelta(text="a"), "show", True),
        (ReasoningDelta(text="a"), "only", True),
        (ReasoningDelta(text="a"), "hide", False),
        (KeepAlive(), "show", False),
        (STOPPED, "show", False),
    ],
)
def test_it_ends_with_the_first_thing_shown(
    monkeypatch: pytest.MonkeyPatch, event: Event, reasoning: str, stopped: bool
) -> None:
    with streams(monkeypatch, err="terminal"):
        line = WaitingLine(enabled=True)
        mode = {"hide": "hide", "show": "show", "only": "only"}[reasoning]
        renderer = PlainRenderer(StandardOutput(), StandardError("never"), line, mode)  # type: ignore[arg-type]
        line.start()
        renderer.event(event)
        assert line.live is not stopped
        renderer.event(make_outcome().turn.end)
        assert not line.live


@pytest.mark.parametrize(("chosen", "after_event"), [("json", True), ("jsonl", False), ("raw", False)])
def test_machine_formats_erase_it_before_they_write(
    monkeypatch: pytest.MonkeyPatch, chosen: str, after_event: bool
) -> None:
    """On one terminal for both, JSON must not stand behind the line."""
    with streams(monkeypatch, err="terminal") as both:
        output = open_output(color="never", plain=False, term="xterm")
        renderer = choose_renderer(output, chosen, None)  # type: ignore[arg-type]
        output.waiting.start()
        painted(both)
        renderer.raw(b"data: x\n")
        renderer.event(TextDelta(text="x"))
        assert output.waiting.live is after_event
        renderer.finish(make_outcome(TextDelta(text="x"), STOPPED))
        assert not output.waiting.live
        assert screen_after(both.err.rest()) == []


def test_a_terminal_that_goes_away_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch, err="terminal") as both:
        line = WaitingLine(enabled=True)
        line.start()
        painted(both)
        both.err.stop_reading()
        line.stop()
        assert join_painter() == 0


def test_its_thread_does_work_once_while_the_wait_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    with streams(monkeypatch, err="terminal") as both:
        line = WaitingLine(enabled=True)
        line.meanwhile(lambda: done.append(threading.current_thread().name))
        line.start()
        for words in ("one", "two", "three"):
            line.say(words)
            painted(both, words)
        line.stop()
    assert done == ["waiting-line"]
