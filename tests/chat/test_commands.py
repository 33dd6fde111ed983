"""Slash commands: how they are told from messages, the table, what Tab offers; the prompt's small parts."""

from pathlib import Path

import pytest

from llmstream_cli.chat.commands import COMMANDS, find, message_of, parse
from llmstream_cli.chat.completing import Candidates, completions, paths
from llmstream_cli.chat.prompt import TwoPresses, in_open_block, unwrapped
from llmstream_cli.errors import UsageError

PROMISED = {
    *(
        "help",
        "exit",
        "clear",
        "new",
        "model",
        "profile",
        "system",
        "set",
        "show",
        "stop",
        "regen",
        "continue",
    ),
    *("undo", "edit", "file", "usage", "raw", "curl", "save", "load", "export", "copy", "why"),
}


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/help", ("help", "")),
        ("/model  a b ", ("model", "a b")),
        ("/set temperature 0", ("set", "temperature 0")),
        ("//etc", None),
        (" /etc", None),
        ("hello /help", None),
        ("", None),
    ],
)
def test_commands_and_messages(line: str, command: tuple[str, str] | None) -> None:
    assert parse(line) == command


@pytest.mark.parametrize(
    ("line", "message"),
    [("//etc/passwd", "/etc/passwd"), (" /etc", "/etc"), ("a", "a"), ("  a", "  a"), ("///", "//")],
)
def test_a_message_may_begin_with_a_slash(line: str, message: str) -> None:
    assert message_of(line) == message


def test_every_promised_command_is_there_and_no_name_twice() -> None:
    names = [name for command in COMMANDS for name in (command.name, *command.aliases)]
    assert set(names) >= PROMISED
    assert len(names) == len(set(names))
    assert all(command.help for command in COMMANDS)


@pytest.mark.parametrize(
    ("alias", "name"), [("?", "help"), ("quit", "exit"), ("bye", "exit"), ("retry", "regen")]
)
def test_aliases(alias: str, name: str) -> None:
    assert find(alias).name == name


def test_the_nearest_command_is_named() -> None:
    with pytest.raises(UsageError, match="did you mean /model") as caught:
        find("modle")
    assert "//modle" in (caught.value.hint or "")
    with pytest.raises(UsageError, match=r"no command /xyzzy\."):
        find("xyzzy")


CANDIDATES = Candidates(
    commands=("model", "more", "help"),
    words=lambda command, typed: ["llama", "lava", "evil\x1b[2J"] if command == "model" else [],
)


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        ("/mo", [("/mo", "/model"), ("/mo", "/more")]),
        ("/model l", [("l", "llama"), ("l", "lava")]),
        ("/model e", []),
        ("/help l", []),
        ("//mo", []),
        ("mo", []),
    ],
)
def test_what_tab_offers(before: str, offered: list[tuple[str, str]]) -> None:
    assert list(completions(before, CANDIDATES)) == offered


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "north").mkdir()
    (tmp_path / ".no").touch()
    monkeypatch.chdir(tmp_path)
    assert paths("no") == ["north/", "notes.txt"]
    assert paths(".n") == [".no"]
    assert paths(f"{tmp_path}/not") == [f"{tmp_path}/notes.txt"]
    assert paths("nowhere/") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"""a\nb"""', "a\nb"),
        ('"""\na\n"""\n', "a"),
        ('"""a', '"""a'),
        ('"""', '"""'),
        ("a", "a"),
        (" a ", " a "),
    ],
)
def test_a_block_loses_its_marks(text: str, message: str) -> None:
    assert unwrapped(text) == message


@pytest.mark.parametrize(
    ("text", "is_open"), [('"""a', True), ('"""', True), ('"""a"""', False), ('a"""', False), ("", False)]
)
def test_enter_inside_a_block_is_a_new_line(text: str, is_open: bool) -> None:
    assert in_open_block(text) is is_open


def test_two_presses_close_together_leave() -> None:
    times = iter([0.0, 5.0, 6.0])
    presses = TwoPresses(lambda: next(times))
    assert [presses.again() for _ in range(3)] == [False, False, True]
