"""One body, cut in every way: what must hold for the streams of every shape."""

from collections.abc import Iterable, Mapping
from typing import Any

from llmstream_cli.events import EndStatus, Event, Finish, KeepAlive, StreamEnd, TextDelta, UnknownFrame
from tests.support.captures import decode, one_by_one


def everywhere(
    body: bytes, *, shape: str, request: Mapping[str, Any], kind: str, points: Iterable[int] | None = None
) -> list[Event]:
    """The events of `body`: the same for every cut in two and for reads of one byte, and cut short a part.

    ``points``: where to cut a body that is too long to be cut everywhere.
    """

    def events(*pieces: bytes) -> list[Event]:
        return decode(list(pieces), shape=shape, body=request, content_type=kind)

    whole = events(body)
    assert events(*one_by_one(body)) == whole
    for at in range(len(body)) if points is None else points:
        assert events(body[:at], body[at:]) == whole, at
        _check_cut_short(events(body[:at]), whole, at)
    return whole


def end_of(events: list[Event]) -> StreamEnd:
    assert isinstance(events[-1], StreamEnd)
    assert sum(isinstance(event, StreamEnd) for event in events) == 1
    return events[-1]


def _check_cut_short(events: list[Event], whole: list[Event], at: int) -> None:
    """A body that ends too early says a part of the whole, and is complete only with all of the text."""
    *said, end = events
    assert isinstance(end, StreamEnd)
    if said != whole[: len(said)]:
        # The last frame was cut, and is told as such.
        assert isinstance(said.pop(), UnknownFrame | KeepAlive), at
    assert said == whole[: len(said)], at
    if end.status is EndStatus.COMPLETE:
        assert end_of(whole).status is EndStatus.COMPLETE, at
        finished = {event.choice for event in said if isinstance(event, Finish)}
        for event in whole[len(said) :]:
            assert not isinstance(event, TextDelta), at
            # Azure may take back a finish reason.
            assert not isinstance(event, Finish) or event.choice in finished, at
