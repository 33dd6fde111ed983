"""What a stream says, as a closed union of frozen values.

No time is kept in events: the same bytes, cut anywhere, give equal events. ``None`` means "not reported",
never zero. ``choice`` tells parallel answers (``n`` > 1, several prompts) apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = Any
"""A decoded JSON value: dict, list, str, int, float, bool or None."""


class FinishReason(StrEnum):
    """Why generation ended, in one vocabulary for all servers; the server's own word is kept beside it.

    ``STOP`` means that the server ended the answer without saying whether by end-of-sequence or by a stop
    string; ``EOS`` and ``STOP_SEQUENCE`` are used only where it says so.
    """

    EOS = "eos"
    STOP = "stop"
    STOP_SEQUENCE = "stop_sequence"
    LENGTH = "length"
    CONTEXT = "context"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    OTHER = "other"


class EndStatus(StrEnum):
    """How the stream ended, as far as the client can prove."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamError:
    """A failure reported by the server, or seen by the client in the stream.

    ``kind`` is the server's own type where it gives one, else one of ours (``unreadable_stream``,
    ``event_too_large``, ``connection_closed``, ``connection_reset``, ``timeout_idle`` ...).
    """

    kind: str
    message: str
    code: str | int | None = None
    http_status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server reports them; ``total_tokens`` is never computed here."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    total_tokens: int | None = None
    raw: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTimings:
    """Durations in seconds measured by the server itself."""

    load_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart:
    """Identity of the answer; sent again when more of it becomes known."""

    response_id: str | None = None
    model: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalDelta:
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """A fragment of one tool call. ``name`` and ``arguments`` are to be appended; ``id`` is whole."""

    call: int
    id: str | None = None
    name: str = ""
    arguments: str = ""
    choice: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogprobsDelta:
    """Log probabilities as the server sent them (each server has its own form)."""

    data: Json
    choice: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillProgress:
    processed_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """Counts so far; a later report replaces the fields that it carries, it is never added."""

    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingsReport:
    timings: ServerTimings


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDetail:
    """A fact from the terminal event that diagnosis needs, e.g. llama.cpp's ``generation_settings``."""

    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Why one choice ended. ``stop_sequence`` and ``stop_token``: what matched, where the server tells."""

    reason: FinishReason
    raw_reason: str | None = None
    stop_sequence: str | None = None
    stop_token: int | None = None
    choice: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownFrame:
    """A frame that the shape does not know or cannot read; kept, never dropped silently.

    ``cut``: it is not readable because the body ended inside it.
    """

    name: str | None
    data: str
    readable: bool = True
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd:
    """The last event of every stream.

    ``marker_seen``: the shape's terminal marker came; None for a shape that has none, and where one
    JSON document came in place of a stream.
    ``offset``: byte offset of the frame that ended the stream, else the number of bytes received.
    """

    status: EndStatus
    marker_seen: bool | None
    offset: int
    error: StreamError | None = None


Event = (
    StreamStart
    | TextDelta
    | ReasoningDelta
    | RefusalDelta
    | ToolCallDelta
    | LogprobsDelta
    | PrefillProgress
    | UsageReport
    | TimingsReport
    | ServerDetail
    | Finish
    | KeepAlive
    | UnknownFrame
    | StreamEnd
)

OUTPUT_EVENTS = (TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta)
"""The events that carry what the model generated: they end the wait for the first token."""
