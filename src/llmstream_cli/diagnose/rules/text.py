"""Causes that the answer's own text shows."""

from llmstream_cli.diagnose.evidence import Evidence, Trial
from llmstream_cli.diagnose.findings import Signs, likely, possible, proved, rule
from llmstream_cli.diagnose.places import code_points, escaped, near_misses, unescaped, window
from llmstream_cli.events import FinishReason
from llmstream_cli.fields import compact

_SAYS_WHY = (FinishReason.EOS, FinishReason.LENGTH, FinishReason.CONTEXT, FinishReason.STOP_SEQUENCE)
_ENDINGS = {
    FinishReason.EOS: "the model ended by itself (end of sequence)",
    FinishReason.LENGTH: "the token cap ended it (length)",
    FinishReason.CONTEXT: "the full context window ended it",
    FinishReason.STOP_SEQUENCE: "another stop string ended it",
}


@rule(
    says="The answer has nearly that text; matching is exact, byte for byte.",
    told_by="the answer has it in other case, quotes, white space, line ends or Unicode form",
)
def near_miss(evidence: Evidence, stop: str) -> Signs | None:
    miss = next(near_misses(evidence.generated, stop), None)
    if miss is None or evidence.matched == stop:
        return None
    what, piece = miss
    at = evidence.generated.find(piece)
    lines = [
        f"asked for {escaped(stop)}, the answer has {escaped(piece)}: they differ in {what}",
        f"in the answer at {at}: {window(evidence.generated, at, len(piece))}",
    ]
    if what not in ("upper and lower case", "the amount of white space"):
        lines.append(f"code points asked for {code_points(stop)}, in the answer {code_points(piece)}")
    advice = f"--stop {escaped(piece)}"
    if evidence.echoed(stop):
        own = compact(list(evidence.effective_stops or ()))
        return proved(*lines, f"the server's own settings say stop = {own}", advice=advice, came=True)
    return likely(*lines, advice=advice, came=True)


@rule(
    says="The stop text was never generated.",
    told_by="the whole answer lacks it, in any spelling, and the server says what else ended it",
)
def never_generated(evidence: Evidence, stop: str) -> Signs | None:
    if not stop or not evidence.complete or stop in evidence.generated or evidence.matched == stop:
        return None
    if next(near_misses(evidence.generated, stop), None) or _hidden(evidence, stop):
        return None
    meant = unescaped(stop)
    if (meant and meant in evidence.generated) or evidence.reason not in _SAYS_WHY:
        return None
    advice = "The model did not write it: ask for it in the prompt, or raise -n."
    line = f"{len(evidence.generated):,} characters without it; {_ENDINGS[_reason(evidence)]}"
    return proved(line, advice=advice)


@rule(
    says="It stands in the prompt only; only generated text is matched.",
    told_by="the prompt has the stop string and the answer does not",
)
def only_in_prompt(evidence: Evidence, stop: str) -> Signs | None:
    if not stop.strip() or stop in evidence.generated or stop not in evidence.prompt_text:
        return None
    if evidence.matched == stop or evidence.reason not in _SAYS_WHY:
        return None
    at = evidence.prompt_text.find(stop)
    return possible(
        f"in the prompt: {window(evidence.prompt_text, at, len(stop))}",
        advice="Nothing to do: a stop string acts on the answer.",
    )


@rule(
    says='The server says "stop" both for the end of the sequence and for a stop string.',
    told_by="the finish reason is `stop`, nothing names a match, and the answer lacks the string",
)
def not_distinguishable(evidence: Evidence, stop: str) -> Signs | None:
    if evidence.reason is not FinishReason.STOP or stop in evidence.text or not evidence.complete:
        return None
    if evidence.server.kind == "vllm":
        return None
    advice = "Ask with --probe, which proves whether this endpoint honours stop strings."
    if evidence.server.kind == "llama.cpp":
        advice = "Ask with -o verbose=true on the OpenAI endpoints, or with --shape llamacpp."
    if evidence.field and evidence.probed.trials.get(evidence.field) in (Trial.HONOURED, Trial.KEPT):
        advice = "Nothing: --probe proved that this endpoint honours stop strings."
    raw = evidence.finish.raw_reason if evidence.finish else None
    return possible(f"the server's word is {escaped(raw or '')}", advice=advice)


@rule(
    says="The stream ended before the server said that the answer was over.",
    told_by="no terminal event, a time-out, or an interruption",
)
def ended_early(evidence: Evidence, stop: str) -> Signs | None:
    if evidence.complete or evidence.outcome.failure is not None or evidence.went_past(stop):
        return None
    error = evidence.turn.end.error
    how = error.message if error else f"the stream is {evidence.outcome.status}"
    return proved(how, advice="Repair the connection first: this says nothing of the stop string.")


def _hidden(evidence: Evidence, stop: str) -> bool:
    """It is a control token, which no text shows."""
    tokens = evidence.probed.tokens.get(stop)
    return tokens is not None and tokens.special


def _reason(evidence: Evidence) -> FinishReason:
    return evidence.reason or FinishReason.OTHER
