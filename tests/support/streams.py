"""Standard output and standard error of this process as a pipe or a terminal, and what was written there."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

import pytest

Kind = Literal["pipe", "terminal"]


class Stream:
    """One end is the program's, the other is read by the test. A terminal is raw: it changes no byte."""

    def __init__(self, kind: Kind, *, encoding: str = "utf-8") -> None:
        self._reader, writer = _open_terminal() if kind == "terminal" else os.pipe()
        self.file = os.fdopen(writer, "w", encoding=encoding, errors="backslashreplace", newline="\n")

    def read(self) -> bytes:
        """What was written since the last time; waits until there is something."""
        return os.read(self._reader, 65536)

    def rest(self) -> bytes:
        """Everything that was written and not read; the program's end is closed."""
        self.file.close()
        found = b""
        try:
            while piece := os.read(self._reader, 65536):
                found += piece
        except OSError:
            # So a terminal says that it has no other end any more.
            pass
        return found

    def stop_reading(self) -> None:
        """As ``head`` does when it has seen enough."""
        os.close(self._reader)
        self._reader = -1

    def close(self) -> None:
        # What could not be written to a reader that is gone cannot be flushed either.
        with suppress(OSError):
            self.file.close()
        if self._reader >= 0:
            os.close(self._reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    out: Stream
    err: Stream

    def texts(self) -> tuple[str, str]:
        """All of standard output, all of standard error."""
        return self.out.rest().decode(), self.err.rest().decode()


@contextmanager
def streams(
    monkeypatch: pytest.MonkeyPatch,
    *,
    out: Kind = "pipe",
    err: Kind = "pipe",
    encoding: str = "utf-8",
) -> Iterator[Streams]:
    """`encoding` is what Python takes the streams for."""
    both = Streams(out=Stream(out, encoding=encoding), err=Stream(err, encoding=encoding))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", both.out.file)
        patch.setattr(sys, "stderr", both.err.file)
        try:
            yield both
        finally:
            both.out.close()
            both.err.close()


def _open_terminal() -> tuple[int, int]:
    import pty
    import termios
    import tty

    reader, writer = pty.openpty()
    tty.setraw(writer)
    termios.tcsetwinsize(writer, (24, 80))
    return reader, writer
