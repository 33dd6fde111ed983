"""Ask a recording."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from llmstream_cli.capture import Capture
from llmstream_cli.errors import HttpStatusError
from llmstream_cli.events import EndStatus, Json, StreamError
from llmstream_cli.fields import as_int, as_list, as_object, as_text
from llmstream_cli.identity import recognise
from llmstream_cli.outcome import Asked, Outcome, empty_turn
from llmstream_cli.render.base import Renderer
from llmstream_cli.request import Sampling
from llmstream_cli.session.failures import end_of_failure
from llmstream_cli.session.pacing import paced
from llmstream_cli.session.pipeline import start
from llmstream_cli.shapes.base import Shape
from llmstream_cli.timing import Timing
from llmstream_cli.urls import redact_url

_REPLAYED_ENDS: dict[str | None, tuple[EndStatus, StreamError | None]] = {
    "client-abort": (EndStatus.CANCELLED, None),
    "timeout": (EndStatus.TIMEOUT, StreamError(kind="timeout", message="the recording ended in a time-out")),
    "reset": (EndStatus.INCOMPLETE, StreamError(kind="connection_reset", message="the connection was reset")),
    "eof": (EndStatus.INCOMPLETE, StreamError(kind="connection_closed", message="the connection was closed")),
}


def replay(
    capture: Capture,
    shape: Shape,
    renderer: Renderer,
    *,
    stops: Sequence[str] = (),
    think_tags: bool = True,
    profile: str | None = None,
    speed: float = 0.0,
) -> Outcome:
    """Run a recorded exchange through the same pipeline.

    `stops` are enforced in place of those of the recorded request. `speed`: how many times faster than it
    was recorded; 0 = at once.
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
        outcome = _replayed_stream(capture, shape, renderer, asked, stops, think_tags, speed)
    renderer.finish(outcome)
    return outcome


def _recorded_sampling(body: Mapping[str, Json], shape: Shape) -> Sampling:
    """The cap and the stop strings of a recorded request."""
    stop = _look_up(body, shape.stop_field)
    caps = (_look_up(body, field) for field in shape.cap_fields or (shape.max_tokens_field,))
    cap = next(filter(None, map(as_int, caps)), None)
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
    capture: Capture,
    shape: Shape,
    renderer: Renderer,
    asked: Asked,
    stops: Sequence[str],
    think_tags: bool,
    speed: float,
) -> Outcome:
    run = start(
        shape,
        capture.body,
        renderer,
        stops=stops,
        think_tags=think_tags,
        content_type=capture.header("content-type"),
        content_encoding=capture.header("content-encoding"),
    )
    status, error = _REPLAYED_ENDS.get(capture.end, (EndStatus.INCOMPLETE, None))
    at_s, end_s = 0.0, capture.end_s
    try:
        for at_s, data in paced(capture.reads, speed):
            run.read(at_s, data)
            if run.over:
                break
    except KeyboardInterrupt:
        status, error, end_s = EndStatus.CANCELLED, None, at_s
    return run.outcome(asked, run.close(end_s, status, error), capture.headers, None)


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
        turn=empty_turn(end_of_failure(failure, shape)),
        timing=Timing(total_s=capture.end_s or None),
        server=recognise(capture.headers, None),
        failure=failure,
    )
