"""The clients that are compared: how each is started, and what one run of it costs."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CURL, BARE, OURS, PYTHON = "curl", "httpx+json", "llmstream", "python -c pass"
RUN_LIMIT_S: Final = 60.0  # one client, once
READ_BYTES: Final = 65536
STAMP: Final = re.compile(rb"@(\d+)@")


class ClientFailed(Exception):
    """A client is not there, failed, took too long or did not print the answer: no figures, then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One client, run once. Times are CLOCK_MONOTONIC in ns; CPU is user and system together."""

    spawn_ns: int
    first_ns: int
    last_ns: int
    exit_ns: int
    output_bytes: int
    cpu_s: float
    peak_mb: float

    @property
    def wall_s(self) -> float:
        return (self.exit_ns - self.spawn_ns) / 1e9

    @property
    def output_s(self) -> float:
        """From the first output to the last."""
        return (self.last_ns - self.first_ns) / 1e9


class Stamps:
    """Collects the times that the server wrote into the text, each with the time of its being read."""

    def __init__(self) -> None:
        self.pairs: list[tuple[int, int]] = []
        self._rest = b""

    def take(self, at_ns: int, data: bytes) -> None:
        """One read of the output; a stamp may lie across two of them."""
        data = self._rest + data
        end = 0
        for found in STAMP.finditer(data):
            self.pairs.append((int(found[1]), at_ns))
            end = found.end()
        self._rest = data[end:]


def discard(_at_ns: int, _data: bytes) -> None:
    """Where only the amount of output matters."""


def curl(base_url: str) -> list[str]:
    """The floor: it parses nothing and prints the frames as they come."""
    header = "Content-Type: application/json"
    body = '{"model": "bench", "messages": [{"role": "user", "content": "hi"}], "stream": true}'
    return ["curl", "-sN", "--fail", "-H", header, "-d", body, f"{base_url}/chat/completions"]


def bare(base_url: str) -> list[str]:
    """The script beside this file."""
    script = Path(__file__).with_name("httpx_json.py")
    return [sys.executable, str(script), f"{base_url}/chat/completions"]


def ours(base_url: str) -> list[str]:
    """The installed command."""
    options = ["--base-url", base_url, "--shape", "openai-chat", "-m", "bench", "--no-footer", "hi"]
    return [*ours_command(), *options]


def ours_command() -> list[str]:
    """``llmstream`` of this interpreter's environment, or else the package run as a module."""
    installed = shutil.which("llmstream", path=str(Path(sys.executable).parent))
    return [installed] if installed else [sys.executable, "-m", "llmstream_cli"]


Client = Callable[[str], Sequence[str]]
CLIENTS: Final[Mapping[str, Client]] = {CURL: curl, BARE: bare, OURS: ours}


def environment(home: Path) -> dict[str, str]:
    """No settings, keys or proxies of the person who runs this: they would be measured too."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "LANG": "C.UTF-8"}


def run(argv: Sequence[str], env: dict[str, str], take: Callable[[int, bytes], None] = discard) -> Run:
    """Run a client to its end; ``take`` gets every read of its output and when it was read.

    Raises `ClientFailed` with what the client wrote to standard error.
    """
    with tempfile.TemporaryFile() as errors:
        spawn_ns = time.monotonic_ns()
        try:
            child = subprocess.Popen(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        except OSError as error:
            raise ClientFailed(f"cannot start {argv[0]}: {error}") from error
        limit = threading.Timer(RUN_LIMIT_S, child.kill)
        limit.start()
        try:
            return _watch(child, spawn_ns, take)
        except ClientFailed as error:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
            raise ClientFailed(f"{' '.join(argv)}\n{error}: {said}") from None
        finally:
            limit.cancel()


def _watch(child: subprocess.Popen[bytes], spawn_ns: int, take: Callable[[int, bytes], None]) -> Run:
    assert child.stdout is not None
    first_ns = last_ns = output_bytes = 0
    with child.stdout as pipe:
        while data := os.read(pipe.fileno(), READ_BYTES):
            last_ns = time.monotonic_ns()
            first_ns = first_ns or last_ns
            output_bytes += len(data)
            take(last_ns, data)
    # Popen.wait would reap the child without its resource usage.
    _, status, usage = os.wait4(child.pid, 0)
    exit_ns = time.monotonic_ns()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise ClientFailed(f"ended with {child.returncode}")
    return Run(
        spawn_ns=spawn_ns,
        first_ns=first_ns,
        last_ns=last_ns,
        exit_ns=exit_ns,
        output_bytes=output_bytes,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024),
    )
