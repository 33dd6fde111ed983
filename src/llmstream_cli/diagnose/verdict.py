"""What became of one stop string. Pure."""

from collections.abc import Sequence

from llmstream_cli.diagnose.evidence import Evidence
from llmstream_cli.diagnose.findings import Finding, Verdict
from llmstream_cli.events import FinishReason


def verdict(evidence: Evidence, stop: str, causes: Sequence[Finding]) -> Verdict:
    """By what the server says, then by the text; what merely looks like an end proves nothing."""
    text = evidence.text
    if not stop:
        at_once = not text and evidence.reason in (FinishReason.STOP, FinishReason.STOP_SEQUENCE)
        return Verdict.HONOURED if at_once else Verdict.UNKNOWN
    if evidence.matched == stop:
        return Verdict.HONOURED_KEPT if text.endswith(stop) else Verdict.HONOURED
    if evidence.went_past(stop) or any(cause.came for cause in causes):
        return Verdict.IGNORED
    if text.endswith(stop):
        return _at_the_end(evidence.reason)
    if not evidence.complete or evidence.reason is None:
        return Verdict.UNKNOWN
    if evidence.reason is FinishReason.TOOL_CALLS and "stop_type" not in evidence.turn.detail:
        return Verdict.UNKNOWN
    if evidence.reason is FinishReason.STOP and evidence.server.kind != "vllm":
        return Verdict.UNKNOWN
    if evidence.reason is FinishReason.STOP_SEQUENCE and evidence.matched is None:
        return Verdict.HONOURED if len(evidence.stops) == 1 else Verdict.UNKNOWN
    return Verdict.NEVER_GENERATED


def _at_the_end(reason: FinishReason | None) -> Verdict:
    """The answer ends with the stop string, and the server does not name it as the cause."""
    match reason:
        case FinishReason.STOP_SEQUENCE:
            return Verdict.HONOURED_KEPT
        case FinishReason.LENGTH | FinishReason.CONTEXT | FinishReason.EOS:
            return Verdict.IGNORED
        case _:
            return Verdict.UNKNOWN
