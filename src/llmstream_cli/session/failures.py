"""What went wrong with a request, as the end of a stream."""

from dataclasses import replace

from llmstream_cli.errors import (
    HttpStatusError,
    ServerTimeoutError,
    StreamBrokenError,
    TimeoutKind,
    TransportError,
)
from llmstream_cli.events import EndStatus, StreamEnd, StreamError
from llmstream_cli.shapes.base import Shape


def broken_kind(error: StreamBrokenError) -> str:
    return next(
        (f"connection_{how}" for how in ("reset", "closed") if f" {how}" in error.message),
        "connection_broken",
    )


def timeout_kind(which: TimeoutKind) -> str:
    return f"timeout_{which.value.replace('-', '_')}"


def end_of_failure(error: TransportError, shape: Shape) -> StreamEnd:
    """How a request ended that never got a stream."""
    status, reported = EndStatus.ERROR, StreamError(kind="connect", message=error.message)
    match error:
        case HttpStatusError():
            reported = shape.read_error(error.status, error.body, error.content_type)
            reported = replace(reported, message=reported.message or error.message)
        case ServerTimeoutError():
            status = EndStatus.TIMEOUT
            reported = StreamError(kind=timeout_kind(error.which), message=error.message)
        case StreamBrokenError():
            status = EndStatus.INCOMPLETE
            reported = StreamError(kind=broken_kind(error), message=error.message)
        case _:
            pass
    return StreamEnd(status=status, marker_seen=None, offset=0, error=reported)
