"""Output for programs: one JSON object, one JSON line an event, or the bytes as received."""

import json
import math
from typing import Any, assert_never

from llmstream_cli.events import (
    Event,
    Finish,
    Json,
    KeepAlive,
    LogprobsDelta,
    PrefillProgress,
    ReasoningDelta,
    RefusalDelta,
    ServerDetail,
    StreamEnd,
    StreamStart,
    TextDelta,
    TimingsReport,
    ToolCallDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.notices import notices
from llmstream_cli.outcome import Outcome
from llmstream_cli.render.console import StandardOutput
from llmstream_cli.render.sanitize import harmless_json
from llmstream_cli.render.waiting import WaitingLine
from llmstream_cli.timing import Timing
from llmstream_cli.turn import Choice

SCHEMA = "llmstream.turn/1"
_DEEPEST = 100


def turn_object(outcome: Outcome) -> dict[str, Json]:
    """The object of ``--format json``. Unknown is null, never 0 or an empty string."""
    first = outcome.turn.first
    error = outcome.turn.end.error
    value: dict[str, Json] = {
        "schema": SCHEMA,
        "status": outcome.status.value,
        **_choice(first),
        "truncated": outcome.turn.truncated,
        "usage": _usage(outcome.turn.usage or Usage()),
        "timing": _timing(outcome.timing),
        "request": {
            "profile": outcome.asked.profile,
            "shape": outcome.asked.shape,
            "url": outcome.asked.url,
            "model": outcome.model,
        },
        "server": {"kind": outcome.server.kind, "version": outcome.server.version},
        "warnings": [{"code": notice.code, "message": notice.message} for notice in notices(outcome)],
        "error": error
        and {
            "kind": error.kind,
            "message": error.message,
            "code": error.code,
            "http_status": error.http_status,
        },
    }
    if len(outcome.turn.choices) > 1:
        value["choices"] = [{"index": choice.index, **_choice(choice)} for choice in outcome.turn.choices]
    if first.logprobs:
        value["logprobs"] = list(first.logprobs)
    return value


def event_object(event: Event) -> dict[str, Json] | None:
    """One line of ``--format jsonl``; None for the end, which is told with the outcome."""
    match event:
        case TextDelta():
            return _delta("text", event.choice, text=event.text)
        case ReasoningDelta():
            return _delta("reasoning", event.choice, text=event.text)
        case RefusalDelta():
            return _delta("refusal", event.choice, text=event.text)
        case ToolCallDelta():
            return _delta(
                "tool_call",
                event.choice,
                index=event.call,
                id=event.id,
                name=event.name,
                arguments=event.arguments,
            )
        case LogprobsDelta():
            return _delta("logprobs", event.choice, data=event.data)
        case Finish():
            return _delta("finish", event.choice, **_finish(event))
        case UsageReport():
            return {"type": "usage", **_usage(event.usage)}
        case KeepAlive():
            return {"type": "keepalive", "comment": event.comment}
        case _:
            return _rare_event_object(event)


def _rare_event_object(
    event: StreamStart | PrefillProgress | TimingsReport | ServerDetail | UnknownFrame | StreamEnd,
) -> dict[str, Json] | None:
    match event:
        case StreamStart():
            return {
                "type": "start",
                "id": event.response_id,
                "model": event.model,
                "fingerprint": event.fingerprint,
            }
        case PrefillProgress():
            return {
                "type": "prefill",
                "processed_tokens": event.processed_tokens,
                "total_tokens": event.total_tokens,
                "cached_tokens": event.cached_tokens,
            }
        case TimingsReport(timings=timings):
            return {
                "type": "timings",
                "load_s": timings.load_s,
                "prefill_s": timings.prefill_s,
                "decode_s": timings.decode_s,
            }
        case ServerDetail():
            return {"type": "detail", "data": dict(event.data)}
        case UnknownFrame():
            return {
                "type": "unknown",
                "name": event.name,
                "data": event.data,
                "readable": event.readable,
                "cut": event.cut,
            }
        case StreamEnd():
            return None
        case _:
            assert_never(event)


class JsonRenderer:
    """One object on stdout, whatever happened after the request was sent."""

    def __init__(self, stdout: StandardOutput, waiting: WaitingLine) -> None:
        self._stdout = stdout
        self._waiting = waiting

    def raw(self, data: bytes) -> None:
        pass

    def event(self, event: Event) -> None:
        self._waiting.note(event)

    def finish(self, outcome: Outcome) -> None:
        self._waiting.stop()
        self._stdout.write(dump_json(turn_object(outcome)))


class JsonLinesRenderer:
    """Each event as it arrives, then a line of type ``end``."""

    def __init__(self, stdout: StandardOutput, waiting: WaitingLine) -> None:
        self._stdout = stdout
        self._waiting = waiting

    def raw(self, data: bytes) -> None:
        pass

    def event(self, event: Event) -> None:
        self._waiting.stop()
        value = event_object(event)
        if value is not None:
            self._stdout.write(dump_json(value))

    def finish(self, outcome: Outcome) -> None:
        self._waiting.stop()
        if outcome.reader_gone:
            return
        value = turn_object(outcome)
        del value["text"], value["reasoning"]
        self._stdout.write(dump_json({"type": "end", **value}))


class RawRenderer:
    """The response body as received."""

    def __init__(self, stdout: StandardOutput, waiting: WaitingLine) -> None:
        self._stdout = stdout
        self._waiting = waiting

    def raw(self, data: bytes) -> None:
        self._waiting.stop()
        self._stdout.write_bytes(data)

    def event(self, event: Event) -> None:
        pass

    def finish(self, outcome: Outcome) -> None:
        pass


def _choice(choice: Choice) -> dict[str, Json]:
    return {
        "text": choice.text,
        "reasoning": choice.reasoning,
        "refusal": choice.refusal,
        "tool_calls": [
            {
                "index": call.index,
                "id": call.id,
                "name": call.name,
                "arguments": call.arguments,
                "arguments_text": call.arguments_text,
                "valid": call.valid,
            }
            for call in choice.tool_calls
        ],
        "finish": _finish(choice.finish),
    }


def _finish(finish: Finish | None) -> dict[str, Json]:
    if finish is None:
        return {"reason": None, "raw": None, "stop_sequence": None}
    value: dict[str, Json] = {
        "reason": finish.reason.value,
        "raw": finish.raw_reason,
        "stop_sequence": finish.stop_sequence,
    }
    if finish.stop_token is not None:
        value["stop_token"] = finish.stop_token
    return value


def _usage(usage: Usage) -> dict[str, Json]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_tokens": usage.cached_tokens,
        "total_tokens": usage.total_tokens,
    }


def _timing(timing: Timing) -> dict[str, Json]:
    names = ("headers_s", "ttft_s", "total_s", "max_gap_s", "tokens_per_s", "prefill_s", "decode_s", "load_s")
    return {name: _rounded(getattr(timing, name)) for name in names}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _delta(kind: str, choice: int, **fields: Any) -> dict[str, Json]:
    return {"type": kind, **fields} | ({"choice": choice} if choice else {})


def dump_json(value: Json) -> str:
    """One line of JSON that no server can make unwritable or harmful to a terminal."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        text = json.dumps(_expressible(value), ensure_ascii=False)
    return harmless_json(text) + "\n"


def _expressible(value: Json, depth: int = 0) -> Json:
    """Python reads NaN, 1e999 and very deep nesting from a server, and cannot write them as JSON: null."""
    if depth > _DEEPEST or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, dict):
        return {key: _expressible(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_expressible(item, depth + 1) for item in value]
    return value
