"""``/generate`` of SGLang: frames by its source, the text cumulative."""

import json
from typing import Any


def stream(*frames: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(frame, ensure_ascii=False).encode() + b"\n\n" for frame in frames)


def piece(
    text: str,
    tokens: int,
    finish: Any = None,
    *,
    ids: int | None = None,
    index: int | None = None,
    **meta: Any,
) -> dict[str, Any]:
    """A frame after `tokens` tokens in all, with `ids` token ids (as many, unless said)."""
    frame: dict[str, Any] = {
        "text": text,
        "output_ids": [5] * (tokens if ids is None else ids),
        "meta_info": {
            "id": "g1",
            "finish_reason": finish,
            "prompt_tokens": 7,
            "completion_tokens": tokens,
            "cached_tokens": 2,
            "e2e_latency": 0.5,
            **meta,
        },
    }
    return frame if index is None else {**frame, "index": index}


DONE = b"data: [DONE]\n\n"
ABORT = {
    "type": "abort",
    "message": "Out of memory",
    "status_code": 500,
    "err_type": "InternalServerError",
}
STREAMS = {
    "plain": stream(
        piece("Red", 1), piece("Red 👩‍👧", 3), piece("Red 👩‍👧", 4, {"type": "stop", "matched": 2})
    )
    + DONE,
    "cap": stream(piece("Red", 1), piece("Red, gre", 4, {"type": "length", "length": 4})) + DONE,
    "stop": stream(piece("Hi", 1), piece("Hi!", 3, {"type": "stop", "matched": "\nUser:"})) + DONE,
    "error": stream(piece("Red", 1), piece("Red", 2, ABORT)) + DONE,
}
