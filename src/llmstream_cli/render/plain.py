"""The answer as text, as it comes: exact bytes to a pipe, made harmless on a terminal."""

from llmstream_cli.render.answer import AnswerRenderer, ReasoningMode
from llmstream_cli.render.console import StandardError, StandardOutput
from llmstream_cli.render.sanitize import Sanitizer
from llmstream_cli.render.waiting import WaitingLine

__all__ = ["PlainRenderer", "ReasoningMode", "TextPage"]


class TextPage:
    """Nothing but the text on stdout."""

    def __init__(self, stdout: StandardOutput) -> None:
        self._stdout = stdout
        self._sanitizer = Sanitizer() if stdout.is_terminal else None

    @property
    def neutralised(self) -> int:
        return self._sanitizer.neutralised if self._sanitizer else 0

    def write(self, text: str) -> None:
        self._stdout.write(text if self._sanitizer is None else self._sanitizer.feed(text))

    def end(self) -> None:
        if self._sanitizer is not None:
            self._stdout.write(self._sanitizer.end())
        self._stdout.end_line()

    def make_way(self) -> None:
        pass


class PlainRenderer(AnswerRenderer):
    """The text as it comes, for any standard output."""

    def __init__(
        self, stdout: StandardOutput, stderr: StandardError, waiting: WaitingLine, reasoning: ReasoningMode
    ) -> None:
        super().__init__(TextPage(stdout), stderr, waiting, reasoning)
