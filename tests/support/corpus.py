"""The corpus of public failures: hand-made bytes with their exact writes."""

import json
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent.parent / "corpus" / "wire-cases.jsonl"
FINISHED_ALL_THE_SAME = {
    "budget-spent-on-thinking": "the server said finished (length): a warning, no failure",
    "finish-stop-but-nothing-generated": "the server said finished (stop): a warning, no failure",
}
"""Cases that want a failure status; the exit code for an answer that the server calls finished is 0."""

Case = dict[str, Any]


@cache
def cases() -> dict[str, Case]:
    found = [json.loads(line) for line in CORPUS.read_bytes().split(b"\n") if line]
    return {case["id"]: case for case in found}


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


END = chunk({}, "stop") + b"data: [DONE]\n\n"


def zipped() -> bytes:
    compress = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    first = compress.compress(chunk({"content": "zip"})) + compress.flush(zlib.Z_SYNC_FLUSH)
    return first + compress.compress(chunk({"content": "ped"}) + END) + compress.flush()


RECIPES: dict[str, Callable[[], bytes]] = {
    "single-line-over-64k": lambda: chunk({"content": "x" * 300_000}) + END,
    "gzip-bytes-reach-the-parser": zipped,
    "one-byte-fragments-quadratic": lambda: chunk({"content": "y" * 1_000_000}) + END,
    "blank-line-never-comes": lambda: (b"data: " + b"z" * 1000 + b"\n") * 17_000,
}
PIECE_BYTES = {
    "single-line-over-64k": 16_384,
    "gzip-bytes-reach-the-parser": 7,
    "one-byte-fragments-quadratic": 64,
    "blank-line-never-comes": 1007,
}


def body_of(case: Case) -> bytes:
    recipe = RECIPES.get(case["id"])
    return recipe() if recipe else case["repro"]["raw"].encode(case["repro"]["raw_encoding"])


def own_reads(case: Case, body: bytes) -> Iterator[bytes]:
    size = PIECE_BYTES.get(case["id"])
    cuts = range(size, len(body), size) if size else case["repro"]["splits"]
    yield from (body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True))
