"""Recordings of real servers under ``tests/captures``, as bytes, with what each is known to contain.

A file is JSON lines: the request, the head of the response, one line per read of the de-chunked body, the
end. ``expected.json`` holds what a simple, independent reader concluded from the same bytes.
"""

import base64
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from llmstream_cli.decode import StreamDecoder
from llmstream_cli.events import EndStatus, Event, StreamError, TextDelta
from llmstream_cli.shapes import get_shape
from llmstream_cli.turn import Turn, TurnBuilder

ROOT = Path(__file__).parent.parent / "captures"

SHAPE_OF_ENDPOINT = {
    "/v1/chat/completions": "openai-chat",
    "/v1/completions": "openai-completions",
    "/completion": "llamacpp",
    "/v1/messages": "anthropic",
    "/v1/responses": "openai-responses",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One exchange. ``status`` is None where no response came; ``reads`` are (seconds, bytes)."""

    name: str
    endpoint: str
    request: Mapping[str, Any]
    status: int | None
    headers: tuple[tuple[str, str], ...]
    reads: tuple[tuple[float, bytes], ...]
    end: str

    @property
    def request_body(self) -> Mapping[str, Any]:
        """The JSON sent; empty for a request that was not JSON."""
        return self.request["body"] or {}

    @property
    def body(self) -> bytes:
        return b"".join(data for _, data in self.reads)

    @property
    def content_type(self) -> str:
        return next((value for key, value in self.headers if key.lower() == "content-type"), "")

    @property
    def shape_name(self) -> str | None:
        return SHAPE_OF_ENDPOINT.get(self.endpoint)


@cache
def expected() -> dict[str, dict[str, Any]]:
    """Capture name -> outcome, choices, usage, error, pings."""
    found: dict[str, dict[str, Any]] = json.loads((ROOT / "expected.json").read_text("utf-8"))
    return found


@cache
def load(name: str) -> Capture:
    """The capture called e.g. ``llama.cpp/chat_eos_stream``."""
    head, response, *reads, end = map(json.loads, (ROOT / f"{name}.jsonl").read_bytes().splitlines())
    return Capture(
        name=name,
        endpoint=head["endpoint"],
        request=head["request"],
        status=response["status"],
        headers=tuple((key, value) for key, value in response["headers"]),
        reads=tuple((read["t"], _bytes(read)) for read in reads),
        end=end["end"],
    )


def names() -> list[str]:
    """Every capture of an endpoint that has a shape."""
    return [name for name in sorted(expected()) if load(name).shape_name]


def _bytes(read: Mapping[str, Any]) -> bytes:
    return read["text"].encode() if "text" in read else base64.b64decode(read["b64"])


def decode(
    pieces: Iterator[bytes] | list[bytes],
    *,
    shape: str,
    body: Mapping[str, Any],
    content_type: str,
    status: EndStatus = EndStatus.INCOMPLETE,
    error: StreamError | None = None,
) -> list[Event]:
    """The events of a body that comes in `pieces`; `status`, `error`: what the client saw of its end."""
    server = get_shape(shape)
    decoder = StreamDecoder(server.decoder(body), server.framing, content_type=content_type)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.close(status, error)


def joined(events: list[Event]) -> list[Event]:
    """`events` with text that comes in pieces made one: in plain text, the reads are the pieces."""
    whole: list[Event] = []
    for event in events:
        if whole and isinstance(event, TextDelta) and isinstance(last := whole[-1], TextDelta):
            whole[-1] = TextDelta(text=last.text + event.text)
        else:
            whole.append(event)
    return whole


def fold(events: list[Event]) -> Turn:
    builder = TurnBuilder()
    for event in events:
        builder.add(event)
    return builder.turn()


def one_by_one(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def partition(data: bytes, seed: str) -> list[bytes]:
    """`data` in pieces of random size, the same for the same `seed`."""
    chance = random.Random(seed)
    pieces, at = [], 0
    while at < len(data):
        size = chance.choice((1, 2, 3, 7, 40, 200, 1000))
        pieces.append(data[at : at + size])
        at += size
    return pieces


def cut_points(data: bytes, *, every_below: int, sample: int) -> list[int]:
    """Where to cut: everywhere in small data, else both ends, around some line ends, and a fixed sample."""
    if len(data) < every_below:
        return list(range(len(data) + 1))
    chance = random.Random(len(data))
    line_ends = [at for at in range(len(data)) if data[at] == 0x0A]
    near = [at + shift for at in chance.sample(line_ends, min(6, len(line_ends))) for shift in (0, 1, 2)]
    anywhere = chance.sample(range(len(data)), sample)
    ends = [*range(4), *range(len(data) - 20, len(data) + 1)]
    return sorted({at for at in [*ends, *near, *anywhere] if at <= len(data)})
