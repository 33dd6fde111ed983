"""The last lines on stderr: warnings, then one line that says how and why the answer ended."""

from llmstream_cli.errors import HttpStatusError, LlmstreamError
from llmstream_cli.events import EndStatus, Finish, FinishReason, StreamError
from llmstream_cli.notices import Notice, kept, notices, quoted
from llmstream_cli.outcome import Outcome
from llmstream_cli.render.console import StandardError, Style
from llmstream_cli.render.sanitize import harmless
from llmstream_cli.timing import Timing
from llmstream_cli.turn import Turn

_QUIET_CODES = frozenset({"usage_missing"})
"""Notices that a person reads in the footer anyway (``?`` for unknown counts)."""

_REASONS: dict[FinishReason, str] = {
    FinishReason.EOS: "finished (end of sequence)",
    FinishReason.STOP: "stopped (end of sequence or a stop sequence, the server does not say which)",
    FinishReason.STOP_SEQUENCE: "stopped at a stop sequence",
    FinishReason.LENGTH: "cut off by the token limit",
    FinishReason.CONTEXT: "cut off by the full context window",
    FinishReason.TOOL_CALLS: "stopped to call a tool",
    FinishReason.CONTENT_FILTER: "cut off by the content filter",
    FinishReason.REFUSAL: "refused by the model",
    FinishReason.OTHER: "finished, the server does not say why",
}
_BAD_ENDINGS = frozenset(
    {FinishReason.LENGTH, FinishReason.CONTEXT, FinishReason.CONTENT_FILTER, FinishReason.REFUSAL}
)
_FOOTER_STYLES: dict[str, Style] = {"✓": "ok", "⚠": "warning", "✗": "dim", "■": "dim"}
_LONGEST_MESSAGE = 1000
_COMPARED = 200
"""The transport quotes the beginning of what the server said."""


def print_ending(
    outcome: Outcome, stderr: StandardError, *, footer: bool, warnings: bool, verbose: int = 0
) -> None:
    """Write what a person must know of the ending. Errors are always written."""
    if outcome.reader_gone:
        return
    for notice in notices(outcome):
        # A failure has a line of its own, with the URL and what to try.
        told = notice.code == "incomplete" and outcome.failure is not None
        if not told and _shown(notice, warnings=warnings, verbose=verbose):
            symbol = "✗" if notice.code == "incomplete" else "⚠"
            style: Style = "error" if notice.code == "incomplete" else "warning"
            stderr.line(f"{symbol} {_shown_text(notice.message)}", style)
    for symbol, text in _failure_lines(outcome):
        stderr.line(f"{symbol} {_shown_text(text)}", "error")
    if footer:
        stderr.line(footer_line(outcome), _FOOTER_STYLES[_symbol(outcome)])


def footer_line(outcome: Outcome) -> str:
    """One line: finish reason, tokens, first token, rate, total, model and profile."""
    symbol = _symbol(outcome)
    if outcome.failure is not None and not outcome.turn.events:
        parts = ["no answer", *_times(outcome.timing)]
    else:
        parts = [_ending(outcome), _tokens(outcome.turn), *_times(outcome.timing)]
    parts.append(_who(outcome))
    return f"{symbol} " + " · ".join(harmless(part, one_line=True) for part in parts if part)


def _shown_text(text: str) -> str:
    """Foreign words on one line of bounded length."""
    line = harmless(text[: 2 * _LONGEST_MESSAGE], one_line=True)
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]} …"


def _shown(notice: Notice, *, warnings: bool, verbose: int) -> bool:
    if notice.code == "incomplete":
        return True
    return warnings and (verbose > 0 or notice.code not in _QUIET_CODES)


def _symbol(outcome: Outcome) -> str:
    match outcome.status:
        case EndStatus.COMPLETE:
            finish = _telling_finish(outcome.turn)
            return "⚠" if finish is not None and finish.reason in _BAD_ENDINGS else "✓"
        case EndStatus.CANCELLED:
            return "■"
        case EndStatus.INCOMPLETE | EndStatus.ERROR | EndStatus.TIMEOUT:
            return "✗"


def _ending(outcome: Outcome) -> str:
    match outcome.status:
        case EndStatus.COMPLETE:
            return _finish(outcome)
        case EndStatus.CANCELLED:
            after = f" after {outcome.timing.total_s:.1f} s" if outcome.timing.total_s is not None else ""
            return f"stopped by you{after}; {_left(outcome.turn)}; the connection is closed"
        case EndStatus.INCOMPLETE:
            return f"incomplete; {kept(outcome.turn)}"
        case EndStatus.ERROR:
            return f"error; {kept(outcome.turn)}"
        case EndStatus.TIMEOUT:
            return f"timed out; {kept(outcome.turn)}"


