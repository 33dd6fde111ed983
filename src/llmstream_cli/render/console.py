"""Standard output and standard error as a program for people and for pipes needs them."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal, NoReturn

from llmstream_cli.errors import LlmstreamError

if TYPE_CHECKING:
    from rich.console import Console

ColorMode = Literal["auto", "always", "never"]
Style = Literal["ok", "warning", "error", "dim", "plain"]

_STYLES: dict[Style, str] = {
    "ok": "green",
    "warning": "yellow",
    "error": "bold red",
    "dim": "dim",
    "plain": "",
}
_ASCII = str.maketrans({"✓": "*", "⚠": "!", "✗": "x", "■": "#", "·": "|", "…": "...", "⠋": "-"})


class StandardOutput:
    """The answer's own stream. To a pipe or file: exact UTF-8 bytes, flushed at each write.

    Raises BrokenPipeError when the reader is gone, LlmstreamError when it cannot be written otherwise.
    """

    def __init__(self) -> None:
        self.is_terminal = sys.stdout is not None and sys.stdout.isatty()
        self.at_line_start = True
        self.wrote = False
        self.held = False

    def write(self, text: str) -> None:
        if not text:
            return
        # Noted first: Ctrl-C may come between the writing and a note of it, and the line must still be ended.
        self.wrote = True
        self.at_line_start = text.endswith("\n")
        if self.is_terminal:
            encoding = sys.stdout.encoding
            try:
                sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
                sys.stdout.flush()
            except OSError as error:
                _unwritable(error)
        else:
            self.write_bytes(text.encode("utf-8", "replace"))

    def has_reader(self) -> bool:
        """False once the other end of the pipe is closed, where the system can tell without writing."""
        import select

        if self.is_terminal or sys.stdout is None or not hasattr(select, "poll"):
            return True
        watch = select.poll()
        watch.register(sys.stdout.fileno(), 0)
        return not any(seen & select.POLLERR for _, seen in watch.poll(0))

    def write_bytes(self, data: bytes) -> None:
        if sys.stdout is None:
            return
        try:
            sys.stdout.buffer.write(data)
            if not self.held:
                sys.stdout.buffer.flush()
        except OSError as error:
            _unwritable(error)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """What is written inside waits for `flush`, so that much that came at once is written at once."""
        self.held = True
        try:
            yield
        finally:
            self.held = False
            self.flush()

    def flush(self) -> None:
        if sys.stdout is None or self.is_terminal:
            return
        try:
            sys.stdout.buffer.flush()
        except OSError as error:
            _unwritable(error)

    def end_line(self) -> None:
        """One newline, only if something was written and it lacks one."""
        if self.wrote and not self.at_line_start:
            self.write("\n")


def _unwritable(error: OSError) -> NoReturn:
    # Windows calls a pipe without a reader an invalid argument.
    if isinstance(error, BrokenPipeError) or (os.name == "nt" and error.errno == errno.EINVAL):
        raise BrokenPipeError from error
    raise LlmstreamError(f"cannot write to standard output: {error.strerror}") from error


class StandardError:
    """Everything that is not the answer. Styled through Rich on a terminal, plain elsewhere.

    `aside` makes room for a line on a terminal where something else is painted.
    """

    def __init__(
        self,
        color: ColorMode = "auto",
        aside: "Callable[[], AbstractContextManager[None]]" = nullcontext,
    ) -> None:
        self._aside = aside
        self.is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._color = color
        self._console: Console | None = None
        self._at_line_start = True

    def line(self, text: str, style: Style = "plain") -> None:
        self.end_line()
        self._print(text, style, end="\n")

    def fragment(self, text: str, style: Style = "plain") -> None:
        """A piece of running text, e.g. reasoning."""
        self._print(text, style, end="")
        if text:
            self._at_line_start = text.endswith("\n")

    def end_line(self) -> None:
        if not self._at_line_start:
            self._print("", "plain", end="\n")
            self._at_line_start = True

    def _print(self, text: str, style: Style, *, end: str) -> None:
        if sys.stderr is None:
            return
        if (sys.stderr.encoding or "").lower().replace("-", "") != "utf8":
            text = text.translate(_ASCII)
        try:
            with self._aside():
                if self.is_terminal or self._color == "always":
                    from rich.text import Text

                    self._rich().print(Text(text, _STYLES[style]), end=end, soft_wrap=True)
                else:
                    sys.stderr.write(text + end)
                sys.stderr.flush()
        except OSError:
            # Nobody reads the notes; the answer itself matters more.
            pass

    def _rich(self) -> "Console":
        if self._console is None:
            from rich.console import Console

            force = True if self._color == "always" else None
            self._console = Console(
                stderr=True,
                highlight=False,
                markup=False,
                emoji=False,
                force_terminal=force,
                no_color=True if self._color == "never" else None,
            )
        return self._console
