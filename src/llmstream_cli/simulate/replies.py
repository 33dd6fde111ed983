"""What the simulated server sends: made from a text, or from a recording."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

from llmstream_cli.capture import Capture
from llmstream_cli.decode import StreamDecoder
from llmstream_cli.errors import ConfigError
from llmstream_cli.events import OUTPUT_EVENTS, Event, Finish
from llmstream_cli.framing.encoding import EncodingError, make_content_decoder
from llmstream_cli.shapes.base import Shape
from llmstream_cli.simulate.forms import FORMS, PLAIN_FORM, Form, StreamEvent

_WORD = re.compile(r"\s*\S+|\s+\Z")
_SSE_BLOCK = re.compile(rb".+?(?:\r\n\r\n|\n\n|\r\r|\Z)", re.DOTALL)
_LINE = re.compile(rb".+?(?:\n|\Z)", re.DOTALL)
_CONTENT_TYPES = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}
_BODY_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection"})
"""What the server says by itself, or what is no longer true of the bytes that it sends."""


class Tells(Enum):
    """What an event of the stream brings, by the word of the shape's own decoder."""

    OUTPUT = auto()
    FINISH = auto()
    MARKER = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Bytes sent at once, `delay_s` after the write before."""

    data: bytes
    delay_s: float = 0.0
    tells: Tells = Tells.OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer. In the beginning there is one write for each event of the stream.

    ``end``: ``clean`` with the last chunk, ``cut`` without it, ``reset`` by RST, ``stall`` sends nothing more
    until the client leaves. ``error`` and ``keep_alive`` are events in the form of this API.
    """

    writes: tuple[Write, ...]
    headers: tuple[tuple[str, str], ...]
    error: bytes
    keep_alive: bytes
    status: int = 200
    headers_delay_s: float = 0.0
    end: Literal["clean", "cut", "reset", "stall"] = "clean"

    @property
    def body(self) -> bytes:
        return b"".join(write.data for write in self.writes)


def reply_of_text(text: str, shape: Shape) -> Reply:
    """`text`, a word an event, as a server of `shape` streams it. KeyError for a shape without a `Form`."""
    form = FORMS[shape.name]
    events = [_encode(form, event) for event in form.events(_WORD.findall(text))]
    return _reply(events, shape, form, (("Content-Type", _CONTENT_TYPES[form.framing]),), 200)


def reply_of_capture(capture: Capture, shape: Shape) -> Reply:
    """What was recorded, a write for each event; a compressed body is sent as it was before.

    ConfigError if it is not compressed as its header says.
    """
    body = _decoded(b"".join(data for _, data in capture.reads), capture.header("content-encoding"))
    lines = "event-stream" not in capture.header("content-type")
    events = (_LINE if lines else _SSE_BLOCK).findall(body)
    headers = tuple((name, value) for name, value in capture.headers if name.lower() not in _BODY_HEADERS)
    form = FORMS.get(shape.name, PLAIN_FORM)
    return _reply(events, shape, form, headers, capture.status or 200)


def _decoded(body: bytes, encoding: str) -> bytes:
    if not encoding:
        return body
    decoder = make_content_decoder(encoding)
    try:
        return b"".join(decoder.feed(body)) + decoder.close()
    except EncodingError as error:
        raise ConfigError(f"the recorded body cannot be read: {error}") from error


def _reply(
    events: Iterable[bytes], shape: Shape, form: Form, headers: tuple[tuple[str, str], ...], status: int
) -> Reply:
    return Reply(
        writes=tuple(_told(events, shape)),
        headers=headers,
        error=_encode(form, (form.error_name, form.error("the simulated server broke off"))),
        keep_alive=b": keep-alive\n\n" if form.framing == "sse" else b"\n",
        status=status,
    )


def _encode(form: Form, event: StreamEvent) -> bytes:
    name, value = event
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if form.framing == "ndjson":
        return f"{data}\n".encode()
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {data}\n\n".encode()


def _told(events: Iterable[bytes], shape: Shape) -> Iterator[Write]:
    decoder = StreamDecoder(shape.decoder({"stream": True}), shape.framing)
    for data in events:
        was_over = decoder.ended
        told = decoder.feed(data)
        yield Write(data=data, tells=_tells(told, is_last=decoder.ended and not was_over))


def _tells(events: list[Event], *, is_last: bool) -> Tells:
    if any(isinstance(event, Finish) for event in events):
        return Tells.FINISH
    if is_last:
        return Tells.MARKER
    return Tells.OUTPUT if any(isinstance(event, OUTPUT_EVENTS) for event in events) else Tells.OTHER
