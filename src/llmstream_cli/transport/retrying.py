"""Whether, and when, a request that failed before its answer began is sent again."""

from time import monotonic

from llmstream_cli.errors import HttpStatusError, ServerTimeoutError, StreamBrokenError, TimeoutKind
from llmstream_cli.transport.clock import Clock
from llmstream_cli.transport.failures import NoAnswerError
from llmstream_cli.transport.status import MAX_RETRY_AFTER_S
from llmstream_cli.transport.target import Timeouts, WaitNotice

FIRST_BACKOFF_S = 0.5
_LOADING_POLL_S = (0.5, 2.0)
_REASONS = {
    429: "rate limited (429)",
    502: "bad gateway (502)",
    503: "server unavailable (503)",
    504: "gateway timed out (504)",
    529: "server overloaded (529)",
}


class Retrying:
    """The memory of one request's attempts."""

    def __init__(self, clock: Clock, timeouts: Timeouts, retries: int) -> None:
        self._clock = clock
        self._timeouts = timeouts
        self._retries_left = retries
        self._attempts = 0
        self._backoff_s = FIRST_BACKOFF_S
        self._loading_since_s: float | None = None
        self._loading_poll_s = _LOADING_POLL_S[0]
        self._had_no_answer = False

    def consider(self, error: HttpStatusError | StreamBrokenError) -> WaitNotice | None:
        """The wait before the next attempt; None if `error` is final.

        Raises ServerTimeoutError if the server has been loading for too long.
        """
        self._attempts += 1
        if isinstance(error, HttpStatusError):
            notice = self._after_status(error)
        elif isinstance(error, NoAnswerError) and not self._had_no_answer:
            self._had_no_answer = True
            notice = self._retry("the server closed the connection without answering", 0.0)
        else:
            notice = None
        # A wait that outlasts the total time-out would only hide the reason.
        return notice if notice and notice.seconds < self._clock.total_left_s() else None

    def _after_status(self, error: HttpStatusError) -> WaitNotice | None:
        if _is_loading(error):
            return self._after_loading(error)
        if error.status not in _REASONS or ("x-should-retry", "false") in _lowered(error.headers):
            return None
        wait_s = error.retry_after_s
        if wait_s is None:
            wait_s, self._backoff_s = self._backoff_s, self._backoff_s * 2
        if wait_s > MAX_RETRY_AFTER_S:
            return None
        return self._retry(_REASONS[error.status], wait_s)

    def _after_loading(self, error: HttpStatusError) -> WaitNotice:
        """Loading is no failure: poll until the first-token time-out, without using up retries."""
        now = monotonic()
        if self._loading_since_s is None:
            self._loading_since_s = now
        limit_s = self._timeouts.first_token_s
        if limit_s is not None and now - self._loading_since_s >= limit_s:
            option = TimeoutKind.FIRST_TOKEN.option
            raise ServerTimeoutError(
                f"the server was still loading the model after {limit_s:g} s ({option})",
                url=error.url,
                which=TimeoutKind.FIRST_TOKEN,
                hint=f"{option} sets the limit",
            )
        wait_s, longest_s = self._loading_poll_s, _LOADING_POLL_S[1]
        self._loading_poll_s = min(wait_s * 1.5, longest_s)
        if limit_s is not None:
            wait_s = min(wait_s, limit_s - (now - self._loading_since_s))
        return WaitNotice(reason="server is loading the model (503)", seconds=wait_s, attempt=self._attempts)

    def _retry(self, reason: str, seconds: float) -> WaitNotice | None:
        if self._retries_left <= 0:
            return None
        self._retries_left -= 1
        return WaitNotice(reason=reason, seconds=seconds, attempt=self._attempts)


def _is_loading(error: HttpStatusError) -> bool:
    return error.status == 503 and b"loading" in error.body.lower()


def _lowered(headers: tuple[tuple[str, str], ...]) -> set[tuple[str, str]]:
    return {(name.lower(), value.strip().lower()) for name, value in headers}
