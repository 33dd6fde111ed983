"""The answer as text, as it comes: exact bytes to a pipe, made harmless on a terminal."""

from typing import Literal

from llmstream_cli.events import Event, ReasoningDelta, RefusalDelta, StreamEnd, TextDelta
from llmstream_cli.outcome import Outcome
from llmstream_cli.render.console import StandardError, StandardOutput
from llmstream_cli.render.sanitize import Sanitizer, harmless
from llmstream_cli.render.waiting import WaitingLine
from llmstream_cli.turn import Choice, ToolCall

ReasoningMode = Literal["show", "hide", "only"]


class PlainRenderer:
    """Text to stdout; reasoning, tool calls and notes to stderr.

    With several choices the first is shown live and the others after it.
    """

    def __init__(
        self, stdout: StandardOutput, stderr: StandardError, waiting: WaitingLine, reasoning: ReasoningMode
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._waiting = waiting
        self._reasoning = reasoning
        self._sanitizer = Sanitizer() if stdout.is_terminal else None
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
        if self._sanitizer and self._sanitizer.neutralised:
            count = self._sanitizer.neutralised
            self._stderr.line(
                f"note: {count} control character{'s' if count > 1 else ''} in the answer made visible", "dim"
            )

    def _later_choice(self, choice: Choice) -> None:
        self._stderr.line(f"choice {choice.index + 1}:", "dim")
        text = choice.reasoning if self._reasoning == "only" else choice.text or choice.refusal
        self._stdout.write((text or "") if self._sanitizer is None else self._sanitizer.feed(text or ""))
        self._finish_text()

    def _write(self, text: str) -> None:
        self._waiting.stop()
        self._stderr.end_line()
        self._stdout.write(text if self._sanitizer is None else self._sanitizer.feed(text))

    def _reason(self, text: str) -> None:
        match self._reasoning:
            case "show":
                self._waiting.stop()
                self._stderr.fragment(self._thoughts.feed(text), "dim")
            case "only":
                self._write(text)
            case "hide":
                self._waiting.thinking()

    def _end(self) -> None:
        self._waiting.stop()
        self._stderr.fragment(self._thoughts.end(), "dim")
        self._stderr.end_line()
        self._finish_text()

    def _finish_text(self) -> None:
        if self._sanitizer is not None:
            self._stdout.write(self._sanitizer.end())
        self._stdout.end_line()


def _tool_call(call: ToolCall) -> str:
    broken = "" if call.valid else "  (cut, or invalid JSON)"
    arguments = harmless(call.arguments_text, one_line=True)
    return f"tool call {harmless(call.name, one_line=True)}({arguments}){broken}"
