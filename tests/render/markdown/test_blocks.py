"""Blocks as lines: what a person reads at a width, what a copy gives, and nothing that drives a terminal."""

import re

import pytest
from rich.cells import cell_len

from llmstream_cli.render.markdown.commit import Committer
from llmstream_cli.render.markdown.lines import Pen
from llmstream_cli.render.markdown.typeset import Typesetter
from tests.render.markdown.texts import numbered, shown_more_than_once_or_never
from tests.render.test_sanitize import unsafe_in

COLOR = re.compile(r"\x1b\[[\d;]*?(3\d|4\d|9\d|10\d)[\d;]*m")


def written(text: str, width: int = 79, *, color: bool = True) -> str:
    committer, typesetter, pen = Committer(), Typesetter(), Pen(color=color)
    pieces = committer.feed(text) + committer.finish()
    return "\n".join(pen.write(line) for piece in pieces for line in typesetter.lines(piece, width))


def plain(text: str, width: int = 79) -> str:
    committer, typesetter = Committer(), Typesetter()
    pieces = committer.feed(text) + committer.finish()
    return "\n".join(line.plain for piece in pieces for line in typesetter.lines(piece, width))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Title\ntext", "# Title\n\ntext"),
        ("a\nb  \nc", "a\nb\nc"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("**b** *i* ~~s~~ `c` \\* &amp; <b>", "b i s c * & <b>"),
        ("[bold]x[/bold] :skull:", "[bold]x[/bold] :skull:"),
        ("- a\n- b\n\n- c", "• a\n• b\n\n• c"),
        ("* a\n  b\n  * c\n    1. d\n    2. e", "• a\n  b\n  • c\n    1. d\n    2. e"),
        ("9. a\n10. b\n    c", "9. a\n10. b\n    c"),
        ("- a\n\n  b\n\n      code", "• a\n\n  b\n\n  code"),
        ("-\n- ```sh\n  ls  \n  ```", "•\n• ```sh\n  ls  \n  ```"),
        ("> a\n> b\n>\n> - c", "│ a\n│ b\n│\n│ • c"),
        ("> > a", "│ │ a"),
        ("```py\n  x = 1\n\n```\nb", "```py\n  x = 1\n\n```\n\nb"),
        ("```\ncut", "```\ncut"),
        ("    a\n      b", "a\n  b"),
        ("<div>\n*a*\n</div>", "<div>\n*a*\n</div>"),
        ("[a]: /u 'T'\n[b]: <>", '[a]: /u "T"\n[b]:'),
        ("[a](https://b.c)", "a (https://b.c)"),
        ("<https://b.c> <a@b.c>", "https://b.c a@b.c"),
        ("[https://bank.example](https://evil.example)", "https://bank.example (https://evil.example)"),
        ("![alt *x*](https://b.c/d.png)", "[image: alt *x*] (https://b.c/d.png)"),
        ("|a|b|\n|-|-:|\n|xx|1|\n|y|22|", "a  │  b\n───┼───\nxx │  1\ny  │ 22"),
        ("|值|b|\n|:-:|-|\n|x|👍 1|", "值 │ b\n───┼─────\nx  │ 👍 1"),
    ],
)
def test_what_is_read(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("width", [10, 19, 39, 79, 199])
def test_nothing_is_lost_too_wide_or_ends_in_blanks(width: int) -> None:
    lines = plain(numbered(2), width).split("\n")
    assert shown_more_than_once_or_never(lines, 2) == {}
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("width", [19, 39, 79])
def test_prose_fits(width: int) -> None:
    text = "word 中文字中文字中文字 👩‍💻👍 " * 30
    for block in (text, f"- {text}", f"> {text}", f"# {text}", f"|a|\n|-|\n|{text}|"):
        assert max(cell_len(line) for line in plain(block, width).split("\n")) <= width


def test_code_is_exactly_as_received() -> None:
    code = "\tif x:  # " + "y" * 200 + "\n\n  \u00e9 = '👍'"
    assert plain(f"```python\n{code}\n```", 20) == f"```python\n{code}\n```"


def test_a_table_too_wide_becomes_records() -> None:
    text = "| name | value |\n|---|---|\n| averylongword | anotherlongword |\n| b | c |"
    assert plain(text, 19) == "name: averylongword\nvalue:\nanotherlongword\n\nname: b\nvalue: c"
    assert plain(text, 40).startswith("name          │ value")


def test_cells_are_broken_between_words_where_that_helps() -> None:
    text = "| name | text |\n|---|---|\n| a | one two three four five |\n"
    assert plain(text, 20).split("\n")[2:] == ["a    │ one two three", "     │ four five"]


@pytest.mark.parametrize(
    ("address", "linked"),
    [
        ("https://a.b/c?d=e", True),
        ("http://a.b", True),
        ("mailto:a@b.c", True),
        ("ssh://-oProxyCommand=x", False),
        ("x-man-page://ls", False),
        ("file:///etc/passwd", False),
        ("/relative", False),
    ],
)
def test_only_web_and_mail_addresses_become_links(address: str, linked: bool) -> None:
    shown = written(f"[text]({address})")
    assert (f"\x1b]8;;{address}\x1b\\" in shown) is linked
    assert ("\x1b]8;" in shown) is linked
    assert address in re.sub(r"\x1b\]8;;.*?\x1b\\", "", shown)


@pytest.mark.parametrize(
    "text",
    [
        "&#27;[2J &#x9b;2J &#x202e;x &#x2028; &#xE0041; &#7;",
        "[&#x202e;x](https://a.b/&#x202e;\u202e)",
        "![&#x202e;](&#x202e;)",
        "`&#x202e;\u202e`",
        "```&#x202e;\nx\n```",
        "> ```&#x202e;\n> x\n> ```",
        "[a&#x202e;]: /&#x202e; '&#x202e;'",
        "|&#x202e;|\n|-|\n|&#x202e;|",
        "<!-- \u202e -->",
        "<https://a.b/\u202e>",
    ],
)
def test_an_entity_cannot_bring_back_what_was_filtered(text: str) -> None:
    # Raw characters are the filter's work before; here only what the parser makes of the text counts.
    shown = written(text.replace("\u202e", ""))
    assert unsafe_in(re.sub(r"\x1b\[[\d;]*m|\x1b\]8;;[\x21-\x7e]*\x1b\\", "", shown)) == set()


def test_without_color_there_are_styles_only() -> None:
    text = "# h\n\n**b** `c` [l](https://a.b)\n\n```python\ndef f(): return 'x'\n```\n"
    assert COLOR.search(written(text))
    assert not COLOR.search(written(text, color=False))
    assert "\x1b[1m" in written(text, color=False)
