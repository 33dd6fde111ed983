"""How the back end of an application marks the end of an answer: the values of ``done`` in a profile."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from llmstream_cli.events import Json
from llmstream_cli.fields import compact, look_up

END_OF_BODY = "eof"
_WORD = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_FIELD = re.compile(rf"({_WORD.pattern})=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndMarks:
    """``words``: names of events, and dotted paths of fields that are true. ``fields``: path and value.

    ``literals``: data that is nothing but the mark. ``body``: the end of the body is the end.
    """

    words: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    literals: frozenset[str]
    body: bool

    @classmethod
    def parse(cls, marks: Iterable[str]) -> "EndMarks":
        """``done``: a word. ``type=done``: a field. ``[DONE]`` and ``=END``: literals. ``eof``: the body."""
        words: list[str] = []
        fields: list[tuple[str, str]] = []
        literals: set[str] = set()
        body = False
        for mark in marks:
            if mark == END_OF_BODY:
                body = True
            elif _WORD.fullmatch(mark):
                words.append(mark)
            elif found := _FIELD.fullmatch(mark):
                fields.append((found[1], found[2]))
            else:
                literals.add(mark.removeprefix("="))
        return cls(words=tuple(words), fields=tuple(fields), literals=frozenset(literals), body=body)

    def in_data(self, data: str) -> bool:
        """`data` as it came, or as a JSON string (FastAPI's own event stream quotes every text)."""
        data = data.strip()
        return data in self.literals or (data[:1] == '"' and data[1:-1] in self.literals)

    def in_name(self, name: str | None) -> bool:
        return name in self.words

    def in_flag(self, value: Mapping[str, Json]) -> bool:
        return any(look_up(value, word) is True for word in self.words)

    def in_field(self, value: Mapping[str, Json]) -> bool:
        return any(_equals(look_up(value, path), wanted) for path, wanted in self.fields)


def _equals(value: Json, wanted: str) -> bool:
    return value is not None and wanted == (value if isinstance(value, str) else compact(value))
