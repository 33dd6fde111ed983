"""Start the child that runs llama.cpp, wait until it serves, and take it down whatever happens."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from llmstream_cli.errors import ConfigError
from llmstream_cli.events import Json

TICK_S = 0.1
START_LIMIT_S = 120.0
LOG_TAIL_LINES = 10
LOG_ERRORS_ONLY = 1
MAX_THREADS = 4
"""A small model gets no faster with more."""


def spare_threads() -> int:
    """One thread less than there are processors, at least one.

    llama.cpp's threads wait for each other by spinning: when other work takes the place of one, all stand
    still. On two busy processors two threads made 0.5 to 15 tokens a second where one made 35; on two idle
    ones it was 70 against 48.
    """
    return max(1, min(MAX_THREADS, (os.cpu_count() or 1) - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What llama.cpp serves and how. ``extra``: further attributes of xllamacpp's ``CommonParams``."""

    model: Path
    name: str
    context_tokens: int
    slots: int = 1
    threads: int = field(default_factory=spare_threads)
    port: int = 0
    extra: Mapping[str, Json] = field(default_factory=dict)

    def settings(self) -> dict[str, Json]:
        return {
            "model.path": str(self.model),
            "model_alias": [self.name],
            "n_ctx": self.context_tokens,
            "n_parallel": self.slots,
            "cpuparams.n_threads": self.threads,
            "cpuparams_batch.n_threads": self.threads,
            "port": self.port,
            # Fitting the settings to the memory reads the vocabulary twice, warming up computes a token
            # that nobody reads: together they take longer than all the rest of the start.
            "fit_params": False,
            "warmup": False,
            "ui": False,
            # A web page in the user's browser has no business with this server.
            "cors_origins": "",
            "verbosity": LOG_ERRORS_ONLY,
            **self.extra,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    base_url: str
    process: subprocess.Popen[bytes]


@contextmanager
def run_server(options: ServerOptions, on_wait: Callable[[], None]) -> Iterator[RunningServer]:
    """Run a llama.cpp server for the length of the block; ready to answer when the block begins.

    `on_wait` is called once when the child runs and every `TICK_S` until it is ready. ConfigError with the
    end of its log if it does not start.
    """
    with tempfile.TemporaryFile() as log, _child(log) as process, _first_line(process) as report:
        _send(process, options.settings())
        base_url = _wait_for(report, on_wait)
        if not base_url:
            process.wait()
            raise ConfigError(f"the embedded llama.cpp server did not start:\n{_tail(log)}")
        yield RunningServer(base_url=base_url, process=process)


def _child(log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        # -P: a json.py in the user's folder must not be imported in place of the real one.
        [sys.executable, "-P", "-m", "llmstream_cli.local.child"],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        # A group of its own keeps the terminal's Ctrl-C from the child: the stream is closed first.
        start_new_session=sys.platform != "win32",
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


@contextmanager
def _first_line(process: subprocess.Popen[bytes]) -> Iterator["queue.SimpleQueue[bytes]"]:
    """Where the first line of the child's output will be, empty if it ends without one. Kills the child."""
    assert process.stdout is not None
    report: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    read_line = process.stdout.readline
    reader = threading.Thread(target=lambda: report.put(read_line()), daemon=True)
    reader.start()
    try:
        yield report
    finally:
        process.kill()
        # It reads from a pipe that is about to be closed.
        reader.join()


def _send(process: subprocess.Popen[bytes], settings: Mapping[str, Json]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(settings).encode() + b"\n")
    except OSError:
        # It is dead already; that shows, with its log, when its report does not come.
        pass


def _wait_for(report: "queue.SimpleQueue[bytes]", on_wait: Callable[[], None]) -> str:
    """The base URL that the child reports when the model is loaded and ``/health`` is ok; "" if it died."""
    deadline_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline_s:
        on_wait()
        try:
            return report.get(timeout=TICK_S).decode().strip()
        except queue.Empty:
            continue
    raise ConfigError(f"the embedded llama.cpp server was not ready after {START_LIMIT_S:.0f} s")


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    return "\n".join(log.read().decode("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:])
