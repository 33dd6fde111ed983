"""httpx with our own sockets beneath: requests and answers are httpx's, connections are `Network`'s."""

# ruff: noqa: E402 - httpx is imported last, because of the line before it.

import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

import httpcore

from llmstream_cli.errors import ConfigError, ConnectError
from llmstream_cli.transport.call import Call
from llmstream_cli.transport.network import Network
from llmstream_cli.transport.tls import make_context
from llmstream_cli.urls import UrlParts

# Where click is installed, httpx would load its own command line and rich: as much time again.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

import httpx

# It logs every URL whole, and some servers take their key in the query.
logging.getLogger("httpx").setLevel(logging.WARNING)


def make_client(call: Call, network: Network, proxy: UrlParts | None) -> httpx.Client:
    """A client for one request; closing it closes the socket, at once and whatever is still coming.

    What may follow a redirect, which proxy is used and how long to wait is decided outside of httpx.
    Raises ConnectError for certificates that cannot be used.
    """
    transport = PoolTransport(_make_pool(call, network, proxy), network)
    return httpx.Client(transport=transport, trust_env=False, follow_redirects=False, timeout=None)


def make_request(call: Call) -> httpx.Request:
    """`call` for `httpx.Client.send`, without the headers that a client adds by itself.

    Raises ConfigError for a header and ConnectError for a URL that cannot be sent.
    """
    headers = httpx.Headers()
    try:
        for name, value in call.all_headers():
            headers[name] = value
    except UnicodeEncodeError:
        raise ConfigError("a header holds a character that HTTP does not allow") from None
    # One that was set by hand would be believed.
    headers.pop("Content-Length", None)
    # Credentials in the URL would replace a header that was set on purpose; `call` has them as a header.
    url = str(replace(call.url, userinfo=""))
    try:
        return httpx.Request(call.method, url, headers=headers, content=call.body)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ConnectError(f"the URL cannot be asked: {error}", url=call.shown_url) from None


class PoolTransport(httpx.BaseTransport):
    """Sends requests over `pool`, whose connections are `network`'s.

    `httpx.HTTPTransport`, but for the network: that one cannot be given. What the pool and the network raise
    leaves the client as it is.
    """

    def __init__(self, pool: httpcore.ConnectionPool, network: Network) -> None:
        self._pool = pool
        self._network = network

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=_SentBody(request.content, self._network),
                extensions=request.extensions,
            )
        )
        return _Answer(
            answer.status,
            headers=answer.headers,
            stream=_ReceivedBody(answer),
            extensions=dict(answer.extensions),
        )

    def close(self) -> None:
        self._pool.close()


class _Answer(httpx.Response):
    @property
    def has_redirect_location(self) -> bool:
        """Else the client would prepare the next request, and fail where the location is no URL."""
        return False


class _SentBody:
    """The body of a request; the engine takes it right after it sent the request's head."""

    def __init__(self, data: bytes, network: Network) -> None:
        self._data = data
        self._network = network

    def __iter__(self) -> Iterator[bytes]:
        self._network.sent()
        if self._data:
            yield self._data


class _ReceivedBody(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def _make_pool(call: Call, network: Network, proxy: UrlParts | None) -> httpcore.ConnectionPool:
    # Certificates take long to load.
    context = make_context(call.target, call.shown_url) if call.url.scheme == "https" else None
    if proxy is None:
        return httpcore.ConnectionPool(ssl_context=context, network_backend=network)
    user, _, password = unquote(proxy.userinfo).partition(":")
    return httpcore.HTTPProxy(
        proxy_url=httpcore.URL(scheme=proxy.scheme, host=proxy.host, port=proxy.port, target="/"),
        proxy_auth=(user, password) if proxy.userinfo else None,
        ssl_context=context,
        proxy_ssl_context=make_context(call.target, call.shown_url) if proxy.scheme == "https" else None,
        network_backend=network,
    )
