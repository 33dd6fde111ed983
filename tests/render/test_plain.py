"""The answer as text: exact bytes to a pipe, harmless on a terminal; everything else on stderr."""

import errno
import sys
from pathlib import Path
from typing import Any

import pytest

from llmstream_cli.errors import ExitCode, LlmstreamError
from llmstream_cli.events import (
    EndStatus,
    Event,
    ReasoningDelta,
    RefusalDelta,
    StreamEnd,
    TextDelta,
    ToolCallDelta,
)
from llmstream_cli.render import Output, choose_renderer
from llmstream_cli.render.console import StandardError, StandardOutput
from llmstream_cli.render.machine import JsonLinesRenderer, JsonRenderer, RawRenderer
from llmstream_cli.render.plain import PlainRenderer, ReasoningMode
from llmstream_cli.render.waiting import WaitingLine
from tests.render.test_sanitize import ATTACKS, unsafe_in
from tests.support.outcomes import STOPPED, make_outcome, replayed
from tests.support.streams import Kind, Streams, streams

HOSTILE = "a\x1b]52;c;x\x07b\x9b2Jc\r\nd\u202ee\r"


def renderer(reasoning: ReasoningMode = "hide") -> PlainRenderer:
    return PlainRenderer(StandardOutput(), StandardError(), WaitingLine(enabled=False), reasoning)


def shown(
    monkeypatch: pytest.MonkeyPatch,
    *events: Event,
    reasoning: ReasoningMode = "hide",
    out: Kind = "pipe",
    err: Kind = "pipe",
    encoding: str = "utf-8",
) -> tuple[bytes, bytes]:
    """Standard output and standard error of an answer of `events`."""
    outcome = make_outcome(*events)
    with streams(monkeypatch, out=out, err=err, encoding=encoding) as both:
        plain = renderer(reasoning)
        for event in [*events, outcome.turn.end]:
            plain.event(event)
        plain.finish(outcome)
        return both.out.rest(), both.err.rest()


# To a pipe


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Hello there!", b"Hello there!\n"),
        ("Hello there!\n", b"Hello there!\n"),
        ("two\n\n", b"two\n\n"),
        ("  spaces \t ", b"  spaces \t \n"),
        ("a\r\nb\r\n", b"a\r\nb\r\n"),
        ("a\rb\r", b"a\rb\r\n"),
        (HOSTILE, HOSTILE.encode() + b"\n"),
        ("é 👩‍👩‍👧 𒀀", "é 👩‍👩‍👧 𒀀\n".encode()),
        ("[bold]x[/bold] :skull:", b"[bold]x[/bold] :skull:\n"),
        ("x" * 5000, b"x" * 5000 + b"\n"),
        ("", b""),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_a_pipe_gets_the_exact_bytes(
    monkeypatch: pytest.MonkeyPatch, text: str, written: bytes, encoding: str
) -> None:
    assert shown(monkeypatch, TextDelta(text=text), STOPPED, encoding=encoding) == (written, b"")
    letters = [TextDelta(text=letter) for letter in text]
    assert shown(monkeypatch, *letters, STOPPED, encoding=encoding) == (written, b"")


def test_every_delta_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch) as both:
        plain = renderer()
        for text in ("Hel", "lo", " "):
            plain.event(TextDelta(text=text))
            assert both.out.read() == text.encode()


