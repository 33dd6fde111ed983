"""One turn, end to end: bytes from a server or a capture, through the decoder, to a renderer."""

from llmstream_cli.session.live import ask
from llmstream_cli.session.plan import Plan
from llmstream_cli.session.replaying import replay

__all__ = ["Plan", "ask", "replay"]
