"""The exception tree and the exit codes of the command line.

::

    LlmstreamError                    a failure with a cause that a user can understand
     ├── UsageError                   2   the command line makes no sense
     ├── ConfigError                  3   configuration, profile or key
     │    └── MissingKeyError         3   a profile wants a key and there is none
     └── TransportError               everything that can happen to the request
          ├── HttpStatusError         4/5 an HTTP error status instead of a stream
          ├── ConnectError            6   DNS, refused, unreachable, TLS
          ├── ServerTimeoutError      7   one of the four time-outs
          ├── NotWantedError        141   nobody reads the answer any more
          └── StreamBrokenError       8   the connection ended before the body did

Nothing that a server, a network or a user can do may leave the program as any other exception.
"""

from enum import IntEnum, StrEnum


class ExitCode(IntEnum):
    """Process exit codes; scripts rely on them."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    CONFIG = 3
    HTTP_CLIENT = 4
    HTTP_SERVER = 5
    CONNECT = 6
    TIMEOUT = 7
    INCOMPLETE = 8
    SERVER_ERROR = 9
    TRUNCATED = 10
    DIFFERENT = 11
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class TimeoutKind(StrEnum):
    """The four time-outs; the value is the option's name without ``-timeout`` (``total``: ``--timeout``)."""

    CONNECT = "connect"
    FIRST_TOKEN = "first-token"
    IDLE = "idle"
    TOTAL = "total"

    @property
    def option(self) -> str:
        return "--timeout" if self is TimeoutKind.TOTAL else f"--{self.value}-timeout"


class LlmstreamError(Exception):
    """A failure that is explained to the user in one line, plus an optional hint of what to try."""

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(LlmstreamError):
    exit_code = ExitCode.USAGE


class ConfigError(LlmstreamError):
    exit_code = ExitCode.CONFIG


class MissingKeyError(ConfigError):
    """A profile needs an API key and none of its sources gave one."""


class TransportError(LlmstreamError):
    """The request failed; ``url`` is the one really asked, without secrets."""

    exit_code = ExitCode.CONNECT

    def __init__(self, message: str, *, url: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.url = url


class ConnectError(TransportError):
    pass


class ServerTimeoutError(TransportError):
    """One of the four time-outs ran out."""

    exit_code = ExitCode.TIMEOUT

    def __init__(self, message: str, *, url: str, which: TimeoutKind, hint: str | None = None) -> None:
        super().__init__(message, url=url, hint=hint)
        self.which = which


class NotWantedError(TransportError):
    """Whoever was to get the answer is gone, so it was not waited for any longer."""

    exit_code = ExitCode.PIPE_CLOSED


class StreamBrokenError(TransportError):
    """The connection ended before the HTTP body was complete (reset, or cut inside a chunk)."""

    exit_code = ExitCode.INCOMPLETE


class HttpStatusError(TransportError):
    """The server answered with an HTTP error status.

    ``body`` holds at most the first 64 KiB; ``content_type`` is as sent; ``retry_after_s`` is parsed
    from the header where there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        url: str,
        status: int,
        body: bytes = b"",
        content_type: str = "",
        headers: tuple[tuple[str, str], ...] = (),
        retry_after_s: float | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, url=url, hint=hint)
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers
        self.retry_after_s = retry_after_s

    @property
    def exit_code(self) -> ExitCode:  # type: ignore[override]
        return ExitCode.HTTP_SERVER if self.status >= 500 else ExitCode.HTTP_CLIENT