@pytest.mark.parametrize("name", ["vllm/chat_multibyte_ids_stream", "llama.cpp/tiny_chat_long_stream"])
def test_a_recording_to_a_pipe(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with streams(monkeypatch) as both:
        outcome = replayed(name, renderer())
        out, err = both.texts()
    text = outcome.turn.first.text
    assert (out, err) == (text if text.endswith("\n") else f"{text}\n", "")


# To a terminal


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_terminal_gets_nothing_that_drives_it(monkeypatch: pytest.MonkeyPatch, attack: str) -> None:
    letters = [TextDelta(text=letter) for letter in attack]
    out, err = shown(monkeypatch, *letters, out="terminal")
    assert unsafe_in(out.decode() + err.decode()) == set()
    out, err = shown(monkeypatch, ReasoningDelta(text=attack), reasoning="show", err="terminal")
    rest = err.decode().replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert (out, unsafe_in(rest)) == (b"", set())


def test_what_was_made_visible_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = shown(monkeypatch, TextDelta(text=HOSTILE), out="terminal")
    assert out.decode() == "a␛]52;c;x␇b⟨U+009B⟩2Jc\nd⟨U+202E⟩e␍\n"
    assert err.decode() == "note: 5 control characters in the answer made visible\n"
    out, err = shown(monkeypatch, TextDelta(text="\x07"), out="terminal")
    assert err.decode() == "note: 1 control character in the answer made visible\n"


def test_a_terminal_that_cannot_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    out, _ = shown(monkeypatch, TextDelta(text="é 👩"), out="terminal", encoding="ascii")
    assert out == b"? ?\n"


# Reasoning

THOUGHT: list[Event] = [
    ReasoningDelta(text="Let me "),
    ReasoningDelta(text="think."),
    TextDelta(text="42"),
    STOPPED,
]


@pytest.mark.parametrize(
    ("reasoning", "out", "err"),
    [("show", b"42\n", b"Let me think.\n"), ("hide", b"42\n", b""), ("only", b"Let me think.\n", b"")],
)
def test_reasoning(monkeypatch: pytest.MonkeyPatch, reasoning: ReasoningMode, out: bytes, err: bytes) -> None:
    assert shown(monkeypatch, *THOUGHT, reasoning=reasoning) == (out, err)


def test_reasoning_is_dim_on_a_terminal_and_keeps_its_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    pieces = ["x" * 100 + "  ", " [b]y[/b] ", "\n", "end "]
    events = [ReasoningDelta(text=piece) for piece in pieces]
    _, err = shown(monkeypatch, *events, reasoning="show", err="terminal")
    assert b"\x1b[2m" in err
    assert err.replace(b"\x1b[2m", b"").replace(b"\x1b[0m", b"").decode() == "".join(pieces) + "\n"


def test_reasoning_after_the_answer_began(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = [TextDelta(text="4"), ReasoningDelta(text="hm"), TextDelta(text="2")]
    assert shown(monkeypatch, *events, reasoning="show") == (b"42\n", b"hm\n")


def test_reasoning_that_ends_in_a_carriage_return(monkeypatch: pytest.MonkeyPatch) -> None:
    _, err = shown(monkeypatch, ReasoningDelta(text="hm\r"), reasoning="show")
    assert err.decode() == "hm␍\n"


# Refusals, tool calls, several choices


def test_a_refusal_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, RefusalDelta(text="I cannot.")) == (b"I cannot.\n", b"")


def test_tool_calls_stand_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = shown(
        monkeypatch,
        TextDelta(text="Let me look."),
        ToolCallDelta(call=0, id="c", name="get_weather", arguments='{"city":\n "Oslo\x9b"}'),
        ToolCallDelta(call=1, name="get_\x1btime", arguments='{"zone": "CE'),
        STOPPED,
    )
    assert out == b"Let me look.\n"
    assert err.decode().splitlines() == [
        'tool call get_weather({"city": "Oslo⟨U+009B⟩"})',
        'tool call get_␛time({"zone": "CE)  (cut, or invalid JSON)',
    ]


def test_several_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = [
        TextDelta(text="fir"),
        TextDelta(text="second", choice=1),
        ReasoningDelta(text="hm", choice=1),
        TextDelta(text="st"),
        RefusalDelta(text="No.", choice=2),
        ToolCallDelta(call=0, name="f", arguments="{}", choice=2),
    ]
    out, err = shown(monkeypatch, *events)
    assert out == b"first\nsecond\nNo.\n"
    assert err == b"choice 2:\nchoice 3:\ntool call f({})\n"
    out, _ = shown(monkeypatch, *events, reasoning="only")
    assert out == b"hm\n"


def test_later_choices_are_made_harmless_and_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = shown(monkeypatch, TextDelta(text="\x1b"), TextDelta(text="\x9b\r", choice=1), out="terminal")
    assert out.decode() == "␛\n⟨U+009B⟩␍\n"
    assert err.decode().endswith("note: 3 control characters in the answer made visible\n")


def test_an_only_choice_with_another_number_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, TextDelta(text="hi", choice=1)) == (b"hi\n", b"choice 2:\n")


# Trouble with the streams


def test_a_reader_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch) as both:
        both.out.stop_reading()
        with pytest.raises(BrokenPipeError):
            renderer().event(TextDelta(text="x"))


def test_after_the_reader_has_gone_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = make_outcome(TextDelta(text="a"), TextDelta(text="b", choice=1), reader_gone=True)
    with streams(monkeypatch) as both:
        renderer().finish(outcome)
        assert both.texts() == ("", "")


def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        """As a file on a full disk."""

        buffer: Any = property(lambda self: self)

        def isatty(self) -> bool:
            return False

        def write(self, data: bytes) -> int:
            return len(data)

        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(LlmstreamError, match="cannot write to standard output: No space left") as caught:
        renderer().event(TextDelta(text="x"))
    assert caught.value.exit_code is ExitCode.INTERNAL


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_was_closed_before_the_start(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with streams(monkeypatch) as both:
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, None)
            plain = renderer("show")
            plain.event(ReasoningDelta(text="hm"))
            plain.event(TextDelta(text="hi"))
            plain.event(StreamEnd(status=EndStatus.COMPLETE, marker_seen=True, offset=0))
            plain.finish(make_outcome(ToolCallDelta(call=0, name="f", arguments="{}")))
        out, err = both.texts()
    assert (out, err) == (("", "hm\ntool call f({})\n") if name == "stdout" else ("hi\n", ""))


# Which renderer


def output(both: Streams) -> Output:
    assert both.out.file is sys.stdout
    return Output(stdout=StandardOutput(), stderr=StandardError(), waiting=WaitingLine(enabled=False))


def test_one_function_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams(monkeypatch) as both:
        place = output(both)
        assert isinstance(choose_renderer(place, "text", None), PlainRenderer)
        assert isinstance(choose_renderer(place, "json", None), JsonRenderer)
        assert isinstance(choose_renderer(place, "jsonl", None), JsonLinesRenderer)
        assert isinstance(choose_renderer(place, "raw", None), RawRenderer)


@pytest.mark.parametrize(("err", "seen"), [("terminal", True), ("pipe", False)])
def test_reasoning_is_for_people_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, err: Kind, seen: bool
) -> None:
    with streams(monkeypatch, err=err) as both:
        chosen = choose_renderer(output(both), "text", None)
        chosen.event(ReasoningDelta(text="hm"))
        chosen.event(StreamEnd(status=EndStatus.COMPLETE, marker_seen=True, offset=0))
        assert (b"hm" in both.err.rest()) is seen


def test_importing_it_does_not_need_rich() -> None:
    import subprocess

    code = "import sys, llmstream_cli.render.plain, llmstream_cli.render.footer; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=Path.cwd())
    assert done.stdout.strip() == b"False"
