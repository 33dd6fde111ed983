"""Kinds of settings that hold several things: stop strings, headers, body fields, a command. Pure."""

import json
import re
from collections.abc import Mapping

from llmstream_cli.events import Json
from llmstream_cli.kinds import Kind, clean_text
from llmstream_cli.stops import decode_escapes

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class RawStops(Kind):
    """Stop strings, taken literally. An empty one stands for "none", which takes a profile's away."""

    many = True

    def from_text(self, text: str) -> tuple[str, ...]:
        return (clean_text(text),) if text else ()

    def from_toml(self, value: Json) -> tuple[str, ...]:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError('is not a list of texts, e.g. ["\\n", "User:"]')
        return tuple(item for item in items if item)

    def to_toml(self, value: tuple[str, ...]) -> Json:
        return list(value)

    def combine(self, first: tuple[str, ...], then: tuple[str, ...]) -> tuple[str, ...]:
        return first + then


class Stops(RawStops):
    r"""Stop strings with escapes: ``\n`` is a line feed. In TOML the quotes decide that."""

    def from_text(self, text: str) -> tuple[str, ...]:
        return super().from_text(decode_escapes(text))


class Texts(RawStops):
    """Texts taken as they are, such as file names (which need not be valid Unicode)."""

    def from_text(self, text: str) -> tuple[str, ...]:
        return (text,)


class Headers(Kind):
    """Extra HTTP headers. ``Name:`` without a value takes a lower layer's header away, as in curl."""

    many = True
    merges = True
    private = True

    def from_text(self, text: str) -> dict[str, str]:
        name, colon, value = text.partition(":")
        if not colon:
            raise ValueError("is not a header: write 'Name: value'")
        return {_header_name(name.strip()): _header_value(value.strip())}

    def from_toml(self, value: Json) -> dict[str, str]:
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise ValueError('is not a table of texts, e.g. {"X-Title" = "notes"}')
        return {_header_name(name): _header_value(text.strip()) for name, text in value.items()}

    def combine(self, first: dict[str, str], then: dict[str, str]) -> dict[str, str]:
        replaced = {name.lower() for name in then}
        return {name: text for name, text in first.items() if name.lower() not in replaced} | then

    def settled(self, value: dict[str, str]) -> dict[str, str]:
        return {name: text for name, text in value.items() if text}


class Options(Kind):
    """Any field of the request body."""

    many = True
    merges = True

    def from_text(self, text: str) -> dict[str, Json]:
        key, equals, value = text.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts):
            raise ValueError("is not KEY=VALUE, e.g. top_k=40 or options.num_ctx=8192")
        nested = _json_or_text(value)
        for part in reversed(parts):
            nested = {clean_text(part): nested}
        return dict(nested)

    def from_toml(self, value: Json) -> dict[str, Json]:
        if not isinstance(value, dict):
            raise ValueError("is not a table, e.g. {top_k = 40}")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError("holds a date, nan or inf, which JSON cannot say") from None
        return value

    def combine(self, first: Mapping[str, Json], then: Mapping[str, Json]) -> dict[str, Json]:
        """Table by table. Nulls stay: they take a field out of the body."""
        merged = dict(first)
        for key, value in then.items():
            below = merged.get(key)
            if isinstance(below, Mapping) and isinstance(value, Mapping):
                value = self.combine(below, value)
            merged[key] = value
        return merged


class Stream(Options):
    """The table that describes an application's own back end; checked here, kept as written."""

    def from_text(self, text: str) -> dict[str, Json]:
        return self.from_toml(super().from_text(text))

    def from_toml(self, value: Json) -> dict[str, Json]:
        from llmstream_cli.shapes.stream_table import StreamTable

        table = super().from_toml(value)
        StreamTable.from_mapping(table)
        return table


class Command(Kind):
    """A program with its arguments: one text, split as a shell would, or a list."""

    private = True

    def from_text(self, text: str) -> tuple[str, ...]:
        import shlex

        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise ValueError(f"is not a command: {error}".lower()) from None
        if not words:
            raise ValueError("is empty")
        return words

    def from_toml(self, value: Json) -> tuple[str, ...]:
        if isinstance(value, str):
            return self.from_text(value)
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            raise ValueError('is neither a text nor a list of texts, e.g. ["pass", "show", "llm"]')
        return tuple(value)

    def to_toml(self, value: tuple[str, ...]) -> Json:
        return list(value)


def _json_or_text(text: str) -> Json:
    def refuse(word: str) -> Json:
        raise ValueError(word)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return clean_text(text)


def _header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError("has a header name with characters that HTTP does not allow")
    return name


def _header_value(value: str) -> str:
    if not _HEADER_VALUE.fullmatch(value):
        raise ValueError("has a header value with a line break or characters outside latin-1")
    return value
