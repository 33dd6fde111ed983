"""The simulated server: every shape's own stream, every fault, over real sockets."""

import gzip
import http.client
import json
import socket
import threading
import time
from dataclasses import replace

import pytest

from llmstream_cli.capture import read_capture
from llmstream_cli.errors import ConfigError, ConnectError, UsageError
from llmstream_cli.events import EndStatus, FinishReason
from llmstream_cli.loopback import HOST, LARGEST_HEAD_BYTES
from llmstream_cli.shapes import get_shape
from llmstream_cli.simulate.faults import FAULTS, apply_faults, parse_fault
from llmstream_cli.simulate.forms import FORMS, MODEL, PROMPT_TOKENS
from llmstream_cli.simulate.replies import Reply, Tells, reply_of_capture, reply_of_text
from llmstream_cli.simulate.server import Served, SimulatedServer
from llmstream_cli.turn import Turn
from tests.support.captures import ROOT, decode, fold

TEXT = "Grüße aus\n\nKöln, 🙂 done. "
WORDS = 6


def reply(*faults: str, shape: str = "openai-chat") -> Reply:
    return apply_faults(reply_of_text(TEXT, get_shape(shape)), [parse_fault(fault) for fault in faults])


def turn_of(sent: Reply, shape: str = "openai-chat") -> Turn:
    kind = dict(sent.headers)["Content-Type"]
    pieces = [write.data for write in sent.writes]
    return fold(decode(pieces, shape=shape, body={"stream": True}, content_type=kind))


def asked(sent: Reply, *, limit_s: float = 5.0) -> tuple[http.client.HTTPResponse, bytes]:
    with SimulatedServer(sent) as server:
        connection = http.client.HTTPConnection(HOST, server.port, timeout=limit_s)
        connection.request("POST", "/v1/chat/completions", b'{"stream": true}')
        response = connection.getresponse()
        return response, response.read()


@pytest.mark.parametrize("shape", FORMS)
def test_every_form_is_what_its_shape_reads(shape: str) -> None:
    turn = turn_of(reply(shape=shape), shape)
    assert turn.first.text == TEXT
    assert turn.end.status is EndStatus.COMPLETE
    assert turn.end.marker_seen is not False
    assert turn.first.finish is not None
    assert turn.first.finish.reason in (FinishReason.STOP, FinishReason.EOS)
    assert turn.start.model in (MODEL, None)
    assert turn.usage is not None
    assert (turn.usage.prompt_tokens, turn.usage.completion_tokens) == (PROMPT_TOKENS, WORDS)


@pytest.mark.parametrize("shape", FORMS)
def test_an_error_is_what_its_shape_calls_one(shape: str) -> None:
    turn = turn_of(reply("error-after-event=2", shape=shape), shape)
    assert turn.end.status is EndStatus.ERROR
    assert turn.end.error is not None
    assert "broke off" in turn.end.error.message


@pytest.mark.parametrize("shape", FORMS)
def test_every_event_is_told_what_it_brings(shape: str) -> None:
    told = [write.tells for write in reply(shape=shape).writes]
    assert told.count(Tells.OUTPUT) == WORDS
    assert told.count(Tells.FINISH) == 1
    assert told[-1] in (Tells.FINISH, Tells.MARKER)


@pytest.mark.parametrize("shape", FORMS)
@pytest.mark.parametrize(
    "fault",
    ["crlf", "no-space", "keep-alives", "split-characters", "split-bytes=3", "burst=4", "delay-events=1"],
)
def test_what_changes_only_the_form_changes_no_event(shape: str, fault: str) -> None:
    assert turn_of(reply(fault, shape=shape), shape).choices == turn_of(reply(shape=shape), shape).choices


@pytest.mark.parametrize("shape", FORMS)
def test_no_counts(shape: str) -> None:
    turn = turn_of(reply("usage-null", shape=shape), shape)
    assert turn.end.status is EndStatus.COMPLETE
    assert turn.usage is None or turn.usage.completion_tokens is None


