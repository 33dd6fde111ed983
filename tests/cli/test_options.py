"""The flags as Typer sees them."""

import subprocess
import sys
from typing import Annotated, Any

import pytest
import typer

from llmstream_cli.cli.options import Flags, StrictCommand, check_values, takes_flags, takes_profile_flags
from llmstream_cli.errors import UsageError
from llmstream_cli.profiles import PROFILE_KEYS
from llmstream_cli.spec_table import SPECS

Seen = tuple[list[str] | None, dict[str, Any]]


def parse(*arguments: str) -> Seen:
    """Prompt and flags of a command line."""
    seen: list[Seen] = []
    app = typer.Typer(rich_markup_mode=None, add_completion=False)

    @app.command(cls=StrictCommand)
    @takes_flags
    def ask(flags: Flags, prompt: Annotated[list[str] | None, typer.Argument()] = None) -> None:
        seen.append((prompt, dict(flags.given)))

    app(list(arguments), standalone_mode=False)
    return seen[0]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("", {}),
        ("-p a --url h -m b -s c", {"profile": "a", "base_url": "h", "model": "b", "system": "c"}),
        (
            "-n 5 --temp 0 --top-p 1 --seed 7",
            {"max_tokens": "5", "temperature": "0", "top_p": "1", "seed": "7"},
        ),
        ("-n5 --seed=-1", {"max_tokens": "5", "seed": "-1"}),
        ("--stop a --stop b --stop-raw c", {"stop": ("a", "b"), "stop_raw": ("c",)}),
        ("-f a -f -", {"files": ("a", "-")}),
        ("-o a=1 --option b=2 -H X:1", {"options": ("a=1", "b=2"), "headers": ("X:1",)}),
        ("--enforce-stop", {"enforce_stop": True}),
        ("--no-enforce-stop --no-footer", {"enforce_stop": False, "footer": False}),
        ("-R", {"reasoning": "hide"}),
        ("--json", {"format": "json"}),
        ("--json --format json", {"format": "json"}),
        ("-v -vv --verbose", {"verbose": 4}),
        ("-q --plain --curl --no-stream", {"quiet": True, "plain": True, "curl": True, "no_stream": True}),
        ("--temperature -1", {"temperature": "-1"}),
        ("--stop=--verbose", {"stop": ("--verbose",)}),
        ("--stop --- --stop -", {"stop": ("---", "-")}),
        ("-s-e", {"system": "-e"}),
        ("-qn 3", {"quiet": True, "max_tokens": "3"}),
        ("-- --stop", {}),
    ],
)
def test_what_was_typed_and_nothing_else(arguments: str, given: dict[str, Any]) -> None:
    assert parse(*arguments.split())[1] == given


def test_the_prompt_is_what_is_left() -> None:
    assert parse("why", "-n", "3", "so?", "--", "--stop")[0] == ["why", "so?", "--stop"]
    assert parse("--system", "- be brief", "hi") == (["hi"], {"system": "- be brief"})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--stop --verbose hi", "--stop needs a value, not the option --verbose."),
        ("hi --stop -e", "--stop needs a value, not the option -e."),
        ("-vn -R", "-n needs a value, not the option -R."),
        ("--record --stop=x", "--record needs a value, not the option --stop=x."),
        ("hi --stop", "--stop needs a value."),
        ("--json --format text", "--json and --format text contradict each other."),
        ("-R --reasoning show", "-R and --reasoning show contradict each other."),
    ],
)
def test_an_option_without_its_value_is_wrong_usage(arguments: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(*arguments.split())
    assert caught.value.message == complaint
    assert caught.value.exit_code == 2


def test_the_hint_is_what_works() -> None:
    with pytest.raises(UsageError) as caught:
        check_values(["-s", "-x"], {"-s"})
    assert caught.value.hint == "If meant: -s-x"


def test_a_profiles_options_are_those_that_it_can_hold() -> None:
    seen: list[Flags] = []
    app = typer.Typer(rich_markup_mode=None, add_completion=False)

    @app.command(cls=StrictCommand)
    @takes_profile_flags
    def add(name: str, flags: Flags) -> None:
        seen.append(flags)

    names = {parameter.name for parameter in typer.main.get_command(app).params}
    expected = {spec.name for spec in SPECS.values() if spec.profile and spec.flags}
    assert expected <= names
    assert expected <= set(PROFILE_KEYS)
    assert not names & {"profile", "record", "curl", "stop_raw"}
    app(["n", "-m", "x"], standalone_mode=False)
    assert seen == [Flags(given={"model": "x"})]


def test_help_needs_no_configuration_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from llmstream_cli.cli.profiles import profiles_app\n"
        "try: profiles_app(['add', '-h'])\n"
        "finally: print({'httpx', 'httpcore', 'rich.markdown', 'platformdirs', 'tomllib'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"LLMSTREAM_CONFIG": "nowhere/config.toml"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--max-tokens N" in done.stdout
    assert "[default: 180]" in done.stdout
    assert done.stdout.endswith("set()\n")
