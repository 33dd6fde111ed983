"""Stop strings that acted, but not as meant."""

from llmstream_cli.diagnose.evidence import Evidence
from llmstream_cli.diagnose.findings import Signs, likely, possible, proved, rule
from llmstream_cli.diagnose.places import escaped
from llmstream_cli.events import FinishReason
from llmstream_cli.fields import compact
from llmstream_cli.thinking import TagFault

_STOPPED = (FinishReason.STOP, FinishReason.STOP_SEQUENCE)
_TAIL = 40


@rule(
    says="It matched inside the reasoning, so there is no answer.",
    told_by="reasoning without an end, or without text after it; the server names the string",
)
def matched_in_reasoning(evidence: Evidence, stop: str) -> Signs | None:
    if evidence.reason not in _STOPPED:
        return None
    if evidence.outcome.tag_fault is TagFault.UNCLOSED:
        lines = ("the answer opened <think> and never closed it", _said(evidence))
    elif evidence.reasoning and not evidence.text:
        lines = (f"{len(evidence.reasoning):,} characters of reasoning, no text", _said(evidence))
    else:
        return None
    advice = "Choose a rarer stop string, or turn reasoning off at the server."
    return proved(*lines, advice=advice) if evidence.matched == stop else possible(*lines, advice=advice)


@rule(
    says="It matched inside a tool call and cut it.",
    told_by="the arguments of a tool call are no JSON, and the answer was not cut by a limit",
)
def cut_tool_call(evidence: Evidence, stop: str) -> Signs | None:
    cut = [call for call in evidence.turn.first.tool_calls if not call.valid]
    if not cut or evidence.turn.truncated or not evidence.complete:
        return None
    lines = (f"the arguments of {cut[-1].name or '?'} end with {escaped(cut[-1].arguments_text[-_TAIL:])}",)
    advice = "Choose a stop string that cannot stand in JSON or tool markup."
    return proved(*lines, advice=advice) if evidence.matched == stop else likely(*lines, advice=advice)


@rule(
    says="The first thing generated was the stop string, so the answer is empty.",
    told_by="no text, one or two tokens, and a stop; the end of the prompt as the template writes it",
)
def matched_at_once(evidence: Evidence, stop: str) -> Signs | None:
    if not stop or evidence.text or evidence.reasoning or evidence.reason not in _STOPPED:
        return None
    if evidence.turn.first.tool_calls:
        return None
    lines = ["the answer is empty", _said(evidence)]
    if evidence.probed.prompt is not None:
        lines.append(f"the prompt ends with {escaped(evidence.probed.prompt[-_TAIL:])}")
    advice = "Choose a stop string that the answer does not begin with."
    return proved(*lines, advice=advice) if evidence.matched == stop else possible(*lines, advice=advice)


@rule(
    says="The end of the text is lost: it was held back as a possible stop string when the cap was reached.",
    told_by="llama.cpp streaming, cut by the cap; the ids generated spell more than was sent",
)
def tail_lost(evidence: Evidence, stop: str) -> Signs | None:
    if evidence.server.kind != "llama.cpp" or evidence.reason is not FinishReason.LENGTH or len(stop) < 2:
        return None
    advice = "Repeat with --no-stream, or raise -n."
    whole = evidence.probed.detokenized or ""
    lost = whole[len(evidence.text) :] if whole.startswith(evidence.text) else ""
    if lost and stop.startswith(lost):
        return proved(f"generated, and not in the text: {escaped(lost)}", advice=advice)
    if evidence.hidden_tokens and evidence.body.get("stream") is True and not whole:
        line = f"{evidence.hidden_tokens} of the tokens generated were not sent"
        return possible(line, advice=advice)
    return None


@rule(
    says="A stop string of the server or the model ended the answer, not one of yours.",
    told_by="the server names a match, or lists strings in its settings, that the request does not have",
)
def default_stops(evidence: Evidence, stop: str) -> Signs | None:
    matched = evidence.matched
    if matched is not None and matched not in evidence.stops:
        own = compact(list(evidence.effective_stops or (matched,)))
        advice = "Look at the server's options (-r), its template and the model's file for this string."
        return proved(f"matched {escaped(matched)}; the server's stop strings: {own}", advice=advice)
    if stop or evidence.reason is not FinishReason.STOP or not evidence.probed.model_stops:
        return None
    own = compact(list(evidence.probed.model_stops))
    return possible(f"the model's own stop strings: {own}", advice="A list of your own replaces them.")


def _said(evidence: Evidence) -> str:
    if evidence.finish is None:
        return "no finish reason"
    word = escaped(evidence.finish.raw_reason or "")
    matched = evidence.matched
    return f"the server says {word}" + (f", matched {escaped(matched)}" if matched is not None else "")