def _left(turn: Turn) -> str:
    has_text = any(choice.text for choice in turn.choices)
    return f"the answer is cut, {kept(turn)}" if has_text else kept(turn)


def _telling_finish(turn: Turn) -> Finish | None:
    """The first choice's, unless another ended badly."""
    finishes = [choice.finish for choice in turn.choices if choice.finish]
    return next((finish for finish in finishes if finish.reason in _BAD_ENDINGS), turn.first.finish)


def _finish(outcome: Outcome) -> str:
    finish = _telling_finish(outcome.turn)
    if finish is None:
        return "finished"
    if finish.reason is FinishReason.STOP_SEQUENCE and finish.stop_sequence is not None:
        by = " (by llmstream)" if outcome.local_stop and outcome.local_stop.server_went_on else ""
        return f"stopped at {quoted(finish.stop_sequence)}{by}"
    if finish.stop_token is not None and finish.reason is not FinishReason.EOS:
        return f"stopped at token {finish.stop_token}"
    if finish.reason is FinishReason.STOP and not outcome.asked.sampling.stop:
        return "finished (stop)"
    if finish.reason is FinishReason.OTHER and finish.raw_reason:
        return f"finished ({finish.raw_reason})"
    return _REASONS[finish.reason]


def _tokens(turn: Turn) -> str:
    usage = turn.usage
    prompt = usage.prompt_tokens if usage else None
    completion = usage.completion_tokens if usage else None
    cached = f" ({usage.cached_tokens} cached)" if usage and usage.cached_tokens else ""
    thought = f" ({usage.reasoning_tokens} reasoning)" if usage and usage.reasoning_tokens else ""
    return f"{_count(prompt)} in{cached} + {_count(completion)} out{thought} tokens"


def _count(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"


def _times(timing: Timing) -> list[str]:
    parts = []
    if timing.ttft_s is not None:
        parts.append(f"first token {timing.ttft_s:.2f} s")
    if timing.tokens_per_s is not None:
        parts.append(f"{timing.tokens_per_s:.1f} tok/s")
    if timing.total_s is not None:
        parts.append(f"{timing.total_s:.2f} s")
    return parts


def _who(outcome: Outcome) -> str:
    model = outcome.model or ""
    where = outcome.asked.profile or outcome.server.kind or ""
    return f"{model} @ {where}" if model and where else model or where


def _failure_lines(outcome: Outcome) -> list[tuple[str, str]]:
    """The cause, the URL, how far the answer got, and what to try; each with its symbol."""
    error, failure = outcome.turn.end.error, outcome.failure
    if failure is not None:
        hint = failure.hint or _hint(failure)
        return [("✗", _failure(failure, outcome)), *([(" ", hint)] if hint else [])]
    if error is None:
        return []
    match outcome.status:
        case EndStatus.ERROR:
            return [
                ("✗", f"The server reported an error {_place(outcome.turn)}: {_reported(outcome, error)}")
            ]
        case EndStatus.TIMEOUT:
            return [("✗", f"Timed out: {error.message}")]
        case _:
            return []


def _place(turn: Turn) -> str:
    """Where in the answer an error came."""
    if not turn.events:
        return "in place of an answer"
    return f"inside its answer, after {turn.events:,} event{'' if turn.events == 1 else 's'} ({kept(turn)})"


def _hint(failure: LlmstreamError) -> str | None:
    wait_s = failure.retry_after_s if isinstance(failure, HttpStatusError) else None
    return f"the server asks to wait {wait_s:g} s" if wait_s else None


def _reported(outcome: Outcome, error: StreamError) -> str:
    """The server's words, its kind and code where they tell more, the URL."""
    labels = [str(label) for label in (error.kind, error.code) if label and str(label) not in error.message]
    shown = f"{error.message} [{', '.join(labels)}]" if labels else error.message
    return f"{shown} ({outcome.asked.url})" if outcome.asked.url else shown


def _failure(failure: LlmstreamError, outcome: Outcome) -> str:
    error, url = outcome.turn.end.error, outcome.asked.url
    message = failure.message
    detail = " ".join(error.message.split()) if error else ""
    if detail and detail[:_COMPARED] not in message:
        message = f"{message}: {detail}"
    if url and url not in message:
        message = f"{message} ({url})"
    return f"{message}; {kept(outcome.turn)}" if outcome.turn.events else message
