"""Open a stream with patience: retries before the first byte of an answer, a server that is still loading."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llmstream_cli.errors import ConfigError, HttpStatusError, StreamBrokenError
from llmstream_cli.request import HttpRequest
from llmstream_cli.transport.call import Call, make_call
from llmstream_cli.transport.clock import Clock, sleep
from llmstream_cli.transport.exchange import Exchange
from llmstream_cli.transport.redirects import follow
from llmstream_cli.transport.retrying import Retrying
from llmstream_cli.transport.status import status_error
from llmstream_cli.transport.target import Target, Timeouts, WaitNotice


@contextmanager
def open_stream(
    target: Target,
    request: HttpRequest,
    *,
    timeouts: Timeouts,
    retries: int = 2,
    on_wait: Callable[[WaitNotice], None] | None = None,
    wanted: Callable[[], bool] | None = None,
    before_wait: Callable[[], None] | None = None,
) -> Iterator[Exchange]:
    """Send `request` to `target`; the answer, whose status is below 300, is closed on leaving.

    Sent again, at most `retries` times and only before any answer came: after 429, 502, 503, 504 and 529, and
    once after a connection that closed without a byte. `on_wait` is called before each wait. `wanted` is
    asked about twenty times a second while nothing comes; False ends it with NotWantedError, as does a
    BrokenPipeError of `before_wait`, which is called whenever more is read from the socket. Raises
    TransportError, and ConfigError for a base URL or header that cannot be sent.
    """
    body = None if request.method == "GET" else request.body
    try:
        call = make_call(
            target, method=request.method, path=request.target, headers=request.headers, body=body
        )
    except ValueError as error:
        raise ConfigError(f"the base URL makes no sense: {error}") from None
    clock = Clock(timeouts, wanted, before_wait)
    exchange = _open(call, clock, Retrying(clock, timeouts, retries), on_wait)
    try:
        yield exchange
    finally:
        exchange.close()


def _open(
    call: Call, clock: Clock, retrying: Retrying, on_wait: Callable[[WaitNotice], None] | None
) -> Exchange:
    while True:
        try:
            return _attempt(call, clock)
        except (HttpStatusError, StreamBrokenError) as error:
            notice = retrying.consider(error)
            if notice is None:
                raise
        if on_wait:
            on_wait(notice)
        sleep(notice.seconds)


def _attempt(call: Call, clock: Clock) -> Exchange:
    exchange = follow(call, clock)
    if exchange.status < 300:
        return exchange
    try:
        raise status_error(exchange)
    finally:
        exchange.close()
