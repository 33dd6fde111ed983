"""The black-box probe: does an endpoint honour stop strings at all, keep them, and read which field?

A few short questions to the server itself; works with any server, and generates a few tokens each time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from llmstream_cli.diagnose import Probe, Trial
from llmstream_cli.diagnose.endpoints import PLACES
from llmstream_cli.diagnose.places import escaped
from llmstream_cli.events import EndStatus, Event, Json
from llmstream_cli.fields import look_up
from llmstream_cli.outcome import Outcome
from llmstream_cli.request import merge
from llmstream_cli.session import Plan, ask

MOST_REQUESTS = 3
TRIAL_TOKENS = 32
_WORD = re.compile(r"\b\w{2,}\b")
_SAID = {
    Trial.HONOURED: "cut before it: honoured and removed",
    Trial.KEPT: "cut behind it: honoured and kept",
    Trial.IGNORED: "the same answer again: ignored",
    Trial.UNSTABLE: "another answer: this model does not repeat itself, so nothing is proved",
}


class _Silent:
    def raw(self, data: bytes) -> None:
        pass

    def event(self, event: Event) -> None:
        pass

    def finish(self, outcome: Outcome) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """``trials``: by the field that the word was sent in."""

    trials: Mapping[str, Trial]
    log: tuple[Probe, ...]


def try_stops(plan: Plan, field: str | None) -> TrialResult:
    """Ask `plan`'s question without a stop string, then with a word of the answer as one.

    `field`: where the endpoint should read it; where that has no effect, another likely field is tried.
    """
    plain = _question(plan)
    text = _answer(plain)
    path = plain.http_request().path
    word = _word(text) if text else None
    if text is None or word is None:
        said = "no answer" if text is None else "the answer has no word to stop at"
        return TrialResult(trials={}, log=(Probe(request=f"POST {path} without stop", ok=False, said=said),))
    trials: dict[str, Trial] = {}
    log = [Probe(request=f"POST {path} without stop", ok=True)]
    for place in _fields(field):
        answered = _answer(_with_stop(plain, place, word))
        trial = trials[place] = _compare(text, word, answered)
        log.append(Probe(request=f"POST {path} with {place} [{escaped(word)}]", ok=True, said=_SAID[trial]))
        if trial is not Trial.IGNORED:
            break
    return TrialResult(trials=trials, log=tuple(log))


def _fields(field: str | None) -> tuple[str, ...]:
    other = "stop" if field != "stop" else "stop_sequences"
    return (field, other) if field is not None else (other,)


def _question(plan: Plan) -> Plan:
    """The plan as one that repeats itself: short, without randomness, without any stop string."""
    sampling = replace(plan.request.sampling, max_tokens=TRIAL_TOKENS, temperature=0.0, seed=1, stop=())
    options = plan.request.options
    for place in PLACES:
        if look_up(dict(options), place) is not None:
            options = merge(options, _nested(place, None))
    return replace(
        plan, request=replace(plan.request, sampling=sampling, options=options), enforce_stop=False, retries=0
    )


def _with_stop(plan: Plan, place: str, word: str) -> Plan:
    options = merge(plan.request.options, _nested(place, [word]))
    return replace(plan, request=replace(plan.request, options=options))


def _nested(place: str, value: Json) -> Mapping[str, Json]:
    """An object with `value` at the dotted path `place`."""
    for name in reversed(place.split(".")):
        value = {name: value}
    return dict(value)


def _answer(plan: Plan) -> str | None:
    outcome = ask(plan, _Silent())
    return outcome.turn.first.text if outcome.status is EndStatus.COMPLETE else None


def _word(text: str) -> str | None:
    """A word near the middle that stands nowhere before, and not at either end."""
    words = [found for found in _WORD.finditer(text) if text.find(found[0]) == found.start()]
    inner = [found for found in words if found.start() > 0 and found.end() < len(text)]
    return min(inner, key=lambda found: abs(found.start() - len(text) // 2))[0] if inner else None


def _compare(text: str, word: str, answered: str | None) -> Trial:
    at = text.find(word)
    if answered is None:
        return Trial.UNSTABLE
    if answered == text:
        return Trial.IGNORED
    if answered.rstrip() == text[:at].rstrip():
        return Trial.HONOURED
    return Trial.KEPT if answered == text[: at + len(word)] else Trial.UNSTABLE
