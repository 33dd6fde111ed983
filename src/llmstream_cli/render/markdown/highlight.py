"""Source code highlighted line by line, with work bounded by a window of lines."""

from collections.abc import Iterator
from typing import Any

from pygments.lexer import ExtendedRegexLexer, Lexer, RegexLexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound

_WINDOW_LINES = 64
_LONGEST_LINE = 1000
_STYLES: dict[_TokenType, str] = {
    Token.Comment: "italic bright_black",
    Token.Keyword: "blue",
    Token.Keyword.Type: "cyan",
    Token.Name.Function: "green",
    Token.Name.Class: "bold green",
    Token.Name.Decorator: "magenta",
    Token.Name.Builtin: "cyan",
    Token.Name.Tag: "blue",
    Token.Name.Attribute: "cyan",
    Token.Literal.String: "yellow",
    Token.Literal.Number: "magenta",
    Token.Operator.Word: "blue",
    Token.Generic.Heading: "bold",
    Token.Generic.Deleted: "red",
    Token.Generic.Inserted: "green",
}
"""The terminal's own sixteen colours, which fit its background."""


class Highlighter:
    """Code in the language called `name`; plain where nobody knows it.

    The last lines are read again with each new one, since a token may span lines; what is before them is kept
    as the state that the lexer had.
    """

    def __init__(self, name: str) -> None:
        try:
            self._lexer: Lexer | None = get_lexer_by_name(name, stripnl=False) if name else None
        except ClassNotFound:
            self._lexer = None
        self._window: list[str] = []
        self._stack = ["root"]

    def line(self, code: str) -> list[tuple[str, str]]:
        """The next line, without its end, as pieces of (style, text)."""
        if self._lexer is None or len(code) > _LONGEST_LINE:
            return [("", code)]
        if len(self._window) >= _WINDOW_LINES:
            self._move_window(self._lexer)
        self._window.append(f"{code}\n")
        source = "".join(self._window)
        before = len(source) - len(code) - 1
        tokens, _ = _tokens(self._lexer, source, self._stack)
        return list(_cut(tokens, before, len(code)))

    def _move_window(self, lexer: Lexer) -> None:
        half = _WINDOW_LINES // 2
        _, self._stack = _tokens(lexer, "".join(self._window[:half]), self._stack)
        self._window = self._window[half:]


def _cut(tokens: list[tuple[_TokenType, str]], before: int, length: int) -> Iterator[tuple[str, str]]:
    """What lies in the `length` characters after the first `before`."""
    at = 0
    for kind, value in tokens:
        shown = value[max(0, before - at) : max(0, before + length - at)]
        if shown:
            yield _style(kind), shown
        at += len(value)


def _style(kind: _TokenType) -> str:
    while kind not in _STYLES and kind.parent is not None:
        kind = kind.parent
    return _STYLES.get(kind, "")


def _tokens(lexer: Lexer, source: str, stack: list[str]) -> tuple[list[tuple[_TokenType, str]], list[str]]:
    """The tokens of `source` read from the state `stack`, and the state after it."""
    if isinstance(lexer, RegexLexer) and not isinstance(lexer, ExtendedRegexLexer):
        return _run(lexer, source, stack)
    return [(kind, value) for _, kind, value in lexer.get_tokens_unprocessed(source)], stack


def _run(lexer: Any, source: str, stack: list[str]) -> tuple[list[tuple[_TokenType, str]], list[str]]:
    """The state machine of ``RegexLexer.get_tokens_unprocessed``, which does not tell its last state."""
    stack = stack.copy()
    found: list[tuple[_TokenType, str]] = []
    at = 0
    while at < len(source):
        for pattern, action, new_state in lexer._tokens[stack[-1]]:
            match = pattern(source, at)
            if match is None:
                continue
            if action is not None:
                found.extend(_matched(lexer, action, match))
            at = match.end()
            _change(stack, new_state)
            break
        else:
            if source[at] == "\n":
                stack = ["root"]
            found.append((Token.Text, source[at]))
            at += 1
    return found, stack


def _matched(lexer: Any, action: Any, match: Any) -> Iterator[tuple[_TokenType, str]]:
    if isinstance(action, _TokenType):
        yield action, match.group()
    else:
        for _, kind, value in action(lexer, match):
            yield kind, value


def _change(stack: list[str], new_state: Any) -> None:
    match new_state:
        case None:
            pass
        case tuple():
            for state in new_state:
                _change(stack, state)
        case int():
            del stack[max(1, len(stack) + new_state) :]
        case "#push":
            stack.append(stack[-1])
        case "#pop":
            del stack[max(1, len(stack) - 1) :]
        case _:
            stack.append(new_state)
