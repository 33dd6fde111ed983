"""Markdown committed while it arrives: what no later text can change leaves, the open block stays.

Decisions are made on complete lines only, one line at a time, so the borders of deltas mean nothing. Which
block is final when follows from CommonMark with tables and strikethrough: a heading or rule with its line; a
paragraph, quote or table at a blank line; fenced code line by line; a list item when the next one starts;
everything when another block starts, except a link definition that touches an open paragraph, which may still
become the definition's title. Link definitions reach forward only, since what was printed stays.
"""

import re
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llmstream_cli.render.markdown.pieces import Block, CodeLine, FenceClose, FenceOpen, Item, Piece

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FINAL_WITH_LINE = frozenset({"heading_open", "hr", "fence"})
_FINAL_AT_BLANK = frozenset({"paragraph_open", "blockquote_open", "table_open", "definition", "html_block"})
_LISTS = frozenset({"bullet_list_open", "ordered_list_open"})

_MAY_END_PARAGRAPH = re.compile(r" {0,3}([#>*+=|`~<\[:_-]|\d+[.)]|$)|\t| {4}")
_QUOTED = re.compile(r" {0,3}>")
_MARKER = re.compile(r"( {0,3}(?:[-+*]|\d{1,9}[.)]))(?= |$)( {1,4}(?=[^ ])| *)")
_SMALL = 1024
"""Open blocks up to this many characters are parsed at each line that may end them."""
_GROWTH = 4
"""Larger ones when a quarter is new: the work stays linear in the text."""


def make_parser() -> "MarkdownIt":
    """CommonMark with tables and strikethrough; link definitions are shown, so they are tokens."""
    from markdown_it import MarkdownIt

    options = {"inline_definitions": True, "store_labels": True}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    """An open fence: the columns it is indented by, and what closes it."""

    indent: int
    closing: re.Pattern[str]


class Committer:
    """``feed`` text as it comes, then ``finish``; both give the pieces that became final.

    ``parsed`` counts the characters that went through the parser, for the tests of its cost.
    """

    def __init__(self) -> None:
        self._parser = make_parser()
        self._references: dict[str, dict[str, str]] = {}
        self._lines: list[str] = []
        self._partial: list[str] = []
        self._fence: _Fence | None = None
        self._next_number: int | None = None
        self._in_list = False
        self._open: Token | None = None
        self._item_indent = 0
        self._size = self._unparsed = 0
        self._pieces: list[Piece] = []
        self.parsed = 0

    def feed(self, text: str) -> list[Piece]:
        """Take more of the text. Lines end at LF only."""
        first, *more = text.split("\n")
        self._partial.append(first)
        for following in more:
            line = "".join(self._partial)
            self._partial = [following]
            self._line(line)
        return self._taken()

    def finish(self) -> list[Piece]:
        """The text is over: everything is final."""
        line = "".join(self._partial)
        self._partial = []
        if line:
            self._line(line)
        while self._lines:
            self._settle(final=True)
        return self._taken()

    def preview(self) -> list[Piece]:
        """What `finish` would give now; nothing changes."""
        branch = copy(self)
        branch._lines, branch._pieces = self._lines.copy(), []
        branch._references = self._references.copy()
        return branch.finish()

    @property
    def in_table(self) -> bool:
        return self._open is not None and self._open.type == "table_open"

    def open_text(self, limit: int) -> str:
        """The last `limit` characters of what is not committed yet."""
        kept: list[str] = []
        room = limit
        for index in range(len(self._partial) - 1, -1, -1):
            kept.insert(0, self._partial[index])
            room -= len(self._partial[index])
            if room <= 0:
                return "".join(kept)[-limit:]
        lines = len(self._lines)
        while lines and room > 0:
            lines -= 1
            room -= len(self._lines[lines]) + 1
        return "\n".join([*self._lines[lines:], "".join(kept)])[-limit:]

    def _taken(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def _line(self, line: str) -> None:
        if self._fence is not None:
            self._code(self._fence, line)
            return
        self._lines.append(line)
        self._size += len(line) + 1
        self._unparsed += len(line) + 1
        if not self._waits(line):
            self._settle(final=False)

    def _waits(self, line: str) -> bool:
        """Whether a parse would be in vain: `line` cannot end the open block, or too little is new."""
        kind = self._open.type if self._open is not None else ""
        if self._goes_on(kind, line):
            return True
        if self._surely_ends(kind, line):
            return False
        return self._size > _SMALL and self._unparsed * _GROWTH < self._size

    def _goes_on(self, kind: str, line: str) -> bool:
        match kind:
            case "paragraph_open":
                return not _MAY_END_PARAGRAPH.match(line)
            case "table_open":
                return line.startswith("|")
            case "blockquote_open":
                return _QUOTED.match(line) is not None
            case "bullet_list_open" | "ordered_list_open":
                return _is_blank(line) or line.startswith(" " * self._item_indent)
            case "code_block":
                return _is_blank(line) or line.startswith("    ")
            case _:
                return False

    def _surely_ends(self, kind: str, line: str) -> bool:
        """Whether `line`, which does not go on with the open block, lets it or its last item be committed."""
        match kind:
            case "paragraph_open" | "blockquote_open" | "table_open" | "definition":
                return _is_blank(line)
            case "bullet_list_open" | "ordered_list_open":
                return _is_blank(self._lines[-2]) or _MARKER.match(line) is not None
            case _:
                return kind == "code_block"

    def _code(self, fence: _Fence, line: str) -> None:
        if fence.closing.match(line):
            self._fence = None
            self._pieces.append(FenceClose(source=(line,)))
            return
        indent = len(line) - len(line.lstrip(" "))
        self._pieces.append(CodeLine(code=line[min(indent, fence.indent) :], source=(line,)))

    def _settle(self, *, final: bool) -> None:
        """Commit what is final among the open lines."""
        blocks = self._parse()
        if not blocks:
            # Blank lines belong to what comes after them; nothing does at the end.
            self._keep_from([] if final else self._lines)
            return
        start = 0
        count = len(blocks) if final else self._final(blocks)
        for block in blocks[:count]:
            if block[0].type == "fence":
                self._open_fence(block[0], start)
                return
            start = self._commit(block, start)
        held = blocks[count:]
        if held and held[0][0].type in _LISTS:
            start = self._commit_items(held[0], start, all_but_last=True)
            self._item_indent = _content_column(self._lines[_next_filled(self._lines, start)])
        self._open = held[0][0] if held else None
        self._keep_from(self._lines[start:])

    def _parse(self) -> "list[list[Token]]":
        source = "\n".join(self._lines) + "\n"
        self.parsed += len(source)
        self._unparsed = 0
        environment: dict[str, Any] = {"references": self._references.copy()}
        blocks: list[list[Token]] = [[]]
        for token in self._parser.parse(source, environment):
            blocks[-1].append(token)
            if token.level == 0 and token.nesting <= 0:
                blocks.append([])
        return blocks[:-1]

    def _final(self, blocks: "list[list[Token]]") -> int:
        """How many of `blocks` no further line can change."""
        last = blocks[-1][0]
        start, end = _span(last)
        if last.type in _FINAL_WITH_LINE or (last.type in _FINAL_AT_BLANK and end < len(self._lines)):
            return len(blocks)
        if last.type == "paragraph_open" and len(blocks) > 1:
            before = blocks[-2][0]
            if before.type == "definition" and _span(before)[1] == start:
                return len(blocks) - 2
        return len(blocks) - 1

    def _commit(self, block: "list[Token]", start: int) -> int:
        """Commit one whole block; the number of the first line after it."""
        if block[0].type in _LISTS:
            return self._commit_items(block, start, all_but_last=False)
        self._in_list = False
        end = self._filled_end(block[0])
        self._define(block)
        self._pieces.append(Block(tokens=tuple(block), source=tuple(self._lines[start:end]), first=start))
        return end

    def _commit_items(self, block: "list[Token]", start: int, *, all_but_last: bool) -> int:
        items = _items(block)
        ordered = block[0].type == "ordered_list_open"
        number = self._next_number if self._in_list else _first_number(block[0]) if ordered else None
        for item in items[:-1] if all_but_last else items:
            end = self._filled_end(item[0])
            self._define(item)
            source = tuple(self._lines[start:end])
            self._pieces.append(
                Item(tokens=tuple(item), number=number, continues=self._in_list, source=source, first=start)
            )
            number = None if number is None else number + 1
            self._in_list, self._next_number, start = True, number, end
        if not all_but_last:
            self._in_list = False
        return start

    def _open_fence(self, token: "Token", start: int) -> None:
        """Commit the opening line, and take the lines after it as code."""
        at = _span(token)[0]
        opening, rest = self._lines[at], self._lines[at + 1 :]
        self._fence = _Fence(
            indent=len(opening) - len(opening.lstrip(" ")),
            closing=re.compile(rf" {{0,3}}{re.escape(token.markup[0])}{{{len(token.markup)},}}[ \t]*$"),
        )
        self._in_list = False
        self._pieces.append(FenceOpen(info=token.info.strip(), source=tuple(self._lines[start : at + 1])))
        self._open = None
        self._keep_from([])
        for line in rest:
            self._line(line)

    def _filled_end(self, token: "Token") -> int:
        """The line after the last one of the block at `token` that is not blank."""
        start, end = _span(token)
        while end > start + 1 and _is_blank(self._lines[end - 1]):
            end -= 1
        return end

    def _define(self, tokens: "list[Token]") -> None:
        for token in tokens:
            if token.type == "definition":
                href, title = token.meta.get("url", ""), token.meta.get("title", "")
                self._references.setdefault(token.meta["id"], {"href": href, "title": title})

    def _keep_from(self, lines: list[str]) -> None:
        self._lines = lines
        self._size = sum(len(line) + 1 for line in lines)


def _is_blank(line: str) -> bool:
    return not line.strip(" \t")


def _span(token: "Token") -> tuple[int, int]:
    start, end = token.map or (0, 0)
    return start, end


def _items(block: "list[Token]") -> "list[list[Token]]":
    items: list[list[Token]] = []
    for token in block[1:-1]:
        if token.type == "list_item_open" and token.level == 1:
            items.append([])
        items[-1].append(token)
    return items


def _first_number(token: "Token") -> int:
    start = token.attrGet("start")
    return 1 if start is None else int(start)


def _next_filled(lines: list[str], start: int) -> int:
    while _is_blank(lines[start]):
        start += 1
    return start


def _content_column(line: str) -> int:
    """Where the content of the list item that begins with `line` starts."""
    marker = _MARKER.match(line)
    if marker is None:
        return len(line)
    return len(marker[1]) + (len(marker[2]) if marker.end() < len(line) and 0 < len(marker[2]) < 5 else 1)