def test_faults_of_events() -> None:
    whole = reply().writes
    assert reply("cut-after-event=3").writes == whole[:3]
    assert reply("cut-after-byte=10").body == reply().body[:10]
    assert [write.tells for write in reply("no-terminal-event").writes].count(Tells.OUTPUT) == WORDS
    assert not any(write.tells in (Tells.FINISH, Tells.MARKER) for write in reply("no-terminal-event").writes)
    assert reply("no-marker").writes == whole[:-1]
    assert len(reply("duplicate-terminal-event").writes) == len(whole) + 2
    assert reply("keep-alives").body.count(b": keep-alive\n\n") == len(whole)
    stalled = reply("stall-after-event=2")
    assert (stalled.writes, stalled.end) == (whole[:2], "stall")


def test_faults_of_time() -> None:
    assert reply("delay-headers=2").headers_delay_s == 2
    assert [write.delay_s for write in reply("delay-first-token=2").writes[:3]] == [0, 2, 0]
    assert [write.delay_s for write in reply("delay-events=2").writes[:3]] == [0, 2, 2]
    assert [write.delay_s for write in reply("delay-events=2", "burst=3").writes[:2]] == [4, 6]
    assert apply_faults(replace(reply(), writes=()), [parse_fault("delay-events=1")]).body == b""


def test_faults_of_bytes() -> None:
    assert b"\r\n\r\n" in reply("crlf").body
    assert b"data:{" in reply("no-space").body
    split = reply("split-characters").writes
    assert b"".join(write.data for write in split) == reply().body
    assert any(write.data.endswith(b"\xc3") for write in split)
    assert any(write.data.endswith(b"\xf0") for write in split)
    assert {len(write.data) for write in reply("split-bytes=2").writes} <= {1, 2}
    packed = reply("gzip")
    assert gzip.decompress(packed.body) == reply().body
    assert ("Content-Encoding", "gzip") in packed.headers


def test_the_order_in_which_faults_are_given_means_nothing() -> None:
    assert reply("gzip", "crlf", "cut-after-event=2") == reply("cut-after-event=2", "crlf", "gzip")


@pytest.mark.parametrize(
    "text",
    [
        "nope",
        "crlf=1",
        "cut-after-event",
        "cut-after-event=-1",
        "split-bytes=0",
        "delay-headers=nan",
        "burst=x",
    ],
)
def test_a_fault_that_makes_no_sense(text: str) -> None:
    with pytest.raises(UsageError):
        parse_fault(text)


def test_every_fault_says_what_it_does_and_changes_something() -> None:
    for fault in FAULTS.values():
        assert fault.help
        assert fault.apply(reply(), max(1, fault.least)) != reply(), fault.name


def test_what_is_sent_is_what_was_built() -> None:
    response, body = asked(reply())
    assert (response.status, response.headers["Content-Type"]) == (200, "text/event-stream")
    assert body == reply().body


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        ("html-page", 200, "text/html"),
        ("too-many-requests=3", 429, "application/json"),
        ("loading", 503, "application/json"),
    ],
)
def test_another_answer_in_place_of_the_stream(fault: str, status: int, kind: str) -> None:
    response, body = asked(reply(fault))
    assert (response.status, response.headers["Content-Type"]) == (status, kind)
    assert body
    assert response.headers["Retry-After"] == ("3" if status == 429 else None)


