"""Bytes of one answer in, events out: a framer and a shape's frame decoder, joined."""

import re
from dataclasses import replace

from llmstream_cli.events import (
    EndStatus,
    Event,
    ReasoningDelta,
    RefusalDelta,
    StreamEnd,
    StreamError,
    TextDelta,
    UnknownFrame,
)
from llmstream_cli.events import KeepAlive as KeepAliveEvent
from llmstream_cli.framing import (
    DEFAULT_LIMIT_BYTES,
    Comment,
    Frame,
    FramingFault,
    FramingName,
    Unit,
    make_framer,
)
from llmstream_cli.framing.encoding import EncodingError, make_content_decoder
from llmstream_cli.shapes.base import FrameDecoder, html_title

_BLANK = b"\xef\xbb\xbf \t\r\n"
"""A byte order mark (or a part of it) and white space."""
_TELLING_BYTES = 1024
_BEGUN = re.compile(r'\{|[0-9a-z]:["\[{]')
"""How an event begins, JSON or a line of the older stream of the Vercel AI SDK."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


_TEXT_EVENTS = (TextDelta, ReasoningDelta, RefusalDelta)
"""A tuple: a union would be built anew for every event."""


def choose_framing(default: FramingName, content_type: str, first: bytes) -> FramingName:
    """How to read a body, from its content type and its first bytes; `default` is the shape's own.

    A JSON or HTML body in place of a stream is one document. Without a telling content type, a body that
    begins with ``{`` is lines of JSON. Plain text may begin with anything and bear many a content type.
    Where a stream may be one array, only the bytes tell: gateways send either form, whatever was asked for.
    """
    kind = content_type.split(";")[0].strip().lower()
    if default in ("text", "sse-text"):
        return "json" if kind in ("application/json", "text/html") else default
    start = first.lstrip(_BLANK)[:1]
    if default == "json-array" and start != b"<":
        fields = kind == "text/event-stream" or start in (b":", b"d", b"e", b"i", b"r")
        return "sse" if fields and start not in (b"[", b"{") else default
    if kind == "text/event-stream":
        return "sse"
    if kind in ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"):
        return "ndjson"
    if kind in ("application/json", "text/html"):
        return "json"
    if start == b"<":
        return "json"
    if start == b"{" and default == "sse":
        return "ndjson"
    if start in (b":", b"d", b"e") and default == "ndjson":
        return "sse"
    return default


class StreamDecoder:
    """Feed it the body as it comes; it never raises for what a server sends.

    ``ended``: the terminal marker, an error or an unreadable body came, so that reading on is pointless.
    ``settled``: every choice has its finish reason, only the marker may still come.
    """

    def __init__(
        self,
        frames: FrameDecoder,
        framing: FramingName,
        *,
        content_type: str = "",
        content_encoding: str = "",
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
    ) -> None:
        self._frames = frames
        self._default_framing = framing
        self._content_type = content_type
        self._content = make_content_decoder(content_encoding) if content_encoding else None
        self._limit = limit_bytes
        by_type = framing in ("text", "sse-text") or (bool(content_type) and framing != "json-array")
        self._framing = choose_framing(framing, content_type, b"") if by_type else None
        self._framer = make_framer(self._framing, limit_bytes) if self._framing else None
        self._untold = b""
        self._fault: FramingFault | None = None
        self._held: dict[tuple[type, int], str] = {}
        self._received = 0
        self._end_offset: int | None = None
        self._closed = False
        self._unreadable: UnknownFrame | None = None
        self._is_stream = False
        self.frames_seen = 0

    @property
    def ended(self) -> bool:
        return self._frames.done or self._fault is not None

    @property
    def settled(self) -> bool:
        return self._frames.settled

    def feed(self, data: bytes) -> list[Event]:
        """The events that `data` completes."""
        if self._closed:
            raise RuntimeError("feed after close")
        if self._content is None:
            return self._feed_plain(data)
        events: list[Event] = []
        try:
            for piece in self._content.feed(data):
                if self.ended:
                    break
                events += self._feed_plain(piece)
        except EncodingError as error:
            self._fault = FramingFault("bad_content_encoding", str(error), self._received)
        return events

    def _feed_plain(self, data: bytes) -> list[Event]:
        if self.ended or not data:
            return []
        self._received += len(data)
        if self._framer is None:
            # Until a byte comes that tells what this is: the choice must not depend on how the bytes are cut.
            self._untold += data
            telling = self._untold[:_TELLING_BYTES]
            if len(telling) < _TELLING_BYTES and not telling.strip(_BLANK):
                return []
            self._framing = choose_framing(self._default_framing, self._content_type, telling)
            self._framer = make_framer(self._framing, self._limit)
            data, self._untold = self._untold, b""
        return self._decode(self._framer.feed(data))

    def close(
        self, status: EndStatus = EndStatus.INCOMPLETE, error: StreamError | None = None
    ) -> list[Event]:
        """The last events and exactly one `StreamEnd`.

        `status` and `error` say what the client saw of the end (cut, time-out, interrupt); the server's own
        word wins over them.
        """
        if self._closed:
            raise RuntimeError("closed twice")
        events = self._feed_plain(self._content.close()) if self._content and not self.ended else []
        self._closed = True
        if self._framer and not self.ended:
            events += self._decode(self._framer.close())
        if not self.ended:
            clean = status is EndStatus.INCOMPLETE and error is None
            events += self._frames.end_of_body(clean=clean)
        events += self._release()
        events.append(self._end(status, error))
        return events

    def _decode(self, units: list[Unit]) -> list[Event]:
        events: list[Event] = []
        for unit in units:
            if self.ended:
                break
            match unit:
                case Frame():
                    self.frames_seen += 1
                    self._frame(unit, events)
                case Comment(text):
                    events.append(KeepAliveEvent(comment=text.strip()))
                case FramingFault():
                    self._fault = unit
                    self._end_offset = unit.offset
        return events

    def _frame(self, frame: Frame, events: list[Event]) -> None:
        for event in self._frames.decode(frame):
            if isinstance(event, _TEXT_EVENTS):
                # Pure ASCII cannot hold a surrogate, and nearly every delta is.
                if not event.text.isascii() or self._held:
                    self._join_surrogates(event, events)
                    continue
            elif isinstance(event, UnknownFrame) and not event.readable:
                events.append(self._unread(event))
                continue
            self._is_stream = True
            events.append(event)
        if self._frames.done:
            self._end_offset = frame.offset

    def _unread(self, event: UnknownFrame) -> UnknownFrame:
        """Nearly every stream that breaks off does so inside an event: that is no unreadable stream."""
        if event.cut:
            return event
        if self._closed and _BEGUN.match(event.data):
            return replace(event, cut=True)
        self._unreadable = self._unreadable or event
        return event

    def _join_surrogates(self, event: TextDelta | ReasoningDelta | RefusalDelta, events: list[Event]) -> None:
        """Join the halves of a character that a server escaped into two deltas; a lone half is U+FFFD."""
        key = (type(event), event.choice)
        text = self._held.pop(key, "") + event.text
        if "\ud800" <= text[-1] <= "\udbff":
            self._held[key] = text[-1]
            text = text[:-1]
        if _LONE_SURROGATE.search(text):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if text:
            events.append(type(event)(text=text, choice=event.choice))

    def _release(self) -> list[Event]:
        held, self._held = self._held, {}
        return [kind(text="\ufffd", choice=choice) for kind, choice in held]

    def _end(self, status: EndStatus, error: StreamError | None) -> StreamEnd:
        if self._frames.error:
            status, error = EndStatus.ERROR, self._frames.error
        elif self._fault:
            status = EndStatus.INCOMPLETE
            error = StreamError(kind=self._fault.kind, message=self._fault.message)
        elif self._frames.complete:
            status, error = EndStatus.COMPLETE, None
        elif error is None and status is EndStatus.INCOMPLETE and self._frames.unfinished:
            error = self._frames.unfinished
        elif error is None and self._unreadable and not self._is_stream:
            error = self._not_a_stream(self._unreadable)
        return StreamEnd(
            status=status,
            marker_seen=None if self._framing == "json" else self._frames.marker_seen,
            offset=self._received if self._end_offset is None else self._end_offset,
            error=error,
        )

    def _not_a_stream(self, frame: UnknownFrame) -> StreamError:
        kind = self._content_type or "no content type"
        shown = html_title(frame.data) or " ".join(frame.data[:200].split())
        return StreamError(
            kind="unreadable_stream", message=f"the body is not the expected stream ({kind}): {shown}"
        )
