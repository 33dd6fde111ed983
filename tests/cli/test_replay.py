"""Recordings asked again: at their pace, cut anew, damaged, and compared."""

import json
import time
from pathlib import Path

import pytest

from llmstream_cli.capture import read_capture
from llmstream_cli.session.comparing import told_lines
from llmstream_cli.session.pacing import paced, recut
from llmstream_cli.shapes import get_shape
from tests.support.captures import ROOT
from tests.support.command import Finished, Running, llmstream

CAPTURE = ROOT / "llama.cpp" / "chat_multibyte_stream.jsonl"
NATIVE = ROOT / "llama.cpp" / "native_limit_stream.jsonl"


def replayed(*arguments: str) -> Finished:
    return llmstream("replay", *arguments)


def without_times(done: Finished) -> dict[str, object]:
    found: dict[str, object] = json.loads(done.out)
    del found["timing"]
    return found


@pytest.mark.parametrize("split", ["1", "7", "bytes"])
def test_the_cut_of_the_reads_changes_nothing(split: str) -> None:
    whole = replayed(str(CAPTURE), "--json")
    again = replayed(str(CAPTURE), "--json", "--split", split)
    assert whole.code == again.code == 0
    assert without_times(again) == without_times(whole)


@pytest.mark.parametrize("size", [1, 2, 3, 100, 10**6])
def test_reads_cut_anew_hold_the_same_bytes(size: int) -> None:
    reads = read_capture(CAPTURE).reads
    again = list(recut(reads, size))
    assert b"".join(data for _, data in again) == b"".join(data for _, data in reads)
    assert all(len(data) == size for _, data in again[:-1])
    assert 0 < len(again[-1][1]) <= size
    assert [at_s for at_s, _ in again] == sorted(at_s for at_s, _ in again)


def test_a_read_is_never_earlier_than_its_last_byte() -> None:
    assert list(recut([(0.0, b"ab"), (1.0, b"cd")], 3)) == [(1.0, b"abc"), (1.0, b"d")]
    assert list(recut([], 3)) == []


def test_the_pace() -> None:
    began = time.monotonic()
    assert list(paced([(0.0, b"a"), (0.4, b"b")], 4)) == [(0.0, b"a"), (0.4, b"b")]
    assert 0.1 <= time.monotonic() - began < 0.4
    assert list(paced([(0.0, b"a"), (1e9, b"b")], 0)) == [(0.0, b"a"), (1e9, b"b")]


def test_ctrl_c_ends_a_slow_replay_and_keeps_what_came(tmp_path: Path) -> None:
    head, status, first, *_ = CAPTURE.read_text("utf-8").splitlines()
    slow = {**json.loads(first), "t": 1e6}
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hel\n"}}]}
    said = {"t": 0, "text": f"data: {json.dumps(chunk)}\n\n"}
    file = tmp_path / "slow.jsonl"
    file.write_text("\n".join([head, status, json.dumps(said), json.dumps(slow)]), "utf-8")
    running = Running("replay", str(file), "--speed", "1")
    running.read_until(b"Hel")
    running.interrupt()
    done = running.finish()
    assert done.code == 130
    assert "stopped by you" in done.err.lower()
    assert "4 characters kept" in done.err


@pytest.mark.parametrize(
    "arguments",
    [("--split", "0"), ("--split", "x"), ("--speed", "nan"), ("--speed=-1",), ("--speed", "inf")],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    done = replayed(str(CAPTURE), *arguments)
    assert (done.code, done.out) == (2, b"")
    assert arguments[0].partition("=")[0] in done.err


def test_a_recording_is_equal_to_itself_however_it_is_cut() -> None:
    done = replayed(str(CAPTURE), "--diff", str(CAPTURE), "--split", "3")
    assert (done.code, done.out) == (0, b"")
    assert "say the same" in done.err


def test_the_cut_into_deltas_is_no_difference(tmp_path: Path) -> None:
    def recording(name: str, *pieces: str) -> Path:
        lines = [*CAPTURE.read_text("utf-8").splitlines()[:2]]
        for piece in pieces:
            chunk = {"choices": [{"index": 0, "delta": {"content": piece}}]}
            lines.append(json.dumps({"t": 1, "text": f": still here\n\ndata: {json.dumps(chunk)}\n\n"}))
        file = tmp_path / name
        file.write_text("\n".join([*lines, json.dumps({"t": 2, "end": "eof"})]), "utf-8")
        return file

    left, right = recording("a", "one two"), recording("b", "one", " ", "two")
    assert replayed(str(left), "--diff", str(right)).code == 0
    other = replayed(str(left), "--diff", str(recording("c", "one three")))
    assert other.code == 11
    assert '-{"type": "text", "text": "one two"}\n+{"type": "text", "text": "one three"}\n' in other.text


def test_a_truncated_recording_says_what_is_missing_and_differs_from_the_whole(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(NATIVE.read_bytes()[:-400])
    done = replayed(str(cut))
    assert done.code == 8
    assert "is damaged" in done.err
    assert "the end of the exchange is missing" in done.err
    compared = replayed(str(NATIVE), "--diff", str(cut))
    assert compared.code == 11
    assert '+{"type": "end", "how": "incomplete"}' in compared.text


def test_lines_told_of_a_recording() -> None:
    first, *_, last = told_lines(read_capture(NATIVE), get_shape("llamacpp"))
    assert first == "HTTP status 200"
    assert last == '{"type": "end", "how": "complete"}'
