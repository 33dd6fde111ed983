"""Live Markdown on a terminal, its scrollback included: every line once, whatever happens meanwhile."""

from collections.abc import Iterable

import pytest

from llmstream_cli.render.console import StandardOutput
from llmstream_cli.render.markdown import ticker
from llmstream_cli.render.markdown.commit import Committer
from llmstream_cli.render.markdown.lines import Pen
from llmstream_cli.render.markdown.page import MarkdownPage
from llmstream_cli.render.markdown.painting import Painting
from llmstream_cli.render.markdown.typeset import Typesetter
from tests.render.markdown.texts import FRAGMENTS, numbered, shown_more_than_once_or_never
from tests.render.test_sanitize import ATTACKS, unsafe_in
from tests.support.screen import Screen, Terminal, driving, terminal_of_this_process

CONSOLE = Painting(color=True, reflows=False)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames come as fast as they can."""
    monkeypatch.setattr(ticker, "_EVERY_S", 0.001)


def page_here() -> MarkdownPage:
    return MarkdownPage(StandardOutput(), CONSOLE)


def streamed(
    monkeypatch: pytest.MonkeyPatch, pieces: Iterable[str], columns: int = 80, rows: int = 24
) -> Screen:
    with terminal_of_this_process(monkeypatch, columns, rows) as terminal:
        page = page_here()
        for piece in pieces:
            page.write(piece)
        page.end()
    return terminal.screen


def at_once(text: str, columns: int, rows: int = 24) -> Screen:
    """The finished text, printed on a terminal without anything live."""
    committer, typesetter, pen = Committer(), Typesetter(), Pen(color=True)
    pieces = committer.feed(text) + committer.finish()
    lines = [pen.write(line) for piece in pieces for line in typesetter.lines(piece, columns - 1)]
    screen = Screen(columns, rows)
    screen.feed("".join(f"{line}\r\n" for line in lines).encode())
    return screen


def cut(text: str, size: int = 7) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("columns", [20, 80, 200])
def test_in_the_end_it_is_the_finished_text(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    text = numbered(4)
    screen = streamed(monkeypatch, cut(text), columns)
    assert screen.cells() == at_once(text, columns).cells()
    assert shown_more_than_once_or_never(screen.lines(), 4) == {}


def watched(terminal: Terminal, page: MarkdownPage, text: str) -> None:
    """Write `text` and wait until its last word is painted."""
    page.write(text)
    terminal.wait_for(text.split()[-1])


@pytest.mark.parametrize("columns", [20, 80, 200])
def test_each_line_once_with_the_window_made_wider_and_narrower(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    # Each line fits the narrowest window: what is wider is cut there by the terminal, not by us.
    with terminal_of_this_process(monkeypatch, columns) as terminal:
        page = page_here()
        for number in range(60):
            line = f"- item {number:03}" if number // 10 % 2 else f"line {number:03}"
            watched(terminal, page, f"{line}\n")
            if number % 10 == 9:
                page.write("\n")
            if number % 7 == 3:
                terminal.resize(30 if number % 2 else columns)
        page.end()
    shown = "\n".join(terminal.screen.lines())
    assert [number for number in range(60) if shown.count(f" {number:03}") != 1] == []


def test_the_open_block_is_live_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal_of_this_process(monkeypatch, 80, 24) as terminal:
        page = page_here()
        watched(terminal, page, "some **bold** te")
        assert terminal.screen.lines() == ["some bold te"]
        watched(terminal, page, "xt\nline2\nline3\nline4\nline5\nline6\nline7\nline8")
        assert terminal.screen.lines() == [f"line{number}" for number in range(3, 9)]
        watched(terminal, page, "\n\nnext")
        lines = ["some bold text", *(f"line{number}" for number in range(2, 9)), "", "next"]
        assert terminal.screen.lines() == lines
        page.end()
    assert terminal.screen.lines() == lines


@pytest.mark.parametrize("rows", [3, 8, 24])
def test_a_long_paragraph_and_a_long_table_in_a_low_window(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    paragraph = "".join(f"words{number:04} " for number in range(400))
    table = "| a | b |\n|---|---|\n" + "".join(f"| cell{number:04} | x |\n" for number in range(200))
    with terminal_of_this_process(monkeypatch, 60, rows) as terminal:
        page = page_here()
        for piece in (paragraph, "\n\nbetween", f"\n\n{table}"):
            watched(terminal, page, piece)
        page.end()
    shown = "\n".join(terminal.screen.lines())
    assert [n for n in range(400) if shown.count(f"words{n:04}") != 1] == []
    assert [n for n in range(200) if shown.count(f"cell{n:04}") != 1] == []


def test_a_long_line_of_code_is_painted_where_it_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal_of_this_process(monkeypatch, 40) as terminal:
        page = page_here()
        watched(terminal, page, "```\n\tx = '" + "y" * 100 + " last")
        page.write("\n```\n")
        page.end()
    assert "".join(terminal.screen.lines()).count("last") == 1


def test_thousands_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"{number}. item\n" for number in range(1, 2001)) + "\n```\n" + "x = 1\n" * 2000 + "```\n"
    screen = streamed(monkeypatch, cut(text, 400))
    lines = screen.lines()
    assert lines[:2000] == [f"{number}. item" for number in range(1, 2001)]
    assert lines.count("x = 1") == 2000


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_hostile_text_changes_nothing_in_the_terminal(monkeypatch: pytest.MonkeyPatch, attack: str) -> None:
    untouched = Screen(80, 24).state()
    for text in (
        attack,
        f"```\n{attack}\n```\n",
        f"[{attack}]({attack})",
        f"| {attack} |\n|-|\n| {attack} |",
    ):
        screen = streamed(monkeypatch, text)
        assert screen.state() == untouched
        assert unsafe_in(driving(screen.data)) == set()


def test_what_was_made_visible_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal_of_this_process(monkeypatch) as terminal:
        page = page_here()
        page.write("a\x1b[2Jb\r")
        page.end()
    assert terminal.screen.lines() == ["a␛[2Jb␍"]
    assert page.neutralised == 2


def test_hostile_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(fragment for fragment in FRAGMENTS for _ in range(2))
    screen = streamed(monkeypatch, cut(text, 3))
    assert screen.cells() == at_once(text.replace("\u2028", "⟨U+2028⟩").replace("\x0b", "␋"), 80).cells()


def test_something_else_is_printed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal_of_this_process(monkeypatch) as terminal:
        page = page_here()
        watched(terminal, page, "first\n\nopen block")
        page.make_way()
        terminal.file.write("note\n")
        terminal.file.flush()
        terminal.wait_for("note")
        assert terminal.screen.lines() == ["first", "note"]
        watched(terminal, page, " goes on")
        page.end()
    assert terminal.screen.lines() == ["first", "note", "", "open block goes on"]


def test_a_second_text_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal_of_this_process(monkeypatch) as terminal:
        page = page_here()
        for text in ("```\ncut", "# two"):
            page.write(text)
            page.end()
        page.end()
    assert terminal.screen.lines() == ["```", "cut", "# two"]


def test_each_frame_ends_with_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = streamed(monkeypatch, cut(numbered(1)))
    for frame in screen.data.split(b"\x1b[?2026h")[1:]:
        assert frame.endswith(b"\x1b[?2026l")
        assert frame.count(b"\x1b[?7l") == frame.count(b"\x1b[?7h")


def test_a_reader_that_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal_of_this_process(monkeypatch):
        page = page_here()

        def gone(text: str) -> None:
            raise BrokenPipeError

        monkeypatch.setattr(StandardOutput, "write", lambda self, text: gone(text))
        page.write("text")
        with pytest.raises(BrokenPipeError):
            page.end()
