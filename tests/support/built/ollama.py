"""``/api/chat`` and ``/api/generate``: lines by the fields of Ollama's API reference."""

import json
from typing import Any

CONTENT_TYPE = "application/x-ndjson"


def lines(*items: dict[str, Any]) -> bytes:
    head = {"model": "qwen3:8b", "created_at": "2026-11-30T09:00:00.123456789Z"}
    return b"".join(json.dumps({**head, **item}, ensure_ascii=False).encode() + b"\n" for item in items)


def said(content: str, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, **more}, "done": False}


def done(reason: str = "stop", **more: Any) -> dict[str, Any]:
    counts = {
        "total_duration": 4883583458,
        "load_duration": 1334875,
        "prompt_eval_count": 26,
        "prompt_eval_duration": 342546000,
        "eval_count": 282,
        "eval_duration": 4535599000,
    }
    return {**said("", **more), "done": True, "done_reason": reason, **counts}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}


ERROR = b'{"error":"an error was encountered while running the model: unexpected EOF"}\n'
STREAMS = {
    "plain": lines(said("Red"), said(" 👩‍👧\n"), done()),
    "cap": lines(said("Red"), done("length")),
    # The same word as for the end of the answer.
    "stop": lines(said("1, 2"), said(","), done("stop")),
    "tool_call": lines(said("", tool_calls=[call("weather", city="Zürich"), call("now")]), done()),
    "reasoning": lines(said("", thinking="Hm"), said("", thinking="m."), said("Red"), done()),
    "error": lines(said("Red")) + ERROR,
}
GENERATED = {
    "plain": lines(
        {"response": "Red", "done": False},
        {"response": "", "done": True, "done_reason": "stop", "context": [1, 2], "eval_count": 2},
    ),
    "cap": lines(
        {"response": "Red", "done": False},
        {"response": ",", "done": True, "done_reason": "length", "prompt_eval_count": 3, "eval_count": 2},
    ),
    "stop": lines(
        {"response": "1, 2", "done": False},
        {"response": "", "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4},
    ),
    "reasoning": lines(
        {"response": "", "thinking": "Hm", "done": False},
        {"response": "R", "done": True, "done_reason": "length", "prompt_eval_count": 3, "eval_count": 5},
    ),
    "error": lines({"response": "Red", "done": False}) + ERROR,
}
