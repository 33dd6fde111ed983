"""The answer as live Markdown, for a person at a terminal."""

from llmstream_cli.render.answer import AnswerRenderer, ReasoningMode
from llmstream_cli.render.console import StandardError, StandardOutput
from llmstream_cli.render.markdown.page import MarkdownPage, preload
from llmstream_cli.render.markdown.painting import Painting
from llmstream_cli.render.waiting import WaitingLine


class MarkdownRenderer(AnswerRenderer):
    """The text as Markdown on the terminal that stdout is."""

    def __init__(
        self,
        stdout: StandardOutput,
        stderr: StandardError,
        waiting: WaitingLine,
        reasoning: ReasoningMode,
        painting: Painting,
    ) -> None:
        super().__init__(MarkdownPage(stdout, painting), stderr, waiting, reasoning)
        waiting.meanwhile(preload)
