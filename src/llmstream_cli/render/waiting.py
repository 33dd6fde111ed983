"""The waiting line: what is going on before the first token, on stderr, only on a terminal."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llmstream_cli.events import Event, KeepAlive, PrefillProgress
from llmstream_cli.render.sanitize import harmless

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES = "|/-\\"
_FIRST_S = 0.3
_EVERY_S = 0.1
_USUAL_COLUMNS = 80


class WaitingLine:
    """Repaints one line from a daemon thread until stopped; does nothing where `enabled` is False."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._started = time.monotonic()
        self._what = "waiting"
        self._keep_alives = 0
        self._painted = False
        self._meanwhile: Callable[[], None] | None = None
        unicode = (getattr(sys.stderr, "encoding", None) or "").lower().replace("-", "") == "utf8"
        self._frames = _FRAMES if unicode else _ASCII_FRAMES

    def start(self, what: str = "waiting") -> None:
        self._what = what
        if self._enabled and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="waiting-line", daemon=True)
            self._thread.start()

    def meanwhile(self, work: Callable[[], None]) -> None:
        """Let the thread do `work` once if the wait is long enough for the line to show."""
        self._meanwhile = work

    @property
    def live(self) -> bool:
        """Whether anything is painted: on a terminal, until stopped."""
        return self._thread is not None

    def say(self, what: str) -> None:
        """Change the words, e.g. to a retry that is waited for."""
        self._what = what

    def thinking(self) -> None:
        self._what = "thinking"

    def note(self, event: Event) -> None:
        """Show what an event before the first token tells of the wait."""
        match event:
            case PrefillProgress(processed_tokens=int(done), total_tokens=int(total)) if total:
                self._what = f"reading the prompt {done:,}/{total:,} ({100 * done // total} %)"
            case KeepAlive():
                self._keep_alives += 1
            case _:
                pass

    def stop(self) -> None:
        """Erase the line for good. Cheap when already stopped."""
        if self._thread is None:
            return
        self._stopped.set()
        with self._lock:
            self._thread = None
            if self._painted:
                self._paint("")
                self._painted = False

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Something else is printed meanwhile: erase the line, and paint it again only afterwards."""
        with self._lock:
            if self._painted:
                self._paint("")
                self._painted = False
            yield

    def _run(self) -> None:
        delay, tick = _FIRST_S, 0
        while not self._stopped.wait(delay):
            delay = _EVERY_S
            tick += 1
            with self._lock:
                if self._stopped.is_set():
                    return
                self._painted = True
                # A line that wraps could not be erased.
                self._paint(f"{self._frames[tick % len(self._frames)]} {self._words()}"[: _columns() - 1])
            if self._meanwhile is not None:
                work, self._meanwhile = self._meanwhile, None
                work()

    def _words(self) -> str:
        alive = f", {self._keep_alives} keep-alives" if self._keep_alives else ""
        what = harmless(self._what, one_line=True)
        return f"{what} {time.monotonic() - self._started:.1f} s{alive}"

    @staticmethod
    def _paint(text: str) -> None:
        try:
            sys.stderr.write(f"\r\x1b[2K{text}")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS
