"""The tables of ``docs/stop-sequences.md``, from rules and shapes; ``python -m tests.support.stop_docs``."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from llmstream_cli.diagnose.rules import ANSWER_RULES, STOP_RULES
from llmstream_cli.shapes import SHAPES, get_shape

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "stop-sequences.md"


def document(text: str) -> str:
    """`text`, the document, with its tables as they should be; ValueError if it has no place for one."""
    for name, rows in (("places", places()), ("causes", causes())):
        start, end = f"<!-- {name}: generated -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"{DOCUMENT} has no place for the table {name!r}")
        text = before + start + "".join(f"{row}\n" for row in rows) + end + after
    return text


def places() -> Iterator[str]:
    yield from _heading("shape", "endpoint", "stop list", "at most")
    for name in SHAPES:
        shape = get_shape(name)
        field = f"`{shape.stop_field}`" if shape.stop_field else "none"
        yield _row(f"`{name}`", f"`{shape.path}`", field, str(shape.stop_limit or ""))


def causes() -> Iterator[str]:
    yield from _heading("code", "what is wrong", "how it is recognised")
    for rule in (*STOP_RULES, *ANSWER_RULES):
        yield _row(f"`{rule.code}`", rule.says, rule.told_by)


def codes(text: str) -> list[str]:
    """The codes in the document's table of causes."""
    return re.findall(r"^\| `(\w+)` \|", text.partition("## Causes")[2], re.MULTILINE)


def _heading(*names: str) -> Iterable[str]:
    return _row(*names), "|" + "---|" * len(names)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text("utf-8")), encoding="utf-8", newline="\n")
