"""The files of the conversations: one each, private, JSON lines, written as things happen.

Every record is handed to the system at once, so that a killed program loses nothing; the pieces of an
answer are gathered for `FLUSH_S` first. A line that cannot be read, such as half a line, is skipped.
"""

import json
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llmstream_cli.errors import ConfigError, UsageError
from llmstream_cli.events import Json
from llmstream_cli.files import make_private_dir
from llmstream_cli.history.dialogue import Dialogue, Record

FLUSH_S = 0.5
_NAME = re.compile(r"\w[\w .-]{0,79}")
_SUFFIX = ".jsonl"
_TITLE_LENGTH = 60


class ConversationLog:
    """One conversation's open file. It is created with its first record, so that no empty ones are left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._lock = threading.Lock()
        self._pieces: list[str] = []
        self._timer: threading.Timer | None = None

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(_SUFFIX)

    def write(self, record: Record) -> None:
        """Append one record, after the pieces that wait. ConfigError if the file cannot be written."""
        with self._lock:
            self._flush()
            self._append(record)

    def piece(self, text: str) -> None:
        """A part of the answer: it is in the file after `FLUSH_S` seconds at most."""
        with self._lock:
            self._pieces.append(text)
            if self._timer is None:
                self._timer = threading.Timer(FLUSH_S, self._flush_later)
                self._timer.daemon = True
                self._timer.start()

    def open(self) -> None:
        """Take an existing file, so that no second program writes into it. ConfigError if one does."""
        with self._lock:
            self._open()

    def rename(self, path: Path) -> None:
        """The same conversation under another name. UsageError if there is one of that name."""
        if path.exists():
            raise UsageError(f"There is a conversation called {path.name.removesuffix(_SUFFIX)} already.")
        was_open = self._descriptor is not None
        # Windows renames no file that is open; the next record opens it again.
        self.close()
        try:
            if was_open:
                os.replace(self.path, path)
        except OSError as error:
            raise ConfigError(f"cannot rename {self.path}: {error.strerror}") from error
        self.path = path

    def close(self) -> None:
        with self._lock:
            self._flush()
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _flush_later(self) -> None:
        with self._lock:
            try:
                self._flush()
            except ConfigError:
                # The answer's last record tries again, where the error has somebody to tell.
                pass

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pieces:
            text, self._pieces = "".join(self._pieces), []
            self._append({"type": "piece", "text": text})

    def _append(self, record: Record) -> None:
        line = json.dumps(record, ensure_ascii=False) + "\n"
        try:
            # One call for one line: what is killed in between leaves a whole line or none.
            os.write(self._open(), line.encode("utf-8", "replace"))
        except OSError as error:
            raise ConfigError(f"cannot save the conversation in {self.path}: {error.strerror}") from error

    def _open(self) -> int:
        if self._descriptor is None:
            make_private_dir(self.path.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            descriptor = os.open(self.path, flags, 0o600)
            if not _locked(descriptor):
                os.close(descriptor)
                raise ConfigError(
                    f"The conversation {self.name} is open in another llmstream.",
                    hint="End that one first, or start a conversation of its own without -c and --session.",
                )
            self._descriptor = descriptor
            self._end_half_line()
        return self._descriptor

    def _end_half_line(self) -> None:
        """What was cut in the middle of a line must not take the next record with it."""
        data = self.path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.write(self._open(), b"\n")
        if not data:
            started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            os.write(
                self._open(),
                json.dumps({"type": "conversation", "v": 1, "started": started}).encode() + b"\n",
            )


def _locked(descriptor: int) -> bool:
    """Claim the file for this process, where the system has such locks."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """``title``: how the first question begins."""

    name: str
    title: str
    messages: int


class Shelf:
    """All conversations, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new(self) -> ConversationLog:
        """A conversation with a name of its own."""
        name = f"{time.strftime('%Y-%m-%d-%H%M')}-{secrets.token_hex(2)}"
        return ConversationLog(self.path(name))

    def path(self, name: str) -> Path:
        """UsageError for what cannot be the name of a file everywhere."""
        if not _NAME.fullmatch(name) or name.endswith((".", " ")):
            raise UsageError(
                f"A conversation cannot be called {name!r}.",
                hint="Letters, digits, and . - _ or spaces between them, at most 80.",
            )
        return self.folder / (name + _SUFFIX)

    def log(self, name: str) -> ConversationLog:
        return ConversationLog(self.path(name))

    def exists(self, name: str) -> bool:
        return self.path(name).exists()

    def load(self, name: str) -> Dialogue:
        """What was said in the conversation called `name`; nothing where there is none."""
        return Dialogue(_records(self.path(name)))

    def last(self) -> str | None:
        """The conversation that was changed last."""
        newest = self._newest_first()
        return newest[0].name.removesuffix(_SUFFIX) if newest else None

    def summaries(self) -> Iterator[Summary]:
        """The newest first."""
        for path in self._newest_first():
            said = Dialogue(_records(path)).said
            first = " ".join(said[0].text.split()) if said else ""
            yield Summary(
                name=path.name.removesuffix(_SUFFIX),
                title=first if len(first) <= _TITLE_LENGTH else f"{first[:_TITLE_LENGTH]} …",
                messages=len(said),
            )

    def search(self, words: str) -> Iterator[Summary]:
        """Those in which something that was said holds `words`, in any case."""
        wanted = words.casefold()
        for summary in self.summaries():
            if any(wanted in said.text.casefold() for said in self.load(summary.name).said):
                yield summary

    def _newest_first(self) -> list[Path]:
        paths = self.folder.glob(f"*{_SUFFIX}")
        return sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True)


def _records(path: Path) -> Iterator[Record]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"cannot read the conversation {path}: {error.strerror}") from error
    for line in data.split(b"\n"):
        try:
            record: Json = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record
