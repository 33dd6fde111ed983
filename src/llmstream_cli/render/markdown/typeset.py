"""Committed pieces as the lines that are written, with the blank lines between them."""

from typing import assert_never

from rich.text import Text

from llmstream_cli.render.markdown.blocks import block_lines, code_line, language
from llmstream_cli.render.markdown.highlight import Highlighter
from llmstream_cli.render.markdown.pieces import Block, CodeLine, FenceClose, FenceOpen, Item, Piece


class Typesetter:
    """``lines`` of one piece after another."""

    def __init__(self) -> None:
        self._highlighter = Highlighter("")
        self._previous: Piece | None = None

    def lines(self, piece: Piece, width: int) -> list[Text]:
        """The lines of the next piece at `width` cells."""
        texts = self._texts(piece, width)
        if self._previous is not None and _apart(self._previous, piece):
            texts.insert(0, Text())
        self._previous = piece
        return texts

    def branch(self) -> "Typesetter":
        """One for a look ahead, which leaves this one alone; code there is plain."""
        ahead = Typesetter()
        ahead._previous = self._previous
        return ahead

    def _texts(self, piece: Piece, width: int) -> list[Text]:
        match piece:
            case Block() | Item():
                return block_lines(piece, width)
            case FenceOpen(info=info):
                self._highlighter = Highlighter(language(info))
                return [Text(piece.source[-1].strip(), "dim")]
            case CodeLine(code=code):
                return [code_line(self._highlighter, code)]
            case FenceClose():
                return [Text(piece.source[-1].strip(), "dim")]
        assert_never(piece)


def _apart(previous: Piece, piece: Piece) -> bool:
    """Whether a blank line stands between the two."""
    match piece:
        case CodeLine() | FenceClose():
            return False
        case Item(continues=True):
            return not piece.source[0].strip(" \t")
        case Block() if _is_definition(piece) and _is_definition(previous):
            return not piece.source[0].strip(" \t")
        case _:
            return True


def _is_definition(piece: Piece) -> bool:
    return isinstance(piece, Block) and piece.tokens[0].type == "definition"
