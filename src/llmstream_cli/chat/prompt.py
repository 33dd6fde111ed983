"""The person's side: a line editor on a terminal, a plain reader where there is none.

Enter sends, Alt-Enter and Ctrl-J begin a new line, a block between three quotes may have many; what is pasted
is one message. This module is the only one that imports prompt_toolkit, when the first prompt is shown.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from llmstream_cli.chat.completing import Candidates, completions
from llmstream_cli.files import make_private_dir

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

PROMPT = "> "
BLOCK = '"""'
_TWICE_S = 2.0
_HINT = "(Ctrl-C again or Ctrl-D leaves; /help shows what can be done)"
_MENU_LINES = 6


class Prompt(Protocol):
    def read(self, draft: str) -> str:
        """The next message or command; `draft` stands there already. EOFError to leave."""


def open_prompt(history: Path, candidates: Candidates, *, dumb: bool, vi: bool) -> Prompt:
    """`history`: what was typed before, a private file. `dumb`: the terminal can only print."""
    return LinePrompt() if dumb else EditorPrompt(history, candidates, vi=vi)


def unwrapped(text: str) -> str:
    """A message without the marks of a block around it."""
    stripped = text.strip()
    if len(stripped) >= 2 * len(BLOCK) and stripped.startswith(BLOCK) and stripped.endswith(BLOCK):
        return stripped[len(BLOCK) : -len(BLOCK)].strip("\n")
    return text


def in_open_block(text: str) -> bool:
    stripped = text.lstrip()
    return stripped.startswith(BLOCK) and BLOCK not in stripped[len(BLOCK) :]


class LinePrompt:
    """One line at a time from the terminal; a block between three quotes has many."""

    def __init__(self) -> None:
        is_terminal = sys.stdin is not None and sys.stdin.isatty()
        self._keyboard = sys.stdin if is_terminal else _open_terminal()
        self._interrupts = TwoPresses()

    def read(self, draft: str) -> str:
        if draft:
            self._write(f"{draft}\n")
        while True:
            try:
                return self._read()
            except KeyboardInterrupt:
                if self._interrupts.again():
                    raise EOFError from None
                self._write(f"\n{_HINT}\n")

    def _read(self) -> str:
        self._write(PROMPT)
        text = self._line()
        while in_open_block(text):
            text += self._line()
        return unwrapped(text.removesuffix("\n"))

    def _line(self) -> str:
        line = self._keyboard.readline()
        if not line:
            raise EOFError
        return line

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class TwoPresses:
    """Ctrl-C at an empty prompt: ``again`` is True for the second press within `_TWICE_S`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_s: float | None = None

    def again(self) -> bool:
        now_s = self._clock()
        last_s, self._last_s = self._last_s, now_s
        return last_s is not None and now_s - last_s < _TWICE_S


class EditorPrompt:
    """prompt_toolkit. The keyboard is the controlling terminal, even where stdin is a pipe."""

    def __init__(self, history: Path, candidates: Candidates, *, vi: bool) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.input import create_input

        self._interrupts = TwoPresses()
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation="  ",
            key_bindings=self._keys(),
            history=_private_history(history),
            enable_history_search=True,
            completer=_completer(candidates),
            complete_while_typing=False,
            reserve_space_for_menu=_MENU_LINES,
            vi_mode=vi,
            enable_open_in_editor=True,
            tempfile_suffix=".md",
            input=create_input(always_prefer_tty=True),
        )

    def read(self, draft: str) -> str:
        text = self._session.prompt(default=draft)
        # Bytes that are no text come as lone surrogates, which nothing can store or send.
        return unwrapped(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))

    def _keys(self) -> "KeyBindings":
        from prompt_toolkit.filters import is_searching
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()
        # A search (Ctrl-R) has its own meaning of these keys.
        keys.add("enter", filter=~is_searching)(_enter)
        keys.add("escape", "enter", filter=~is_searching)(_new_line)
        keys.add("c-j", filter=~is_searching)(_new_line)
        keys.add("c-c", filter=~is_searching)(self._interrupt)
        return keys

    def _interrupt(self, event: "KeyPressEvent") -> None:
        buffer = event.current_buffer
        if buffer.text:
            buffer.reset()
        elif self._interrupts.again():
            event.app.exit(exception=EOFError)
        else:
            _say_above(_HINT)


def _enter(event: "KeyPressEvent") -> None:
    buffer = event.current_buffer
    if in_open_block(buffer.text):
        buffer.insert_text("\n")
    elif buffer.text.strip():
        buffer.validate_and_handle()


def _new_line(event: "KeyPressEvent") -> None:
    event.current_buffer.insert_text("\n")


def _say_above(text: str) -> None:
    from prompt_toolkit.application import run_in_terminal

    # To stdout, as the prompt itself.
    run_in_terminal(lambda: print(text))


def _open_terminal() -> TextIO:
    """The keyboard of a program whose standard input is a pipe."""
    return open("CONIN$" if os.name == "nt" else "/dev/tty", encoding="utf-8", errors="replace")


def _completer(candidates: Candidates) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion

    class CommandCompleter(Completer):
        def get_completions(
            self,
            document: "Document",
            complete_event: "CompleteEvent",  # noqa: ARG002 - the base class has it
        ) -> "Iterable[Completion]":
            before = document.text_before_cursor
            return (Completion(text, -len(typed)) for typed, text in completions(before, candidates))

    return CommandCompleter()


def _private_history(path: Path) -> "FileHistory":
    from prompt_toolkit.history import FileHistory

    class PrivateHistory(FileHistory):
        def store_string(self, string: str) -> None:
            super().store_string(string.encode("utf-8", "replace").decode())

    make_private_dir(path.parent)
    # prompt_toolkit would create it readable by everybody.
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))
    return PrivateHistory(str(path))
