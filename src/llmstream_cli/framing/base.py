"""The units that every framing yields."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of the stream: its SSE event name (None elsewhere), its data, where its first byte stands.

    ``whole``: it is the entire body, one document in place of a stream. ``cut``: the body ended before the
    event did.
    """

    data: str
    offset: int = 0
    name: str | None = None
    whole: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """An SSE comment line: a keep-alive."""

    text: str


@dataclass(frozen=True, slots=True)
class FramingFault:
    """The bytes cannot be a stream of this framing; nothing after it is read."""

    kind: str
    message: str
    offset: int

    @classmethod
    def oversized(cls, offset: int, limit_bytes: int) -> "FramingFault":
        return cls("event_too_large", f"one event is larger than the limit of {limit_bytes:,} bytes", offset)


Unit = Frame | Comment | FramingFault


class Framer(Protocol):
    """Incremental: any cut of the same bytes yields the same units (of `TextFramer`: the same text)."""

    def feed(self, data: bytes) -> list[Unit]: ...

    def close(self) -> list[Unit]:
        """End of the body: whatever is still unfinished is delivered."""
        ...
