"""Fold the events of one answer into a `Turn`."""

import json
from dataclasses import dataclass, field, fields
from typing import assert_never

from llmstream_cli.events import (
    Event,
    Finish,
    FinishReason,
    Json,
    KeepAlive,
    LogprobsDelta,
    PrefillProgress,
    ReasoningDelta,
    RefusalDelta,
    ServerDetail,
    ServerTimings,
    StreamEnd,
    StreamStart,
    TextDelta,
    TimingsReport,
    ToolCallDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)

_PIECES_TO_JOIN = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call, parsed once, at the end. ``arguments`` is None where ``arguments_text`` is no JSON."""

    index: int
    id: str | None
    name: str
    arguments: Json
    arguments_text: str
    valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of the answers that were asked for; nearly always the only one."""

    index: int
    text: str
    reasoning: str | None
    refusal: str | None
    tool_calls: tuple[ToolCall, ...]
    finish: Finish | None
    logprobs: tuple[Json, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Everything that one answer said."""

    choices: tuple[Choice, ...]
    end: StreamEnd
    start: StreamStart
    usage: Usage | None
    timings: ServerTimings
    detail: dict[str, Json]
    events: int
    """Events that say something of the answer: text, finish, usage ...; neither its name nor keep-alives."""
    keep_alives: int
    unreadable: int

    @property
    def first(self) -> Choice:
        return self.choices[0]

    @property
    def truncated(self) -> bool:
        """The cap or the context cut an answer."""
        reasons = {choice.finish.reason for choice in self.choices if choice.finish}
        return bool(reasons & {FinishReason.LENGTH, FinishReason.CONTEXT})


class TurnBuilder:
    """``add`` every event in order; ``turn`` when `StreamEnd` has come."""

    def __init__(self) -> None:
        self._choices: dict[int, _ChoiceParts] = {}
        self._start = StreamStart()
        self._usage: Usage | None = None
        self._timings = ServerTimings()
        self._detail: dict[str, Json] = {}
        self._end: StreamEnd | None = None
        self.prefill: PrefillProgress | None = None
        self.events = 0
        self.keep_alives = 0
        self.unreadable = 0

    def add(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._choice(event.choice).text.write(event.text)
            case KeepAlive():
                self.keep_alives += 1
                return
            case UnknownFrame(cut=True):
                return
            case ReasoningDelta():
                self._choice(event.choice).reasoning.write(event.text)
            case RefusalDelta():
                self._choice(event.choice).refusal.write(event.text)
            case ToolCallDelta():
                self._choice(event.choice).tool_call(event)
            case LogprobsDelta():
                self._choice(event.choice).logprobs.append(event.data)
            case Finish():
                self._choice(event.choice).finish = event
            case StreamStart():
                # The answer's name is no part of the answer: it is not counted.
                self._start = event
                return
            case StreamEnd():
                self._end = event
                return
            case _:
                self._about_the_answer(event)
        self.events += 1

    def _about_the_answer(
        self,
        event: UsageReport | TimingsReport | ServerDetail | PrefillProgress | UnknownFrame,
    ) -> None:
        match event:
            case UsageReport():
                self._usage = _update(self._usage, event.usage)
            case TimingsReport():
                self._timings = event.timings
            case ServerDetail():
                self._detail.update(event.data)
            case PrefillProgress():
                self.prefill = event
            case UnknownFrame():
                self.unreadable += not event.readable
            case _:
                assert_never(event)

    def turn(self) -> Turn:
        if self._end is None:
            raise RuntimeError("the stream has not ended")
        choices = sorted(self._choices.items()) or [(0, _ChoiceParts())]
        return Turn(
            choices=tuple(parts.choice(index) for index, parts in choices),
            end=self._end,
            start=self._start,
            usage=self._usage,
            timings=self._timings,
            detail=self._detail,
            events=self.events,
            keep_alives=self.keep_alives,
            unreadable=self.unreadable,
        )

    def _choice(self, index: int) -> "_ChoiceParts":
        parts = self._choices.get(index)
        if parts is None:
            parts = self._choices[index] = _ChoiceParts()
        return parts


class _Text:
    """Text that grows by small pieces; `StringIO` keeps each of them as an object for long."""

    __slots__ = ("_joined", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._joined: list[str] = []

    def write(self, piece: str) -> None:
        self._pieces.append(piece)
        if len(self._pieces) == _PIECES_TO_JOIN:
            self._joined.append("".join(self._pieces))
            self._pieces.clear()

    def getvalue(self) -> str:
        return "".join((*self._joined, *self._pieces))


@dataclass(slots=True)
class _ChoiceParts:
    text: _Text = field(default_factory=_Text)
    reasoning: _Text = field(default_factory=_Text)
    refusal: _Text = field(default_factory=_Text)
    calls: dict[int, "_CallParts"] = field(default_factory=dict)
    logprobs: list[Json] = field(default_factory=list)
    finish: Finish | None = None

    def tool_call(self, event: ToolCallDelta) -> None:
        call = self.calls.setdefault(event.call, _CallParts())
        call.id = call.id or event.id
        call.name += event.name
        call.arguments.write(event.arguments)

    def choice(self, index: int) -> Choice:
        return Choice(
            index=index,
            text=self.text.getvalue(),
            reasoning=self.reasoning.getvalue() or None,
            refusal=self.refusal.getvalue() or None,
            tool_calls=tuple(call.tool_call(number) for number, call in sorted(self.calls.items())),
            finish=self.finish,
            logprobs=tuple(self.logprobs),
        )


@dataclass(slots=True)
class _CallParts:
    id: str | None = None
    name: str = ""
    arguments: _Text = field(default_factory=_Text)

    def tool_call(self, index: int) -> ToolCall:
        text = self.arguments.getvalue()
        try:
            # A call without parameters may come with no arguments at all.
            arguments, valid = (json.loads(text) if text.strip() else {}), True
        except (ValueError, RecursionError):
            arguments, valid = None, False
        return ToolCall(
            index=index, id=self.id, name=self.name, arguments=arguments, arguments_text=text, valid=valid
        )


def _update(before: Usage | None, after: Usage) -> Usage:
    """Replace what `after` reports, keep what it does not; never add."""
    if before is None:
        return after
    known = {
        item.name: getattr(after, item.name)
        for item in fields(Usage)
        if item.name != "raw" and getattr(after, item.name) is not None
    }
    return Usage(
        **{
            **{item.name: getattr(before, item.name) for item in fields(Usage)},
            **known,
            "raw": {**before.raw, **after.raw},
        }
    )
