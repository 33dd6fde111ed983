"""The command tree: lazy, complete, and light."""

import subprocess
import sys

import pytest

from llmstream_cli import __version__
from llmstream_cli.cli.tree import COMMANDS, load_command
from tests.support.command import llmstream

HEAVY = (
    "httpx",
    "httpcore",
    "rich.console",
    "rich.markdown",
    "markdown_it",
    "asyncio",
    "ssl",
    "platformdirs",
    "prompt_toolkit",
)


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "llmstream_cli", *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    lines = done.stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), ("ask", "--help"), ("ask", "--nope"), ("--stop", "-v", "hi")]
)
def test_what_needs_no_server_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    imported = imported_by(*arguments)
    assert "llmstream_cli" in imported
    assert not imported & set(HEAVY)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_line_is_the_first_of_the_commands_own_help(name: str) -> None:
    own = load_command(name).help.splitlines()[0]
    assert own.startswith(COMMANDS[name][1])


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help(name: str, flag: str) -> None:
    done = llmstream(name, flag)
    assert done.code == 0
    assert done.text.startswith("Usage:")
    assert name in done.text


def test_help_lists_every_command() -> None:
    done = llmstream("--help")
    assert done.code == 0
    for name, (_, text) in COMMANDS.items():
        assert name in done.text
        assert text in done.text


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version(flag: str) -> None:
    assert llmstream(flag).text == f"llmstream {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "--nope"),
        ("profiles", "nope"),
        ("--stop",),
        ("ask", "--base-url", "localhost:9"),
        ("-n", "x", "hi"),
    ],
)
def test_wrong_usage_is_two(arguments: tuple[str, ...]) -> None:
    done = llmstream(*arguments)
    assert (done.code, done.out) == (2, b"")
    assert "Traceback" not in done.err


def test_an_unknown_first_word_is_a_prompt() -> None:
    done = llmstream("hello there")
    assert done.code == 3
    assert "No server is named" in done.err
