"""The tables of ``docs/shapes.md``, from the registry; ``python -m tests.support.shape_docs`` writes them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from llmstream_cli.events import Json
from llmstream_cli.fields import compact
from llmstream_cli.shapes import SHAPES, Shape, get_shape
from llmstream_cli.shapes.stream_table import StreamTable

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "shapes.md"

COLUMNS = (
    "shape",
    "endpoints",
    "who speaks it",
    "framing",
    "complete when",
    "finish reasons, in normal form",
    "usage",
    "stop list, token cap",
)
MEANING = {
    "path": "the endpoint, under the profile's `base_url`",
    "method": "`POST` sends `body` as JSON, `GET` as the query string",
    "body": "the request, with placeholders (below)",
    "events": "`sse` only: the events that carry the answer; others are kept and not shown",
    "data": "what the data is: `json`, bare `text`, or `auto`: the first text decides",
    "text": "where the text stands in the JSON",
    "error": "where an error stands; an event named `error` is always one",
    "usage": "where the token counts stand",
    "finish": "where the finish reason stands",
    "done": "what marks the end (below)",
}
SHAPES_OWN = {"data": "`auto`, `json`, `text` for the three", "done": "`text`: `eof`; else the usual marks"}


def document(text: str) -> str:
    """`text`, the document, with its tables as they should be."""
    for name, lines in (("shapes", shapes_table()), ("stream", stream_table())):
        start, end = f"<!-- {name}: generated -->\n", f"<!-- end of {name} -->\n"
        table = "".join(f"{line}\n" for line in lines)
        text, found = re.subn(
            f"{re.escape(start)}.*?{re.escape(end)}",
            lambda _, block=start + table + end: block,  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
        if found != 1:
            raise ValueError(f"{DOCUMENT} has no place for the table {name!r}")
    return text


def shapes_table() -> Iterator[str]:
    yield from _heading(COLUMNS)
    for name in SHAPES:
        yield _row(_cells(get_shape(name)))


def stream_table() -> Iterator[str]:
    yield from _heading(("key", "default", "meaning"))
    usual = StreamTable()
    for item in fields(StreamTable):
        default = SHAPES_OWN.get(item.name) or _default(getattr(usual, item.name))
        yield _row((_code(item.name), default, MEANING[item.name]))


def _cells(shape: Shape) -> Iterator[str]:
    yield _code(shape.name)
    yield "<br>".join(map(_code, (shape.path, *shape.also_at)))
    yield shape.speakers
    yield shape.framing
    yield shape.completeness
    yield "<br>".join(_reasons(shape)) or "none"
    yield _code(shape.usage_field) if shape.usage_field else "none"
    yield f"{_place(shape.stop_field)}, {_place(shape.max_tokens_field)}"


def _reasons(shape: Shape) -> Iterator[str]:
    """``length``: what the server calls it."""
    for normal in dict.fromkeys(shape.finish_reasons.values()):
        words = [_code(word) for word, reason in shape.finish_reasons.items() if reason is normal]
        yield f"**{normal}**: {' '.join(words)}"


def _place(field: str | None) -> str:
    return _code(field) if field else "none"


def _default(value: Json) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_code, value))
    return _code(value if isinstance(value, str) else compact(value))


def _code(text: str) -> str:
    return f"`{text}`"


def _heading(columns: Iterable[str]) -> Iterator[str]:
    columns = list(columns)
    yield _row(columns)
    yield _row("---" for _ in columns)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text("utf-8")), "utf-8")
