"""What the user sees. One function chooses the renderer."""

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, assert_never

from llmstream_cli.render.base import Renderer
from llmstream_cli.render.console import ColorMode, StandardError, StandardOutput
from llmstream_cli.render.markdown.painting import Painting, painting_on
from llmstream_cli.render.waiting import WaitingLine

OutputFormat = Literal["text", "markdown", "json", "jsonl", "raw"]

__all__ = ["ColorMode", "Output", "OutputFormat", "Renderer", "choose_renderer", "open_output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The places that output goes to, and how. ``painting`` None: stdout takes only text as it comes."""

    stdout: StandardOutput = field(default_factory=StandardOutput)
    stderr: StandardError = field(default_factory=StandardError)
    waiting: WaitingLine = field(default_factory=lambda: WaitingLine(enabled=False))
    painting: Painting | None = None


def open_output(
    *, color: ColorMode, plain: bool, term: str | None, env: Mapping[str, str] = MappingProxyType({})
) -> Output:
    """Look at the standard streams once. `term` is the value of TERM; without `env` nothing is painted."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    waiting = WaitingLine(enabled=is_terminal and not plain and term != "dumb")
    stdout = StandardOutput()
    painting = None
    if stdout.is_terminal and not plain:
        painting = painting_on(env, color, sys.stdout.encoding, windows=os.name == "nt")

    def aside() -> AbstractContextManager[None]:
        # Where both streams go to one place, what was written first stands first.
        with suppress(BrokenPipeError):
            stdout.flush()
        return waiting.aside()

    return Output(stdout=stdout, stderr=StandardError(color, aside), waiting=waiting, painting=painting)


def choose_renderer(
    output: Output, chosen: OutputFormat | None, reasoning: Literal["show", "hide", "only"] | None
) -> Renderer:
    """`chosen` None: Markdown where it can be painted, else text; Markdown elsewhere is its text.

    `reasoning` None: shown to a person at a terminal, hidden from a script.
    """
    match chosen:
        case "text" | "markdown" | None:
            shown = reasoning or ("show" if output.stderr.is_terminal else "hide")
            return _for_people(output, shown, markdown=chosen != "text")
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


def _for_people(output: Output, reasoning: Literal["show", "hide", "only"], *, markdown: bool) -> Renderer:
    if markdown and output.painting is not None:
        from llmstream_cli.render.markdown.renderer import MarkdownRenderer

        return MarkdownRenderer(output.stdout, output.stderr, output.waiting, reasoning, output.painting)
    from llmstream_cli.render.plain import PlainRenderer

    return PlainRenderer(output.stdout, output.stderr, output.waiting, reasoning)
