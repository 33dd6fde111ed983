"""The command tree. A command's module is imported when the command is named, not before."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from llmstream_cli import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_COMMAND = "ask"
CHAT_COMMAND = "chat"
CHAT_FLAGS = frozenset({"-c", "--continue", "--session"})
HELP_NAMES = {"help_option_names": ["-h", "--help"]}

COMMANDS: dict[str, tuple[str, str]] = {
    "ask": ("ask:ask", "Ask one question and stream the answer."),
    "chat": ("chat:chat", "Talk with a model; every conversation is saved as it goes."),
    "diagnose": (
        "diagnose:diagnose_command",
        "Ask, then explain what became of each stop sequence, and why.",
    ),
    "replay": ("replay:replay", "Run a recorded exchange through the same pipeline, offline."),
    "simulate": ("simulate:simulate", "Be a server that answers, and fails, as told."),
    "tap": ("tap:tap", "Record what an application and its server say."),
    "models": ("models:models", "List the models that the server of a profile offers."),
    "servers": ("servers:servers", "Look for LLM servers at the well-known local ports."),
    "profiles": ("profiles:profiles_app", "Backend profiles: a server, a model and settings under one name."),
    "config": ("config:config_app", "The configuration file."),
}
"""Name -> where the command is (``module:attribute`` below this package), and its line in the help."""


class LazyGroup(TyperGroup):
    """``llmstream "prompt"`` is ``llmstream ask "prompt"``; commands load when they are named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if args and args[0].partition("=")[0] in CHAT_FLAGS:
            args = [CHAT_COMMAND, *args]
        elif args and args[0] not in COMMANDS and args[0] not in own:
            args = [DEFAULT_COMMAND, *args]
        elif not args and not _stdin_is_terminal():
            args = [DEFAULT_COMMAND]
        elif not args and _stdout_is_terminal():
            args = [CHAT_COMMAND]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def build_app() -> typer.Typer:
    """The application without its commands, which `LazyGroup` finds."""
    app = typer.Typer(
        name="llmstream",
        cls=LazyGroup,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP_NAMES,
        help="Talk to any LLM server, see the answer live, and know how it ended.",
        epilog='llmstream "why is the sky blue?" is short for llmstream ask "why is the sky blue?"',
    )
    app.callback()(_root)
    return app


def load_command(name: str) -> Any:
    """Import one command and make it what the parser wants."""
    place, _ = COMMANDS[name]
    module, _, attribute = place.partition(":")
    found: typer.Typer | Callable[..., int] = getattr(import_module(f"llmstream_cli.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        from llmstream_cli.cli.options import StrictCommand

        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name, cls=StrictCommand, context_settings=HELP_NAMES)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    return command


def _stdin_is_terminal() -> bool:
    return sys.stdin is None or sys.stdin.isatty()


def _stdout_is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _version(wanted: bool) -> None:
    if wanted:
        print(f"llmstream {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("-V", "--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    pass
