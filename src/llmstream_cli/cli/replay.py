"""``llmstream replay FILE``: a recorded exchange through the same pipeline."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from llmstream_cli.capture import Capture, read_capture
from llmstream_cli.cli.options import takes_flags
from llmstream_cli.cli.setup import Run, conclude, start
from llmstream_cli.errors import ConfigError, ExitCode, UsageError
from llmstream_cli.planning import configured_shape
from llmstream_cli.render import choose_renderer
from llmstream_cli.session import replay as replay_capture
from llmstream_cli.settings import Flags
from llmstream_cli.shapes import SHAPES, Shape, shape_for_path


@takes_flags
def replay(
    flags: Flags,
    file: Annotated[Path, typer.Argument(help="A file written by --record.")],
    speed: Annotated[
        float, typer.Option(metavar="X", help="1 = at the pace of the recording, 2 = twice it, 0 = at once.")
    ] = 0.0,
    split: Annotated[
        str | None,
        typer.Option(metavar="N|bytes", help="Cut the bytes anew: reads of N bytes, or of one byte."),
    ] = None,
    diff: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Show where the events differ; exit code 11 if they do."),
    ] = None,
) -> int:
    """Run a recorded exchange through the same pipeline, offline.

    Example:

      llmstream replay answer.jsonl --format json
    """
    if not 0 <= speed < float("inf"):
        raise UsageError("--speed wants a number that is not negative.")
    run = start(flags, needs_server=False)
    capture, shape = _read(file, run, split)
    if diff is not None:
        return _compare((capture, shape, str(file)), (*_read(diff, run, split), str(diff)), run)
    settings = run.settings
    outcome = replay_capture(
        capture,
        shape,
        choose_renderer(run.output, settings.format, settings.reasoning),
        stops=settings.stop,
        think_tags=settings.think_tags,
        speed=speed,
    )
    return conclude(outcome, settings, run.output)


def _read(file: Path, run: Run, split: str | None) -> tuple[Capture, Shape]:
    """The recording and the shape that reads it; what is damaged or missing is told."""
    size = _read_size(split)
    capture = read_capture(file)
    for fault in capture.faults:
        run.output.stderr.line(f"⚠ {file}: {fault}", "warning")
    if size is not None:
        from llmstream_cli.session.pacing import recut

        capture = replace(capture, reads=tuple(recut(capture.reads, size)))
    chosen = run.settings.shape
    name = chosen if chosen in SHAPES else shape_for_path(capture.path, capture.body)
    if name is None:
        raise ConfigError(
            f"cannot tell the shape of {capture.path or 'this capture'}", hint="Give it with --shape."
        )
    return capture, configured_shape(name, run.settings.stream)


def _read_size(split: str | None) -> int | None:
    if split is None:
        return None
    if split == "bytes":
        return 1
    if split.isascii() and split.isdigit() and int(split) > 0:
        return int(split)
    raise UsageError("--split wants a number of bytes from 1 up, or the word bytes.")


def _compare(left: tuple[Capture, Shape, str], right: tuple[Capture, Shape, str], run: Run) -> int:
    from llmstream_cli.render.sanitize import harmless
    from llmstream_cli.session.comparing import differences

    lines = differences(left, right)
    if not lines:
        run.output.stderr.line("✓ the two recordings say the same", "ok")
        return ExitCode.OK
    for line in lines:
        run.output.stdout.write(harmless(line) + "\n")
    return ExitCode.DIFFERENT
