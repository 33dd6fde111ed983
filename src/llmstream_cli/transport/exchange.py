"""One request on one connection, and the answer as it comes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from llmstream_cli.errors import ServerTimeoutError
from llmstream_cli.transport.call import Call
from llmstream_cli.transport.clock import Clock
from llmstream_cli.transport.failures import failures_explained
from llmstream_cli.transport.proxy import find_proxy
from llmstream_cli.urls import UrlParts, redact_url

if TYPE_CHECKING:
    import httpcore

    from llmstream_cli.transport.network import Network


class Exchange:
    """An answer whose headers are here. Times are seconds since the request was sent.

    ``url`` holds no secret. ``content_encoding`` is lower case, empty for none.
    """

    def __init__(
        self,
        call: Call,
        clock: Clock,
        network: "Network",
        pool: "httpcore.ConnectionPool",
        response: "httpcore.Response",
    ) -> None:
        self.call = call
        self._clock = clock
        self._network = network
        self._pool = pool
        self._response = response
        self.url = call.shown_url
        self.method = call.method
        self.path = call.path
        self.proxy = network.proxy
        self.status = response.status
        self.headers_s = clock.elapsed_s()
        self.headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers
        )
        reason: bytes = response.extensions.get("reason_phrase", b"")
        self.reason = reason.decode("latin-1")
        self.content_type = self.header("content-type")
        self.content_encoding = self.header("content-encoding").strip().lower()

    def header(self, name: str) -> str:
        """The first header called `name` (lower case), or an empty string."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    def reads(self) -> Iterator[tuple[float, bytes]]:
        """The body, de-chunked but still content-encoded, one item a receive.

        Ends normally at the end of the body, or when `settle` ran out. Raises ServerTimeoutError, or
        StreamBrokenError where the connection ended first.
        """
        elapsed_s = self._clock.elapsed_s
        try:
            with failures_explained(self.call, self._network, in_body=True):
                for data in self._response.iter_stream():
                    yield elapsed_s(), data
        except ServerTimeoutError:
            if not self._clock.settled:
                raise

    def progress(self) -> None:
        """An event came: the idle clock starts again; the first-token clock stops at the first call."""
        self._clock.progress()

    def settle(self, seconds: float) -> None:
        """All that is wanted is here: from now on `seconds` without progress end `reads` normally."""
        self._clock.settle(seconds)

    def elapsed_s(self) -> float:
        return self._clock.elapsed_s()

    def read_all(self, limit: int = 64 * 1024) -> bytes:
        """The body, at most `limit` bytes of it."""
        body = bytearray()
        for _, data in self.reads():
            body += data
            if len(body) >= limit:
                break
        return bytes(body[:limit])

    def close(self) -> None:
        """Close the socket, at once and whatever is still coming. May be called again."""
        self._pool.close()


def send(call: Call, clock: Clock) -> Exchange:
    """Connect, send `call`, wait for the headers.

    Raises ConnectError, ServerTimeoutError, or StreamBrokenError (`NoAnswerError` where not one byte came).
    """
    import httpcore

    from llmstream_cli.transport.network import Network

    clock.connecting()
    proxy = find_proxy(call.url)
    network = Network(clock, call.shown_url, proxy=redact_url(str(proxy)) if proxy else None)
    pool = _make_pool(call, network, proxy)
    try:
        with failures_explained(call, network, in_body=False):
            response = pool.handle_request(
                httpcore.Request(
                    call.method,
                    _engine_url(call.url),
                    headers=call.wire_headers(),
                    content=_Body(call.body, network),
                )
            )
            return Exchange(call, clock, network, pool, response)
    except BaseException:
        pool.close()
        raise


@dataclass(frozen=True, slots=True)
class _Body:
    """The request body; the engine takes it right after it sent the request's head."""

    data: bytes
    network: "Network"

    def __iter__(self) -> Iterator[bytes]:
        self.network.sent()
        if self.data:
            yield self.data


def _make_pool(call: Call, network: "Network", proxy: UrlParts | None) -> "httpcore.ConnectionPool":
    import httpcore

    from llmstream_cli.transport.tls import make_context

    context = make_context(call.target, call.url.scheme, call.shown_url)
    if proxy is None:
        return httpcore.ConnectionPool(ssl_context=context, network_backend=network)
    user, _, password = unquote(proxy.userinfo).partition(":")
    return httpcore.HTTPProxy(
        proxy_url=_engine_url(proxy),
        proxy_auth=(user, password) if proxy.userinfo else None,
        ssl_context=context,
        proxy_ssl_context=make_context(call.target, "https", call.shown_url)
        if proxy.scheme == "https"
        else None,
        network_backend=network,
    )


def _engine_url(url: UrlParts) -> "httpcore.URL":
    import httpcore

    return httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
