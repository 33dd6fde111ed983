"""Run the command line: the one place where errors become words and exit codes."""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import typer

from llmstream_cli import __version__
from llmstream_cli.cli.tree import build_app
from llmstream_cli.errors import ExitCode, LlmstreamError


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
    keyboard = sys.modules.get("llmstream_cli.chat.keyboard")
    if keyboard is not None:
        keyboard.loud_keyboard()
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
