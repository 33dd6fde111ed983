"""One turn, end to end: bytes from a server or a capture, through the decoder, to a renderer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

from llmstream_cli.capture import Capture, CaptureWriter
from llmstream_cli.decode import StreamDecoder
from llmstream_cli.errors import (
    HttpStatusError,
    LlmstreamError,
    ServerTimeoutError,
    StreamBrokenError,
    TimeoutKind,
    TransportError,
)
from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    Json,
    KeepAlive,
    ReasoningDelta,
    RefusalDelta,
    StreamEnd,
    StreamError,
    TextDelta,
    ToolCallDelta,
)
from llmstream_cli.fields import as_int, as_list, as_object, as_text
from llmstream_cli.identity import recognise
from llmstream_cli.outcome import Asked, Outcome, empty_turn
from llmstream_cli.render.base import Renderer
from llmstream_cli.request import HttpRequest, Request, Sampling
from llmstream_cli.shapes.base import Shape
from llmstream_cli.stops import StopEnforcer
from llmstream_cli.timing import Timeline, Timing
from llmstream_cli.turn import Turn, TurnBuilder
from llmstream_cli.urls import join_url, redact_url

if TYPE_CHECKING:
    from llmstream_cli.transport import Exchange, Target, Timeouts, WaitNotice

MARKER_GRACE_S = 2.0
"""How long a terminal marker is waited for once every choice has its finish reason."""
STOP_GRACE_S = 0.3
"""How long a server may take, after a stop string was completed, to say that it stopped too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything about one request, decided."""

    target: "Target"
    timeouts: "Timeouts"
    shape: Shape
    request: Request
    path: str | None = None
    profile: str | None = None
    retries: int = 2
    enforce_stop: bool = True

    def http_request(self) -> HttpRequest:
        built = self.shape.build(self.request)
        if not self.path:
            return built
        # What a shape says in the query string (Gemini's form of stream, a question asked by GET) stays.
        _, mark, query = built.path.partition("?")
        joint = "&" if mark and "?" in self.path else mark
        return replace(built, path=f"{self.path}{joint}{query}")


@dataclass(slots=True, kw_only=True)
class TurnRun:
    """The pipeline of one answer: decode, enforce stops, keep time, fold, render."""

    decoder: StreamDecoder
    renderer: Renderer
    stops: Sequence[str] = ()
    choices: int = 1
    timeline: Timeline = field(default_factory=Timeline)
    builder: TurnBuilder = field(default_factory=TurnBuilder)
    enforcer: StopEnforcer | None = None
    has_output: bool = False
    reader_gone: bool = False

    def __post_init__(self) -> None:
        if any(self.stops):
            self.enforcer = StopEnforcer(self.stops, self.choices)

    @property
    def over(self) -> bool:
        """Nothing more is wanted from the server."""
        return self.decoder.ended or self.reader_gone or (self.enforcer is not None and self.enforcer.overrun)

    def read(self, at_s: float, data: bytes) -> bool:
        """Take one read; True if it brought an event that counts as progress."""
        self.timeline.read(at_s)
        try:
            self.renderer.raw(data)
        except BrokenPipeError:
            self.reader_gone = True
        return self._pass(at_s, self.decoder.feed(data))

    def close(
        self, at_s: float, status: EndStatus = EndStatus.INCOMPLETE, error: StreamError | None = None
    ) -> Turn:
        if self.enforcer is not None and (self.enforcer.matched or self.enforcer.overrun):
            status, error = EndStatus.COMPLETE, None
        self._pass(at_s, self.decoder.close(status, error))
        self.timeline.end(at_s)
        return self.builder.turn()

    def _pass(self, at_s: float, events: list[Event]) -> bool:
        if self.enforcer is not None and events:
            events = self.enforcer.filter(events)
        progress = False
        for event in events:
            match event:
                case TextDelta(text=text) | ReasoningDelta(text=text) | RefusalDelta(text=text):
                    self.timeline.output(at_s, len(text))
                    progress = self.has_output = True
                case ToolCallDelta():
                    self.timeline.output(at_s, len(event.arguments) + len(event.name))
                    progress = self.has_output = True
                case Finish():
                    progress = True
                case KeepAlive():
                    pass
                case _:
                    # Identity, usage, prefill progress before any output: the first-token clock goes on.
                    progress = progress or self.has_output
            self.builder.add(event)
            if not self.reader_gone:
                try:
                    self.renderer.event(event)
                except BrokenPipeError:
                    self.reader_gone = True
        return progress

    def outcome(
        self,
        asked: Asked,
        turn: Turn,
        headers: Sequence[tuple[str, str]],
        failure: LlmstreamError | None,
    ) -> Outcome:
        timing = self.timeline.snapshot(
            completion_tokens=turn.usage.completion_tokens if turn.usage else None,
            load_s=turn.timings.load_s,
            prefill_s=turn.timings.prefill_s,
            decode_s=turn.timings.decode_s,
        )
        return Outcome(
            asked=asked,
            turn=turn,
            timing=timing,
            server=recognise(headers, turn.start.fingerprint),
            local_stop=self.enforcer.local_stop() if self.enforcer else None,
            failure=failure,
            reader_gone=self.reader_gone,
        )


def ask(
    plan: Plan,
    renderer: Renderer,
    *,
    record: "Callable[[], CaptureWriter] | None" = None,
    on_wait: "Callable[[WaitNotice], None] | None" = None,
) -> Outcome:
    """Send `plan`, stream the answer to `renderer`, and say how it ended.

    `record` opens the capture file; a server that refuses ``stream_options`` is asked once more without it,
    and the capture then holds the second exchange. Raises `ConfigError` if the capture cannot be written.
    """
    outcome = _ask_once(plan, renderer, record() if record else None, on_wait)
    if (
        plan.request.usage
        and isinstance(outcome.failure, HttpStatusError)
        and _refuses_usage(outcome.failure)
    ):
        plan = replace(plan, request=replace(plan.request, usage=False))
        outcome = _ask_once(plan, renderer, record() if record else None, on_wait)
    renderer.finish(outcome)
    return outcome


def replay(
    capture: Capture,
    shape: Shape,
    renderer: Renderer,
    *,
    stops: Sequence[str] = (),
    profile: str | None = None,
) -> Outcome:
    """Run a recorded exchange through the same pipeline, at once.

    `stops` are enforced in place of those of the recorded request.
    """
    sampling = _recorded_sampling(capture.body, shape)
    if not stops and capture.end == "client-abort":
        # The client broke it off: perhaps because of a stop string, and then it did not end otherwise.
        stops = sampling.stop
    asked = Asked(
        profile=profile,
        shape=shape.name,
        url=redact_url(capture.path),
        model=as_text(capture.body.get("model")),
        sampling=replace(sampling, stop=tuple(stops) or sampling.stop),
        terminal_marker=shape.terminal_marker if capture.body.get("stream") else None,
        usage_asked=False,
    )
    if capture.status is not None and capture.status >= 400:
        outcome = _replayed_failure(capture, shape, asked)
    else:
        outcome = _replayed_stream(capture, shape, renderer, asked, stops)
    renderer.finish(outcome)
    return outcome


def _ask_once(
    plan: Plan,
    renderer: Renderer,
    recorder: CaptureWriter | None,
    on_wait: "Callable[[WaitNotice], None] | None",
) -> Outcome:
    from llmstream_cli.transport import open_stream

    began_s = monotonic()
    http_request = plan.http_request()
    if recorder:
        recorder.request(
            method=http_request.method,
            path=http_request.path,
            headers={**plan.target.headers, **http_request.headers},
            body=http_request.body,
        )
    try:
        with open_stream(
            plan.target, http_request, timeouts=plan.timeouts, retries=plan.retries, on_wait=on_wait
        ) as exchange:
            return _stream(plan, http_request, exchange, renderer, recorder)
    except KeyboardInterrupt:
        failure, end = None, StreamEnd(status=EndStatus.CANCELLED, marker_seen=None, offset=0)
    except TransportError as error:
        failure, end = error, _end_of_failure(error, plan.shape)
    total_s = monotonic() - began_s
    if recorder:
        _record_failure(recorder, total_s, failure)
    url = failure.url if failure else redact_url(join_url(plan.target.base_url, http_request.path))
    return Outcome(
        asked=_asked(plan, url),
        turn=empty_turn(end),
        timing=Timing(total_s=total_s),
        server=recognise(failure.headers if isinstance(failure, HttpStatusError) else (), None),
        failure=failure,
    )


def _record_failure(recorder: CaptureWriter, at_s: float, failure: TransportError | None) -> None:
    """The rest of a capture without a stream; None = Ctrl-C."""
    match failure:
        case None:
            how = "client-abort"
        case HttpStatusError():
            recorder.head(at_s, failure.status, failure.headers)
            recorder.read(at_s, failure.body)
            how = "chunked-end"
        case ServerTimeoutError():
            how = "timeout"
        case StreamBrokenError():
            how = "reset" if _broken_kind(failure) == "connection_reset" else "eof"
        case _:
            how = "eof"
    recorder.end(at_s, how)


def _broken_kind(error: StreamBrokenError) -> str:
    return next(
        (f"connection_{how}" for how in ("reset", "closed") if f" {how}" in error.message),
        "connection_broken",
    )


def _timeout_kind(which: TimeoutKind) -> str:
    return f"timeout_{which.value.replace('-', '_')}"


def _end_of_failure(error: TransportError, shape: Shape) -> StreamEnd:
    """How a request ended that never got a stream."""
    status, reported = EndStatus.ERROR, StreamError(kind="connect", message=error.message)
    match error:
        case HttpStatusError():
            reported = shape.read_error(error.status, error.body, error.content_type)
            reported = replace(reported, message=reported.message or error.message)
        case ServerTimeoutError():
            status = EndStatus.TIMEOUT
            reported = StreamError(kind=_timeout_kind(error.which), message=error.message)
        case StreamBrokenError():
            status = EndStatus.INCOMPLETE
            reported = StreamError(kind=_broken_kind(error), message=error.message)
        case _:
            pass
    return StreamEnd(status=status, marker_seen=None, offset=0, error=reported)


def _refuses_usage(failure: HttpStatusError) -> bool:
    return failure.status in (400, 422) and b"stream_options" in failure.body


def _stream(
    plan: Plan,
    http_request: HttpRequest,
    exchange: "Exchange",
    renderer: Renderer,
    recorder: CaptureWriter | None,
) -> Outcome:
    run = _start(
        plan.shape,
        http_request.body,
        renderer,
        stops=plan.request.sampling.stop if plan.enforce_stop else (),
        content_type=exchange.content_type,
        content_encoding=exchange.content_encoding,
    )
    run.timeline.headers(exchange.headers_s)
    if recorder:
        recorder.head(exchange.headers_s, exchange.status, exchange.headers)
    failure: TransportError | None = None
    how, status, error = "chunked-end", EndStatus.INCOMPLETE, None
    try:
        _read_all(run, exchange, recorder)
        if run.over:
            how = "client-abort"
    except ServerTimeoutError as timeout:
        failure, how, status = timeout, "timeout", EndStatus.TIMEOUT
        error = StreamError(kind=_timeout_kind(timeout.which), message=timeout.message)
    except StreamBrokenError as broken:
        kind = _broken_kind(broken)
        how = "reset" if kind == "connection_reset" else "eof"
        error = StreamError(kind=kind, message=broken.message)
    except KeyboardInterrupt:
        how, status = "client-abort", EndStatus.CANCELLED
    at_s = exchange.elapsed_s()
    exchange.close()
    turn = run.close(at_s, EndStatus.CANCELLED if run.reader_gone else status, error)
    if recorder:
        recorder.end(at_s, how)
    return run.outcome(
        _asked(plan, exchange.url),
        turn,
        exchange.headers,
        failure if turn.end.status is EndStatus.TIMEOUT else None,
    )


def _start(
    shape: Shape,
    body: Mapping[str, Json],
    renderer: Renderer,
    *,
    stops: Sequence[str],
    content_type: str,
    content_encoding: str,
) -> TurnRun:
    frames = shape.decoder(body)
    decoder = StreamDecoder(
        frames, shape.framing, content_type=content_type, content_encoding=content_encoding
    )
    return TurnRun(decoder=decoder, renderer=renderer, stops=stops, choices=frames.choices)


def _read_all(run: TurnRun, exchange: "Exchange", recorder: CaptureWriter | None) -> None:
    settled = stopped = False
    for at_s, data in exchange.reads():
        if recorder:
            recorder.read(at_s, data)
        if run.read(at_s, data):
            exchange.progress()
        if run.over:
            return
        if not stopped and run.enforcer is not None and run.enforcer.matched:
            stopped = True
            exchange.settle(STOP_GRACE_S)
        elif not settled and run.decoder.settled:
            settled = True
            exchange.settle(MARKER_GRACE_S)


def _asked(plan: Plan, url: str) -> Asked:
    return Asked(
        profile=plan.profile,
        shape=plan.shape.name,
        url=url,
        model=plan.request.model,
        sampling=plan.request.sampling,
        terminal_marker=plan.shape.terminal_marker if plan.request.stream else None,
        usage_asked=plan.request.usage,
    )


_REPLAYED_ENDS: dict[str | None, tuple[EndStatus, StreamError | None]] = {
    "client-abort": (EndStatus.CANCELLED, None),
    "timeout": (EndStatus.TIMEOUT, StreamError(kind="timeout", message="the recording ended in a time-out")),
    "reset": (EndStatus.INCOMPLETE, StreamError(kind="connection_reset", message="the connection was reset")),
    "eof": (EndStatus.INCOMPLETE, StreamError(kind="connection_closed", message="the connection was closed")),
}


def _recorded_sampling(body: Mapping[str, Json], shape: Shape) -> Sampling:
    """The cap and the stop strings of a recorded request."""
    stop = _look_up(body, shape.stop_field)
    cap = as_int(_look_up(body, shape.max_tokens_field))
    return Sampling(
        stop=tuple(item for item in ([stop] if isinstance(stop, str) else as_list(stop)) if as_text(item)),
        # Several servers take -1 for "no limit".
        max_tokens=cap if cap is not None and cap >= 0 else None,
    )


def _look_up(body: Mapping[str, Json], dotted: str | None) -> Json:
    *parents, name = (dotted or "").split(".")
    for parent in parents:
        body = as_object(body.get(parent))
    return body.get(name)


def _replayed_stream(
    capture: Capture, shape: Shape, renderer: Renderer, asked: Asked, stops: Sequence[str]
) -> Outcome:
    run = _start(
        shape,
        capture.body,
        renderer,
        stops=stops,
        content_type=capture.header("content-type"),
        content_encoding=capture.header("content-encoding"),
    )
    for at_s, data in capture.reads:
        run.read(at_s, data)
        if run.over:
            break
    status, error = _REPLAYED_ENDS.get(capture.end, (EndStatus.INCOMPLETE, None))
    return run.outcome(asked, run.close(capture.end_s, status, error), capture.headers, None)


def _replayed_failure(capture: Capture, shape: Shape, asked: Asked) -> Outcome:
    status = capture.status or 0
    body = b"".join(data for _, data in capture.reads)
    failure = HttpStatusError(
        f"HTTP status {status}",
        url=asked.url,
        status=status,
        body=body,
        content_type=capture.header("content-type"),
    )
    return Outcome(
        asked=asked,
        turn=empty_turn(_end_of_failure(failure, shape)),
        timing=Timing(total_s=capture.end_s or None),
        server=recognise(capture.headers, None),
        failure=failure,
    )
