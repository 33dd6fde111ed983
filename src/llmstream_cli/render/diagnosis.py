"""A diagnosis: one screen for people, one object for programs."""

from collections.abc import Iterator, Sequence

from llmstream_cli.diagnose import Diagnosis, Finding, Probe, StopReport, Verdict
from llmstream_cli.diagnose.places import code_points, escaped
from llmstream_cli.events import EndStatus, FinishReason, Json
from llmstream_cli.outcome import Outcome
from llmstream_cli.render.machine import dump_json, turn_object
from llmstream_cli.render.sanitize import harmless

SCHEMA = "llmstream.diagnosis/1"
_WIDTH = 92
_LONGEST_ANSWER = 240
_MOST_CAUSES = 4
_VERDICTS = {
    Verdict.HONOURED: "HONOURED, and removed from the text",
    Verdict.HONOURED_KEPT: "HONOURED, and kept in the text",
    Verdict.NEVER_GENERATED: "NEVER GENERATED",
    Verdict.IGNORED: "IGNORED",
    Verdict.UNKNOWN: "UNKNOWN",
}
_ENDINGS = {
    FinishReason.EOS: "ended by the model (end of sequence)",
    FinishReason.STOP: 'ended with "stop" (end of sequence or a stop string)',
    FinishReason.STOP_SEQUENCE: "ended by a stop string",
    FinishReason.LENGTH: "ended by the token cap (length)",
    FinishReason.CONTEXT: "ended by the full context window",
    FinishReason.TOOL_CALLS: "ended by a tool call",
    FinishReason.CONTENT_FILTER: "ended by the content filter",
    FinishReason.REFUSAL: "ended by a refusal",
    FinishReason.OTHER: "ended for another reason",
}


def diagnosis_json(diagnosis: Diagnosis, probes: Sequence[Probe]) -> str:
    """One line: ``llmstream.diagnosis/1``."""
    return dump_json(
        {
            "schema": SCHEMA,
            "turn": turn_object(diagnosis.evidence.outcome),
            "stops": [
                {
                    "stop": report.stop,
                    "verdict": report.verdict.value,
                    "causes": [_cause(cause) for cause in report.causes],
                }
                for report in diagnosis.stops
            ],
            "answer": [_cause(finding) for finding in diagnosis.answer],
            "probes": [{"request": probe.request, "ok": probe.ok, "said": probe.said} for probe in probes],
        }
    )


def diagnosis_screen(diagnosis: Diagnosis, probes: Sequence[Probe], *, verbose: int) -> str:
    """For people, every line harmless to a terminal. Probes that found something are told."""
    lines = [*_answer(diagnosis.evidence.outcome)]
    for number, report in enumerate(diagnosis.stops, 1):
        lines += ["", *_stop(report, f"Stop {number} of {len(diagnosis.stops)}")]
    if diagnosis.answer:
        lines += ["", "The answer"]
        for finding in diagnosis.answer:
            lines += _finding(finding)
    shown = [probe for probe in probes if verbose or probe.said]
    if shown:
        lines += ["", "Probes", *(f"  {probe.request}  {probe.said or 'ok'}" for probe in shown)]
    return "".join(f"{harmless(line)}\n" for line in lines)


def _cause(finding: Finding) -> dict[str, Json]:
    return {
        "code": finding.code,
        "confidence": finding.confidence.value,
        "says": finding.says,
        "evidence": list(finding.evidence),
        "advice": finding.advice,
    }


def _answer(outcome: Outcome) -> Iterator[str]:
    turn, text = outcome.turn, outcome.turn.first.text
    used = turn.usage.completion_tokens if turn.usage else None
    tokens = f"{used:,} token{'' if used == 1 else 's'}" if used is not None else f"{len(text):,} characters"
    yield f"Answer: {tokens}, {_ending(outcome)}"
    if turn.first.reasoning:
        yield f"  reasoning  {_one_line(turn.first.reasoning)}"
    if text:
        yield f"  1  {_one_line(text)}"
    for call in turn.first.tool_calls:
        yield f"  tool call  {call.name} {_one_line(call.arguments_text)}"


def _ending(outcome: Outcome) -> str:
    finish, error = outcome.turn.first.finish, outcome.turn.end.error
    if outcome.status is EndStatus.COMPLETE and finish is not None:
        matched = f" {escaped(finish.stop_sequence)}" if finish.stop_sequence is not None else ""
        return f"{_ENDINGS[finish.reason]}{matched}"
    return (
        f"{outcome.status.value}: {error.message}" if error else f"{outcome.status.value}, no finish reason"
    )


def _one_line(text: str) -> str:
    """Beginning and end of a text, line feeds shown."""
    if len(text) > _LONGEST_ANSWER:
        half = _LONGEST_ANSWER // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return text.replace("\r\n", "⏎").replace("\n", "⏎")


def _stop(report: StopReport, title: str) -> Iterator[str]:
    count = len(report.stop)
    points = f": {code_points(report.stop)}" if count else ""
    left = f"{title}   {escaped(report.stop)}   {count} character{'' if count == 1 else 's'}{points}"
    verdict = _VERDICTS[report.verdict]
    yield f"{left}{' ' * max(3, _WIDTH - len(left) - len(verdict))}{verdict}"
    for cause in report.causes[:_MOST_CAUSES]:
        yield from _finding(cause)


def _finding(finding: Finding) -> Iterator[str]:
    yield f"  {finding.confidence.value:<8} {finding.says}"
    for line in finding.evidence:
        yield f"           {line}"
    if finding.advice:
        yield f"           do       {finding.advice}"
