"""Causes that stand in the request."""

from llmstream_cli.diagnose.endpoints import placed, stops_in, strings
from llmstream_cli.diagnose.evidence import Evidence, Trial
from llmstream_cli.diagnose.findings import Signs, likely, possible, proved, rule
from llmstream_cli.diagnose.places import escaped, positions, unescaped, window
from llmstream_cli.events import FinishReason
from llmstream_cli.fields import as_int, compact, look_up

_STOP_LIMITS = {"vllm": 4, "tgi": 4}
"""The usual limits (VLLM_MAX_STOP_STRINGS, --max-stop-sequences); more is an error."""
_CUT_HERE = "llmstream ask cuts the answer there by itself (--enforce-stop, the default)."
_GRAMMARS = (
    "grammar",
    "json_schema",
    "response_format",
    "format",
    "structured_outputs",
    "parameters.grammar",
)


@rule(
    says="The stop list was sent where this endpoint does not look; it was dropped without an error.",
    told_by="the field sent against the one the endpoint reads; llama.cpp's own settings lack the string",
)
def wrong_field(evidence: Evidence, stop: str) -> Signs | None:
    sent = [place for place, value in placed(evidence.body) if stop in strings(value)]
    if not sent or evidence.field is None or evidence.field in sent:
        return None
    if evidence.echoed(stop):
        return None
    lines = [f"sent in `{sent[0]}`; this endpoint reads `{evidence.field}`"]
    advice = f"Send it as `{evidence.field}`: --stop puts it there."
    if evidence.probed.trials.get(evidence.field) in (Trial.HONOURED, Trial.KEPT):
        return proved(*lines, f"--probe: a word sent as `{evidence.field}` stopped it", advice=advice)
    if evidence.effective_stops is not None:
        own = compact(list(evidence.effective_stops))
        return proved(*lines, f"the server's own settings say stop = {own}", advice=advice)
    return likely(*lines, advice=advice)


@rule(
    says="The stop string was not sent at all.",
    told_by="the request holds it nowhere: the API has no stop parameter, or takes fewer",
)
def not_sent(evidence: Evidence, stop: str) -> Signs | None:
    if not stop or stop in stops_in(evidence.body):
        return None
    shape = evidence.outcome.asked.shape
    if evidence.field is None or evidence.field == evidence.shape_field:
        return proved(f"the request for {shape} holds it nowhere", advice=_CUT_HERE)
    return proved(
        f"the API of {shape} has no stop parameter; this server reads `{evidence.field}` all the same",
        advice=f"-o '{evidence.field}=[{escaped(stop)}]'",
    )


@rule(
    says="This endpoint has no stop parameter at all.",
    told_by="the endpoint (Responses at Ollama, LM Studio's /api/v1/chat), Ollama's model format, --probe",
)
def no_stop_support(evidence: Evidence, stop: str) -> Signs | None:
    form = evidence.probed.model_format
    advice = f"Use the server's chat/completions endpoint, or cut on the client: {_CUT_HERE}"
    if evidence.server.kind == "ollama" and form not in (None, "gguf"):
        line = f"/api/show: the model's format is {form}; Ollama reads stop strings for gguf only"
        return likely(line, advice=_CUT_HERE) if evidence.went_past(stop) else None
    if evidence.field is None:
        return likely(f"{evidence.path} reads no stop list", advice=advice)
    trials = evidence.probed.trials
    if trials.get(evidence.field) is Trial.IGNORED and set(trials.values()) == {Trial.IGNORED}:
        line = f"a word of the server's own answer, sent back as `{evidence.field}`, changed nothing"
        return proved(line, advice=_CUT_HERE)
    return None


@rule(
    says="The stop list has a type that the server drops or refuses.",
    told_by="the request: neither a string nor a list of strings; Ollama and TGI take no bare string",
)
def wrong_type(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    value = look_up(dict(evidence.body), evidence.field) if evidence.field else None
    if value is None:
        return None
    bare_refused = isinstance(value, str) and evidence.field in ("options.stop", "parameters.stop")
    well_formed = isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    )
    if well_formed and not bare_refused:
        return None
    line = f"sent     `{evidence.field}` = {compact(value)}"
    advice = "Send a list of strings: --stop does."
    error = evidence.turn.end.error
    if error is not None and error.http_status is not None:
        return proved(line, f"the server refused it: {error.message}", advice=advice)
    return likely(line, advice=advice)


