"""Frames on a terminal: lines that stay, and below them a few rows that are painted again."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from llmstream_cli.render.console import StandardOutput

_USUAL = os.terminal_size((80, 24))
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row to paint, with its width in cells."""

    text: str
    cells: int


class Painter:
    """Each frame is one write. Rows are erased by where they stand in the window as it is now."""

    def __init__(self, stdout: StandardOutput, *, reflows: bool) -> None:
        self._stdout = stdout
        self._reflows = reflows
        self._painted: tuple[Row, ...] = ()

    @staticmethod
    def size() -> os.terminal_size:
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except (OSError, ValueError):
            return _USUAL
        return size if size.columns and size.lines else _USUAL

    def frame(self, lines: Sequence[str], rows: Sequence[Row]) -> None:
        """Put `lines` where the moving rows were, for good, and `rows` below them until the next frame."""
        if not lines and tuple(rows) == self._painted:
            return
        parts = [_BEGIN, self._erasure(), *(f"{line}\n" for line in lines)]
        if rows:
            # Without wrapping a row is a row, whatever the terminal takes an emoji's width for.
            parts += [_NO_WRAP, "\n".join(row.text for row in rows), _WRAP]
        self._painted = tuple(rows)
        self._stdout.write("".join([*parts, _END]))

    def _erasure(self) -> str:
        """Back to the first of the painted rows, and everything from there away."""
        if not self._painted:
            return ""
        columns, height = self.size()
        rows = sum(max(1, -(-row.cells // columns)) if self._reflows else 1 for row in self._painted)
        up = min(rows, height) - 1
        return "\r" + (f"\x1b[{up}A" if up else "") + "\x1b[J"
