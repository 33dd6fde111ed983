"""Standard output and standard error as a program for people and for pipes needs them."""

import sys
from typing import TYPE_CHECKING, Literal

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
    """The answer's own stream. To a pipe or file: exact UTF-8 bytes, flushed at each write."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout is not None and sys.stdout.isatty()
        self.at_line_start = True
        self.wrote = False

    def write(self, text: str) -> None:
        if not text:
            return
        if self.is_terminal:
            sys.stdout.write(text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding))
            sys.stdout.flush()
        else:
            self.write_bytes(text.encode("utf-8", "replace"))
        self.wrote = True
        self.at_line_start = text.endswith("\n")

    def write_bytes(self, data: bytes) -> None:
        if sys.stdout is None:
            return
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def end_line(self) -> None:
        """One newline, only if something was written and it lacks one."""
        if self.wrote and not self.at_line_start:
            self.write("\n")


class StandardError:
    """Everything that is not the answer. Styled through Rich on a terminal, plain elsewhere."""

    def __init__(self, color: ColorMode = "auto") -> None:
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
            if self.is_terminal or self._color == "always":
                from rich.text import Text

                self._rich().print(Text(text, _STYLES[style]), end=end, soft_wrap=True)
            else:
                sys.stderr.write(text + end)
            sys.stderr.flush()
        except BrokenPipeError:
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
