"""Evidence to diagnose in tests: an answer in a few words, or a recording."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llmstream_cli.capture import read_capture
from llmstream_cli.diagnose import Diagnosis, Evidence, Probed, Tokens, diagnose, prompt_in, stops_in
from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    KeepAlive,
    LogprobsDelta,
    ReasoningDelta,
    ServerDetail,
    ServerTimings,
    StreamError,
    TextDelta,
    TimingsReport,
    ToolCallDelta,
    Usage,
    UsageReport,
)
from llmstream_cli.identity import ServerIdentity
from llmstream_cli.shapes import get_shape
from llmstream_cli.timing import Timing
from tests.support.captures import ROOT
from tests.support.outcomes import make_outcome, replayed


def make_evidence(
    text: str = "",
    *stops: str,
    reason: FinishReason | None = FinishReason.EOS,
    raw: str | None = None,
    matched: str | None = None,
    body: Mapping[str, Any] | None = None,
    kind: str | None = None,
    version: str | None = None,
    shape: str = "openai-chat",
    path: str = "/v1/chat/completions",
    reasoning: str = "",
    arguments: str | None = None,
    settings: Mapping[str, Any] | None = None,
    ids: tuple[int, ...] = (),
    tokens: int | None = None,
    prompt: str = "",
    status: EndStatus = EndStatus.COMPLETE,
    error: StreamError | None = None,
    timing: Timing | None = None,
    timings: ServerTimings | None = None,
    keep_alives: int = 0,
    prompt_tokens: int | None = None,
    tokens_: Mapping[str, Tokens] | None = None,
    prompt_: str | None = None,
    **probed: Any,
) -> Evidence:
    """An answer `text` to a request with `stops`; `tokens_`, `prompt_` and `probed`: fields of `Probed`."""
    events: list[Event] = [ReasoningDelta(text=reasoning)] if reasoning else []
    events += [TextDelta(text=text)] if text else []
    if arguments is not None:
        events.append(ToolCallDelta(call=0, id="1", name="look", arguments=arguments))
    if settings is not None:
        events.append(ServerDetail(data={"generation_settings": settings}))
    if ids:
        events.append(LogprobsDelta(data=[{"id": number} for number in ids]))
    if reason is not None:
        events.append(Finish(reason=reason, raw_reason=raw, stop_sequence=matched))
    if tokens is not None:
        usage = Usage(completion_tokens=tokens, prompt_tokens=prompt_tokens)
        events.append(UsageReport(usage=usage))
    if timings is not None:
        events.append(TimingsReport(timings=timings))
    events += [KeepAlive()] * keep_alives
    outcome = make_outcome(*events, status=status, error=error, stop=stops, timing=timing)
    outcome = replace(outcome, asked=replace(outcome.asked, shape=shape))
    return Evidence(
        outcome=outcome,
        path=path,
        body={"stop": list(stops)} if body is None else body,
        stops=stops,
        server=ServerIdentity(kind=kind, version=version),
        shape_field=get_shape(shape).stop_field,
        prompt_text=prompt,
        probed=Probed(tokens=tokens_ or {}, prompt=prompt_, **probed),
    )


def recorded(name: str) -> Diagnosis:
    """The diagnosis of the recording called e.g. ``vllm/chat_stop_string_stream``."""
    capture = read_capture(ROOT / f"{name}.jsonl")
    outcome = replayed(name)
    return diagnose(
        Evidence(
            outcome=outcome,
            path=capture.path,
            body=capture.body,
            stops=stops_in(capture.body),
            server=outcome.server,
            shape_field=get_shape(outcome.asked.shape).stop_field,
            prompt_text=prompt_in(capture.body),
        )
    )
