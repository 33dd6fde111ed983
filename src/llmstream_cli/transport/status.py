"""An answer with an error status, as an error that says what was asked and what came back."""

import re
import time
from contextlib import suppress
from urllib.parse import urljoin

from llmstream_cli.errors import HttpStatusError, StreamBrokenError
from llmstream_cli.framing.encoding import EncodingError, make_content_decoder
from llmstream_cli.shapes.base import read_error_body
from llmstream_cli.transport.exchange import Exchange
from llmstream_cli.urls import redact_url

MAX_ERROR_BODY_BYTES = 64 * 1024
ERROR_BODY_S = 5.0
"""How long the body of an error answer may keep the user waiting."""
MAX_RETRY_AFTER_S = 60.0
"""The longest wait for a server that asks to be left alone for a while."""
_SHOWN_CHARACTERS = 500
_HINTS = {
    401: "check the API key",
    403: "check the API key and what it is allowed to do",
    404: "check the base URL, the model name and the server's version",
    405: "check the base URL",
}


def status_error(exchange: Exchange) -> HttpStatusError:
    """The error for an answer of 300 and above; reads its body, decodes it, masks all secrets."""
    mask = exchange.call.mask
    exchange.settle(ERROR_BODY_S)
    body = mask.data(_read_body(exchange))
    via = f" (through the proxy {exchange.proxy})" if exchange.proxy else ""
    message = f"{exchange.status} {exchange.reason}".strip() + f" from {exchange.method} {exchange.url}{via}"
    detail, hint = _redirect(exchange) if exchange.status < 400 else _detail(exchange, body)
    retry_after_s = parse_retry_after(exchange.header("retry-after"), now=time.time())
    return HttpStatusError(
        mask.text(f"{message}: {detail}" if detail else message),
        url=exchange.url,
        status=exchange.status,
        body=body,
        content_type=exchange.content_type,
        headers=tuple((name, mask.text(value)) for name, value in exchange.headers),
        retry_after_s=retry_after_s,
        hint=hint or _wait_asked_for(retry_after_s),
    )


def parse_retry_after(text: str, *, now: float) -> float | None:
    """Seconds from a Retry-After header (RFC 9110, 10.2.3): a number, or a date; None for anything else.

    `now` is the Unix time. A date in the past is 0, a negative number is nonsense.
    """
    text = text.strip()
    if re.fullmatch(r"\d{1,12}(\.\d{1,9})?", text, re.ASCII):
        return float(text)
    if not re.match(r"[A-Z][a-z]+,? ", text):
        return None
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _redirect(exchange: Exchange) -> tuple[str, str | None]:
    location = exchange.header("location")
    if not location:
        return "", None
    try:
        shown = redact_url(urljoin(str(exchange.call.url), location))
    except ValueError:
        return f"redirected to {location!r}", None
    base = shown.partition("?")[0].removesuffix(exchange.path)
    return f"redirected to {shown}", f"if you trust it, set the base URL to {base}"


def _detail(exchange: Exchange, body: bytes) -> tuple[str, str | None]:
    found = read_error_body(exchange.status, body, exchange.content_type)
    detail = " ".join(found.message.split())[:_SHOWN_CHARACTERS]
    kind = exchange.content_type.partition(";")[0].strip()
    return f"{detail} ({kind})" if kind == "text/html" else detail, _HINTS.get(exchange.status)


def _wait_asked_for(seconds: float | None) -> str | None:
    if not seconds:
        return None
    limit = f", longer than the {MAX_RETRY_AFTER_S:g} s waited for" if seconds > MAX_RETRY_AFTER_S else ""
    return f"the server asks to wait {seconds:g} s{limit}"


def _read_body(exchange: Exchange) -> bytes:
    """As much of the body as comes soon; a status without its body is still worth reporting."""
    body = bytearray()
    decoder = make_content_decoder(exchange.content_encoding)
    with suppress(StreamBrokenError, EncodingError):
        for _, data in exchange.reads():
            for piece in decoder.feed(data):
                body += piece
                if len(body) >= MAX_ERROR_BODY_BYTES:
                    return bytes(body[:MAX_ERROR_BODY_BYTES])
    return bytes(body)
