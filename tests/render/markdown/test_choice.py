"""Where Markdown is painted, and what it does to the answer's other parts."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from llmstream_cli.events import Event, ReasoningDelta, StreamEnd, TextDelta, ToolCallDelta
from llmstream_cli.render import choose_renderer, open_output
from llmstream_cli.render.markdown.painting import Painting, painting_on
from llmstream_cli.render.markdown.renderer import MarkdownRenderer
from llmstream_cli.render.plain import PlainRenderer
from tests.support.outcomes import STOPPED, make_outcome
from tests.support.screen import Screen, terminal_of_this_process
from tests.support.streams import Kind, streams

XTERM = {"TERM": "xterm-256color"}


def chosen(
    monkeypatch: pytest.MonkeyPatch,
    form: Any = None,
    *,
    out: Kind = "terminal",
    plain: bool = False,
    env: Mapping[str, str] = XTERM,
    encoding: str = "utf-8",
) -> type:
    with streams(monkeypatch, out=out, encoding=encoding):
        output = open_output(color="auto", plain=plain, term=env.get("TERM"), env=env)
        return type(choose_renderer(output, form, None))


@pytest.mark.parametrize("form", [None, "markdown"])
def test_markdown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, form: Any) -> None:
    assert chosen(monkeypatch, form) is MarkdownRenderer


@pytest.mark.parametrize(
    "changed",
    [
        {"form": "text"},
        {"out": "pipe"},
        {"out": "pipe", "form": "markdown"},
        {"plain": True},
        {"plain": True, "form": "markdown"},
        {"env": {"TERM": "dumb"}},
        {"env": {}},
        {"env": {**XTERM, "CI": "1"}},
        {"encoding": "ascii"},
    ],
    ids=str,
)
def test_text_elsewhere(monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]) -> None:
    assert chosen(monkeypatch, **changed) is PlainRenderer


@pytest.mark.parametrize(
    ("env", "painting"),
    [
        (XTERM, Painting(color=True, reflows=True)),
        ({**XTERM, "NO_COLOR": "1"}, Painting(color=False, reflows=True)),
        ({**XTERM, "NO_COLOR": ""}, Painting(color=True, reflows=True)),
        ({**XTERM, "XTERM_VERSION": "XTerm(390)"}, Painting(color=True, reflows=False)),
        ({"TERM": "linux"}, Painting(color=True, reflows=False)),
        ({"TERM": "screen-256color"}, Painting(color=True, reflows=False)),
        ({"TERM": "screen-256color", "TMUX": "/tmp/x"}, Painting(color=True, reflows=True)),
    ],
    ids=str,
)
def test_how_terminals_are_painted_on(env: Mapping[str, str], painting: Painting) -> None:
    assert painting_on(env, "auto", "UTF-8", windows=False) == painting


@pytest.mark.parametrize(("color", "colored"), [("always", True), ("never", False)])
def test_the_flag_comes_before_the_variable(color: Any, colored: bool) -> None:
    painting = painting_on({**XTERM, "NO_COLOR": "1"}, color, "utf-8", windows=False)
    assert painting == Painting(color=colored, reflows=True)


def test_only_the_new_windows_terminal_is_painted_on() -> None:
    assert painting_on({}, "auto", "utf-8", windows=True) is None
    assert painting_on({"WT_SESSION": "x"}, "auto", "utf-8", windows=True) is not None


def on_one_terminal(monkeypatch: pytest.MonkeyPatch, *events: Event) -> Screen:
    """Standard output and standard error are the same terminal."""
    outcome = make_outcome(*events)
    with terminal_of_this_process(monkeypatch) as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal.file)
        output = open_output(color="never", plain=False, term="linux", env={"TERM": "linux"})
        renderer = choose_renderer(output, None, None)
        for event in [*events, outcome.turn.end]:
            renderer.event(event)
            if isinstance(event, TextDelta | ReasoningDelta):
                terminal.wait_for(event.text.split()[-1])
        renderer.finish(outcome)
    return terminal.screen


def test_reasoning_tool_calls_and_text_on_one_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_one_terminal(
        monkeypatch,
        ReasoningDelta(text="let me\nthink"),
        TextDelta(text="# Ti"),
        TextDelta(text="tle\n\nso"),
        ReasoningDelta(text="wait"),
        ReasoningDelta(text=" more"),
        TextDelta(text=" **it** is\n\n- a\n- b"),
        ToolCallDelta(call=0, id="c", name="look", arguments="{}"),
        STOPPED,
    )
    assert screen.lines() == [
        *("let me", "think", "# Title", "wait more", "", "so it is", "", "• a", "• b"),
        "tool call look({})",
    ]


def test_an_answer_without_text_paints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_one_terminal(monkeypatch, STOPPED)
    assert screen.data == b""


def test_nothing_heavy_is_loaded_before_the_text() -> None:
    code = (
        "import sys; from llmstream_cli.render import Output, choose_renderer\n"
        "from llmstream_cli.render.markdown.painting import Painting\n"
        "choose_renderer(Output(painting=Painting(color=True, reflows=True)), None, None)\n"
        "print({'rich', 'markdown_it', 'pygments'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_end_without_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    end = make_outcome().turn.end
    assert isinstance(end, StreamEnd)
    assert on_one_terminal(monkeypatch, end).lines() == []
