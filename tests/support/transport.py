"""Asking a `WireServer` through the transport, in one line; and Ctrl-C on demand."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from llmstream_cli.request import HttpRequest
from llmstream_cli.transport import Exchange, Target, Timeouts, WaitNotice, open_stream
from tests.support.wire_server import End, Reply, Transfer, Write

PATH = "/v1/chat/completions"
REQUEST = HttpRequest(path=PATH, body={"messages": [], "stream": True})
_CORPUS = Path(__file__).parent.parent / "corpus" / "wire-cases.jsonl"
_PAUSE_SCALE = 0.02


def read_answer(
    base_url: str,
    *,
    timeouts: Timeouts | None = None,
    retries: int = 2,
    on_wait: Callable[[WaitNotice], None] | None = None,
    on_read: Callable[[Exchange, bytes], None] | None = None,
    request: HttpRequest = REQUEST,
    **target: Any,
) -> bytes:
    """The whole body that the server sends; `target` are further fields of the Target."""
    body = b""
    with open_stream(
        Target(base_url=base_url, **target),
        request,
        timeouts=timeouts or Timeouts(),
        retries=retries,
        on_wait=on_wait,
    ) as exchange:
        for _, data in exchange.reads():
            body += data
            if on_read:
                on_read(exchange, data)
    return body


def corpus_case(name: str) -> Mapping[str, Any]:
    """What the server does in a case of the corpus of public failures."""
    with _CORPUS.open(encoding="utf-8", newline="\n") as lines:
        found = next(case for line in lines if (case := json.loads(line))["id"] == name)
    repro: Mapping[str, Any] = found["repro"]
    return repro


def corpus_reply(name: str) -> Reply:
    """The case's answer with its exact writes; its pauses are shortened to a fiftieth."""
    case = corpus_case(name)
    raw = case["raw"].encode(case["raw_encoding"])
    pauses = {int(at): ms * _PAUSE_SCALE / 1000 for at, ms in case.get("pauses_ms", {}).items()}
    writes: list[Write] = []
    at = 0
    for cut in sorted({*case["splits"], len(raw)}):
        writes += [pauses[at]] if at in pauses else []
        writes += [raw[at:cut]] if cut > at else []
        at = cut
    end: End = "hold" if case["end"] == "hold-open" else "clean"
    transfer: Transfer = case["transfer"]
    return Reply(
        writes=writes,
        status=case["status"],
        headers=list(case["headers"].items()),
        transfer=transfer,
        end=end,
    )


class CtrlC:
    """Interrupts the main thread as soon as `ready` returns; ``at`` tells when (monotonic time)."""

    def __init__(self, ready: Callable[[], object]) -> None:
        self.at = 0.0
        self._ready = ready
        threading.Thread(target=self._press, daemon=True).start()

    def _press(self) -> None:
        self._ready()
        self.at = time.monotonic()
        if os.name == "nt":
            signal.raise_signal(signal.SIGINT)
        else:
            # To the process, the signal might be taken by another thread and not wake the blocked one.
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT)
