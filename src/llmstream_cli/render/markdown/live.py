"""A Markdown text on a terminal while it arrives."""

import threading
from collections.abc import Iterable
from os import terminal_size

from rich.cells import chop_cells
from rich.text import Text

from llmstream_cli.render.markdown.commit import Committer
from llmstream_cli.render.markdown.lines import Pen, wrap
from llmstream_cli.render.markdown.painter import Painter, Row
from llmstream_cli.render.markdown.pieces import Piece
from llmstream_cli.render.markdown.ticker import Ticker
from llmstream_cli.render.markdown.typeset import Typesetter

_MOST_ROWS = 6
_SHARE_OF_HEIGHT = 4
_NARROW, _NARROW_ROWS = 40, 2
_LONGEST_PREVIEW = 2048
"""Of a longer open block only the end of its source is shown: each frame's work is bounded."""


class LiveText:
    """``feed`` harmless text, then ``finish``. A thread paints; what goes wrong there is raised here.

    Few rows move: more could, in a window made narrower, grow over its top, where nothing can be erased.
    """

    def __init__(self, painter: Painter, pen: Pen) -> None:
        self._painter = painter
        self._pen = pen
        self._committer = Committer()
        self._typesetter = Typesetter()
        self._pending: list[Piece] = []
        self._hidden = False
        self._failure: Exception | None = None
        self._lock = threading.Lock()
        self._ticker = Ticker(self._tick)

    def feed(self, text: str) -> None:
        with self._lock:
            self._raise()
            self._pending += self._committer.feed(text)
            self._hidden = False
        self._ticker.wake()

    def hide(self) -> None:
        """Paint what is final; nothing moves until there is more text."""
        with self._lock:
            self._raise()
            if not self._hidden:
                self._hidden = True
                self._paint()

    def finish(self) -> None:
        self._ticker.stop()
        with self._lock:
            self._raise()
            self._pending += self._committer.finish()
            self._paint()

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _tick(self) -> None:
        with self._lock:
            if self._failure is not None or self._hidden:
                return
            try:
                self._paint()
            except Exception as error:  # noqa: BLE001 - the thread that feeds raises it
                self._failure = error

    def _paint(self) -> None:
        size = self._painter.size()
        width = max(size.columns - 1, 1)
        pending, self._pending = self._pending, []
        lines = [self._pen.write(text) for text in self._texts(self._typesetter, pending, width)]
        self._painter.frame(lines, [] if self._hidden else self._rows(size, width))

    @staticmethod
    def _texts(typesetter: Typesetter, pieces: Iterable[Piece], width: int) -> Iterable[Text]:
        for piece in pieces:
            yield from typesetter.lines(piece, width)

    def _rows(self, size: terminal_size, width: int) -> list[Row]:
        """The end of the open block, as it would be if the text ended here."""
        most = max(1, min(_MOST_ROWS, size.lines // _SHARE_OF_HEIGHT))
        if size.columns < _NARROW:
            most = min(most, _NARROW_ROWS)
        text = self._committer.open_text(_LONGEST_PREVIEW + 1)
        if not text.strip():
            return []
        if self._committer.in_table or len(text) > _LONGEST_PREVIEW:
            texts = wrap(Text(text.rstrip()[-most * width :], "dim"), width)
        else:
            texts = list(self._texts(self._typesetter.branch(), self._committer.preview(), width))
        rows = [row for line in texts[-most:] for row in _fold(line, width)][-most:]
        return [Row(text=self._pen.write(row), cells=row.cell_len) for row in rows]


def _fold(line: Text, width: int) -> list[Text]:
    """A line of code as the rows that the terminal will make of it."""
    if "\t" not in line.plain and line.cell_len <= width:
        return [line]
    return [Text(row) for row in chop_cells(line.plain.expandtabs(), width)]
