"""Causes that lie in how one server works."""

import re

from llmstream_cli.diagnose.endpoints import strings
from llmstream_cli.diagnose.evidence import Evidence, Trial
from llmstream_cli.diagnose.findings import Signs, likely, possible, proved, rule
from llmstream_cli.diagnose.places import escaped, window
from llmstream_cli.diagnose.rules.tokens import MARKER
from llmstream_cli.events import FinishReason
from llmstream_cli.fields import compact, look_up

_LIMIT_FIRST = frozenset({"tgi", "sglang", "ollama"})
_TURN_MARKER = re.compile(r"^(?:User|Assistant|Human|system|user|assistant):", re.MULTILINE)
_OLD_BUILD = 4600
"""llama.cpp builds around b4599 missed stop strings of several tokens (issue 11538)."""


@rule(
    says="It stopped correctly; this server leaves the stop string in the text.",
    told_by="the finish reason names a stop, and the answer ends with the string (TGI; an option elsewhere)",
)
def kept_in_text(evidence: Evidence, stop: str) -> Signs | None:
    stopped = evidence.reason in (FinishReason.STOP_SEQUENCE, FinishReason.STOP)
    if not stop or not stopped or not evidence.text.endswith(stop):
        return None
    line = f"the answer ends with it: {window(evidence.text, len(evidence.text) - len(stop), len(stop))}"
    advice = "Trim it: llmstream ask does (--enforce-stop)."
    return (
        proved(line, advice=advice)
        if evidence.reason is FinishReason.STOP_SEQUENCE
        else likely(line, advice=advice)
    )


@rule(
    says="The stop strings of the request replaced those of the model.",
    told_by="Ollama's /api/show lists stop strings that the request lacks; markers of turns in the answer",
)
def model_stops_replaced(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    missing = [own for own in evidence.probed.model_stops if own not in evidence.stops]
    if not missing or not evidence.stops:
        return None
    lines = [f"the model's own stop strings: {compact(list(evidence.probed.model_stops))}"]
    advice = "Send both: " + " ".join(f"--stop {escaped(own)}" for own in missing)
    if any(own in evidence.text for own in missing):
        return proved(*lines, "the answer runs past them", advice=advice)
    if MARKER.search(evidence.text) or _TURN_MARKER.search(evidence.text):
        return likely(*lines, "the answer holds markers of further turns", advice=advice)
    return possible(*lines, advice=advice)


@rule(
    says="The token cap was reached on the very token that completed the stop string, and the cap won.",
    told_by="the answer ends with the string, the finish reason is length (TGI, SGLang, Ollama before 0.30)",
)
def limit_coincided(evidence: Evidence, stop: str) -> Signs | None:
    if not stop or evidence.reason is not FinishReason.LENGTH or not evidence.text.endswith(stop):
        return None
    used = evidence.completion_tokens or "?"
    line = f"the answer ends with it, after {used} tokens, and the server says length"
    sure = evidence.server.kind in _LIMIT_FIRST
    advice = "Raise -n by one or two."
    return proved(line, advice=advice) if sure else likely(line, advice=advice)


@rule(
    says="Something between here and the server drops or renames the field.",
    told_by="the server went on past the string in the right field, and its own settings lack it",
)
def proxy_dropped(evidence: Evidence, stop: str) -> Signs | None:
    if not evidence.went_past(stop) or evidence.field is None or evidence.body.get("min_tokens"):
        return None
    if evidence.echoed(stop) or stop not in strings(look_up(dict(evidence.body), evidence.field)):
        return None
    advice = "Ask the server directly, and look at the gateway's settings (drop_params, mapping)."
    if evidence.effective_stops is not None:
        own = compact(list(evidence.effective_stops))
        return possible(
            f"sent in `{evidence.field}`; the server's own settings say stop = {own}", advice=advice
        )
    if evidence.probed.trials.get(evidence.field) is Trial.IGNORED:
        return possible(f"`{evidence.field}` has no effect at this address", advice=advice)
    if evidence.server.kind is None:
        return possible("the answer does not say which server wrote it", advice=advice)
    return None


@rule(
    says="This build of the server has a bug in its stop strings.",
    told_by="llama.cpp before b4600 misses strings of several tokens; the answer runs past the string",
)
def old_build(evidence: Evidence, stop: str) -> Signs | None:
    version = re.fullmatch(r"b(\d+)", evidence.server.version or "")
    if evidence.server.kind != "llama.cpp" or version is None or not evidence.went_past(stop):
        return None
    if int(version[1]) >= _OLD_BUILD:
        return None
    return likely(f"llama.cpp {version[0]}; the answer runs past the string", advice="Upgrade llama.cpp.")
