"""Bytes in, frames out. Knows nothing of LLMs, and the borders of reads mean nothing."""

from typing import Literal, assert_never

from llmstream_cli.framing.base import Comment, Frame, Framer, FramingFault, Unit
from llmstream_cli.framing.lines import DEFAULT_LIMIT_BYTES

FramingName = Literal["sse", "sse-text", "ndjson", "json", "json-array", "text"]

__all__ = [
    "DEFAULT_LIMIT_BYTES",
    "Comment",
    "Frame",
    "Framer",
    "FramingFault",
    "FramingName",
    "Unit",
    "make_framer",
]


def make_framer(name: FramingName, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Framer:
    """The framer for one body; a frame larger than `limit_bytes` becomes a `FramingFault`."""
    match name:
        case "sse":
            from llmstream_cli.framing.sse import SseFramer

            return SseFramer(limit_bytes)
        case "sse-text":
            from llmstream_cli.framing.sse_text import SseTextFramer

            return SseTextFramer(limit_bytes)
        case "ndjson":
            from llmstream_cli.framing.ndjson import NdjsonFramer

            return NdjsonFramer(limit_bytes)
        case "json":
            from llmstream_cli.framing.json_document import JsonDocumentFramer

            return JsonDocumentFramer(limit_bytes)
        case "json-array":
            from llmstream_cli.framing.json_array import JsonArrayFramer

            return JsonArrayFramer(limit_bytes)
        case "text":
            from llmstream_cli.framing.text import TextFramer

            return TextFramer()
    assert_never(name)
