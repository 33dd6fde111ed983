"""The pipeline of one answer, live or recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from llmstream_cli.decode import StreamDecoder
from llmstream_cli.errors import LlmstreamError
from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    Json,
    KeepAlive,
    ReasoningDelta,
    RefusalDelta,
    StreamEnd,
    StreamError,
    TextDelta,
    ToolCallDelta,
)
from llmstream_cli.identity import recognise
from llmstream_cli.outcome import Asked, Outcome
from llmstream_cli.render.base import Renderer
from llmstream_cli.shapes.base import Shape
from llmstream_cli.stops import StopEnforcer
from llmstream_cli.thinking import ThinkSplitter, names_a_tag
from llmstream_cli.timing import Timeline
from llmstream_cli.turn import Turn, TurnBuilder


@dataclass(slots=True, kw_only=True)
class TurnRun:
    """The pipeline of one answer: decode, tell reasoning apart, enforce stops, keep time, fold, render.

    Stop strings are enforced in the answer only: in the reasoning they would cost the answer.
    """

    decoder: StreamDecoder
    renderer: Renderer
    stops: Sequence[str] = ()
    choices: int = 1
    timeline: Timeline = field(default_factory=Timeline)
    builder: TurnBuilder = field(default_factory=TurnBuilder)
    enforcer: StopEnforcer | None = None
    splitter: ThinkSplitter | None = None
    has_output: bool = False
    reader_gone: bool = False
    over_s: float | None = None

    def __post_init__(self) -> None:
        if any(self.stops):
            self.enforcer = StopEnforcer(self.stops, self.choices)

    @property
    def over(self) -> bool:
        """Nothing more is wanted from the server."""
        return self.decoder.ended or self.reader_gone or (self.enforcer is not None and self.enforcer.overrun)

    def read(self, at_s: float, data: bytes) -> bool:
        """Take one read; True if it brought an event that counts as progress."""
        self.timeline.read(at_s)
        try:
            self.renderer.raw(data)
        except BrokenPipeError:
            self.reader_gone = True
        progress = self._pass(at_s, self.decoder.feed(data))
        if self.over and self.over_s is None:
            self.over_s = at_s
        return progress

    def close(
        self, at_s: float, status: EndStatus = EndStatus.INCOMPLETE, error: StreamError | None = None
    ) -> Turn:
        """The body has ended. A stop string that was completed counts as the end of the answer."""
        *events, end = self.decoder.close(status, error)
        self._pass(at_s, events)
        if isinstance(end, StreamEnd) and end.status is not EndStatus.ERROR and self._stopped:
            end = replace(end, status=EndStatus.COMPLETE, error=None)
        self._pass(at_s, [end])
        self.timeline.end(at_s if self.over_s is None else self.over_s)
        return self._separated(self.builder.turn())

    @property
    def _stopped(self) -> bool:
        return self.enforcer is not None and (self.enforcer.matched or self.enforcer.overrun)

    def _separated(self, turn: Turn) -> Turn:
        if self.splitter is None:
            return turn
        choices = []
        for choice in turn.choices:
            text, reasoning = self.splitter.separated(choice.index, choice.text, choice.reasoning)
            choices.append(replace(choice, text=text, reasoning=reasoning))
        return replace(turn, choices=tuple(choices))

    def _pass(self, at_s: float, events: list[Event]) -> bool:
        if self.splitter is not None and events:
            events = self.splitter.filter(events)
        if self.enforcer is not None and events:
            events = self.enforcer.filter(events)
        progress = False
        for event in events:
            match event:
                case TextDelta(text=text) | ReasoningDelta(text=text) | RefusalDelta(text=text):
                    self.timeline.output(at_s, len(text))
                    progress = self.has_output = True
                case ToolCallDelta():
                    self.timeline.output(at_s, len(event.arguments) + len(event.name))
                    progress = self.has_output = True
                case Finish():
                    progress = True
                case KeepAlive():
                    pass
                case _:
                    # Identity, usage, prefill progress before any output: the first-token clock goes on.
                    progress = progress or self.has_output
            self.builder.add(event)
            if not self.reader_gone:
                try:
                    self.renderer.event(event)
                except BrokenPipeError:
                    self.reader_gone = True
        return progress

    def outcome(
        self,
        asked: Asked,
        turn: Turn,
        headers: Sequence[tuple[str, str]],
        failure: LlmstreamError | None,
    ) -> Outcome:
        timing = self.timeline.snapshot(
            completion_tokens=turn.usage.completion_tokens if turn.usage else None,
            load_s=turn.timings.load_s,
            prefill_s=turn.timings.prefill_s,
            decode_s=turn.timings.decode_s,
        )
        return Outcome(
            asked=asked,
            turn=turn,
            timing=timing,
            server=recognise(headers, turn.start.fingerprint),
            tag_fault=self.splitter.fault if self.splitter else None,
            local_stop=self.enforcer.local_stop() if self.enforcer else None,
            failure=failure,
            reader_gone=self.reader_gone,
        )


def start(
    shape: Shape,
    body: Mapping[str, Json],
    renderer: Renderer,
    *,
    stops: Sequence[str],
    think_tags: bool,
    content_type: str,
    content_encoding: str,
) -> TurnRun:
    """The pipeline for the answer to the request `body`."""
    frames = shape.decoder(body)
    decoder = StreamDecoder(
        frames, shape.framing, content_type=content_type, content_encoding=content_encoding
    )
    splitter = ThinkSplitter() if think_tags and not names_a_tag(stops) else None
    return TurnRun(decoder=decoder, renderer=renderer, stops=stops, choices=frames.choices, splitter=splitter)
