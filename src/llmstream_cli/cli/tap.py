"""``llmstream tap``: a recording proxy between an application and its server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llmstream_cli.errors import ConfigError, ExitCode, UsageError
from llmstream_cli.render.console import StandardError, StandardOutput

if TYPE_CHECKING:
    from llmstream_cli.tap.proxy import Tapped

_HIGHEST_PORT = 65535


def tap(
    base_url: Annotated[str, typer.Argument(metavar="URL", help="The server, e.g. localhost:8080.")],
    into: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the recordings go.")] = Path("tapped"),
    port: Annotated[int, typer.Option(metavar="N", help="0 = any free port.")] = 0,
) -> int:
    """Record what an application and its server say.

    Passes bytes on unchanged. Prints its base URL, then how each answer ended, until Ctrl-C.

    Example:

      llmstream tap localhost:8080 --into recordings --port 8090
    """
    from llmstream_cli.tap.proxy import TapServer
    from llmstream_cli.urls import normalise_base_url

    if not 0 <= port <= _HIGHEST_PORT:
        raise UsageError(f"--port wants a number from 0 to {_HIGHEST_PORT}, not {port}.")
    try:
        upstream = normalise_base_url(base_url)
    except ValueError as error:
        raise UsageError(f"{base_url}: {error}") from None
    try:
        into.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {into}: {error.strerror}") from error
    server = TapServer(upstream, into, port=port, on_tapped=_tell)
    StandardOutput().write(f"{server.base_url}\n")
    try:
        server.serve()
    except KeyboardInterrupt:
        StandardError().line("■ Stopped.")
    return ExitCode.OK


def _tell(tapped: "Tapped") -> None:
    """How the answer ended, by its recording."""
    from llmstream_cli.capture import read_capture
    from llmstream_cli.render.footer import print_ending
    from llmstream_cli.render.sanitize import harmless
    from llmstream_cli.session import replay
    from llmstream_cli.shapes import get_shape, shape_for_path
    from llmstream_cli.tap.silence import SilentRenderer

    stderr = StandardError()
    line = f"{tapped.method} {tapped.path}: {tapped.status or 'no answer'}, {tapped.file}"
    stderr.line(harmless(line, one_line=True), "dim")
    capture = read_capture(tapped.file)
    name = shape_for_path(capture.path, capture.body)
    if name is not None and tapped.status is not None:
        print_ending(replay(capture, get_shape(name), SilentRenderer()), stderr, footer=True, warnings=True)
