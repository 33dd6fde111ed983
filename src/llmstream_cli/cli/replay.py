"""``llmstream replay FILE``: a recorded exchange through the same pipeline."""

from pathlib import Path
from typing import Annotated

import typer

from llmstream_cli.capture import read_capture
from llmstream_cli.cli.options import takes_flags
from llmstream_cli.cli.setup import conclude, start
from llmstream_cli.errors import ConfigError
from llmstream_cli.planning import configured_shape
from llmstream_cli.render import choose_renderer
from llmstream_cli.session import replay as replay_capture
from llmstream_cli.settings import Flags
from llmstream_cli.shapes import SHAPES, shape_for_path


@takes_flags
def replay(flags: Flags, file: Annotated[Path, typer.Argument(help="A file written by --record.")]) -> int:
    """Run a recorded exchange through the same pipeline, offline.

    Example:

      llmstream replay answer.jsonl --format json
    """
    run = start(flags, needs_server=False)
    settings, output = run.settings, run.output
    capture = read_capture(file)
    for fault in capture.faults:
        output.stderr.line(f"⚠ {file}: {fault}", "warning")
    name = settings.shape if settings.shape in SHAPES else shape_for_path(capture.path, capture.body)
    if name is None:
        raise ConfigError(
            f"cannot tell the shape of {capture.path or 'this capture'}", hint="Give it with --shape."
        )
    renderer = choose_renderer(output, settings.format or "text", settings.reasoning)
    outcome = replay_capture(
        capture,
        configured_shape(name, settings.stream),
        renderer,
        stops=settings.stop,
        think_tags=settings.think_tags,
    )
    return conclude(outcome, settings, output)
