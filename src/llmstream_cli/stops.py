r"""Stop strings: escapes on the command line, and stopping locally what the server did not stop. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from llmstream_cli.events import Event, Finish, FinishReason, StreamEnd, TextDelta

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([ntr\\]))")
_STOPPED = (FinishReason.STOP, FinishReason.STOP_SEQUENCE)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


def decode_escapes(text: str) -> str:
    r"""Decode ``\n \t \r \\ \uXXXX \xXX``; any other backslash stays as it is.

    >>> decode_escapes(r"\nUser:")
    '\nUser:'
    """

    def replace(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _NAMED[match[3]]

    decoded = _ESCAPE.sub(replace, text)
    # Two \uXXXX escapes may spell one character outside the basic plane.
    return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@dataclass(frozen=True, slots=True)
class Match:
    """A stop string was completed: what may be shown before it, which one it was, what came behind it."""

    text: str
    stop: str
    rest: str = ""


class StopGuard:
    """Finds stop strings in a text that comes in pieces and holds back what may be the start of one.

    The string that is complete first wins; of two that end at the same place, the longer. So the result does
    not depend on how the text was cut, and nothing is held back for longer than needed.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""

    def feed(self, text: str) -> str | Match:
        """What may be shown now, or the match that ends the answer."""
        text = self._held + text
        found = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            end, start, stop = min(found)
            return Match(text[:start], stop, text[end:])
        hold = self._partial(text)
        self._held = text[hold:]
        return text[:hold]

    def release(self) -> str:
        """The answer is over: what was held back is text after all."""
        held, self._held = self._held, ""
        return held

    def _partial(self, text: str) -> int:
        """Where the longest proper prefix of a stop string begins at the end of `text`, else its length."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            tail = text[start:]
            if any(len(stop) > len(tail) and stop.startswith(tail) for stop in self._stops):
                return start
        return len(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStop:
    """A stop string that was cut here, on the client.

    ``server_went_on``: text came after it, so the server did not stop by itself.
    """

    stop: str
    server_went_on: bool


class StopEnforcer:
    """Applies stop strings to the events of an answer, whatever the server does with them.

    Text up to the match passes, the stop string and what follows it do not. After a match the server may
    still say that it stopped too (some servers leave the stop string in the text): only further text proves
    that it did not.
    """

    def __init__(self, stops: Sequence[str], choices: int = 1) -> None:
        self._stops = stops
        self._expected = choices
        self._guards: dict[int, StopGuard] = {}
        self._matched: dict[int, str] = {}
        self._went_on: set[int] = set()
        self._trailed: set[int] = set()
        self._finished: set[int] = set()

    @property
    def matched(self) -> bool:
        """Every choice has either matched a stop string or ended by itself, and at least one matched."""
        return bool(self._matched) and len(self._matched.keys() | self._finished) >= self._expected

    @property
    def overrun(self) -> bool:
        """The server goes on after every match: there is nothing more to wait for."""
        return bool(self._went_on) and len(self._went_on | self._finished) >= self._expected

    def local_stop(self, choice: int = 0) -> LocalStop | None:
        stop = self._matched.get(choice)
        return None if stop is None else LocalStop(stop=stop, server_went_on=choice in self._went_on)

    def filter(self, events: list[Event]) -> list[Event]:
        passed: list[Event] = []
        for event in events:
            match event:
                case TextDelta():
                    self._text(event, passed)
                case Finish():
                    self._finish(event, passed)
                case StreamEnd():
                    for choice in self._guards:
                        self._release(choice, passed)
                    passed += self._missing_finishes()
                    passed.append(event)
                case _:
                    passed.append(event)
        return passed

    def _text(self, event: TextDelta, passed: list[Event]) -> None:
        if event.choice in self._matched:
            self._went_on.add(event.choice)
            return
        guard = self._guards.setdefault(event.choice, StopGuard(self._stops))
        shown = guard.feed(event.text)
        if isinstance(shown, Match):
            self._matched[event.choice] = shown.stop
            if shown.rest:
                self._trailed.add(event.choice)
            shown = shown.text
        if shown:
            passed.append(TextDelta(text=shown, choice=event.choice))

    def _finish(self, event: Finish, passed: list[Event]) -> None:
        self._finished.add(event.choice)
        stop = self._matched.get(event.choice)
        if stop is not None:
            # A server may stop at the end of the token that holds the stop string; then it says "stop".
            if event.choice in self._trailed and event.reason not in _STOPPED:
                self._went_on.add(event.choice)
            event = replace(event, reason=FinishReason.STOP_SEQUENCE, stop_sequence=stop)
        else:
            self._release(event.choice, passed)
        passed.append(event)

    def _release(self, choice: int, passed: list[Event]) -> None:
        guard = self._guards.get(choice)
        held = guard.release() if guard and choice not in self._matched else ""
        if held:
            passed.append(TextDelta(text=held, choice=choice))

    def _missing_finishes(self) -> list[Event]:
        """The connection was closed at the match, so no finish reason came."""
        return [
            Finish(reason=FinishReason.STOP_SEQUENCE, stop_sequence=stop, choice=choice)
            for choice, stop in self._matched.items()
            if choice not in self._finished
        ]
