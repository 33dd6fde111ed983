"""One question and what came of it: the turn, its times, what was asked, and the exit code."""

from dataclasses import dataclass

from llmstream_cli.errors import ExitCode, LlmstreamError
from llmstream_cli.events import EndStatus, StreamEnd
from llmstream_cli.identity import UNKNOWN_SERVER, ServerIdentity
from llmstream_cli.request import Sampling
from llmstream_cli.stops import LocalStop
from llmstream_cli.thinking import TagFault
from llmstream_cli.timing import Timing
from llmstream_cli.turn import Turn, TurnBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked, of whom. ``url`` is the one really asked, without secrets."""

    profile: str | None
    shape: str
    url: str
    model: str | None
    sampling: Sampling
    terminal_marker: str | None = None
    usage_asked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``failure``: what went wrong before or outside the stream. ``reader_gone``: stdout was closed.

    ``tag_fault``: what was wrong with the tags around the reasoning.
    """

    asked: Asked
    turn: Turn
    timing: Timing
    server: ServerIdentity = UNKNOWN_SERVER
    local_stop: LocalStop | None = None
    tag_fault: TagFault | None = None
    failure: LlmstreamError | None = None
    reader_gone: bool = False

    @property
    def status(self) -> EndStatus:
        return self.turn.end.status

    @property
    def model(self) -> str | None:
        """The model that answered, by the server's word, else the one asked for."""
        return self.turn.start.model or self.asked.model

    def exit_code(self, *, fail_on_truncation: bool = False) -> ExitCode:
        if self.reader_gone:
            return ExitCode.PIPE_CLOSED
        if self.failure is not None:
            return self.failure.exit_code
        match self.status:
            case EndStatus.COMPLETE:
                truncated = self.turn.truncated and fail_on_truncation
                return ExitCode.TRUNCATED if truncated else ExitCode.OK
            case EndStatus.INCOMPLETE:
                return ExitCode.INCOMPLETE
            case EndStatus.ERROR:
                return ExitCode.SERVER_ERROR
            case EndStatus.TIMEOUT:
                return ExitCode.TIMEOUT
            case EndStatus.CANCELLED:
                return ExitCode.INTERRUPTED


def empty_turn(end: StreamEnd) -> Turn:
    """The turn of a request that never got a stream."""
    builder = TurnBuilder()
    builder.add(end)
    return builder.turn()
