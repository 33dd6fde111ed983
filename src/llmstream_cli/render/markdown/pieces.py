"""What Markdown is committed as: pieces that no later text can change."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One top-level block that is neither a list nor fenced code.

    In every piece ``source`` holds the lines it was made of, blank lines before it included: the sources of
    all pieces are the text. ``first`` is the number of its first line in the tokens' line maps.
    """

    tokens: "tuple[Token, ...]"
    source: tuple[str, ...]
    first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of a top-level list. ``number`` None: a bullet. ``continues``: not the first of its list."""

    tokens: "tuple[Token, ...]"
    number: int | None
    continues: bool
    source: tuple[str, ...]
    first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceOpen:
    """The start of fenced code; ``info`` names the language."""

    info: str
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLine:
    """One line of fenced code without the fence's own indentation."""

    code: str
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceClose:
    """The end of fenced code. Code that the end of the text cuts has none."""

    source: tuple[str, ...]


Piece = Block | Item | FenceOpen | CodeLine | FenceClose
