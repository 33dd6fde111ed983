"""What the user sees. One function chooses the renderer."""

import sys
from dataclasses import dataclass, field
from typing import Literal, assert_never

from llmstream_cli.render.base import Renderer
from llmstream_cli.render.console import ColorMode, StandardError, StandardOutput
from llmstream_cli.render.waiting import WaitingLine

OutputFormat = Literal["text", "markdown", "json", "jsonl", "raw"]

__all__ = ["ColorMode", "Output", "OutputFormat", "Renderer", "choose_renderer", "open_output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The places that output goes to, and how."""

    stdout: StandardOutput = field(default_factory=StandardOutput)
    stderr: StandardError = field(default_factory=StandardError)
    waiting: WaitingLine = field(default_factory=lambda: WaitingLine(enabled=False))


def open_output(*, color: ColorMode, plain: bool, term: str | None) -> Output:
    """Look at the standard streams once. `term` is the value of TERM."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    waiting = WaitingLine(enabled=is_terminal and not plain and term != "dumb")
    return Output(stderr=StandardError(color, waiting.aside), waiting=waiting)


def choose_renderer(
    output: Output, chosen: OutputFormat, reasoning: Literal["show", "hide", "only"] | None
) -> Renderer:
    """`reasoning` None: shown to a person at a terminal, hidden from a script."""
    match chosen:
        case "text" | "markdown":
            from llmstream_cli.render.plain import PlainRenderer

            default: Literal["show", "hide"] = "show" if output.stderr.is_terminal else "hide"
            return PlainRenderer(output.stdout, output.stderr, output.waiting, reasoning or default)
        case "json":
            from llmstream_cli.render.machine import JsonRenderer

            return JsonRenderer(output.stdout, output.waiting)
        case "jsonl":
            from llmstream_cli.render.machine import JsonLinesRenderer

            return JsonLinesRenderer(output.stdout, output.waiting)
        case "raw":
            from llmstream_cli.render.machine import RawRenderer

            return RawRenderer(output.stdout, output.waiting)
    assert_never(chosen)
