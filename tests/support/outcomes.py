"""Outcomes to test with: made of events, or of a recording through the whole pipeline."""

from typing import Any

from llmstream_cli.capture import read_capture
from llmstream_cli.errors import LlmstreamError
from llmstream_cli.events import EndStatus, Event, Finish, FinishReason, StreamEnd, StreamError, TextDelta
from llmstream_cli.identity import UNKNOWN_SERVER, ServerIdentity
from llmstream_cli.outcome import Asked, Outcome
from llmstream_cli.render.base import Renderer
from llmstream_cli.request import Sampling
from llmstream_cli.session import replay
from llmstream_cli.shapes import get_shape, shape_for_path
from llmstream_cli.stops import LocalStop
from llmstream_cli.timing import Timing
from tests.support.captures import ROOT, fold

URL = "http://127.0.0.1:8080/v1/chat/completions"
HELLO = TextDelta(text="Hello there!")
STOPPED = Finish(reason=FinishReason.STOP, raw_reason="stop")


class SilentRenderer:
    """Shows nothing, keeps the events."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.outcomes: list[Outcome] = []

    def raw(self, data: bytes) -> None:
        pass

    def event(self, event: Event) -> None:
        self.events.append(event)

    def finish(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


def make_asked(
    *,
    stop: tuple[str, ...] = (),
    max_tokens: int | None = None,
    profile: str | None = None,
    model: str | None = "gemma",
    url: str = URL,
    terminal_marker: str | None = "[DONE]",
    usage_asked: bool = False,
) -> Asked:
    return Asked(
        profile=profile,
        shape="openai-chat",
        url=url,
        model=model,
        sampling=Sampling(stop=stop, max_tokens=max_tokens),
        terminal_marker=terminal_marker,
        usage_asked=usage_asked,
    )


def make_outcome(
    *events: Event,
    status: EndStatus = EndStatus.COMPLETE,
    marker_seen: bool | None = True,
    error: StreamError | None = None,
    timing: Timing | None = None,
    server: ServerIdentity = UNKNOWN_SERVER,
    local_stop: LocalStop | None = None,
    failure: LlmstreamError | None = None,
    reader_gone: bool = False,
    **asked: Any,
) -> Outcome:
    """The outcome of an answer of `events`; `asked` are arguments of `make_asked`."""
    end = StreamEnd(status=status, marker_seen=marker_seen, offset=0, error=error)
    return Outcome(
        asked=make_asked(**asked),
        turn=fold([*events, end]),
        timing=timing or Timing(),
        server=server,
        local_stop=local_stop,
        failure=failure,
        reader_gone=reader_gone,
    )


def replayed(name: str, renderer: Renderer | None = None, *, stops: tuple[str, ...] = ()) -> Outcome:
    """The outcome of the recording called e.g. ``llama.cpp/chat_eos_stream``."""
    capture = read_capture(ROOT / f"{name}.jsonl")
    shape = shape_for_path(capture.path, capture.body)
    assert shape is not None
    return replay(capture, get_shape(shape), renderer or SilentRenderer(), stops=stops)


def finish(reason: FinishReason, raw: str | None = None, **fields: Any) -> Finish:
    return Finish(reason=reason, raw_reason=raw, **fields)
