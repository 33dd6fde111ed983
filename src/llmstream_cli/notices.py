"""The warnings that an outcome deserves: what is wrong with the answer, and what to do. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llmstream_cli.events import EndStatus, FinishReason, StreamError
from llmstream_cli.outcome import Outcome
from llmstream_cli.thinking import TagFault
from llmstream_cli.turn import Turn

_CONTROL_TOKEN = re.compile(
    r"<\|[a-z0-9_]{2,32}\|>|<｜[^｜<>\n]{2,32}｜>|<(?:start|end)_of_turn>|\[/?INST\]"
    # Anywhere else these two are HTML for struck-through text.
    r"|\A\s*<s>|</s>\s*\Z"
)

_TAG_FAULTS = {
    TagFault.UNCLOSED: "The answer opened <think> and never closed it: the text behind it is given as the "
    "answer.",
    TagFault.UNOPENED: "The answer closed </think> without opening it: the text before it was reasoning, "
    "which could not be known while it was shown as text.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """``code`` is for programs and fixed; ``message`` is for people. It may hold text of the server's."""

    code: str
    message: str


def notices(outcome: Outcome) -> tuple[Notice, ...]:
    """All warnings, the most important first."""
    rules = (_incomplete, _truncated, _stops, _content, _stream)
    return tuple(notice for rule in rules for notice in rule(outcome))


def kept(turn: Turn) -> str:
    """What is left of an answer that was cut."""
    characters = sum(len(choice.text) for choice in turn.choices)
    if characters:
        return f"{_count(characters, 'character')} kept"
    reasoning = sum(len(choice.reasoning or "") for choice in turn.choices)
    if reasoning:
        return f"no answer yet, only {_count(reasoning, 'character')} of reasoning"
    return "no text came"


def quoted(text: str) -> str:
    r"""A stop string as the user would type it: ``"\nUser:"``."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return f'"{escaped}"'


def _incomplete(outcome: Outcome) -> Iterator[Notice]:
    turn = outcome.turn
    if outcome.status is not EndStatus.INCOMPLETE:
        return
    cut_calls = [call.name or "?" for call in turn.first.tool_calls if not call.valid]
    inside = f" It broke off inside the tool call {cut_calls[-1]}." if cut_calls else ""
    message = f"Incomplete: {_what_is_missing(outcome)}.{inside} {_sentence(kept(turn))}"
    yield Notice(code="incomplete", message=message)


def _what_is_missing(outcome: Outcome) -> str:
    turn, marker = outcome.turn, outcome.asked.terminal_marker
    match turn.end.error:
        case None:
            how = "the stream ended"
        case StreamError(kind="connection_closed"):
            how = "the connection closed"
        case StreamError(kind="connection_reset"):
            how = "the connection was reset"
        case error:
            after = f", after {_count(turn.events, 'event')}" if turn.events else ""
            return error.message.rstrip(".") + after
    if not turn.events:
        alive = f" (only {_count(turn.keep_alives, 'keep-alive')})" if turn.keep_alives else ""
        return f"{how} without a single event{alive}"
    if turn.end.marker_seen:
        return f"{marker} came after {_count(turn.events, 'event')}, but no finish reason before it"
    proof = f"a finish reason or {marker}" if marker else "a finish reason"
    return f"{how} after {_count(turn.events, 'event')} without {proof}"


def _truncated(outcome: Outcome) -> Iterator[Notice]:
    turn = outcome.turn
    reasons = {choice.finish.reason for choice in turn.choices if choice.finish}
    if FinishReason.CONTEXT in reasons:
        yield Notice(
            code="context_exhausted",
            message="Cut off: the context window is full. The answer is not complete: shorten the "
            "conversation, or start the server with a larger context.",
        )
    elif FinishReason.LENGTH in reasons:
        used = turn.usage.completion_tokens if turn.usage and len(turn.choices) == 1 else None
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
            f"Cut off at {_count(used, 'token')}, before the cap of {cap:,} set by -n: by the server's own "
            "token limit or context window. The answer is not complete: raise it, or shorten the prompt."
        )
    if cap is not None:
        return f"Cut off at {_count(cap, 'token')} (the cap set by -n). The answer is not complete: raise -n."
    at = f" at {_count(used, 'token')}" if used is not None else ""
    return (
        f"Cut off{at} by the server's token limit or context window. The answer is not complete: "
        "ask for more with -n, or shorten the prompt."
    )


def _stops(outcome: Outcome) -> Iterator[Notice]:
    local, text = outcome.local_stop, outcome.turn.first.text
    if local is not None and local.server_went_on:
        yield Notice(
            code="stop_enforced_locally",
            message=f"The server did not stop at {quoted(local.stop)}: the answer was cut there by "
            "llmstream, and the rest thrown away.",
        )
    if local is not None:
        return
    for stop in outcome.asked.sampling.stop:
        # Some servers leave the stop string that they stopped at in the text.
        if stop and stop in text.removesuffix(stop):
            yield Notice(
                code="stop_ignored",
                message=f"The server went on after the stop sequence {quoted(stop)}; --enforce-stop cuts "
                "the answer there.",
            )


def _content(outcome: Outcome) -> Iterator[Notice]:
    if outcome.status is EndStatus.COMPLETE and _is_empty(outcome.turn):
        yield Notice(code="empty_answer", message=_emptiness(outcome.turn))
    if outcome.tag_fault is not None:
        yield Notice(code="think_tags", message=_TAG_FAULTS[outcome.tag_fault])
    text = outcome.turn.first.text
    tokens = sorted({token.strip() for token in _CONTROL_TOKEN.findall(text)})
    if tokens:
        yield Notice(
            code="control_tokens",
            message=f"Control tokens stand in the text ({', '.join(tokens[:3])}): probably the chat template "
            "does not fit the model, or stop sequences have replaced the model's own.",
        )


def _is_empty(turn: Turn) -> bool:
    if turn.truncated and turn.first.reasoning:
        return False
    return not any(choice.text or choice.tool_calls or choice.refusal for choice in turn.choices)


def _emptiness(turn: Turn) -> str:
    finish = turn.first.finish
    if finish is not None and finish.stop_sequence is not None:
        return f"The answer is empty: the stop sequence {quoted(finish.stop_sequence)} came before any text."
    if turn.truncated:
        return "The answer is empty: the limit was reached before any text came."
    if turn.first.reasoning:
        return "The answer is empty: the model reasoned and then said nothing."
    return (
        "The answer is empty: the server finished without any text. Check the chat template and the stop "
        "sequences."
    )


def _stream(outcome: Outcome) -> Iterator[Notice]:
    turn = outcome.turn
    closed_early = outcome.status is not EndStatus.COMPLETE or outcome.local_stop is not None
    if turn.end.marker_seen is False and not closed_early:
        marker = outcome.asked.terminal_marker or "its terminal marker"
        yield Notice(
            code="no_terminal_marker",
            message=f"The stream ended without {marker}. A finish reason came, so the answer counts as "
            "complete.",
        )
    if turn.unreadable:
        yield Notice(
            code="unreadable_events",
            message=f"{_count(turn.unreadable, 'event')} could not be read (--format raw shows them): a part "
            "of the answer may be missing.",
        )
    if outcome.asked.usage_asked and turn.usage is None and not closed_early:
        yield Notice(code="usage_missing", message="The server reported no token counts.")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
