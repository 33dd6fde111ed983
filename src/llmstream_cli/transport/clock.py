"""The time-outs of one request: at any moment one of three clocks of silence runs, beside the total."""

import math
import time
from collections.abc import Callable
from time import monotonic

from llmstream_cli.errors import TimeoutKind
from llmstream_cli.transport.target import Timeouts

SLICE_S = 0.05
"""Longest single blocking call. A signal that comes just before the call does not wake it, and on Windows
none does: without slices such a Ctrl-C would wait for the server."""


class Expired(Exception):
    """A time-out ran out; never leaves this package."""

    def __init__(self, which: TimeoutKind, limit_s: float) -> None:
        super().__init__(which, limit_s)
        self.which = which
        self.limit_s = limit_s


class Unwanted(Exception):
    """The caller said so while it was waited for."""


class Clock:
    """Deadlines for every blocking call. Made once for a request and all its attempts.

    No thread and no signal: whoever blocks asks `slice_s` first. So a flood of keep-alives cannot put the
    idle time-out off, and `progress`, called for every event, only notes the time.
    """

    def __init__(
        self,
        timeouts: Timeouts,
        wanted: Callable[[], bool] | None = None,
        before_wait: Callable[[], None] | None = None,
    ) -> None:
        self._timeouts = timeouts
        self._wanted = wanted
        self._before_wait = before_wait
        self._total_at = monotonic() + _limit(timeouts.total_s)
        self._start(TimeoutKind.CONNECT, timeouts.connect_s)
        self._sent_at = self._since
        self.settled = False
        """Running out is the normal end: all that was wanted is here."""

    def connecting(self) -> None:
        self._start(TimeoutKind.CONNECT, self._timeouts.connect_s)

    def sent(self) -> None:
        """The request goes out: zero of all times reported."""
        self._start(TimeoutKind.FIRST_TOKEN, self._timeouts.first_token_s)
        self._sent_at = self._since

    def progress(self) -> None:
        self._since = monotonic()
        if self._which is TimeoutKind.FIRST_TOKEN:
            self._start(TimeoutKind.IDLE, self._timeouts.idle_s)

    def settle(self, seconds: float) -> None:
        """From now on `seconds` without progress are the normal end."""
        self._start(TimeoutKind.IDLE, seconds)
        self.settled = True

    def elapsed_s(self) -> float:
        return monotonic() - self._sent_at

    def remaining_s(self) -> float | None:
        """Seconds until the next deadline, None without one; raises Expired once it has passed."""
        now = monotonic()
        silent_until = self._since + self._allowed
        left = min(silent_until, self._total_at) - now
        if left == math.inf:
            return None
        if left > 0:
            return left
        if now >= silent_until:
            raise Expired(self._which, self._allowed)
        raise Expired(TimeoutKind.TOTAL, _limit(self._timeouts.total_s))

    def slice_s(self) -> float:
        """How long to block now, before asking again; raises Expired once the deadline has passed."""
        left = self.remaining_s()
        return SLICE_S if left is None or left > SLICE_S else left

    def about_to_wait(self) -> None:
        """Everything received has been handed over; raises Unwanted if that shows that nobody is there."""
        if self._before_wait is not None:
            try:
                self._before_wait()
            except BrokenPipeError:
                raise Unwanted from None

    def waited(self) -> None:
        """A slice ran out with nothing to show for it; raises Unwanted if nobody waits for more."""
        if self._wanted is not None and not self._wanted():
            raise Unwanted

    def total_left_s(self) -> float:
        return self._total_at - monotonic()

    def _start(self, which: TimeoutKind, allowed_s: float | None) -> None:
        self._since = monotonic()
        self._which = which
        self._allowed = _limit(allowed_s)


def sleep(seconds: float) -> None:
    """As `time.sleep`, in slices."""
    end = monotonic() + seconds
    while (left := end - monotonic()) > 0:
        time.sleep(min(left, SLICE_S))


def _limit(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds
