"""The table ``stream`` of a profile: how the back end of an application is asked and how it answers.

Its defaults fit what such back ends usually send: FastAPI and LlamaIndex examples, LangServe, and the many
that imitate OpenAI or Ollama.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from llmstream_cli.events import Json
from llmstream_cli.shapes.request_template import check_template

EVENTS = ("message", "data", "token", "tokens", "delta", "chunk", "text", "content", "answer", "response")
TEXT = (
    "text",
    "token",
    "content",
    "delta",
    "response",
    "message",
    "answer",
    "chunk",
    "output",
    "completion",
    "data",
    "choices.0.delta.content",
    "choices.0.text",
    "delta.content",
    "delta.text",
    "message.content",
    "token.text",
    "data.text",
    "data.content",
    "value.delta",
)
ERROR = ("error",)
USAGE = ("usage", "metadata.usage", "data.usage", "token_usage")
FINISH = (
    "finish_reason",
    "done_reason",
    "stop_reason",
    "finishReason",
    "choices.0.finish_reason",
    "data.finish_reason",
)
DONE = (
    "[DONE]",
    "[END]",
    "done",
    "end",
    "complete",
    "completed",
    "finish",
    "finished",
    "is_final",
    "close",
    *(f"{key}={word}" for key in ("type", "event") for word in ("done", "end", "complete", "finish", "stop")),
)

_LISTS = ("events", "text", "error", "usage", "finish", "done")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTable:
    """``events``: those that carry the answer. ``data``: how it is written, None = the shape's own way.

    ``text``, ``error``, ``usage``, ``finish``: dotted paths, the first that holds something counts.
    ``done``: see `EndMarks.parse`; None = the shape's own.
    """

    path: str = "/chat"
    method: Literal["GET", "POST"] = "POST"
    body: Mapping[str, Json] = field(default_factory=lambda: {"message": "{prompt}"})
    events: tuple[str, ...] = EVENTS
    data: Literal["auto", "json", "text"] | None = None
    text: tuple[str, ...] = TEXT
    error: tuple[str, ...] = ERROR
    usage: tuple[str, ...] = USAGE
    finish: tuple[str, ...] = FINISH
    done: tuple[str, ...] | None = None

    @classmethod
    def from_mapping(cls, table: Mapping[str, Json]) -> "StreamTable":
        """ValueError, a phrase that follows the table's name, for a table that makes no sense."""
        known = [item.name for item in fields(cls)]
        if unknown := [key for key in table if key not in known]:
            raise ValueError(f"has the unknown key {unknown[0]!r}; there are {', '.join(known)}")
        return cls(**{key: _read(key, value) for key, value in table.items()})


def _read(key: str, value: Json) -> Json:
    if key in _LISTS:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
            raise ValueError(f"has a {key} that is neither a text nor a list of texts")
        return tuple(items)
    if key == "body":
        if not isinstance(value, Mapping):
            raise ValueError('has a body that is not a table, e.g. {message = "{prompt}"}')
        check_template(value)
        return value
    if key == "path" and not (isinstance(value, str) and value.startswith("/")):
        raise ValueError('has a path that does not begin with "/"')
    words = {"method": ("GET", "POST"), "data": ("auto", "json", "text")}.get(key)
    if words and value not in words:
        raise ValueError(f"has a {key} that is not one of {', '.join(words)}")
    return value
