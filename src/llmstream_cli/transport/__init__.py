"""The way to a server and back: the only package that opens sockets or knows HTTP.

``open_stream`` sends one request and hands over the answer as it comes; ``ask_json`` is for short look-ups.
Importing this package is cheap; httpx is loaded when the first request is made.

Requests and answers are httpx's. The connections beneath its engine, httpcore, are our own (`client`,
`network`): the time-outs and Ctrl-C need the socket, which httpx hides. Blocking calls on the calling thread,
so that Ctrl-C is a KeyboardInterrupt wherever it comes; the socket is closed before it leaves this package.
Proxies, redirects and certificates are decided here as well, because httpx would send a key along, follow a
POST with a GET, or ask a proxy for localhost.
"""

from llmstream_cli.transport.asking import ask_json
from llmstream_cli.transport.exchange import Exchange
from llmstream_cli.transport.opening import open_stream
from llmstream_cli.transport.target import Answer, Target, Timeouts, WaitNotice

__all__ = ["Answer", "Exchange", "Target", "Timeouts", "WaitNotice", "ask_json", "open_stream"]
