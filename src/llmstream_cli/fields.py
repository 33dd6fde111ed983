"""Typed look-ups in JSON of unknown quality: a field may be absent, null or of the wrong type."""

import json
from collections.abc import Iterator, Mapping
from typing import cast

from llmstream_cli.events import Json

EMPTY: Mapping[str, Json] = {}


def as_object(value: Json) -> Mapping[str, Json]:
    """The object itself, or an empty one for anything else."""
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else EMPTY


def as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def look_up(value: Json, dotted: str) -> Json:
    """What stands at a dotted path, a number being a place in a list; None where there is nothing.

    >>> look_up({"choices": [{"text": "hi"}]}, "choices.0.text")
    'hi'
    """
    for part in dotted.split("."):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def objects(value: Json) -> Iterator[Mapping[str, Json]]:
    """The objects of a list; whatever else stands in it is passed over."""
    for item in as_list(value):
        if isinstance(item, dict):
            yield item


def as_text(value: Json) -> str | None:
    """A non-empty string, else None: servers send ``""`` where they mean "nothing"."""
    return value if isinstance(value, str) and value else None


def as_int(value: Json) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def as_number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def seconds(value: Json, *, per_second: float) -> float | None:
    """A duration in a server's own unit (`per_second` of them make a second) as seconds."""
    number = as_number(value)
    return None if number is None else number / per_second


def compact(value: Json) -> str:
    """JSON without insignificant white space, non-ASCII left readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
