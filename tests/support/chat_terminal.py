"""``llmstream chat`` in a terminal of its own, with a person who types."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pexpect

PROMPT_SHOWN = r"\x1b\[\?2004h"
"""The line editor asks the terminal to mark what is pasted, whenever it begins to read."""
CTRL_C, CTRL_D, CTRL_J, ALT_ENTER = "\x03", "\x04", "\n", "\x1b\r"
LIMIT_S = 60
_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>])")


class ChatTerminal:
    """`program`: what runs, the arguments of ``llmstream`` unless it is a shell command."""

    def __init__(
        self, *arguments: str, env: Mapping[str, str] | None = None, shell: str | None = None
    ) -> None:
        command = [sys.executable, "-m", "llmstream_cli", *arguments]
        if shell is not None:
            command = ["sh", "-c", shell, "sh", *command]
        self.child = pexpect.spawn(
            command[0],
            command[1:],
            env={**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})},
            dimensions=(40, 120),
            encoding="utf-8",
            timeout=LIMIT_S,
        )

    def __enter__(self) -> "ChatTerminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.child.close(force=True)

    def ready(self) -> str:
        """Wait for the prompt; what was shown before it."""
        return self.until(PROMPT_SHOWN)

    def until(self, pattern: str) -> str:
        self.child.expect(pattern)
        return plain(self.child.before + self.child.after)

    def type(self, text: str) -> None:
        self.child.send(text)

    def send(self, text: str) -> None:
        """Type a line and Enter."""
        self.child.send(f"{text}\r")

    def say(self, text: str) -> str:
        """Send a line and wait for the next prompt; what was shown in between."""
        self.send(text)
        return self.ready()

    def interrupt(self) -> None:
        self.child.send(CTRL_C)

    def leave(self) -> int:
        """Ctrl-D at an empty prompt; the exit code."""
        self.child.send(CTRL_D)
        return self.ended()

    def ended(self) -> int:
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus)


def plain(text: str) -> str:
    return _SEQUENCE.sub("", text).replace("\r\n", "\n")


def state_folder() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "llmstream"


def conversations() -> list[Path]:
    return sorted((state_folder() / "conversations").glob("*.jsonl"))
