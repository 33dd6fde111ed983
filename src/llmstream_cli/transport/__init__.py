"""The way to a server and back: the only package that opens sockets or knows HTTP.

``open_stream`` sends one request and hands over the answer as it comes; ``ask_json`` is for short look-ups.
Importing this package is cheap; the HTTP engine is loaded when the first request is made.

HTTP is httpcore's, the engine of httpx, without the layers above: they cost more time to import than a whole
short answer takes, and hide the socket that the time-outs need. Blocking calls on the calling thread, so that
Ctrl-C is a KeyboardInterrupt wherever it comes; the socket is closed before it leaves this package.
"""

from llmstream_cli.transport.asking import ask_json
from llmstream_cli.transport.exchange import Exchange
from llmstream_cli.transport.opening import open_stream
from llmstream_cli.transport.target import Answer, Target, Timeouts, WaitNotice

__all__ = ["Answer", "Exchange", "Target", "Timeouts", "WaitNotice", "ask_json", "open_stream"]
