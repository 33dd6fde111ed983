"""``:streamGenerateContent?alt=sse``: chunks by Google's reference of GenerateContentResponse."""

import json
from typing import Any

OVERLOADED = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [{**candidate, **({"finishReason": finish} if finish else {})}], **more}


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks)


RED = chunk({"text": "Red"}, usageMetadata={"promptTokenCount": 9}, modelVersion="gemini-3", responseId="r1")
COUNTS = {"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 30, "totalTokenCount": 43}
STREAMS = {
    "plain": sse(RED, chunk({"text": " 👩‍👧\n"}), chunk({"text": ""}, finish="STOP", usageMetadata=COUNTS)),
    "cap": sse(RED, chunk({"text": ", gre"}, finish="MAX_TOKENS", usageMetadata=COUNTS)),
    # The same word as for the end of the answer.
    "stop": sse(RED, chunk({"text": ", 2"}), chunk(finish="STOP", usageMetadata=COUNTS)),
    "tool_call": sse(
        chunk({"functionCall": {"name": "weather", "args": {"city": "Zürich"}, "id": "c1"}}),
        chunk({"functionCall": {"name": "now"}}, finish="STOP"),
    ),
    "reasoning": sse(chunk({"text": "Hmm", "thought": True}), chunk({"text": "Red"}, finish="STOP")),
    "error": sse(RED, OVERLOADED),
}
