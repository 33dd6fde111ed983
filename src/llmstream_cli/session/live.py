"""Ask a server."""

from collections.abc import Callable
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from llmstream_cli.capture import CaptureWriter
from llmstream_cli.errors import (
    HttpStatusError,
    NotWantedError,
    ServerTimeoutError,
    StreamBrokenError,
    TransportError,
)
from llmstream_cli.events import EndStatus, StreamEnd, StreamError
from llmstream_cli.identity import recognise
from llmstream_cli.outcome import Asked, Outcome, empty_turn
from llmstream_cli.render.base import Renderer
from llmstream_cli.request import HttpRequest
from llmstream_cli.session.failures import broken_kind, end_of_failure, timeout_kind
from llmstream_cli.session.pipeline import TurnRun, start
from llmstream_cli.session.plan import Plan
from llmstream_cli.session.refusals import REFUSALS, met
from llmstream_cli.timing import Timing
from llmstream_cli.urls import join_url, redact_url

if TYPE_CHECKING:
    from llmstream_cli.transport import Exchange, WaitNotice

MARKER_GRACE_S = 2.0
"""How long a terminal marker is waited for once every choice has its finish reason."""
STOP_GRACE_S = 0.3
"""How long a server may take, after a stop string was completed, to say that it stopped too."""


def ask(
    plan: Plan,
    renderer: Renderer,
    *,
    record: "Callable[[], CaptureWriter] | None" = None,
    on_wait: "Callable[[WaitNotice], None] | None" = None,
    wanted: Callable[[], bool] | None = None,
    before_wait: Callable[[], None] | None = None,
) -> Outcome:
    """Send `plan`, stream the answer to `renderer`, and say how it ended.

    `wanted` is asked while nothing comes: False means that nobody reads the answer any more. `before_wait` is
    called once all that was received has been rendered: what was held back must be written then. `record`
    opens the capture file; a server whose refusal can be met is asked once more, and the capture then holds
    the last exchange. Raises `ConfigError` if the capture cannot be written.
    """
    untried = list(REFUSALS)
    outcome = _ask_once(plan, renderer, record() if record else None, on_wait, wanted, before_wait)
    while better := met(plan, outcome.failure, untried):
        plan = better
        outcome = _ask_once(plan, renderer, record() if record else None, on_wait, wanted, before_wait)
    renderer.finish(outcome)
    return outcome


def _ask_once(
    plan: Plan,
    renderer: Renderer,
    recorder: CaptureWriter | None,
    on_wait: "Callable[[WaitNotice], None] | None",
    wanted: Callable[[], bool] | None,
    before_wait: Callable[[], None] | None,
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
            plan.target,
            http_request,
            timeouts=plan.timeouts,
            retries=plan.retries,
            on_wait=on_wait,
            wanted=wanted,
            before_wait=before_wait,
        ) as exchange:
            return _stream(plan, http_request, exchange, renderer, recorder)
    except KeyboardInterrupt:
        failure, end = None, StreamEnd(status=EndStatus.CANCELLED, marker_seen=None, offset=0)
    except TransportError as error:
        failure, end = error, end_of_failure(error, plan.shape)
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
        reader_gone=isinstance(failure, NotWantedError),
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
            how = "reset" if broken_kind(failure) == "connection_reset" else "eof"
        case _:
            how = "eof"
    recorder.end(at_s, how)


def _stream(
    plan: Plan,
    http_request: HttpRequest,
    exchange: "Exchange",
    renderer: Renderer,
    recorder: CaptureWriter | None,
) -> Outcome:
    run = start(
        plan.shape,
        http_request.body,
        renderer,
        stops=plan.request.sampling.stop if plan.enforce_stop else (),
        think_tags=plan.think_tags,
        content_type=exchange.content_type,
        content_encoding=exchange.content_encoding,
    )
    run.timeline.headers(exchange.headers_s)
    if recorder:
        recorder.head(exchange.headers_s, exchange.status, exchange.headers)
    failure: TransportError | None = None
    status, error = EndStatus.INCOMPLETE, None
    try:
        how = _read_all(run, exchange, recorder)
    except ServerTimeoutError as timeout:
        failure, how, status = timeout, "timeout", EndStatus.TIMEOUT
        error = StreamError(kind=timeout_kind(timeout.which), message=timeout.message)
    except NotWantedError:
        run.reader_gone, how = True, "client-abort"
    except StreamBrokenError as broken:
        kind = broken_kind(broken)
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


def _read_all(run: TurnRun, exchange: "Exchange", recorder: CaptureWriter | None) -> str:
    """Read until nothing more is wanted; how the exchange ended, in the words of a capture."""
    settled = stopped = over = False
    deadline_s = inf
    for at_s, data in exchange.reads():
        if recorder:
            recorder.read(at_s, data)
        if over:
            continue
        if run.read(at_s, data):
            exchange.progress()
        if run.over:
            # Only a capture cares how the server ends a body that has said everything.
            if recorder is None or not run.decoder.ended:
                return "client-abort"
            over, deadline_s = True, _settle(exchange, STOP_GRACE_S)
        elif not stopped and run.enforcer is not None and run.enforcer.matched:
            stopped, deadline_s = True, _settle(exchange, STOP_GRACE_S)
        elif not settled and run.decoder.settled:
            settled, deadline_s = True, _settle(exchange, MARKER_GRACE_S)
    return "chunked-end" if exchange.elapsed_s() < deadline_s else "client-abort"


def _settle(exchange: "Exchange", seconds: float) -> float:
    """Wait no longer than `seconds`; the moment when that is over."""
    exchange.settle(seconds)
    return exchange.elapsed_s() + seconds


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
