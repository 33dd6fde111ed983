"""``llmstream config``: the file that people edit."""

import os
import sys
from pathlib import Path

import typer

from llmstream_cli.cli.options import StrictCommand
from llmstream_cli.cli.shown import print_warnings, shown_value
from llmstream_cli.errors import ConfigError
from llmstream_cli.paths import config_file
from llmstream_cli.profiles import load_store
from llmstream_cli.render.console import StandardError, StandardOutput

_HEADING = """\
# llmstream: settings and profiles. `llmstream config edit` opens this file and checks it afterwards.
# What the commands `llmstream profiles add/set/use` write goes into profiles.toml beside it and wins.

# The profile used when neither -p nor --base-url is given:
# default_profile = "ollama"

# Settings for every profile stand here, before the first [table]. A profile, a LLMSTREAM_* variable and a
# flag win over them, in this order.
# max_tokens = 1000
# reasoning = "hide"
# idle_timeout = 60

# [profiles.work]
# base_url = "https://llm.example.com/v1"
# model = "qwen3-32b"
# api_key_env = "WORK_API_KEY"              # the name of a variable, not the key
# api_key_cmd = ["pass", "show", "llm/work"]  # or a command that prints it
# stop = ["\\nUser:"]
# headers = { "X-Title" = "notes" }
# options = { top_k = 40 }                    # any field of the request body
"""

config_app = typer.Typer(
    name="config",
    help="The configuration file.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@config_app.command("path", cls=StrictCommand)
def path() -> None:
    """Print the path of the configuration file.

    Example:

      cat "$(llmstream config path)"
    """
    StandardOutput().write(f"{config_file(os.environ)}\n")


@config_app.command("show", cls=StrictCommand)
def show() -> None:
    """Print what the configuration files say, as TOML, secrets masked."""
    import tomli_w

    from llmstream_cli.documents import read_document
    from llmstream_cli.keys import read_keys

    store = load_store(config_file(os.environ))
    print_warnings(store.warnings)
    stdout = StandardOutput()
    for file in (store.config_file, store.commands_file):
        tables = read_document(file).tables
        stdout.write(f"# {file}{'' if file.exists() else ' (does not exist)'}\n")
        stdout.write(tomli_w.dumps(_masked(tables)) + "\n" if tables else "\n")
    names = ", ".join(read_keys(store.keys_file))
    if names:
        stdout.write(f"# {store.keys_file}: API keys of {names}\n")


@config_app.command("edit", cls=StrictCommand)
def edit() -> None:
    """Open the configuration file in $VISUAL or $EDITOR and check it afterwards."""
    file = config_file(os.environ)
    if not file.exists():
        _create(file)
    import subprocess

    command = [*_editor(), str(file)]
    try:
        status = subprocess.call(command)
    except OSError as error:
        raise ConfigError(f"The editor {command[0]} cannot be run: {error.strerror}") from None
    if status:
        raise ConfigError(f"The editor {command[0]} failed with exit status {status}.")
    print_warnings(load_store(file).warnings)
    StandardError().line(f"✓ {file} is valid.", "ok")


def _create(file: Path) -> None:
    from llmstream_cli.files import write_private

    try:
        write_private(file, _HEADING.encode())
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None


def _editor() -> list[str]:
    """The user's editor with its arguments, else what the system has."""
    import shlex

    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not named:
        return ["notepad" if sys.platform == "win32" else "vi"]
    # On Windows a backslash separates folders and escapes nothing.
    return shlex.split(named, posix=sys.platform != "win32")


def _masked(tables: dict[str, object]) -> dict[str, object]:
    """The same tables with secret headers and what a URL may hide masked."""
    return {
        key: _masked(value) if isinstance(value, dict) and key != "headers" else shown_value(key, value)
        for key, value in tables.items()
    }
