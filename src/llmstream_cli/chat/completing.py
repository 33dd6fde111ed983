"""What Tab offers: the names of commands, and after a command what it takes."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from llmstream_cli.render.sanitize import harmless


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """``words``: what the command called by its name or alias takes, given what is typed of it."""

    commands: tuple[str, ...]
    words: Callable[[str, str], Iterable[str]]


def completions(before: str, candidates: Candidates) -> Iterator[tuple[str, str]]:
    """For the text before the cursor: what is typed of a word, and the word."""
    if not before.startswith("/") or before.startswith("//"):
        return
    command, space, argument = before.partition(" ")
    if space:
        typed, words = argument, candidates.words(command.removeprefix("/"), argument)
    else:
        typed, words = before, [f"/{name}" for name in candidates.commands]
    for word in words:
        # Model names come from a server.
        if word.startswith(typed) and harmless(word, one_line=True) == word:
            yield typed, word


def paths(typed: str) -> list[str]:
    """Files and folders whose path begins with `typed`; those of a folder that cannot be read are none."""
    folder, _, start = typed.rpartition("/")
    where = Path(f"{folder}/" if "/" in typed else ".").expanduser()
    shown = f"{folder}/" if "/" in typed else ""
    try:
        entries = sorted(os.scandir(where), key=lambda entry: entry.name)
    except OSError:
        return []
    hidden = start.startswith(".")
    return [
        f"{shown}{entry.name}{'/' if entry.is_dir() else ''}"
        for entry in entries
        if entry.name.startswith(start) and (hidden or not entry.name.startswith("."))
    ]