@rule(
    says="An empty stop string ends the answer at once, or is refused.",
    told_by="the stop list holds an empty string",
)
def empty_stop(evidence: Evidence, stop: str) -> Signs | None:
    if stop:
        return None
    advice = "Leave the empty string out."
    error = evidence.turn.end.error
    if error is not None:
        return proved('sent     ""', f"the server said: {error.message}", advice=advice)
    if not evidence.text and evidence.reason in (FinishReason.STOP_SEQUENCE, FinishReason.STOP):
        return proved('sent     ""', "the answer is empty and ended as if a stop matched", advice=advice)
    return possible('sent     ""', advice=advice)


@rule(
    says="There are more stop strings than this server takes.",
    told_by="the number against the server's limit (4 for vLLM and TGI; TGI's /info says it)",
)
def too_many_stops(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    limit = evidence.probed.max_stops
    if limit is None:
        limit = _STOP_LIMITS.get(evidence.server.kind or "")
    if limit is None or len(evidence.stops) <= limit:
        return None
    line = f"sent     {len(evidence.stops)}; the server takes {limit}"
    advice = f"Send at most {limit}. {_CUT_HERE}"
    error = evidence.turn.end.error
    if error is not None and "stop" in error.message.lower():
        return proved(line, f"the server said: {error.message}", advice=advice)
    return likely(line, advice=advice)


@rule(
    says="A backslash and a letter were sent, not the control character that they spell.",
    told_by="the stop string holds an escape as two characters; the answer holds the real character",
)
def literal_escape(evidence: Evidence, stop: str) -> Signs | None:
    meant = unescaped(stop)
    if meant is None or stop in evidence.generated:
        return None
    field = evidence.field or "stop"
    lines = [f'sent     "{field}": [{escaped(stop)}]']
    if evidence.echoed(stop):
        lines.append(f"the server's own settings say stop = {compact(list(evidence.effective_stops or ()))}")
    at = positions(evidence.generated, meant)
    if at:
        where = ", ".join(map(str, at))
        lines.append(f"the answer has {escaped(meant)} at {where}, the two characters nowhere")
    advice = f"--stop {_shell(stop)}   (decoded; --stop-raw is taken literally)"
    if at and evidence.echoed(stop):
        return proved(*lines, advice=advice, came=True)
    if at:
        return likely(*lines, advice=advice, came=True)
    return possible(*lines, advice=advice)


@rule(
    says="The first tokens do not count: `min_tokens` swallowed the stop string.",
    told_by="the request has `min_tokens` (vLLM), and the stop string stands early in the answer",
)
def min_tokens(evidence: Evidence, stop: str) -> Signs | None:
    least = as_int(evidence.body.get("min_tokens"))
    if not least or not evidence.went_past(stop):
        return None
    at = evidence.text.find(stop)
    return likely(
        f"sent     min_tokens = {least}",
        f"in the answer at {at}: {window(evidence.text, at, len(stop))}",
        advice="Lower min_tokens.",
    )


@rule(
    says="`ignore_eos` is set: the model cannot end by itself.",
    told_by="the request has `ignore_eos`, and the answer ended at a limit",
)
def ignore_eos(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    limits = (FinishReason.LENGTH, FinishReason.CONTEXT)
    if evidence.body.get("ignore_eos") is not True or evidence.reason not in limits:
        return None
    return proved("sent     ignore_eos = true", advice="Leave ignore_eos out.")


@rule(
    says="The answer is constrained to JSON or a grammar, which writes the stop string escaped.",
    told_by="the request has a grammar or schema; the answer has the escaped form",
)
def grammar_escapes(evidence: Evidence, stop: str) -> Signs | None:
    grammar = next((name for name in _GRAMMARS if look_up(dict(evidence.body), name)), None)
    form = escaped(stop)[1:-1]
    if grammar is None or form == stop or form not in evidence.text:
        return None
    if stop in evidence.text or evidence.matched == stop:
        return None
    at = evidence.text.find(form)
    make = proved if evidence.echoed(stop) else likely
    return make(
        f"sent     {grammar}",
        f"in the answer: {window(evidence.text, at, len(form))}",
        advice=f"Use the escaped form: --stop-raw {_shell(form)}",
        came=True,
    )


def _shell(stop: str) -> str:
    return "'" + stop.replace("'", "'\\''") + "'"
