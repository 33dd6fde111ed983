"""The llmstream command in a process of its own."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COMMAND = (sys.executable, "-m", "llmstream_cli")
LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a run ended; the streams as bytes and as text."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


def llmstream(
    *arguments: str | bytes,
    stdin: bytes | int | None = subprocess.DEVNULL,
    env: Mapping[str, str] | None = None,
) -> Finished:
    """Run to the end. `stdin`: bytes to pipe in, or a file descriptor."""
    given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        timeout=LIMIT_S,
        env={**os.environ, **(env or {})},
        check=False,
        **given,
    )
    return Finished(code=done.returncode, out=done.stdout, err=done.stderr.decode())


class Running:
    """A run that is watched while it goes on."""

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )

    def first_output(self) -> bytes:
        return self.read_until(b"")

    def read_until(self, text: bytes) -> bytes:
        """What stdout has said up to and including `text`, at least something; fails if it ends without."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(LIMIT_S, self.process.kill)
        watchdog.start()
        got = b""
        try:
            while not got or text not in got:
                piece = os.read(self.process.stdout.fileno(), 65536)
                assert piece, f"stdout ended after {got!r}"
                got += piece
        finally:
            watchdog.cancel()
        return got

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def finish(self) -> Finished:
        out, err = self.process.communicate(timeout=LIMIT_S)
        return Finished(code=self.process.returncode, out=out, err=err.decode())
