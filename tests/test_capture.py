"""Captures: what is written is read back, secrets are not in it, damage is told and never fatal."""

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmstream_cli.capture import CaptureWriter, mask_headers, mask_secrets, read_capture
from llmstream_cli.errors import ConfigError
from tests.support import captures
from tests.support.captures import ROOT

KEY = "sk-proj-0123456789abcdef"
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "é\n"}]}
PROPERTY = settings(deadline=None, derandomize=True, database=None, max_examples=100)


def write(
    path: Path, reads: list[tuple[float, bytes]], *, secrets: tuple[str, ...] = (), end: str = "chunked-end"
) -> None:
    writer = CaptureWriter(path, secrets=secrets)
    headers = {"Authorization": f"Bearer {KEY}", "Accept": "*/*"}
    writer.request(method="POST", path="/v1/chat/completions", headers=headers, body=BODY, note="a note")
    writer.head(0.05, 200, [("Content-Type", "text/event-stream"), ("Set-Cookie", "a=b")])
    for at_s, data in reads:
        writer.read(at_s, data)
    writer.end(2.5, end)


def test_the_lines_of_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, [(0.1234567, b"data: 1\n\n"), (0.2, b"\xff\xfe")])
    assert [json.loads(line) for line in path.read_bytes().splitlines()] == [
        {
            "v": 1,
            "server": None,
            "version": None,
            "endpoint": "/v1/chat/completions",
            "request": {
                "method": "POST",
                "path": "/v1/chat/completions",
                "headers": {"Authorization": "Bearer ***", "Accept": "*/*"},
                "body": BODY,
            },
            "note": "a note",
        },
        {"t": 0.05, "status": 200, "headers": [["Content-Type", "text/event-stream"], ["Set-Cookie", "***"]]},
        {"t": 0.123457, "text": "data: 1\n\n"},
        {"t": 0.2, "b64": "//4="},
        {"t": 2.5, "end": "chunked-end"},
    ]


@PROPERTY
@given(st.lists(st.binary(max_size=30), max_size=5))
def test_any_bytes_come_back(tmp_path_factory: pytest.TempPathFactory, reads: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("capture") / "a.jsonl"
    write(path, [(index / 10, data) for index, data in enumerate(reads)], end="reset")
    capture = read_capture(path)
    assert [data for _, data in capture.reads] == reads
    assert (capture.status, capture.end, capture.end_s, capture.faults) == (200, "reset", 2.5, ())
    assert (capture.path, capture.body) == ("/v1/chat/completions", BODY)
    assert capture.header("content-type") == "text/event-stream"
    assert capture.header("content-encoding") == ""


@pytest.mark.parametrize("name", captures.names())
def test_every_recording_is_read_without_a_fault(name: str) -> None:
    capture, reference = read_capture(ROOT / f"{name}.jsonl"), captures.load(name)
    assert capture.reads == reference.reads
    assert (capture.status, capture.headers, capture.end) == (
        reference.status,
        reference.headers,
        reference.end,
    )
    assert capture.body == reference.request_body
    wanted = () if reference.status is not None else ("the response head is missing",)
    assert capture.faults == wanted


# Secrets


def test_no_secret_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    quotes = 'pass"word\\é-long'
    writer = CaptureWriter(path, secrets=(KEY, quotes, ""))
    writer.request(
        method="POST",
        path=f"/v1/chat/completions?key={KEY}",
        headers={"X-Api-Key": KEY, "Cookie": KEY, "X-Other": f"a {KEY}"},
        body={"messages": [{"content": f"{KEY} {quotes}"}], "n": 1, "x": None, "y": [True, 1.5]},
        note=KEY,
    )
    writer.head(0.0, 401, [("X-Echo", KEY), ("WWW-Authenticate", f"Bearer {KEY}")])
    writer.read(0.1, f"Incorrect API key provided: {KEY}.".encode())
    writer.read(0.2, b"\xff" + KEY.encode() + b"\xff")
    writer.end(0.3, "eof")
    text = path.read_text("ascii")
    assert KEY not in text
    assert json.dumps(quotes)[1:-1] not in text
    capture = read_capture(path)
    assert capture.path == "/v1/chat/completions?key=***"
    assert capture.body == {"messages": [{"content": "*** ***"}], "n": 1, "x": None, "y": [True, 1.5]}
    assert [data for _, data in capture.reads] == [b"Incorrect API key provided: ***.", b"\xff***\xff"]


def test_a_placeholder_for_a_key_does_not_spoil_the_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, [(0.1, b'data: {"text":"ollama"}\n\n')], secrets=("ollama", "text", "t"))
    assert read_capture(path).reads == ((0.1, b'data: {"text":"ollama"}\n\n'),)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Authorization", "Bearer abc def", "Bearer ***"),
        ("authorization", "abc", "***"),
        ("Proxy-Authorization", "Basic abc", "Basic ***"),
        ("X-API-Key", "a b", "***"),
        ("api-key", "abc", "***"),
        ("x-goog-api-key", "abc", "***"),
        ("Ocp-Apim-Subscription-Key", "abc", "***"),
        ("X-Auth-Token", "abc", "***"),
        ("CF-Access-Client-Secret", "abc", "***"),
        ("Cookie", "abc", "***"),
        (" Set-Cookie ", "abc", "***"),
        ("Content-Type", "text/plain", "text/plain"),
        ("x-ratelimit-remaining-tokens", "12", "12"),
        ("X-Keyboard", "qwerty", "qwerty"),
    ],
)
def test_headers_are_masked_by_name(name: str, value: str, shown: str) -> None:
    assert mask_headers([(name, value)]) == [(name, shown)]


