"""The keyboard while an answer streams: nothing typed is echoed into it, and Ctrl-C stops it."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from types import FrameType

_undo: list[Callable[[], None]] = []
_ONE_PRESS_S = 1.0
"""A second Ctrl-C so soon is impatience: what the first one began ends by itself."""


@contextmanager
def silent_keyboard() -> Iterator[None]:
    """Turn the terminal's echo off; what is typed meanwhile waits, key by key, for the next prompt."""
    terminal = next((s for s in (sys.stdin, sys.stdout) if s is not None and s.isatty()), None)
    try:
        import termios
    except ImportError:
        terminal = None
    if terminal is None:
        yield
        return
    descriptor = terminal.fileno()
    before = termios.tcgetattr(descriptor)
    restore = partial(termios.tcsetattr, descriptor, termios.TCSANOW, before)
    _undo.append(restore)
    silent = [*before]
    # Enter has to stay what it is: in lines it would become Ctrl-J.
    silent[0] = before[0] & ~termios.ICRNL
    silent[3] = before[3] & ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(descriptor, termios.TCSANOW, silent)
    try:
        yield
    finally:
        restore()
        _undo.remove(restore)


def loud_keyboard() -> None:
    """Put the terminal right at once, for a process that leaves without unwinding."""
    for restore in reversed(_undo):
        restore()


@contextmanager
def interruptible(one_press_s: float = _ONE_PRESS_S) -> Iterator[None]:
    """Every Ctrl-C raises KeyboardInterrupt, however many there are in one chat.

    Those within `one_press_s` seconds of the one before count as the same.
    """
    raised_s = -inf

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal raised_s
        now_s = time.monotonic()
        if now_s - raised_s >= one_press_s:
            raised_s = now_s
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
