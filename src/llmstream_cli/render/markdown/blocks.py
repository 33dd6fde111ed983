"""One committed piece as lines for a terminal of a given width."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markdown_it.tree import SyntaxTreeNode
from rich.text import Text

from llmstream_cli.render.markdown.highlight import Highlighter
from llmstream_cli.render.markdown.inline import inline
from llmstream_cli.render.markdown.lines import prefixed, wrap
from llmstream_cli.render.markdown.pieces import Block, Item
from llmstream_cli.render.markdown.tables import table
from llmstream_cli.render.sanitize import harmless

if TYPE_CHECKING:
    from markdown_it.token import Token

_NARROW = 40
_BULLET = "• "
_QUOTE = "│ "


def block_lines(piece: Block | Item, width: int) -> list[Text]:
    """The lines of `piece`, at most `width` cells wide but for code, which stays as it is."""
    (node,) = _tree(piece.tokens)
    source = _Source(piece.source, piece.first)
    if isinstance(piece, Item):
        return _item(node, piece.number, width, source)
    return _block(node, width, source)


def code_line(highlighter: Highlighter, code: str) -> Text:
    """One line of code exactly as it is, so that a copy is right."""
    return Text.assemble(*((text, style) for style, text in highlighter.line(code)))


class _Source:
    """The lines a piece was made of: which blocks had a blank line before them."""

    def __init__(self, lines: Sequence[str], first: int) -> None:
        self._lines = lines
        self._first = first

    def blank_before(self, node: SyntaxTreeNode) -> bool:
        at = (node.map[0] if node.map else 0) - self._first - 1
        # Inside a quote a blank line still has the quote's mark.
        return 0 <= at < len(self._lines) and not self._lines[at].strip("> \t")


def _tree(tokens: "Sequence[Token]") -> list[SyntaxTreeNode]:
    return SyntaxTreeNode(list(tokens)).children


def _blocks(nodes: Sequence[SyntaxTreeNode], width: int, source: _Source) -> list[Text]:
    lines: list[Text] = []
    for node in nodes:
        if lines and source.blank_before(node):
            lines.append(Text())
        lines.extend(_block(node, width, source))
    return lines


def _block(node: SyntaxTreeNode, width: int, source: _Source) -> list[Text]:
    match node.type:
        case "heading":
            return wrap(Text.assemble((f"{'#' * int(node.tag[1:])} ", "dim"), inline(node, "bold")), width)
        case "hr":
            return [Text("─" * width, "dim")]
        case "bullet_list" | "ordered_list":
            return _list(node, width, source)
        case "blockquote":
            mark = Text(_QUOTE, "dim")
            return prefixed(_blocks(node.children, width - len(_QUOTE), source) or [Text()], mark, mark)
        case "table":
            return table(node, width)
        case "fence":
            return _fence(node)
        case "code_block" | "html_block":
            return [Text(line) for line in _content_lines(node)]
        case "definition":
            return wrap(_definition(node), width)
        case _:
            return wrap(inline(node), width)


def _list(node: SyntaxTreeNode, width: int, source: _Source) -> list[Text]:
    number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    lines: list[Text] = []
    for item in node.children:
        if lines and source.blank_before(item):
            lines.append(Text())
        lines.extend(_item(item, number, width, source))
        number = None if number is None else number + 1
    return lines


def _item(node: SyntaxTreeNode, number: int | None, width: int, source: _Source) -> list[Text]:
    mark = _BULLET if number is None else f"{number}. "
    indent = min(len(mark), 2) if width < _NARROW else len(mark)
    lines = _blocks(node.children, width - len(mark), source) or [Text()]
    return prefixed(lines, Text(mark, "bold"), Text(" " * indent))


def _fence(node: SyntaxTreeNode) -> list[Text]:
    """Fenced code inside another block."""
    info = harmless(node.info, one_line=True)
    highlighter = Highlighter(language(info))
    lines = [code_line(highlighter, line) for line in _content_lines(node)]
    return [Text(f"{node.markup}{info}", "dim"), *lines, Text(node.markup, "dim")]


def language(info: str) -> str:
    """The language that a fence's info string names."""
    return next(iter(info.split()), "").strip("{}.")


def _content_lines(node: SyntaxTreeNode) -> list[str]:
    return harmless(node.content).removesuffix("\n").split("\n")


def _definition(node: SyntaxTreeNode) -> Text:
    label, url, title = (str(node.meta.get(key, "")) for key in ("label", "url", "title"))
    shown = f"[{label}]: {url}" + (f' "{title}"' if title else "")
    return Text(harmless(shown, one_line=True), "dim")
