"""Highlighting line by line: the code stays, a token over several lines is known, the work is bounded."""

import pytest
from pygments.lexers import get_lexer_by_name

from llmstream_cli.render.markdown.blocks import language
from llmstream_cli.render.markdown.highlight import Highlighter

CODE = {
    "python": 'def f(x):\n    """doc\n    return 1\n    """\n    return x + 1  # c\n',
    "rust": 'fn main() { /* a\n b */ let s = "x"; }\n',
    "html": "<p class='x'>\n<script>\nlet a = `b\n${c}`;\n</script>\n</p>\n",
    "json": '{"a": [1, 2,\n null]}\n',
    "bash": "for f in *; do echo \"$f\" | sed 's/a/b/'; done\ncat <<X\nfor\nX\n",
    "yaml": "a:\n  - b: |\n      text\n",
    "markdown": "# h\n\n```py\nx\n```\n",
    "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n",
    "console": "$ ls -l\ntotal 0\n",
    "c++": "template<class T> int f() { return 'a'; }\n#define X \\\n 1\n",
    "nosuchlanguage": "x = 1\n",
    "": "x = 1\n",
}


@pytest.mark.parametrize("name", CODE)
def test_the_code_stays_as_it_is(name: str) -> None:
    highlighter = Highlighter(name)
    for line in (CODE[name] * 60).split("\n"):
        assert "".join(text for _, text in highlighter.line(line)) == line


@pytest.mark.parametrize("name", ["nosuchlanguage", ""])
def test_an_unknown_language_is_plain(name: str) -> None:
    assert Highlighter(name).line("def f(): pass") == [("", "def f(): pass")]


def test_a_long_line_is_plain() -> None:
    line = "x = 1; " * 500
    assert Highlighter("python").line(line) == [("", line)]


@pytest.mark.parametrize("lines", [3, 40, 200])
def test_a_text_over_many_lines_is_known_as_one(lines: int) -> None:
    highlighter = Highlighter("python")
    highlighter.line('x = """')
    inside = [highlighter.line("return 1") for _ in range(lines)]
    assert {style for line in inside for style, _ in line} == {"yellow"}
    highlighter.line('"""')
    assert ("blue", "return") in highlighter.line("return 1")


def test_few_tokens_are_read_more_often_than_the_window_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from llmstream_cli.render.markdown import highlight

    read = []
    tokens = highlight._tokens

    def counting(*arguments: object) -> object:
        read.append(len(str(arguments[1])))
        return tokens(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(highlight, "_tokens", counting)
    highlighter = Highlighter("python")
    for number in range(1000):
        highlighter.line(f"x = {number:4}")
    assert max(read) <= 64 * len("x = 1000\n")


@pytest.mark.parametrize(
    ("info", "name"),
    [("", ""), ("python", "python"), ("py title='x'", "py"), ("{.rust .numberLines}", "rust"), ("  ", "")],
)
def test_the_language_of_a_fence(info: str, name: str) -> None:
    assert language(info) == name


def test_the_lexers_are_there() -> None:
    assert all(get_lexer_by_name(name) for name in CODE if name not in ("", "nosuchlanguage"))
