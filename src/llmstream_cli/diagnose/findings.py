"""What a rule finds, and what a rule is. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from llmstream_cli.diagnose.evidence import Evidence


class Confidence(StrEnum):
    """``PROVED`` needs evidence from the server: what it echoed, generated, or refused."""

    PROVED = "proved"
    LIKELY = "likely"
    POSSIBLE = "possible"


RANK = {Confidence.PROVED: 0, Confidence.LIKELY: 1, Confidence.POSSIBLE: 2}


class Verdict(StrEnum):
    """What became of one stop string."""

    HONOURED = "honoured"
    HONOURED_KEPT = "honoured_kept"
    NEVER_GENERATED = "never_generated"
    IGNORED = "ignored"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """How a rule knows that its cause is at work in this answer, and what to do about it here.

    ``came``: what the user meant was generated, and the server went on.
    """

    confidence: Confidence
    evidence: tuple[str, ...]
    advice: str
    came: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause with its signs. ``says``: the cause in one sentence, for people."""

    code: str
    says: str
    confidence: Confidence
    evidence: tuple[str, ...]
    advice: str
    came: bool = False


Check = Callable[[Evidence, str], Signs | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One cause. ``says`` and ``told_by`` are for people: the cause, and how it is recognised."""

    code: str
    says: str
    told_by: str
    check: Check

    def find(self, evidence: Evidence, stop: str) -> Finding | None:
        signs = self.check(evidence, stop)
        if signs is None:
            return None
        return Finding(
            code=self.code,
            says=self.says,
            confidence=signs.confidence,
            evidence=signs.evidence,
            advice=signs.advice,
            came=signs.came,
        )


def rule(*, says: str, told_by: str) -> Callable[[Check], Rule]:
    """Make a rule of its check; the function's name is the code."""

    def make(check: Check) -> Rule:
        return Rule(code=check.__name__, says=says, told_by=told_by, check=check)

    return make


def proved(*evidence: str, advice: str, came: bool = False) -> Signs:
    return Signs(confidence=Confidence.PROVED, evidence=evidence, advice=advice, came=came)


def likely(*evidence: str, advice: str, came: bool = False) -> Signs:
    return Signs(confidence=Confidence.LIKELY, evidence=evidence, advice=advice, came=came)


def possible(*evidence: str, advice: str, came: bool = False) -> Signs:
    return Signs(confidence=Confidence.POSSIBLE, evidence=evidence, advice=advice, came=came)
