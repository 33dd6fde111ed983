"""Where each endpoint reads its stop list, and where a request has one, and its prompt. Pure.

Sources: the request schemas of llama.cpp, vLLM, Ollama, TGI, SGLang, LM Studio, and the APIs of OpenAI,
Anthropic and Google.
"""

from collections.abc import Iterator, Mapping

from llmstream_cli.events import Json
from llmstream_cli.fields import as_text, look_up, objects

PLACES = (
    "stop",
    "stop_sequences",
    "options.stop",
    "parameters.stop",
    "sampling_params.stop",
    "generationConfig.stopSequences",
)
"""Every place where some server reads a stop list, as dotted paths."""

_RESPONSES_WITH_STOP = frozenset({"llama.cpp", "vllm", "sglang"})
"""Servers whose ``/v1/responses`` reads ``stop``; the API itself has no such parameter."""


def stop_field(shape: str, kind: str | None, path: str, usual: str | None) -> str | None:
    """The place of the stop list for an endpoint; `usual`: the one of its shape."""
    if path.split("?")[0].rstrip("/").endswith("/api/v1/chat"):
        return None
    if shape == "openai-responses" and kind in _RESPONSES_WITH_STOP:
        return "stop"
    return usual


def placed(body: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Each place of `body` that has a value, with it."""
    for place in PLACES:
        value = look_up(dict(body), place)
        if value is not None:
            yield place, value


def strings(value: Json) -> tuple[str, ...]:
    """The stop strings of a field: a string, or the strings of a list."""
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str))


def stops_in(body: Mapping[str, Json]) -> tuple[str, ...]:
    """Every stop string of a request, wherever it stands."""
    return tuple(dict.fromkeys(stop for _, value in placed(body) for stop in strings(value)))


def prompt_in(body: Mapping[str, Json]) -> str:
    """The text of a request's messages, or its prompt."""
    contents = [as_text(message.get("content")) for message in objects(body.get("messages"))]
    prompts = [as_text(body.get(name)) for name in ("prompt", "inputs", "input", "text", "system")]
    return "\n".join(text for text in contents + prompts if text)
