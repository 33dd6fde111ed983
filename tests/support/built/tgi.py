"""``/generate_stream``: frames by the source of text-generation-inference."""

import json
from typing import Any

REQUEST = {"inputs": "Hi", "parameters": {"details": True}}


def frames(*items: dict[str, Any]) -> bytes:
    return b"".join(b"data:" + json.dumps(item, ensure_ascii=False).encode() + b"\n\n" for item in items)


def token(text: str, *, special: bool = False) -> dict[str, Any]:
    said = {"id": 5, "text": text, "logprob": -0.5, "special": special}
    return {"index": 1, "token": said, "generated_text": None, "details": None}


def last(text: str, reason: str, whole: str, *, special: bool = False) -> dict[str, Any]:
    details = {"finish_reason": reason, "generated_tokens": 3, "seed": 7, "input_length": 9}
    return {**token(text, special=special), "generated_text": whole, "details": details}


ERROR = {"error": "Request failed during generation: out of memory", "error_type": "generation"}
STREAMS = {
    "plain": frames(token("Red"), token(" 👩‍👧"), last("</s>", "eos_token", "Red 👩‍👧", special=True)),
    "cap": frames(token("Red"), last(", gre", "length", "Red, gre")),
    "stop": frames(token("Red"), last("END", "stop_sequence", "RedEND")),
    "error": frames(token("Red"), ERROR),
}
