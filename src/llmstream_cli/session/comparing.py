"""What two recordings say, line by line."""

from collections.abc import Iterable
from difflib import unified_diff
from itertools import groupby

from llmstream_cli.capture import Capture
from llmstream_cli.decode import StreamDecoder
from llmstream_cli.events import Event, KeepAlive, ReasoningDelta, RefusalDelta, StreamEnd, TextDelta
from llmstream_cli.render.machine import dump_json, event_object
from llmstream_cli.shapes.base import Shape

Told = tuple[Capture, Shape, str]
"""A recording, the shape that reads it, and what to call it."""


def differences(left: Told, right: Told) -> list[str]:
    """A unified diff of the two; empty where they say the same.

    How a text was cut into deltas, keep-alives and times are no difference.
    """
    before, after = (told_lines(capture, shape) for capture, shape, _ in (left, right))
    return list(unified_diff(before, after, fromfile=left[2], tofile=right[2], lineterm="", n=1))


def told_lines(capture: Capture, shape: Shape) -> list[str]:
    """The HTTP status, then one line of JSON an event, then how it ended."""
    decoder = StreamDecoder(
        shape.decoder(capture.body),
        shape.framing,
        content_type=capture.header("content-type"),
        content_encoding=capture.header("content-encoding"),
    )
    events = [event for _, data in capture.reads for event in decoder.feed(data)] + decoder.close()
    lines = [f"HTTP status {capture.status or 'missing'}"]
    telling = (event for event in events if not isinstance(event, KeepAlive))
    return lines + [_line(event) for event in _joined(telling)]


def _line(event: Event) -> str:
    if isinstance(event, StreamEnd):
        error = f": {event.error.kind}: {event.error.message}" if event.error else ""
        return dump_json({"type": "end", "how": f"{event.status.value}{error}"}).rstrip()
    return dump_json(event_object(event)).rstrip()


def _joined(events: Iterable[Event]) -> Iterable[Event]:
    """Neighbouring pieces of one text as one event."""
    for _, run in groupby(events, key=_run_of):
        first, *more = run
        if isinstance(first, TextDelta | ReasoningDelta | RefusalDelta):
            texts = [event.text for event in (first, *more) if isinstance(event, type(first))]
            yield type(first)(text="".join(texts), choice=first.choice)
        else:
            yield first
            yield from more


def _run_of(event: Event) -> object:
    if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
        return type(event), event.choice
    return type(event)
