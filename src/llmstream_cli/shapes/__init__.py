"""Server APIs. One file each: build the request, decode the frames, read the error bodies.

A new shape is one file and one line in `SHAPES`.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from llmstream_cli.events import Json
from llmstream_cli.fields import objects
from llmstream_cli.shapes.base import FrameDecoder, Shape

SHAPES: dict[str, str] = {
    "openai-chat": "openai_chat",
    "openai-completions": "openai_completions",
    "llamacpp": "llamacpp",
    "ollama-chat": "ollama_chat",
    "ollama-generate": "ollama_generate",
    "tgi": "tgi",
    "anthropic": "anthropic",
    "openai-responses": "openai_responses",
    "gemini": "gemini",
    "sglang": "sglang",
    "vercel-ai": "vercel_ai",
    "sse": "sse",
    "ndjson": "ndjson",
    "text": "text",
}
"""Shape name -> module; imported only when used."""

__all__ = ["SHAPES", "FrameDecoder", "Shape", "get_shape", "shape_for_path"]


def get_shape(name: str) -> Shape:
    """The shape called `name`; KeyError for an unknown one."""
    return cast("Shape", import_module(f"llmstream_cli.shapes.{SHAPES[name]}").SHAPE)


def shape_for_path(path: str, body: Mapping[str, Json]) -> str | None:
    """The shape spoken at an endpoint, for a recorded exchange; None if no shape has such a path."""
    path = path.split("?")[0].rstrip("/")
    if path.endswith("/chat/completions"):
        return "openai-chat"
    if path.endswith("/completion") or (path.endswith("/completions") and "/v1" not in path):
        return "llamacpp"
    if path.endswith("/completions"):
        return "openai-completions"
    if path.endswith("/api/chat"):
        return (
            "vercel-ai" if any("parts" in item for item in objects(body.get("messages"))) else "ollama-chat"
        )
    if path.endswith("/api/generate"):
        return "ollama-generate"
    if path.endswith(("/generate_stream", "/generate")) and "inputs" in body:
        return "tgi"
    if path.endswith("/generate") and ("text" in body or "input_ids" in body):
        return "sglang"
    if path.endswith((":streamGenerateContent", ":generateContent")):
        return "gemini"
    if path.endswith("/v1/messages"):
        return "anthropic"
    return "openai-responses" if path.endswith("/responses") else None
