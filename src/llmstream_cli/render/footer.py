"""The last lines on stderr: warnings, then one line that says how and why the answer ended."""

from llmstream_cli.events import EndStatus, FinishReason
from llmstream_cli.notices import Notice, notices, quoted
from llmstream_cli.outcome import Outcome
from llmstream_cli.render.console import StandardError, Style
from llmstream_cli.render.sanitize import harmless
from llmstream_cli.timing import Timing
from llmstream_cli.turn import Turn

_QUIET_CODES = frozenset({"usage_missing"})
"""Notices that a person reads in the footer anyway (``?`` for unknown counts)."""

_REASONS: dict[FinishReason, str] = {
    FinishReason.EOS: "end of sequence",
    FinishReason.STOP: "stopped (end of sequence or stop sequence, the server does not say which)",
    FinishReason.STOP_SEQUENCE: "stopped at a stop sequence",
    FinishReason.LENGTH: "cut by the token cap",
    FinishReason.CONTEXT: "cut by the full context window",
    FinishReason.TOOL_CALLS: "tool call",
    FinishReason.CONTENT_FILTER: "cut by the content filter",
    FinishReason.REFUSAL: "refused",
    FinishReason.OTHER: "finished",
}


def print_ending(
    outcome: Outcome, stderr: StandardError, *, footer: bool, warnings: bool, verbose: int = 0
) -> None:
    """Write what a person must know of the ending. Errors are always written."""
    if outcome.reader_gone:
        return
    for notice in notices(outcome):
        if _shown(notice, warnings=warnings, verbose=verbose):
            symbol = "✗" if notice.code == "incomplete" else "⚠"
            style: Style = "error" if notice.code == "incomplete" else "warning"
            stderr.line(f"{symbol} {harmless(notice.message, one_line=True)}", style)
    for line in _failure_lines(outcome):
        stderr.line(line, "error")
    if footer:
        style = "ok" if outcome.status is EndStatus.COMPLETE else "dim"
        stderr.line(footer_line(outcome), style)


def footer_line(outcome: Outcome) -> str:
    """One line: finish reason, tokens, first token, rate, total, model and profile."""
    symbol = _symbol(outcome)
    if outcome.failure is not None and not outcome.turn.events:
        parts = [f"{symbol} no answer"]
    else:
        parts = [f"{symbol} {_ending(outcome)}", _tokens(outcome.turn), *_times(outcome.timing)]
    parts.append(_who(outcome))
    return " · ".join(part for part in parts if part)


def _shown(notice: Notice, *, warnings: bool, verbose: int) -> bool:
    if notice.code == "incomplete":
        return True
    return warnings and (verbose > 0 or notice.code not in _QUIET_CODES)


def _symbol(outcome: Outcome) -> str:
    match outcome.status:
        case EndStatus.COMPLETE:
            return "⚠" if outcome.turn.truncated else "✓"
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
            return f"stopped by you{after}; {_kept(outcome.turn)}, the connection is closed"
        case EndStatus.INCOMPLETE:
            return f"incomplete; {_kept(outcome.turn)}"
        case EndStatus.ERROR:
            return f"error; {_kept(outcome.turn)}"
        case EndStatus.TIMEOUT:
            return f"timed out; {_kept(outcome.turn)}"


def _kept(turn: Turn) -> str:
    characters = len(turn.first.text)
    return f"{characters:,} characters kept and marked as cut" if characters else "nothing came"


def _finish(outcome: Outcome) -> str:
    finish = outcome.turn.first.finish
    if finish is None:
        return "finished"
    if finish.reason is FinishReason.STOP_SEQUENCE and finish.stop_sequence is not None:
        by = " (enforced here)" if outcome.local_stop and outcome.local_stop.server_went_on else ""
        return f"stopped at {harmless(quoted(finish.stop_sequence))}{by}"
    if finish.stop_token is not None and finish.reason is not FinishReason.EOS:
        return f"stopped at token {finish.stop_token}"
    if finish.reason is FinishReason.STOP and not outcome.asked.sampling.stop:
        return "finished (stop)"
    if finish.reason is FinishReason.OTHER and finish.raw_reason:
        return f"finished: {harmless(finish.raw_reason, one_line=True)}"
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
    model = harmless(outcome.model or "", one_line=True)
    where = outcome.asked.profile or outcome.server.kind or ""
    return f"{model} @ {where}" if model and where else model or where


def _failure_lines(outcome: Outcome) -> list[str]:
    """The cause, the URL, how far the answer got, and what to try."""
    error = outcome.turn.end.error
    if outcome.failure is not None:
        lines = [_failure(outcome)]
        if outcome.failure.hint:
            lines.append(f"  {harmless(outcome.failure.hint)}")
        return lines
    if outcome.status is EndStatus.ERROR and error is not None:
        code = f" ({error.code})" if error.code is not None else ""
        events = f"after {outcome.turn.events:,} events, {_kept(outcome.turn)}"
        return [
            f"✗ The server reported an error inside the stream, {events}: {error.kind}{code}: "
            f"{harmless(error.message, one_line=True)}",
            f"  {outcome.asked.url}",
        ]
    return []


def _failure(outcome: Outcome) -> str:
    failure, error = outcome.failure, outcome.turn.end.error
    assert failure is not None
    message = harmless(failure.message, one_line=True)
    detail = harmless(error.message, one_line=True) if error else ""
    if detail and detail not in message:
        message = f"{message}: {detail}"
    if outcome.asked.url not in message:
        message = f"{message} [{outcome.asked.url}]"
    got = f" {_kept(outcome.turn).capitalize()}." if outcome.turn.events else ""
    return f"✗ {message}{got}"
