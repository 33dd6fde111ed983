"""What was said, as the fold of a conversation's records. Pure.

A record is one line of the file: ``{"type": ..., ...}``. The types:

``user``    a question: ``text``
``piece``   a part of the answer as it streams: ``text``
``answer``  the answer is over: the whole ``text``, ``cut``, ``model``, ``profile``
``resume``  the last answer is taken up again: the next pieces follow its text
``drop``    the last ``count`` messages are taken back
``forget``  the first ``count`` messages are taken out
``system``  the system prompt: ``text`` or null

Pieces without their ``answer`` are what is left when the program was killed. Unknown types are skipped, so
that an older program can read a newer one's file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from llmstream_cli.events import EndStatus, FinishReason, Json
from llmstream_cli.fields import as_int, as_text
from llmstream_cli.outcome import Outcome

Record = Mapping[str, Json]


class Cut(StrEnum):
    """Why an answer is not complete; `words` tells it to people and models."""

    STOPPED = "stopped"
    LENGTH = "length"
    CONTEXT = "context"
    INCOMPLETE = "incomplete"
    TIMEOUT = "timeout"
    ERROR = "error"
    KILLED = "killed"

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Cut.STOPPED: "stopped by the user",
    Cut.LENGTH: "the token limit was reached",
    Cut.CONTEXT: "the context window was full",
    Cut.INCOMPLETE: "the connection broke off",
    Cut.TIMEOUT: "the server fell silent",
    Cut.ERROR: "the server reported an error",
    Cut.KILLED: "the program ended",
}
_CUT_STATUS = {
    EndStatus.INCOMPLETE: Cut.INCOMPLETE,
    EndStatus.ERROR: Cut.ERROR,
    EndStatus.TIMEOUT: Cut.TIMEOUT,
    EndStatus.CANCELLED: Cut.STOPPED,
}
_CUT_REASON = {FinishReason.LENGTH: Cut.LENGTH, FinishReason.CONTEXT: Cut.CONTEXT}


def cut_of(outcome: Outcome) -> Cut | None:
    """None for an answer that is complete."""
    if outcome.status is not EndStatus.COMPLETE:
        return _CUT_STATUS[outcome.status]
    finish = outcome.turn.first.finish
    return _CUT_REASON.get(finish.reason) if finish else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message. ``cut``, ``model`` and ``profile`` are an answer's."""

    role: Literal["user", "assistant"]
    text: str
    cut: Cut | None = None
    model: str | None = None
    profile: str | None = None


class Dialogue:
    """``apply`` the records in order; ``said`` is what stands then.

    An answer without any text leaves no message.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.system: str | None = None
        self._said: list[Said] = []
        self._before = ""
        self._pieces: list[str] = []
        for record in records:
            self.apply(record)

    @property
    def said(self) -> tuple[Said, ...]:
        """With the answer that is being given, marked as cut for as long as it is."""
        text = self._before + "".join(self._pieces)
        if not text:
            return tuple(self._said)
        return (*self._said, Said(role="assistant", text=text, cut=Cut.KILLED))

    def apply(self, record: Record) -> None:
        text = as_text(record.get("text")) or ""
        match record.get("type"):
            case "user":
                self._settle()
                self._said.append(Said(role="user", text=text))
            case "piece":
                self._pieces.append(text)
            case "answer":
                self._before, self._pieces = "", []
                if text:
                    self._said.append(_answer(text, record))
            case "resume":
                self._settle()
                if self._said and self._said[-1].role == "assistant":
                    self._before = self._said.pop().text
            case "drop":
                self._settle()
                del self._said[max(0, len(self._said) - (as_int(record.get("count")) or 0)) :]
            case "forget":
                self._settle()
                del self._said[: as_int(record.get("count")) or 0]
            case "system":
                self.system = text or None
            case _:
                pass

    def _settle(self) -> None:
        """An answer whose end was never told stays as it is."""
        self._said = list(self.said)
        self._before, self._pieces = "", []


def _answer(text: str, record: Record) -> Said:
    said = Said(
        role="assistant",
        text=text,
        model=as_text(record.get("model")),
        profile=as_text(record.get("profile")),
    )
    cut = as_text(record.get("cut"))
    return replace(said, cut=Cut(cut) if cut in set(Cut) else Cut.INCOMPLETE) if cut else said
