"""Reasoning that stands as ``<think>`` ... ``</think>`` inside the text: told apart from the answer. Pure.

Many servers without a reasoning parser pass on what the model wrote. The tags count only where a chat
template puts them, the opening one before anything else, so that an answer *about* the tags stays whole.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from llmstream_cli.events import EndStatus, Event, Finish, FinishReason, ReasoningDelta, StreamEnd, TextDelta

_OPEN = "<think>"
_CLOSE = "</think>"
_CLOSE_ON_ITS_OWN = re.compile(rf"{_CLOSE}[ \t]*(?:[\r\n]\s*|\Z)")
_BY_ITSELF = (FinishReason.STOP, FinishReason.EOS, FinishReason.STOP_SEQUENCE)


class TagFault(Enum):
    """What was wrong with the tags of an answer. ``UNOPENED``: the template has written the opening one."""

    UNCLOSED = auto()
    UNOPENED = auto()


def names_a_tag(stops: Sequence[str]) -> bool:
    """A stop string that holds a tag needs the text as it came."""
    return any(tag in stop for stop in stops for tag in (_OPEN, _CLOSE))


class _Place(Enum):
    START = auto()
    REASONING = auto()
    AFTER = auto()
    TEXT = auto()


@dataclass(slots=True)
class _Choice:
    """``held`` may be the beginning of a tag, or white space beside one."""

    place: _Place = _Place.START
    held: str = ""
    thoughts: list[str] = field(default_factory=list)
    natural: bool = False


class ThinkSplitter:
    """Makes reasoning of the text between the tags; the tags and the white space behind them are dropped.

    Text is held back only while it may be the beginning of a tag. An answer that the model ended by itself
    inside the tags is given as text too, at the end: it is likely to be the answer, and must not be lost.
    """

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._given_back: set[int] = set()
        self.fault: TagFault | None = None

    def filter(self, events: list[Event]) -> list[Event]:
        passed: list[Event] = []
        for event in events:
            match event:
                case TextDelta():
                    choice = self._choices.setdefault(event.choice, _Choice())
                    if choice.place is _Place.TEXT:
                        passed.append(event)
                    else:
                        self._text(choice, event, passed)
                    continue
                case ReasoningDelta():
                    # The server tells reasoning apart by itself.
                    self._settle(event.choice, passed)
                case Finish():
                    self._finish(event, passed)
                case StreamEnd():
                    self._end(event, passed)
                case _:
                    pass
            passed.append(event)
        return passed

    def separated(self, index: int, text: str, reasoning: str | None) -> tuple[str, str | None]:
        """The text and the reasoning of a choice that has ended, where only its end told them apart.

        What came before a closing tag without an opening one was shown as text: on a live stream that cannot
        be taken back, in the turn it is put right.
        """
        if index in self._given_back:
            return text, None
        found = None if reasoning else _CLOSE_ON_ITS_OWN.search(text)
        if found is None or _OPEN in text[: found.start()] or _CLOSE in text[found.end() :]:
            return text, reasoning
        self.fault = TagFault.UNOPENED
        return text[found.end() :], text[: found.start()] or None

    def _text(self, choice: _Choice, event: TextDelta, passed: list[Event]) -> None:
        text, choice.held = choice.held + event.text, ""
        if choice.place is _Place.START:
            begun = text.lstrip()
            if begun.startswith(_OPEN):
                choice.place, text = _Place.REASONING, begun.removeprefix(_OPEN)
            elif _OPEN.startswith(begun):
                choice.held = text
                return
            else:
                choice.place = _Place.TEXT
        if choice.place is _Place.REASONING:
            text = _reason(choice, text, event.choice, passed)
        if choice.place is _Place.AFTER and (text := text.lstrip()):
            choice.place = _Place.TEXT
        if text:
            passed.append(TextDelta(text=text, choice=event.choice))

    def _settle(self, index: int, passed: list[Event]) -> None:
        choice = self._choices.setdefault(index, _Choice())
        if choice.place is _Place.START:
            choice.place = _Place.TEXT
            self._release(index, choice, passed)

    def _finish(self, event: Finish, passed: list[Event]) -> None:
        choice = self._choices.setdefault(event.choice, _Choice())
        choice.natural = event.reason in _BY_ITSELF
        self._release(event.choice, choice, passed)

    def _release(self, index: int, choice: _Choice, passed: list[Event]) -> None:
        """What was held back is no tag after all."""
        held, choice.held = choice.held, ""
        if choice.place is _Place.REASONING:
            _think(choice, held, index, passed)
        elif held:
            choice.place = _Place.TEXT
            passed.append(TextDelta(text=held, choice=index))

    def _end(self, event: StreamEnd, passed: list[Event]) -> None:
        for index, choice in self._choices.items():
            self._release(index, choice, passed)
            if choice.place is _Place.REASONING and choice.natural and event.status is EndStatus.COMPLETE:
                self.fault = TagFault.UNCLOSED
                self._given_back.add(index)
                if choice.thoughts:
                    passed.append(TextDelta(text="".join(choice.thoughts), choice=index))


def _reason(choice: _Choice, text: str, index: int, passed: list[Event]) -> str:
    """Pass on the reasoning in `text`; what comes behind its closing tag."""
    thought, tag, rest = text.partition(_CLOSE)
    if tag:
        choice.place = _Place.AFTER
    else:
        cut = _partial(thought)
        thought, choice.held = thought[:cut], thought[cut:]
    _think(choice, thought, index, passed)
    return rest


def _think(choice: _Choice, text: str, index: int, passed: list[Event]) -> None:
    if not choice.thoughts:
        text = text.lstrip()
    if text:
        choice.thoughts.append(text)
        passed.append(ReasoningDelta(text=text, choice=index))


def _partial(text: str) -> int:
    """Where the beginning of a closing tag stands at the end of `text`, else its length."""
    for size in range(min(len(_CLOSE) - 1, len(text)), 0, -1):
        if text.endswith(_CLOSE[:size]):
            return len(text) - size
    return len(text)
