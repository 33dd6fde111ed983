"""Server APIs. One file each: build the request, decode the frames, read the error bodies.

A new shape is one file and one line in `SHAPES`.
"""

from importlib import import_module
from typing import cast

from llmstream_cli.shapes.base import FrameDecoder, Shape

SHAPES: dict[str, str] = {
    "openai-chat": "openai_chat",
    "openai-completions": "openai_completions",
    "llamacpp": "llamacpp",
    "ollama-chat": "ollama_chat",
    "ollama-generate": "ollama_generate",
    "tgi": "tgi",
}
"""Shape name -> module; imported only when used."""

__all__ = ["SHAPES", "FrameDecoder", "Shape", "get_shape"]


def get_shape(name: str) -> Shape:
    """The shape called `name`; KeyError for an unknown one."""
    return cast("Shape", import_module(f"llmstream_cli.shapes.{SHAPES[name]}").SHAPE)
