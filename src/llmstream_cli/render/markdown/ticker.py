"""A thread that paints soon after it was woken, and not too often."""

import threading
from collections.abc import Callable

_EVERY_S = 0.05


class Ticker:
    """Calls `paint` when woken, at once after a rest, else 50 ms after the last time.

    ``stop`` waits for the thread.
    """

    def __init__(self, paint: Callable[[], None]) -> None:
        self._paint = paint
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="markdown", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        self._stopped.set()
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._woken.wait()
            if self._stopped.is_set():
                return
            self._woken.clear()
            self._paint()
            self._stopped.wait(_EVERY_S)
