"""Real llama.cpp servers for the tests: the package's own child process with a model that fits the test."""

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from llmstream_cli.local.process import ServerOptions, run_server

TINY_MODEL = Path(__file__).parent.parent / "models" / "tiny-llama.gguf"
TINY_NAME = "tiny-llama"
IDLE_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaServer:
    """A server that is ready to answer; `process` may be killed by a test."""

    base_url: str
    process: Popen[bytes]
    api_key: str | None = None

    def get(self, path: str) -> Any:
        return self._ask(urllib.request.Request(self.base_url + path))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        data = json.dumps(body).encode()
        return self._ask(
            urllib.request.Request(self.base_url + path, data, {"Content-Type": "application/json"})
        )

    def is_healthy(self) -> bool:
        try:
            return bool(self.get("/health") == {"status": "ok"})
        except urllib.error.URLError:
            return False

    def is_idle(self) -> bool:
        return not any(slot["is_processing"] for slot in self.get("/slots"))

    def wait_until_idle(self) -> float:
        """Wait until no slot generates any more; gives the seconds that it took."""
        began_s = time.monotonic()
        while not self.is_idle():
            if time.monotonic() - began_s > IDLE_LIMIT_S:
                raise AssertionError(f"still generating after {IDLE_LIMIT_S} s")
            time.sleep(0.02)
        return time.monotonic() - began_s

    def _ask(self, request: urllib.request.Request) -> Any:
        if self.api_key is not None:
            request.add_header("Authorization", f"Bearer {self.api_key}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@contextmanager
def llama_server(
    model: Path = TINY_MODEL,
    *,
    name: str = TINY_NAME,
    context_tokens: int = 2048,
    slots: int = 1,
    port: int = 0,
    api_key: str | None = None,
    **extra: Any,
) -> Iterator[LlamaServer]:
    """Run a server for the length of the block. ``extra``: attributes of xllamacpp's ``CommonParams``.

    With a `port` of `free_port` it can be asked, from another thread, while it still loads (503).
    """
    if api_key is not None:
        extra["api_keys"] = [api_key]
    options = ServerOptions(
        model=model,
        name=name,
        context_tokens=context_tokens,
        slots=slots,
        # Several servers share the processors with the tests themselves.
        threads=1,
        port=port,
        extra=extra,
    )
    with run_server(options, lambda: None) as server:
        yield LlamaServer(base_url=server.base_url, process=server.process, api_key=api_key)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