@pytest.mark.parametrize(
    ("fault", "error"), [("no-last-chunk", http.client.IncompleteRead), ("reset", ConnectionResetError)]
)
def test_a_body_without_its_end(fault: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        asked(reply(fault, "cut-after-event=2"))


def test_silence_lasts_until_the_client_leaves() -> None:
    served: list[Served] = []
    told = threading.Event()

    def on_served(what: Served) -> None:
        served.append(what)
        told.set()

    with SimulatedServer(reply("stall-after-event=1"), on_served=on_served) as server:
        with socket.create_connection((HOST, server.port), timeout=5) as client:
            client.sendall(b"POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
            got = b""
            while b'"role"' not in got:
                got += client.recv(65536)
            assert not told.is_set()
        assert told.wait(5)
    assert (served[0].method, served[0].path, served[0].client_left) == ("POST", "/x", True)


def test_a_delay_is_kept() -> None:
    began = time.monotonic()
    asked(reply("delay-headers=0.2"))
    assert time.monotonic() - began >= 0.2


def test_stopping_does_not_wait_for_a_stalled_answer() -> None:
    began = time.monotonic()
    with SimulatedServer(reply("stall-after-event=0")) as server:
        client = socket.create_connection((HOST, server.port), timeout=5)
        client.sendall(b"POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        assert client.recv(65536)
    client.close()
    assert time.monotonic() - began < 3


def test_whoever_looks_around_finds_a_model() -> None:
    with SimulatedServer(reply()) as server:
        for path, status in (("/v1/models", 200), ("/health", 404)):
            connection = http.client.HTTPConnection(HOST, server.port, timeout=5)
            connection.request("GET", path)
            response = connection.getresponse()
            assert response.status == status
            assert json.loads(response.read())


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        b"X: " + b"y" * (LARGEST_HEAD_BYTES + 65536),
    ],
)
def test_what_is_no_request_gets_no_answer(request_bytes: bytes) -> None:
    with SimulatedServer(reply()) as server:
        with socket.create_connection((HOST, server.port), timeout=5) as client:
            answer = b"nothing"
            try:
                client.sendall(request_bytes)
                answer = client.recv(65536)
            except ConnectionError:
                answer = b""
            assert answer == b""
        # And the next one is answered as ever.
        connection = http.client.HTTPConnection(HOST, server.port, timeout=5)
        connection.request("POST", "/", b"{}", {"Expect": "100-continue"})
        assert connection.getresponse().read() == reply().body


def test_a_body_in_chunks_is_read() -> None:
    with SimulatedServer(reply()) as server:
        connection = http.client.HTTPConnection(HOST, server.port, timeout=5)
        connection.request("POST", "/", iter([b"{", b"}"]), encode_chunked=True)
        assert connection.getresponse().read() == reply().body


def test_a_port_that_is_taken() -> None:
    with SimulatedServer(reply()) as server, pytest.raises(ConnectError, match="cannot listen"):
        SimulatedServer(reply(), port=server.port)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("llama.cpp/chat_multibyte_stream", "openai-chat"),
        ("llama.cpp/native_limit_stream", "llamacpp"),
        ("vllm/chat_length_stream", "openai-chat"),
    ],
)
def test_a_recording_is_sent_as_it_was(name: str, shape: str) -> None:
    capture = read_capture(ROOT / f"{name}.jsonl")
    sent = reply_of_capture(capture, get_shape(shape))
    assert sent.body == b"".join(data for _, data in capture.reads)
    assert sent.status == 200
    assert [write.tells for write in sent.writes].count(Tells.FINISH) == 1
    assert len(sent.writes) > 3


def test_a_compressed_recording_is_sent_plain() -> None:
    capture = read_capture(ROOT / "llama.cpp" / "chat_multibyte_stream.jsonl")
    plain = b"".join(data for _, data in capture.reads)
    packed = replace(
        capture,
        headers=(*capture.headers, ("Content-Encoding", "gzip")),
        reads=((0.0, gzip.compress(plain)),),
    )
    sent = reply_of_capture(packed, get_shape("openai-chat"))
    assert sent.body == plain
    assert "content-encoding" not in {name.lower() for name, _ in sent.headers}
    with pytest.raises(ConfigError, match="cannot be read"):
        reply_of_capture(replace(packed, reads=((0.0, b"plain"),)), get_shape("openai-chat"))
