"""What is asked, independent of any server, and the HTTP request that a shape makes of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlencode

from llmstream_cli.events import Json

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling and limits; None leaves the server's default."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One turn.

    ``prompt`` is the flattened text that completion shapes send; chat shapes send ``messages``.
    ``cap_field``: where the token cap goes, where that is not the shape's usual field.
    ``options`` are extra body fields, already nested, merged last and so able to replace anything.
    """

    messages: tuple[Message, ...]
    prompt: str | None = None
    model: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    stream: bool = True
    usage: bool = True
    cap_field: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    schema: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """``path`` is relative to the base URL's root, e.g. ``/v1/chat/completions``; ``body`` is JSON.

    A GET has no body: the fields of ``body`` go into the query string.
    """

    path: str
    body: Mapping[str, Json]
    headers: Mapping[str, str] = field(default_factory=dict)
    method: Literal["GET", "POST"] = "POST"

    @property
    def query_fields(self) -> list[tuple[str, str]]:
        """What a GET says in its query string: name and text."""
        if self.method != "GET":
            return []
        return [(name, _query_text(value)) for name, value in self.body.items()]

    @property
    def target(self) -> str:
        """``path`` with the query string."""
        fields = self.query_fields
        joint = "&" if "?" in self.path else "?"
        return f"{self.path}{joint}{urlencode(fields)}" if fields else self.path


def _query_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def split_system(messages: Sequence[Message]) -> tuple[str | None, list[Message]]:
    """The system prompt, for the APIs that have a field of their own for it, and the other messages."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    return system or None, [message for message in messages if message.role != "system"]


def merge(body: Mapping[str, Json], extra: Mapping[str, Json]) -> dict[str, Json]:
    """Merge `extra` into `body`, object by object; a null in `extra` removes the field.

    >>> merge({"options": {"a": 1, "b": 2}}, {"options": {"b": None, "c": 3}})
    {'options': {'a': 1, 'c': 3}}
    """
    merged = dict(body)
    for key, value in extra.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def without_none(body: Mapping[str, Json]) -> dict[str, Json]:
    """Drop the fields that are None: "not given" is not the same as null to every server."""
    return {key: value for key, value in body.items() if value is not None}
