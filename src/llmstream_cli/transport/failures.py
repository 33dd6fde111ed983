"""What the engine, the sockets and the clock raise, as causes that a user can understand."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llmstream_cli.errors import (
    ConfigError,
    ConnectError,
    NotWantedError,
    ServerTimeoutError,
    StreamBrokenError,
    TimeoutKind,
    TransportError,
)
from llmstream_cli.transport.call import Call
from llmstream_cli.transport.clock import Expired, Unwanted

if TYPE_CHECKING:
    from llmstream_cli.transport.network import Network


class NoAnswerError(StreamBrokenError):
    """The connection ended before a single byte of an answer: sending again cannot do harm."""


@contextmanager
def failures_explained(call: Call, network: "Network", *, in_body: bool) -> Iterator[None]:
    """Everything raised inside becomes one of our errors; `in_body`: the headers were here already."""
    import httpcore

    try:
        yield
    except Expired as expired:
        raise _timed_out(call, expired) from None
    except Unwanted:
        raise NotWantedError("nobody reads the answer any more", url=call.shown_url) from None
    except httpcore.LocalProtocolError:
        # Its own message would show the header's value, which may be the key.
        raise ConfigError("a header or the URL holds a character that HTTP does not allow") from None
    except httpcore.ProxyError as error:
        message = call.mask.text(f"the proxy {network.proxy} refused: {error}")
        raise ConnectError(message, url=call.shown_url) from None
    except httpcore.RemoteProtocolError as error:
        raise _misspoken(call, network, str(error), in_body=in_body) from None
    except (httpcore.NetworkError, OSError) as error:
        raise _broken(call, network, error, in_body=in_body) from None


def _timed_out(call: Call, expired: Expired) -> ServerTimeoutError:
    limit, hint = f"{expired.limit_s:g} s", ""
    match expired.which:
        case TimeoutKind.CONNECT:
            message = f"no connection to {call.url.netloc} within {limit}"
        case TimeoutKind.FIRST_TOKEN:
            message = f"no answer had begun {limit} after the request was sent"
            hint = "the server may be loading the model, reading the prompt, or busy with others; "
        case TimeoutKind.IDLE:
            message = f"the stream went silent: no event for {limit}"
        case TimeoutKind.TOTAL:
            message = f"the answer was not finished within {limit}"
    option = expired.which.option
    return ServerTimeoutError(
        f"{message} ({option})",
        url=call.shown_url,
        which=expired.which,
        hint=f"{hint}{option} sets the limit",
    )


def _misspoken(call: Call, network: "Network", detail: str, *, in_body: bool) -> TransportError:
    """The peer closed where HTTP does not allow it, or sent what is not HTTP."""
    url = call.shown_url
    if network.ended:
        return _closed(call, network, "closed", in_body=in_body)
    detail = call.mask.text(detail)
    if in_body:
        return StreamBrokenError(f"the body breaks the rules of HTTP: {detail}", url=url)
    other = "https" if call.url.scheme == "http" else "http"
    return ConnectError(
        f"{network.proxy or call.url.netloc} does not answer in HTTP: {detail}",
        url=url,
        hint=f"is this the right port? Perhaps it wants {other}://",
    )


def _broken(call: Call, network: "Network", error: Exception, *, in_body: bool) -> TransportError:
    if isinstance(error, ConnectionResetError | ConnectionAbortedError):
        return _closed(call, network, "reset", in_body=in_body)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return _closed(call, network, f"lost ({reason})", in_body=in_body)


def _closed(call: Call, network: "Network", how: str, *, in_body: bool) -> TransportError:
    url = call.shown_url
    if not network.is_sent:
        peer = f"the proxy {network.proxy}" if network.proxy else call.url.netloc
        return ConnectError(f"the connection to {peer} was {how} before the request was sent", url=url)
    if in_body:
        return StreamBrokenError(f"the connection was {how} in the middle of the answer", url=url)
    if network.received:
        return StreamBrokenError(f"the connection was {how} within the headers of the answer", url=url)
    return NoAnswerError(
        f"the server closed the connection without answering (connection {how})",
        url=url,
        hint="it may have crashed or been stopped: look at its log",
    )
