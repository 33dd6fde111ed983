"""The question: prompt arguments, files and standard input put together."""

import os
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from llmstream_cli.errors import UsageError

STDIN_WAIT_S = 5.0
"""How long a pipe that nobody writes to is waited for when there is a prompt argument too."""


def gather_question(prompt: Sequence[str], files: Sequence[str], *, warn: Callable[[str], None]) -> str:
    """Files, then stdin, then the prompt arguments, with blank lines between them.

    Raises `UsageError` if there is no question at all, or a file cannot be read or is not text.
    """
    argument = normalise(" ".join(prompt))
    wants_stdin = "-" in files or argument == "-"
    if argument == "-":
        argument = ""
    parts = [read_text_file(path, warn) for path in files if path != "-"]
    if len(parts) > 1:
        names = [path for path in files if path != "-"]
        parts = [f"--- {normalise(name)} ---\n{text}" for name, text in zip(names, parts, strict=True)]
    has_other = bool(argument or parts)
    piped = _read_stdin(None, warn) if wants_stdin else _piped(STDIN_WAIT_S if has_other else None, warn)
    question = "\n\n".join(part for part in (*parts, piped, argument) if part)
    if not question.strip():
        raise UsageError(
            "There is no prompt.",
            hint='Give one as an argument or through a pipe: llmstream "why is the sky blue?"',
        )
    return question


def normalise(text: str) -> str:
    """Text from the command line as valid Unicode: what is none becomes U+FFFD."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        # Half a character, as Windows allows in its arguments.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _stdin_mode() -> int | None:
    """None for a terminal and where there is no standard input."""
    if sys.stdin is None:
        return None
    try:
        mode = os.fstat(0).st_mode
        return None if os.isatty(0) else mode
    except OSError:
        return None


def _piped(wait_s: float | None, warn: Callable[[str], None]) -> str:
    """What a pipe or file holds; a terminal is not waited for unless it is asked for with ``-``."""
    mode = _stdin_mode()
    if mode is None:
        return ""
    return _read_stdin(None if stat.S_ISREG(mode) else wait_s, warn)


def _read_stdin(wait_s: float | None, warn: Callable[[str], None]) -> str:
    if sys.stdin is None:
        return ""
    reader = _StdinReader()
    if not reader.started(wait_s):
        warn(f"nothing came through the pipe for {wait_s:g} s: going on without it (-f - waits for it)")
        return ""
    # One newline at the end belongs to the command that wrote it, not to the question.
    return _text(reader.read(), "standard input", warn).removesuffix("\n").removesuffix("\r")


class _StdinReader:
    """Reads in a daemon thread, so that Ctrl-C and the time limit work on every system."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._first = threading.Event()
        self._done = threading.Event()
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    def started(self, wait_s: float | None) -> bool:
        """The first byte or the end has come; False after `wait_s` seconds of nothing."""
        return self._first.wait(wait_s)

    def read(self) -> bytes:
        self._done.wait()
        return b"".join(self._pieces)

    def _run(self) -> None:
        try:
            while piece := os.read(0, 65536):
                self._pieces.append(piece)
                self._first.set()
        except OSError:
            # Closed, or opened for writing only: there is no input.
            pass
        self._first.set()
        self._done.set()


def read_text_file(path: str, warn: Callable[[str], None]) -> str:
    """The text of a file without its last line end. UsageError if it cannot be read or is not text."""
    try:
        data = Path(path).expanduser().read_bytes()
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {path}: {reason}") from error
    return _text(data, path, warn).removesuffix("\n").removesuffix("\r")


def _text(data: bytes, where: str, warn: Callable[[str], None]) -> str:
    if b"\0" in data:
        utf_16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        hint = "It looks like UTF-16: save it as UTF-8." if utf_16 else None
        raise UsageError(f"{where} is binary, not text.", hint=hint)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        warn(f"{where} is not valid UTF-8 at byte {error.start}: the bad bytes are replaced")
        return data.decode("utf-8-sig", "replace")
