"""A terminal with its scrollback: what a person can read there, and what drives it."""

import os
import re
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pexpect
import pyte
import pytest

LIMIT_S = 30.0
_HISTORY = 100_000
_OURS = re.compile(
    r"\x1b\[\?(?:2026|7)[hl]|\x1b\[[\d;]*m|\x1b\[\d+A|\x1b\[J|\r(?=\x1b\[|\n)"
    r"|\x1b\]8;;(?:(?:https?://|mailto:)[\x21-\x7e]+)?\x1b\\"
)
_JOINERS = re.compile("\u200d|\ufe0f".encode())
"""pyte drops what follows a joiner in the same write. Without it emoji are wider than we think, as on many
terminals."""
Cell = tuple[str, str, bool, bool, bool, bool]


class Screen:
    """A pyte screen that keeps what scrolls out of it. It cuts lines when made narrower, it reflows none."""

    def __init__(self, columns: int, rows: int) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=_HISTORY)
        self._stream = pyte.ByteStream(self._screen)
        self.data = b""

    def feed(self, data: bytes) -> None:
        self.data += data
        self._stream.feed(_JOINERS.sub(b"", data))

    def resize(self, columns: int) -> None:
        self._screen.resize(columns=columns)

    def lines(self) -> list[str]:
        """Every row, the scrollback first, without blanks at the ends and empty rows at the bottom."""
        rows = ["".join(cell[0] for cell in row).rstrip() for row in self.cells()]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def cells(self) -> list[list[Cell]]:
        """The same with how each cell looks."""
        buffer = self._screen.buffer
        rows = [*self._screen.history.top, *(buffer[y] for y in range(self._screen.lines))]
        return [self._row(row) for row in rows]

    def _row(self, row: Any) -> list[Cell]:
        columns = max([self._screen.columns, *(x + 1 for x in row)])
        cells = [row[x] for x in range(columns)]
        return [(c.data, c.fg, c.bold, c.italics, c.underscore, c.strikethrough) for c in cells]

    def state(self) -> tuple[object, ...]:
        """What an escape sequence can change for good."""
        screen = self._screen
        return (
            screen.title,
            screen.icon_name,
            screen.mode,
            screen.margins,
            screen.charset,
            screen.g0_charset,
        )


def driving(data: bytes) -> str:
    """`data` without the sequences that painting needs: nothing in it may drive a terminal."""
    return _OURS.sub("", data.decode()).replace("\r\n", "\n")


class Terminal:
    """A terminal that is read all the time. Use `terminal_of_this_process`."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = Screen(columns, rows)
        self._reader, writer = os.openpty()
        tty.setraw(writer)
        termios.tcsetwinsize(writer, (rows, columns))
        self._rows = rows
        self.file = os.fdopen(writer, "w", encoding="utf-8", newline="\n")
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait_for(self, text: str) -> None:
        """Until `text` can be read somewhere, be it over the end of a row."""
        self.wait_until(lambda lines: text in "".join(lines))

    def wait_until(self, reached: Callable[[list[str]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: reached(self.screen.lines()), LIMIT_S), self.screen.lines()

    def resize(self, columns: int) -> None:
        with self._changed:
            self.screen.resize(columns)
            termios.tcsetwinsize(self.file.fileno(), (self._rows, columns))

    def close(self) -> None:
        """No more is written; everything that was is on the screen."""
        self.file.close()
        self._thread.join(LIMIT_S)
        os.close(self._reader)

    def _read(self) -> None:
        with suppress(OSError):
            while data := os.read(self._reader, 65536):
                with self._changed:
                    self.screen.feed(data.replace(b"\n", b"\r\n"))
                    self._changed.notify_all()


@contextmanager
def terminal_of_this_process(
    monkeypatch: pytest.MonkeyPatch, columns: int = 80, rows: int = 24
) -> Iterator[Terminal]:
    """`sys.stdout` is a terminal; after the block everything written there is on its screen."""
    terminal = Terminal(columns, rows)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal.file)
        try:
            yield terminal
        finally:
            terminal.close()


class CommandOnScreen:
    """The llmstream command with all its streams on one terminal."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24, **env: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
        self.screen = Screen(columns, rows)
        self._rows = rows
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "llmstream_cli", *arguments],
            # pyte reflows as little as the Linux console.
            env={**inherited, "TERM": "linux", "PYTHONUTF8": "1", **env},
            dimensions=(rows, columns),
            timeout=LIMIT_S,
        )

    def wait_until(self, reached: Callable[[list[str]], bool]) -> None:
        while not reached(self.screen.lines()):
            self.screen.feed(self.child.read_nonblocking(65536, LIMIT_S))

    def resize(self, columns: int) -> None:
        self.screen.resize(columns)
        self.child.setwinsize(self._rows, columns)

    def ended(self) -> int:
        """Wait for the end; the exit code."""
        with suppress(pexpect.EOF):
            while True:
                self.screen.feed(self.child.read_nonblocking(65536, LIMIT_S))
        self.child.close()
        return int(self.child.exitstatus)
