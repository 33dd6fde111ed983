"""Causes that lie in the tokens: control tokens, and where one token ends."""

import re

from llmstream_cli.diagnose.evidence import Evidence
from llmstream_cli.diagnose.findings import Signs, likely, possible, proved, rule
from llmstream_cli.diagnose.places import escaped, window
from llmstream_cli.events import FinishReason

MARKER = re.compile(r"<\|[a-z0-9_]{2,32}\|>|<(?:start|end)_of_turn>|</s>")
"""What looks like a control token of some chat template."""

_LONGEST_AT_TGI = 200
_LONGEST_AT_SGLANG = 60


@rule(
    says="It is a control token, which the server does not write into the text that is searched.",
    told_by="the tokenizer makes one special token of it; the ids generated hold it, the text does not",
)
def special_token_hidden(evidence: Evidence, stop: str) -> Signs | None:
    tokens = evidence.probed.tokens.get(stop)
    if stop in evidence.text or evidence.matched == stop:
        return None
    if tokens is None:
        if not MARKER.fullmatch(stop) or evidence.reason is FinishReason.STOP_SEQUENCE:
            return None
        return possible(
            f"{escaped(stop)} looks like a control token", advice=_show_token(evidence, stop, None)
        )
    if not tokens.special or len(tokens.ids) != 1:
        return None
    number = tokens.ids[0]
    line = f"the server's tokenizer makes one token of it: {number}"
    advice = _show_token(evidence, stop, number)
    if number in evidence.generated_ids:
        at = evidence.generated_ids.index(number) + 1
        return proved(
            line, f"generated as token {at} of the answer, not in its text", advice=advice, came=True
        )
    if evidence.hidden_tokens:
        hidden = f"{evidence.hidden_tokens} of the tokens generated do not show in the text"
        return likely(line, hidden, advice=advice, came=True)
    return possible(line, "the answer's text does not show it", advice=advice)


@rule(
    says="The chat template's end marker is no token of this model: it is typed out, and the model goes on.",
    told_by="the answer holds text that looks like a control token; the tokenizer makes several tokens of it",
)
def marker_not_a_token(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    for found in MARKER.finditer(evidence.text):
        if found.end() == len(evidence.text):
            break
        tokens = evidence.probed.tokens.get(found[0])
        lines = [f"in the answer: {window(evidence.text, found.start(), len(found[0]))}"]
        advice = f"Add --stop {escaped(found[0])}, or start the server with the template of the model."
        if tokens is not None and len(tokens.ids) > 1:
            eos = f"; the model's own end is {escaped(evidence.probed.eos)}" if evidence.probed.eos else ""
            lines.append(f"the server's tokenizer makes {len(tokens.ids)} tokens of it{eos}")
            return proved(*lines, advice=advice)
        if tokens is None:
            return possible(*lines, advice=advice)
    return None


@rule(
    says="TGI looks only at the end of the text after each token: a stop string inside a token is not seen.",
    told_by="the server is TGI, and the answer goes on right behind the stop string",
)
def token_end_only(evidence: Evidence, stop: str) -> Signs | None:
    if evidence.server.kind != "tgi" or not evidence.went_past(stop):
        return None
    at = evidence.text.find(stop)
    return likely(
        f"in the answer at {at}: {window(evidence.text, at, len(stop))}",
        advice="Choose a stop string that ends where a token ends, or cut on the client (--enforce-stop).",
    )


@rule(
    says="The stop string is longer than what the server looks back over.",
    told_by="the answer has it; more than 200 characters at TGI, a long tail of tokens at SGLang",
)
def stop_too_long(evidence: Evidence, stop: str) -> Signs | None:
    limit = {"tgi": _LONGEST_AT_TGI, "sglang": _LONGEST_AT_SGLANG}.get(evidence.server.kind or "")
    if limit is None or len(stop) <= limit or not evidence.went_past(stop):
        return None
    return likely(f"{len(stop)} characters", advice="Use a shorter stop string.")


def _show_token(evidence: Evidence, stop: str, number: int | None) -> str:
    match evidence.server.kind:
        case "llama.cpp":
            # The chat endpoint overwrites the list.
            return (
                f"-o 'preserved_tokens=[{escaped(stop)}]' with --shape llamacpp or openai-completions, "
                "or start the server with --special"
            )
        case "vllm":
            shown = number if number is not None else "ID"
            return f"-o 'stop_token_ids=[{shown}]', or -o skip_special_tokens=false"
        case "ollama":
            return "Leave it out: the model's own end of sequence stops there."
        case _:
            return "Stop at the token's id if the server takes ids, or choose visible text."
