"""The inside of a paragraph, heading or cell: styled text."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from llmstream_cli.render.sanitize import harmless

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_STYLES = {"strong": "bold", "em": "italic", "s": "strike"}
CODE_STYLE = "bold cyan"
_LINKED = re.compile(r"(?:https?://|mailto:)[\x21-\x7e]+", re.IGNORECASE)


def inline(node: "SyntaxTreeNode", style: str = "") -> Text:
    """All inline text below `node`. The source's line breaks stay: an answer's lines mean something."""
    text = Text(style=style)
    _append_all(text, node.children, Style.parse(style))
    return text


def _append_all(text: Text, nodes: "Iterable[SyntaxTreeNode]", style: Style) -> None:
    for node in nodes:
        _append(text, node, style)


def _append(text: Text, node: "SyntaxTreeNode", style: Style) -> None:
    match node.type:
        case "inline":
            _append_all(text, node.children, style)
        case "strong" | "em" | "s":
            _append_all(text, node.children, style + Style.parse(_STYLES[node.type]))
        case "softbreak" | "hardbreak":
            text.append("\n")
        case "code_inline":
            text.append(harmless(node.content), style + Style.parse(CODE_STYLE))
        case "link":
            _append_link(text, node, style)
        case "image":
            label = harmless(node.content, one_line=True)
            text.append(f"[image: {label}]" if label else "[image]", style)
            _append_address(text, str(node.attrs.get("src", "")))
        case _:
            # An entity can spell what the filter of the answer took out.
            text.append(harmless(node.content), style)


def _append_link(text: Text, node: "SyntaxTreeNode", style: Style) -> None:
    """The link's text, and its address unless that is the text."""
    address = str(node.attrs.get("href", ""))
    start = len(text)
    link = address if _LINKED.fullmatch(address) else None
    _append_all(text, node.children, style + Style(underline=True, link=link))
    if text.plain[start:] not in (address, address.removeprefix("mailto:")):
        _append_address(text, address)


def _append_address(text: Text, address: str) -> None:
    if address:
        text.append(f" ({harmless(address, one_line=True)})", "dim")
