"""The warnings that an outcome deserves: what is wrong with the answer, and what to do. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llmstream_cli.events import EndStatus, FinishReason
from llmstream_cli.outcome import Outcome
from llmstream_cli.turn import Turn

_CONTROL_TOKEN = re.compile(
    r"<\|[a-z_]{2,24}\|>|</?s>|<(?:start|end)_of_turn>|<\|?(?:im_start|im_end|eot_id)\|?>|\[/?INST\]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """``code`` is for programs and fixed; ``message`` is for people."""

    code: str
    message: str


def notices(outcome: Outcome) -> tuple[Notice, ...]:
    """All warnings, the most important first."""
    rules = (_incomplete, _truncated, _stops, _content, _stream)
    return tuple(notice for rule in rules for notice in rule(outcome))


def _incomplete(outcome: Outcome) -> Iterator[Notice]:
    turn = outcome.turn
    if outcome.failure is not None or outcome.status is not EndStatus.INCOMPLETE:
        return
    error = turn.end.error
    if turn.events == 0 and error is None:
        what = "the stream ended without a single event"
    elif error is not None and error.kind not in ("connection_closed", "connection_reset"):
        what = error.message
    else:
        missing = _missing_proof(outcome)
        how = (
            "the connection was reset"
            if error and error.kind == "connection_reset"
            else "the connection closed"
        )
        what = f"{how} after {_count(turn.events, 'event')} without {missing}"
    cut_calls = [call.name or "?" for call in turn.first.tool_calls if not call.valid]
    inside = f" It broke off inside the tool call {cut_calls[-1]}." if cut_calls else ""
    yield Notice(code="incomplete", message=f"Incomplete: {what}.{inside} {_kept(turn)}")


def _missing_proof(outcome: Outcome) -> str:
    marker = outcome.asked.terminal_marker
    return f"a finish reason or {marker}" if marker else "a finish reason"


def _truncated(outcome: Outcome) -> Iterator[Notice]:
    turn = outcome.turn
    finish = turn.first.finish
    if finish is None:
        return
    used = turn.usage.completion_tokens if turn.usage else None
    if finish.reason is FinishReason.CONTEXT:
        yield Notice(
            code="context_exhausted",
            message="Cut off: the context window is full. Shorten the conversation or start the server "
            "with a larger context.",
        )
    elif finish.reason is FinishReason.LENGTH:
        yield Notice(code="truncated", message=_truncation(used, outcome.asked.sampling.max_tokens))
    if turn.truncated and turn.first.reasoning and not turn.first.text and not turn.first.tool_calls:
        yield Notice(
            code="budget_spent_on_reasoning",
            message="All tokens up to the limit were spent on reasoning: there is no answer. Raise -n, or "
            "turn reasoning off at the server.",
        )


def _truncation(used: int | None, cap: int | None) -> str:
    if cap is not None and used is not None and used < cap:
        return (
            f"Cut off at {used} tokens, before the cap of {cap} set by -n: the server's own limit or its "
            "context window. The answer is not complete."
        )
    if cap is not None:
        return f"Cut off at {cap} tokens (the cap set by -n). The answer is not complete: raise -n."
    at = f" at {used} tokens" if used is not None else ""
    return (
        f"Cut off{at} by the server's token limit or context window. The answer is not complete: "
        "set -n higher."
    )


def _stops(outcome: Outcome) -> Iterator[Notice]:
    local = outcome.local_stop
    finish = outcome.turn.first.finish
    if local is not None and local.server_went_on:
        yield Notice(
            code="stop_enforced_locally",
            message=f"The server did not stop at {quoted(local.stop)}: it was enforced here and the "
            "connection closed.",
        )
    if local is None and (finish is None or finish.reason is not FinishReason.STOP_SEQUENCE):
        for stop in outcome.asked.sampling.stop:
            if stop and stop in outcome.turn.first.text:
                yield Notice(
                    code="stop_ignored", message=f"The server went on after the stop sequence {quoted(stop)}."
                )


def _content(outcome: Outcome) -> Iterator[Notice]:
    turn, first = outcome.turn, outcome.turn.first
    if outcome.status is EndStatus.COMPLETE and not (
        any(choice.text or choice.tool_calls or choice.refusal for choice in turn.choices)
        or (turn.truncated and first.reasoning)
    ):
        yield Notice(
            code="empty_answer", message="The answer is empty: the server finished without any text."
        )
    tokens = sorted(set(_CONTROL_TOKEN.findall(first.text)))
    if tokens:
        yield Notice(
            code="control_tokens",
            message=f"Control tokens stand in the text ({', '.join(tokens[:3])}): the chat template and the "
            "model do not agree, or stop sequences replaced the model's own.",
        )


def _stream(outcome: Outcome) -> Iterator[Notice]:
    turn = outcome.turn
    if outcome.status is EndStatus.COMPLETE and turn.end.marker_seen is False and outcome.local_stop is None:
        yield Notice(
            code="no_terminal_marker",
            message=f"The stream ended without {outcome.asked.terminal_marker}, after a finish reason.",
        )
    if turn.unreadable:
        yield Notice(
            code="unreadable_events",
            message=f"{_count(turn.unreadable, 'event')} could not be read (--format raw shows them).",
        )
    closed_early = outcome.status is not EndStatus.COMPLETE or outcome.local_stop is not None
    if outcome.asked.usage_asked and turn.usage is None and not closed_early:
        yield Notice(code="usage_missing", message="The server reported no token counts.")


def _kept(turn: Turn) -> str:
    characters = len(turn.first.text)
    if not characters:
        return "No text came."
    return f"{_count(characters, 'character')} kept."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def quoted(text: str) -> str:
    r"""A stop string as the user would type it: ``"\nUser:"``."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return f'"{escaped}"'
