"""The diagnosis of one answer: a verdict and ranked causes for every stop string. Pure."""

from dataclasses import dataclass

from llmstream_cli.diagnose.evidence import Evidence
from llmstream_cli.diagnose.findings import RANK, Confidence, Finding, Verdict
from llmstream_cli.diagnose.rules import ANSWER_RULES, STOP_RULES
from llmstream_cli.diagnose.rules.text import never_generated
from llmstream_cli.diagnose.verdict import verdict
from llmstream_cli.notices import notices

_TOLD_PER_STOP = frozenset({"stop_ignored", "stop_enforced_locally", "usage_missing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    stop: str
    verdict: Verdict
    causes: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """``answer``: what is to be said of the answer as a whole."""

    evidence: Evidence
    stops: tuple[StopReport, ...]
    answer: tuple[Finding, ...]


def diagnose(evidence: Evidence) -> Diagnosis:
    """Apply every rule."""
    stops = tuple(_stop(evidence, stop) for stop in evidence.stops)
    found = [finding for rule in ANSWER_RULES if (finding := rule.find(evidence, ""))]
    return Diagnosis(evidence=evidence, stops=stops, answer=tuple(_ranked(found) + _warnings(evidence)))


def _stop(evidence: Evidence, stop: str) -> StopReport:
    causes = _ranked([finding for rule in STOP_RULES if (finding := rule.find(evidence, stop))])
    if any(cause.came for cause in causes):
        # What was meant was generated, in another form than asked for: that is the cause.
        causes = [cause for cause in causes if cause.code != never_generated.code]
    return StopReport(stop=stop, verdict=verdict(evidence, stop, causes), causes=tuple(causes))


def _ranked(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: RANK[finding.confidence])


def _warnings(evidence: Evidence) -> list[Finding]:
    """What every answer is warned of: cut, empty, incomplete, control tokens. The server's bytes prove it."""
    return [
        Finding(code=notice.code, says=notice.message, confidence=Confidence.PROVED, evidence=(), advice="")
        for notice in notices(evidence.outcome)
        if notice.code not in _TOLD_PER_STOP
    ]
