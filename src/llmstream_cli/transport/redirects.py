"""Where a redirect may be followed, and with what."""

from urllib.parse import urljoin

from llmstream_cli.transport.call import Call
from llmstream_cli.transport.clock import Clock
from llmstream_cli.transport.exchange import Exchange, send
from llmstream_cli.urls import split_url

MAX_REDIRECTS = 3
_SAME_METHOD, _BECOMES_GET = (307, 308), (301, 302, 303)


def follow(call: Call, clock: Clock) -> Exchange:
    """Send `call` wherever the server redirects it, three times at most; the answer may have any status."""
    exchange = send(call, clock)
    for _ in range(MAX_REDIRECTS):
        next_call = _redirected(call, exchange)
        if next_call is None:
            break
        exchange.close()
        call, exchange = next_call, send(next_call, clock)
    return exchange


def _redirected(call: Call, exchange: Exchange) -> Call | None:
    """The call that a redirect asks for; None where there is none, or none that may be followed.

    A POST that would become a GET, and a way from https back to http, are for the user to decide.
    """
    follows = exchange.status in _SAME_METHOD or (call.method == "GET" and exchange.status in _BECOMES_GET)
    location = exchange.header("location")
    if not follows or not location:
        return None
    try:
        url = split_url(urljoin(str(call.url), location))
    except ValueError:
        return None
    if (call.url.scheme, url.scheme) == ("https", "http"):
        return None
    return call.redirected(url)
