"""A table: aligned columns where they fit, else one record for each row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.text import Text

from llmstream_cli.render.markdown.inline import inline
from llmstream_cli.render.markdown.lines import wrap

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_GAP = " │ "
_CROSS = "─┼─"
Alignment = Literal["left", "center", "right"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """Widths in cells: of its longest word and of its longest cell."""

    least: int
    wanted: int
    alignment: Alignment


def table(node: "SyntaxTreeNode", width: int) -> list[Text]:
    """The lines of the table at `node`, none wider than `width` cells."""
    rows = [row.children for section in node.children for row in section.children]
    header = [inline(cell, "bold") for cell in rows[0]]
    body = [[inline(cell) for cell in row] for row in rows[1:]]
    columns = [_column(cell, [row[index] for row in (header, *body)]) for index, cell in enumerate(rows[0])]
    room = width - len(_GAP) * (len(columns) - 1)
    if sum(column.least for column in columns) > room:
        return _records(header, body, width)
    widths = _widths(columns, room)
    lines = _row(header, columns, widths)
    lines.append(Text(_CROSS.join("─" * cells for cells in widths), "dim"))
    for row in body:
        lines.extend(_row(row, columns, widths))
    return lines


def _column(head: "SyntaxTreeNode", cells: Sequence[Text]) -> _Column:
    style = str(head.attrs.get("style", ""))
    alignment: Alignment = "right" if "right" in style else "center" if "center" in style else "left"
    words = [word for cell in cells for word in cell.plain.split()]
    return _Column(
        least=max([1, *map(cell_len, words)]),
        wanted=max([1, *(cell.cell_len for cell in cells)]),
        alignment=alignment,
    )


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """What each column gets: its longest word at least, and the rest to those that want the most more."""
    widths = [min(column.least, column.wanted) for column in columns]
    for _ in range(room - sum(widths)):
        index = max(range(len(columns)), key=lambda at: columns[at].wanted - widths[at])
        if widths[index] >= columns[index].wanted:
            break
        widths[index] += 1
    return widths


def _row(cells: Sequence[Text], columns: Sequence[_Column], widths: Sequence[int]) -> list[Text]:
    wrapped = [wrap(cell, cells_wide) for cell, cells_wide in zip(cells, widths, strict=True)]
    lines = []
    for at in range(max(map(len, wrapped))):
        line = Text()
        for index, parts in enumerate(wrapped):
            if index:
                line.append(_GAP, "dim")
            part = parts[at].copy() if at < len(parts) else Text()
            part.align(columns[index].alignment, widths[index])
            line.append_text(part)
        line.rstrip()
        lines.append(line)
    return lines


def _records(header: Sequence[Text], body: Sequence[Sequence[Text]], width: int) -> list[Text]:
    """``name: value`` lines, a blank line between rows."""
    lines: list[Text] = []
    if not body:
        return [line for name in header for line in wrap(name, width)]
    for row in body:
        if lines:
            lines.append(Text())
        for name, value in zip(header, row, strict=True):
            lines.extend(wrap(Text.assemble(name, ": ", value), width))
    return lines