def test_masking_changes_strings_only() -> None:
    value = {"text": ["a secret!", 1, None, True, {"secret!": "secret!"}]}
    assert mask_secrets(value, ["secret!"]) == {"text": ["a ***", 1, None, True, {"secret!": "***"}]}


# Files


def test_a_new_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, [])
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"\r" not in path.read_bytes()


def test_an_old_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("x" * 10_000)
    write(path, [])
    assert read_capture(path).faults == ()


def test_a_crash_leaves_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    writer = CaptureWriter(path)
    writer.request(method="POST", path="/completion", headers={}, body={})
    writer.head(0.1, 200, [])
    writer.read(0.2, b"data: 1\n\n")
    capture = read_capture(path)
    assert capture.reads == ((0.2, b"data: 1\n\n"),)
    assert capture.faults == ("the end of the exchange is missing",)
    writer.end(0.3, "eof")


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot write the capture .*: No such file or directory"):
        CaptureWriter(tmp_path / "missing" / "a.jsonl")


def test_a_disk_that_is_full() -> None:
    writer = CaptureWriter(Path("/dev/full"))
    with pytest.raises(ConfigError, match="cannot write the capture /dev/full: No space left on device"):
        writer.request(method="POST", path="/", headers={}, body={})


# Damage


def read_lines(tmp_path: Path, *lines: str | bytes) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(line.encode() if isinstance(line, str) else line for line in lines))
    return path


def test_damaged_lines_are_told_by_number(tmp_path: Path) -> None:
    path = read_lines(
        tmp_path,
        '{"v": 1, "request": {"path": "/completion", "body": null}}',
        "",
        "{oops",
        b"\xff\xfe",
        "[1]",
        '{"t": 0.1, "b64": "*"}',
        '{"t": "soon", "text": 5}',
        "[" * 100_000,
        '{"t": 0.2, "text": "half \\ud83d"}',
        '{"t": 0.3, "unknown": 1}',
        '{"status": "OK", "headers": [["a", "b"], ["c"], 5, [1, 2]]}',
    )
    capture = read_capture(path)
    assert capture.faults == (
        "line 3 is damaged",
        "line 4 is damaged",
        "line 5 is damaged",
        "line 8 is damaged",
        "line 6 holds no readable bytes",
        "line 7 holds no readable bytes",
        "the response head is missing",
        "the end of the exchange is missing",
    )
    assert (capture.path, capture.body, capture.status) == ("/completion", {}, None)
    assert capture.headers == (("a", "b"), ("1", "2"))
    assert capture.reads == ((0.2, b"half \xed\xa0\xbd"),)


def test_reads_without_a_head_are_still_a_capture(tmp_path: Path) -> None:
    capture = read_capture(read_lines(tmp_path, '{"t": 1.5, "text": "data: 1"}'))
    assert (capture.reads, capture.path, capture.end, capture.end_s) == (((1.5, b"data: 1"),), "", None, 1.5)
    assert capture.faults == (
        "the request is missing",
        "the response head is missing",
        "the end of the exchange is missing",
    )


@pytest.mark.parametrize("content", ["", "hello\nworld", '{"a": 1}', "[]"])
def test_what_is_no_capture_at_all(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigError, match="is not a capture: no request, no status, no bytes in it"):
        read_capture(read_lines(tmp_path, content))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the capture .*: No such file or directory"):
        read_capture(tmp_path / "missing.jsonl")
    with pytest.raises(ConfigError, match=r"cannot read the capture .*: Is a directory"):
        read_capture(tmp_path)
