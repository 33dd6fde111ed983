"""Committed Markdown: what left cannot change, nothing is lost, and the work is linear."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmstream_cli.render.markdown.commit import Committer, make_parser
from llmstream_cli.render.markdown.pieces import Block, CodeLine, FenceClose, FenceOpen, Item, Piece
from tests.render.markdown.texts import FRAGMENTS, numbered

PROPERTY = settings(deadline=None, derandomize=True, database=None, max_examples=150)
DOCUMENTS = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=14).map("\n".join)


def committed(pieces: Iterable[str]) -> list[Piece]:
    committer = Committer()
    return [piece for text in pieces for piece in committer.feed(text)] + committer.finish()


def facts(pieces: Sequence[Piece]) -> list[tuple[object, ...]]:
    """Pieces without what depends on where the parser began to count lines."""
    return [(*content(piece), piece.source) for piece in pieces]


def content(piece: Piece) -> tuple[object, ...]:
    match piece:
        case Block(tokens=tokens):
            return ("block", *((t.type, t.tag, t.content, t.markup) for t in tokens))
        case Item(tokens=tokens):
            marks = (piece.number, piece.continues)
            return ("item", *marks, *((t.type, t.tag, t.content, t.markup) for t in tokens))
        case FenceOpen(info=info):
            return ("fence", info)
        case CodeLine(code=code):
            return ("code", code)
        case FenceClose():
            return ("end",)


def whole(text: str) -> list[tuple[object, ...]]:
    """What a parse of the whole text finds, in the same words; the end of code is left out."""
    found: list[tuple[object, ...]] = []
    number: int | None = None
    continues = False
    item: list[tuple[object, ...]] | None = None
    block: list[tuple[object, ...]] = []
    for token in make_parser().parse(text, {}):
        fact = (token.type, token.tag, token.content, token.markup)
        if token.level == 0 and token.type == "fence":
            lines = token.content.split("\n")[:-1]
            found += [("fence", token.info.strip()), *(("code", line) for line in lines)]
        elif token.level == 0 and token.type.endswith("list_open"):
            ordered = token.type == "ordered_list_open"
            number, continues = int(token.attrGet("start") or 0) if ordered else None, False
            if ordered and token.attrGet("start") is None:
                number = 1
            item = []
        elif token.level == 0 and token.type.endswith("list_close"):
            item = None
        elif item is not None:
            item.append(fact)
            if token.level == 1 and token.type == "list_item_close":
                found.append(("item", number, continues, *item))
                number, continues, item = None if number is None else number + 1, True, []
        else:
            block.append(fact)
            if token.level == 0 and token.nesting <= 0:
                found.append(("block", *block))
                block = []
    return found


def sources(pieces: Sequence[Piece]) -> str:
    return "\n".join(line for piece in pieces for line in piece.source)


@PROPERTY
@given(DOCUMENTS)
def test_it_is_what_a_parse_of_the_whole_text_finds(text: str) -> None:
    found = [content(piece) for piece in committed([text]) if not isinstance(piece, FenceClose)]
    assert found == whole(text if text.endswith("\n") else f"{text}\n")


@PROPERTY
@given(DOCUMENTS, st.data())
def test_cuts_mean_nothing(text: str, data: st.DataObject) -> None:
    expected = facts(committed([text]))
    assert facts(committed(text)) == expected
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    bounds = [0, *cuts, len(text)]
    pieces = [text[start:end] for start, end in pairwise(bounds)]
    assert facts(committed(pieces)) == expected


@PROPERTY
@given(DOCUMENTS)
def test_every_line_is_in_one_piece(text: str) -> None:
    assert sources(committed(text)).rstrip(" \n") == text.rstrip(" \n")


@PROPERTY
@given(DOCUMENTS)
def test_a_look_ahead_changes_nothing(text: str) -> None:
    committer = Committer()
    pieces: list[Piece] = []
    for at, letter in enumerate(text):
        pieces += committer.feed(letter)
        seen = sources([*pieces, *committer.preview()])
        assert seen.rstrip(" \n") == text[: at + 1].rstrip(" \n")
    assert facts(pieces + committer.finish()) == facts(committed([text]))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("# h\n", ["Block"]),
        ("a\n", []),
        ("a\n\n", ["Block"]),
        ("a\n===\n", ["Block"]),
        ("---\n", ["Block"]),
        ("```\n", ["FenceOpen"]),
        ("```\nx\n", ["FenceOpen", "CodeLine"]),
        ("```\nx\n```\n", ["FenceOpen", "CodeLine", "FenceClose"]),
        ("````\n```\n", ["FenceOpen", "CodeLine"]),
        ("- a\n- b\n", ["Item"]),
        ("- a\n\n", []),
        ("- a\n\nb\n", ["Item"]),
        ("1. a\n2. b\n3. c\n", ["Item", "Item"]),
        ("> q\n", []),
        ("> q\n\n", ["Block"]),
        ("|a|\n|-|\n|1|\n", []),
        ("|a|\n|-|\n|1|\n\n", ["Block"]),
        ("    code\n\n", []),
        ("[a]: /u\n", []),
        ("[a]: /u\n\n", ["Block"]),
        ("[a]: /u\n'tit\n", []),
        ("[a]: /u\n'tit\nle'\n\n", ["Block"]),
    ],
)
def test_what_is_committed_when(text: str, kinds: list[str]) -> None:
    assert [type(piece).__name__ for piece in Committer().feed(text)] == kinds


def test_numbers_go_on() -> None:
    pieces = committed(["7. a\n8. b\n\n9. c\n1. d\n\n- x\n\n1) y\n"])
    found = [(piece.number, piece.continues) for piece in pieces if isinstance(piece, Item)]
    assert found == [(7, False), (8, True), (9, True), (10, True), (None, False), (1, False)]


@pytest.mark.parametrize(
    "text",
    ["word " * 900 + "\n\n", "> " + "word " * 900 + "\n\n", "- " + "word " * 900 + "\n- "],
)
def test_a_large_block_leaves_as_soon_as_a_small_one(text: str) -> None:
    committer = Committer()
    committer.feed(text[:-1])
    assert [type(piece) for piece in committer.feed(text[-1] + "\n")] != []


def test_a_definition_serves_what_comes_after_it() -> None:
    pieces = committed(["[early] [late]\n\n> [early]: /a\n\n[late]: /b\n\n[early] [late]\n"])
    links = [
        [child.attrGet("href") for child in token.children or () if child.type == "link_open"]
        for piece in pieces
        if isinstance(piece, Block)
        for token in piece.tokens
        if token.type == "inline"
    ]
    assert links[0] == []
    assert links[-1] == ["/a", "/b"]


def test_only_a_line_feed_ends_a_line() -> None:
    pieces = committed(["```\na\u2028b\x0bc\x85d\n```\n"])
    assert [piece.code for piece in pieces if isinstance(piece, CodeLine)] == ["a\u2028b\x0bc\x85d"]


GROWING = {
    "paragraph": "word word word word word\n",
    "paragraph of numbers": "1 word 2 word\n",
    "bullets": "- item with words\n",
    "numbers": "1. item with words\n",
    "item with many lines": "  line of an item\n",
    "nested list": "  - nested item\n",
    "quote": "> quoted words\n",
    "lazy quote": "lazy words\n",
    "table": "| a | b |\n",
    "fence": "code = 1\n",
    "indented code": "    code = 1\n",
    "html": "text in html\n",
    "comment": "text\n\n",
    "blank lines": "\n",
    "short lines": "1\n",
    "definitions": "[a]: /u\n",
    "blocks": "# h\n\ntext\n\n",
}
_STARTS = {
    "item with many lines": "- start\n",
    "nested list": "- start\n",
    "lazy quote": "> start\n",
    "table": "| a | b |\n|---|---|\n",
    "fence": "```\n",
    "html": "<div>\n",
    "comment": "<!--\n",
}


@pytest.mark.parametrize("name", GROWING)
def test_the_work_is_linear(name: str) -> None:
    def parsed(lines: int) -> int:
        committer = Committer()
        committer.feed(_STARTS.get(name, ""))
        for _ in range(lines):
            committer.feed(GROWING[name])
        committer.finish()
        return committer.parsed

    assert parsed(2000) < 2.5 * parsed(1000) + 5000


def test_most_text_is_parsed_about_twice() -> None:
    text = numbered(50)
    committer = Committer()
    for letter in text:
        committer.feed(letter)
    assert committer.parsed < 4 * len(text)


def test_thousands_of_lines() -> None:
    text = "".join(f"- item {n}\n" for n in range(3000)) + "\n```\n" + "x = 1\n" * 3000 + "```\n"
    pieces = committed([text])
    assert sum(isinstance(piece, Item) for piece in pieces) == 3000
    assert sum(isinstance(piece, CodeLine) for piece in pieces) == 3000
    assert sources(pieces) == text.rstrip("\n")
