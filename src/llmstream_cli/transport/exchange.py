"""One request on one connection, and the answer as it comes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from llmstream_cli.errors import ServerTimeoutError
from llmstream_cli.transport.call import Call
from llmstream_cli.transport.clock import Clock
from llmstream_cli.transport.failures import failures_explained
from llmstream_cli.transport.proxy import find_proxy
from llmstream_cli.urls import redact_url

if TYPE_CHECKING:
    import httpx

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
        client: "httpx.Client",
        response: "httpx.Response",
    ) -> None:
        self.call = call
        self._clock = clock
        self._network = network
        self._client = client
        self._response = response
        self.url = call.shown_url
        self.method = call.method
        self.path = call.path
        self.proxy = network.proxy
        self.status = response.status_code
        self.headers_s = clock.elapsed_s()
        self.headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw
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
                for data in self._response.iter_raw():
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
        self._client.close()


def send(call: Call, clock: Clock) -> Exchange:
    """Connect, send `call`, wait for the headers.

    Raises ConnectError, ServerTimeoutError, or StreamBrokenError (`NoAnswerError` where not one byte came);
    ConfigError for a header that cannot be sent.
    """
    from llmstream_cli.transport.client import make_client, make_request
    from llmstream_cli.transport.network import Network

    clock.connecting()
    proxy = find_proxy(call.url)
    network = Network(clock, call.shown_url, proxy=redact_url(str(proxy)) if proxy else None)
    request = make_request(call)
    client = make_client(call, network, proxy)
    try:
        with failures_explained(call, network, in_body=False):
            return Exchange(call, clock, network, client, client.send(request, stream=True))
    except BaseException:
        client.close()
        raise
