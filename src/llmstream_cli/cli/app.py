"""The command tree, and the one place where errors become words and exit codes."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from llmstream_cli import __version__
from llmstream_cli.cli.ask import ask
from llmstream_cli.cli.config import config_app
from llmstream_cli.cli.models import models
from llmstream_cli.cli.options import StrictCommand
from llmstream_cli.cli.profiles import profiles_app
from llmstream_cli.cli.replay import replay
from llmstream_cli.cli.servers import servers
from llmstream_cli.errors import ExitCode, LlmstreamError

DEFAULT_COMMAND = "ask"
COMMANDS: dict[str, Callable[..., int]] = {"ask": ask, "replay": replay, "models": models, "servers": servers}
HELP_NAMES = {"help_option_names": ["-h", "--help"]}


class DefaultCommandGroup(TyperGroup):
    """``llmstream "prompt"`` is ``llmstream ask "prompt"``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if args and args[0] not in self.commands and args[0] not in own:
            args = [DEFAULT_COMMAND, *args]
        elif not args and not _stdin_is_terminal():
            args = [DEFAULT_COMMAND]
        return super().parse_args(ctx, args)


def build_app() -> typer.Typer:
    app = typer.Typer(
        name="llmstream",
        cls=DefaultCommandGroup,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP_NAMES,
        help="Talk to any LLM server, see the answer live, and know how it ended.",
        epilog='llmstream "why is the sky blue?" is short for llmstream ask "why is the sky blue?"',
    )
    app.callback()(_root)
    for name, command in COMMANDS.items():
        app.command(name, cls=StrictCommand, context_settings=HELP_NAMES)(command)
    app.add_typer(profiles_app, name="profiles")
    app.add_typer(config_app, name="config")
    return app


def run(arguments: Sequence[str]) -> int:
    """Parse and run; returns the exit code. Never raises."""
    signal.signal(signal.SIGINT, interrupt)
    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, _terminate)
    try:
        code = build_app()(list(arguments), standalone_mode=False)
    except LlmstreamError as error:
        return complain(error)
    except KeyboardInterrupt:
        _tell("■ Stopped by you.")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return ExitCode.PIPE_CLOSED
    except typer.Exit as left:
        return left.exit_code
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else ExitCode.INTERNAL
    except Exception as error:  # noqa: BLE001 - the last net: usage errors of the vendored parser, then bugs
        return _usage_or_bug(error)
    return code if isinstance(code, int) else ExitCode.OK


def complain(error: LlmstreamError) -> int:
    """Print an error that ends the run."""
    from llmstream_cli.render.sanitize import harmless

    _tell(f"✗ {harmless(error.message)}")
    if error.hint:
        _tell(f"  {harmless(error.hint)}")
    return error.exit_code


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """The first Ctrl-C ends the answer in good order; a second one leaves at once."""
    signal.signal(signal.SIGINT, _leave_at_once)
    raise KeyboardInterrupt


def _leave_at_once(_signal: int, _frame: FrameType | None) -> None:
    os._exit(ExitCode.INTERRUPTED)


def _terminate(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _usage_or_bug(error: Exception) -> int:
    # Typer's own copy of click is private; its usage errors are known by what they carry.
    show = getattr(error, "show", None)
    if callable(show) and hasattr(error, "format_message"):
        _tell(f"✗ {error.format_message()}")
        _tell("  llmstream --help shows what can be given.")
        return ExitCode.USAGE
    import traceback

    _tell(f"✗ Internal error, a bug in llmstream {__version__}: {type(error).__name__}: {error}")
    if os.environ.get("LLMSTREAM_DEBUG"):
        traceback.print_exc()
    else:
        _tell("  Set LLMSTREAM_DEBUG=1 to see where, and please report it.")
    return ExitCode.INTERNAL


def _tell(line: str) -> None:
    from llmstream_cli.render.console import StandardError

    StandardError().line(line)


def _stdin_is_terminal() -> bool:
    return sys.stdin is None or sys.stdin.isatty()


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"llmstream {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("-V", "--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    pass
