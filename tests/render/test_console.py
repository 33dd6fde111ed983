"""Standard output: when what is written really leaves."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from llmstream_cli.render.console import StandardOutput


@contextmanager
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Standard output is a pipe; gives its reading end."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with os.fdopen(write_end, "w", encoding="utf-8") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield read_end
    os.close(read_end)


def arrived(reader: int) -> bytes | None:
    try:
        return os.read(reader, 65536)
    except BlockingIOError:
        return None


def test_every_delta_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with piped(monkeypatch) as reader:
        StandardOutput().write("one")
        assert arrived(reader) == b"one"


def test_what_is_held_leaves_with_the_next_flush_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with piped(monkeypatch) as reader:
        stdout = StandardOutput()
        with stdout.holding():
            stdout.write("one ")
            stdout.write("two")
            assert arrived(reader) is None
            stdout.flush()
            assert arrived(reader) == b"one two"
            stdout.write("three")
        assert arrived(reader) == b"three"
        stdout.write("four")
        assert arrived(reader) == b"four"
