"""Lists of models as the servers write them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from llmstream_cli.events import Json
from llmstream_cli.fields import as_int, as_list, as_object, as_text, objects


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """``context_tokens``: what the server allows, else what the model was trained for."""

    id: str
    context_tokens: int | None = None
    size_bytes: int | None = None


def entries(listing: Json) -> Iterator[dict[str, Json]]:
    """The models of an OpenAI list (``data``) or of Ollama's (``models``); some servers send a bare list."""
    fields = as_object(listing)
    for entry in objects(as_list(fields.get("data")) or as_list(fields.get("models")) or as_list(listing)):
        name = as_text(entry.get("id")) or as_text(entry.get("name"))
        if name is not None:
            yield {**entry, "id": name}


def read_models(listing: Json) -> tuple[ModelInfo, ...]:
    return tuple(
        ModelInfo(id=entry["id"], context_tokens=_context_tokens(entry), size_bytes=_size_bytes(entry))
        for entry in entries(listing)
    )


def _context_tokens(entry: dict[str, Json]) -> int | None:
    """llama.cpp (``meta``), vLLM and SGLang, LM Studio, and the gateways' ``context_length``."""
    meta = as_object(entry.get("meta"))
    found = (
        meta.get("n_ctx"),
        meta.get("n_ctx_train"),
        entry.get("max_model_len"),
        entry.get("loaded_context_length"),
        entry.get("max_context_length"),
        entry.get("context_length"),
    )
    return next((number for number in map(as_int, found) if number), None)


def _size_bytes(entry: dict[str, Json]) -> int | None:
    return as_int(entry.get("size")) or as_int(as_object(entry.get("meta")).get("size"))
