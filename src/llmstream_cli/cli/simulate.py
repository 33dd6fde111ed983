"""``llmstream simulate``: a server that answers and fails as told."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llmstream_cli.errors import ConfigError, ExitCode, UsageError
from llmstream_cli.render.console import StandardError, StandardOutput
from llmstream_cli.render.sanitize import harmless
from llmstream_cli.shapes import SHAPES

if TYPE_CHECKING:
    from llmstream_cli.simulate.replies import Reply
    from llmstream_cli.simulate.server import Served

DEFAULT_SHAPE = "openai-chat"
DEFAULT_TEXT = "Grüße! This answer is simulated, a word an event 🙂."
_HIGHEST_PORT = 65535


def simulate(
    shape: Annotated[
        str | None, typer.Option(metavar="NAME", help="The API to speak (default: openai-chat).")
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="The answer, a word an event.")] = None,
    capture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Answer as recorded, instead of with a text.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=N]", help="What goes wrong; may be given again. --list names them."),
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", help="0 = any free port.")] = 0,
    list_faults: Annotated[bool, typer.Option("--list", help="Name all faults.")] = False,
) -> int:
    """Be a server that answers, and fails, as told.

    For tests of clients: speaks on a loopback port, prints its base URL and runs until Ctrl-C.

    Example:

      llmstream simulate --shape openai-chat --fault cut-after-event=5 --port 8099
    """
    from llmstream_cli.simulate.faults import apply_faults, parse_fault

    if list_faults:
        return _list_faults()
    if text is not None and capture is not None:
        raise UsageError("--text and --capture contradict each other.")
    if not 0 <= port <= _HIGHEST_PORT:
        raise UsageError(f"--port wants a number from 0 to {_HIGHEST_PORT}, not {port}.")
    from llmstream_cli.simulate.server import SimulatedServer

    chosen = [parse_fault(given) for given in fault or ()]
    reply = apply_faults(_reply(shape, text, capture), chosen)
    server = SimulatedServer(reply, port=port, on_served=_tell)
    StandardOutput().write(f"{server.base_url}\n")
    try:
        server.serve()
    except KeyboardInterrupt:
        StandardError().line("■ Stopped.")
    return ExitCode.OK


def _tell(served: "Served") -> None:
    left = ", the client left before the end" if served.client_left else ""
    line = f"{served.method} {served.path}: {served.status}, {served.sent_bytes} bytes sent{left}"
    StandardError().line(harmless(line, one_line=True), "dim")


def _list_faults() -> int:
    from llmstream_cli.simulate.faults import FAULTS

    width = max(len(fault.usage) for fault in FAULTS.values())
    stdout = StandardOutput()
    for fault in FAULTS.values():
        stdout.write(f"{fault.usage:{width}}  {fault.help}\n")
    return ExitCode.OK


def _reply(name: str | None, text: str | None, file: Path | None) -> "Reply":
    from llmstream_cli.shapes import get_shape
    from llmstream_cli.simulate.forms import FORMS
    from llmstream_cli.simulate.replies import reply_of_text

    if name is not None and name not in SHAPES:
        raise UsageError(f"There is no shape {name!r}.", hint=f"There are: {', '.join(SHAPES)}")
    if file is not None:
        return _recorded_reply(name, file)
    name = name or DEFAULT_SHAPE
    if name not in FORMS:
        raise UsageError(
            f"The shape {name} can only be simulated from a recording.",
            hint=f"Give --capture FILE, or one of: {', '.join(FORMS)}",
        )
    return reply_of_text(DEFAULT_TEXT if text is None else text, get_shape(name))


def _recorded_reply(name: str | None, file: Path) -> "Reply":
    from llmstream_cli.capture import read_capture
    from llmstream_cli.shapes import get_shape, shape_for_path
    from llmstream_cli.simulate.replies import reply_of_capture

    capture = read_capture(file)
    for fault in capture.faults:
        StandardError().line(f"⚠ {file}: {fault}", "warning")
    name = name or shape_for_path(capture.path, capture.body)
    if name is None:
        raise ConfigError(f"cannot tell the shape of {capture.path or file}", hint="Give it with --shape.")
    return reply_of_capture(capture, get_shape(name))
