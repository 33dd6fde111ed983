"""The UI message stream of the Vercel AI SDK: parts by its source and its documentation."""

import json
from typing import Any


def stream(*parts: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(part, ensure_ascii=False).encode() + b"\n\n" for part in parts)


def part(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def text(*deltas: str) -> list[dict[str, Any]]:
    pieces = [part("text-delta", id="t1", delta=delta) for delta in deltas]
    return [part("text-start", id="t1"), *pieces, part("text-end", id="t1")]


DONE = b"data: [DONE]\n\n"
FINISH = part("finish", finishReason="stop")
PLAIN = [
    part("start", messageId="m1"),
    part("start-step"),
    *text("Red", " 👩‍👧\n"),
    part("finish-step"),
    FINISH,
]
REASONING = [
    part("reasoning-start", id="r1"),
    part("reasoning-delta", id="r1", delta="Hmm"),
    part("reasoning-end", id="r1"),
    *text("Red"),
    FINISH,
]
STREAMS = {
    "plain": stream(*PLAIN) + DONE,
    "cap": stream(*text("Red", ", gre"), part("finish", finishReason="length")) + DONE,
    "tool_call": stream(
        part("tool-input-start", toolCallId="c1", toolName="weather"),
        part("tool-input-delta", toolCallId="c1", inputTextDelta='{"city":'),
        part("tool-input-delta", toolCallId="c1", inputTextDelta='"Rome"}'),
        part("tool-input-available", toolCallId="c1", toolName="weather", input={"city": "Rome"}),
        part("finish", finishReason="tool-calls"),
    )
    + DONE,
    "reasoning": stream(*REASONING) + DONE,
    "error": stream(*text("Red"), part("error", errorText="Boom."), FINISH) + DONE,
}
