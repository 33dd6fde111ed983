"""One answer for a person: its text on a page, everything else on standard error."""

from typing import Literal, Protocol

from llmstream_cli.events import Event, ReasoningDelta, RefusalDelta, StreamEnd, TextDelta
from llmstream_cli.outcome import Outcome
from llmstream_cli.render.console import StandardError
from llmstream_cli.render.sanitize import Sanitizer, harmless
from llmstream_cli.render.waiting import WaitingLine
from llmstream_cli.turn import Choice, ToolCall

ReasoningMode = Literal["show", "hide", "only"]


class Page(Protocol):
    """Where the answer's text goes. May raise BrokenPipeError."""

    @property
    def neutralised(self) -> int:
        """How many control characters were made visible."""

    def write(self, text: str) -> None:
        """The next piece of the text."""

    def end(self) -> None:
        """The text is over; what comes next begins on a line of its own."""

    def make_way(self) -> None:
        """Something else is about to be printed on the same terminal: take away what moves."""


class AnswerRenderer:
    """Text to a page; reasoning, tool calls and notes to stderr.

    With several choices the first is shown live and the others after it.
    """

    def __init__(
        self, page: Page, stderr: StandardError, waiting: WaitingLine, reasoning: ReasoningMode
    ) -> None:
        self._page = page
        self._stderr = stderr
        self._waiting = waiting
        self._reasoning = reasoning
        self._thoughts = Sanitizer()

    def raw(self, data: bytes) -> None:
        pass

    def event(self, event: Event) -> None:
        match event:
            case TextDelta(choice=0):
                if self._reasoning != "only":
                    self._write(event.text)
            case ReasoningDelta(choice=0):
                self._reason(event.text)
            case RefusalDelta(choice=0):
                self._write(event.text)
            case StreamEnd():
                self._end()
            case _:
                self._waiting.note(event)

    def finish(self, outcome: Outcome) -> None:
        self._waiting.stop()
        if outcome.reader_gone:
            return
        for choice in outcome.turn.choices:
            if choice.index:
                self._later_choice(choice)
            for call in choice.tool_calls:
                self._stderr.line(_tool_call(call))
        count = self._page.neutralised
        if count:
            self._stderr.line(
                f"note: {count} control character{'s' if count > 1 else ''} in the answer made visible", "dim"
            )

    def _later_choice(self, choice: Choice) -> None:
        self._stderr.line(f"choice {choice.index + 1}:", "dim")
        text = choice.reasoning if self._reasoning == "only" else choice.text or choice.refusal
        self._page.write(text or "")
        self._page.end()

    def _write(self, text: str) -> None:
        self._waiting.stop()
        self._stderr.end_line()
        self._page.write(text)

    def _reason(self, text: str) -> None:
        match self._reasoning:
            case "show":
                self._waiting.stop()
                self._page.make_way()
                self._stderr.fragment(self._thoughts.feed(text), "dim")
            case "only":
                self._write(text)
            case "hide":
                self._waiting.thinking()

    def _end(self) -> None:
        self._waiting.stop()
        self._page.make_way()
        self._stderr.fragment(self._thoughts.end(), "dim")
        self._stderr.end_line()
        self._page.end()


def _tool_call(call: ToolCall) -> str:
    broken = "" if call.valid else "  (cut, or invalid JSON)"
    arguments = harmless(call.arguments_text, one_line=True)
    return f"tool call {harmless(call.name, one_line=True)}({arguments}){broken}"
