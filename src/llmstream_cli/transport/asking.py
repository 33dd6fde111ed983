"""Short questions to a server: who are you, which models do you have?"""

import json
from collections.abc import Mapping

from llmstream_cli.errors import ConnectError, StreamBrokenError
from llmstream_cli.events import Json
from llmstream_cli.framing.encoding import EncodingError, make_content_decoder
from llmstream_cli.transport.call import make_call
from llmstream_cli.transport.clock import Clock
from llmstream_cli.transport.exchange import Exchange
from llmstream_cli.transport.redirects import follow
from llmstream_cli.transport.target import Answer, Target, Timeouts
from llmstream_cli.urls import redact_url

MAX_ANSWER_BYTES = 8 * 1024 * 1024


def ask_json(
    target: Target,
    method: str,
    path: str,
    body: Mapping[str, Json] | None = None,
    *,
    timeout_s: float | None = 5.0,
) -> Answer:
    """The whole answer, whatever its status, within `timeout_s` in all.

    Raises ConnectError (also for an answer that breaks off) and ServerTimeoutError; ConfigError for a header
    that cannot be sent.
    """
    try:
        call = make_call(target, method=method, path=path, headers={}, body=body)
    except ValueError as error:
        raise ConnectError(f"the base URL makes no sense: {error}", url=redact_url(target.base_url)) from None
    limits = Timeouts(connect_s=timeout_s, first_token_s=timeout_s, idle_s=timeout_s, total_s=timeout_s)
    try:
        exchange = follow(call, Clock(limits))
        try:
            text = _read_text(exchange)
        finally:
            exchange.close()
    except StreamBrokenError as error:
        raise ConnectError(error.message, url=error.url, hint=error.hint) from None
    return Answer(
        status=exchange.status,
        headers={name.lower(): value for name, value in reversed(exchange.headers)},
        json=_parsed(text),
        text=text,
    )


def _read_text(exchange: Exchange) -> str:
    decoder = make_content_decoder(exchange.content_encoding)
    body = bytearray()
    try:
        for _, data in exchange.reads():
            for piece in decoder.feed(data):
                body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise ConnectError(f"the answer is larger than {MAX_ANSWER_BYTES:,} bytes", url=exchange.url)
    except EncodingError as error:
        raise ConnectError(str(error), url=exchange.url) from None
    return exchange.call.mask.data(bytes(body)).decode("utf-8-sig", "replace")


def _parsed(text: str) -> Json | None:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
