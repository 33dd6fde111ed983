"""``llmstream tap`` between a client and a server: nothing changes, everything is recorded."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest

from llmstream_cli.capture import read_capture
from llmstream_cli.loopback import HOST
from llmstream_cli.shapes import get_shape
from llmstream_cli.simulate.faults import apply_faults, parse_fault
from llmstream_cli.simulate.replies import Reply, reply_of_text
from llmstream_cli.simulate.server import Served, SimulatedServer
from llmstream_cli.tap.proxy import Tapped, TapServer
from tests.support.command import Running, llmstream

PATH = "/v1/chat/completions"
KEY = "sk-secret-0123456789"


def reply(*faults: str) -> Reply:
    return apply_faults(
        reply_of_text("Grüße aus Köln 🙂", get_shape("openai-chat")), [parse_fault(text) for text in faults]
    )


class Tap:
    """A tap before `base_url`, and what it told."""

    def __init__(self, base_url: str, folder: Path) -> None:
        self.tapped: list[Tapped] = []
        self._told = threading.Semaphore(0)
        self.server = TapServer(base_url, folder, on_tapped=self._note)

    def _note(self, tapped: Tapped) -> None:
        self.tapped.append(tapped)
        self._told.release()

    def wait(self) -> Tapped:
        assert self._told.acquire(timeout=10)
        return self.tapped[-1]


@contextmanager
def tapping(base_url: str, folder: Path) -> Iterator[Tap]:
    tap = Tap(base_url, folder)
    with tap.server:
        yield tap


def ask(port: int) -> bytes:
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    body = json.dumps({"model": "x", "stream": True})
    connection.request("POST", PATH, body, {"Authorization": f"Bearer {KEY}"})
    return connection.getresponse().read()


@pytest.mark.parametrize("faults", [(), ("gzip",), ("split-characters",), ("loading",)])
def test_bytes_pass_unchanged_and_are_recorded(tmp_path: Path, faults: tuple[str, ...]) -> None:
    sent = reply(*faults)
    with SimulatedServer(sent) as server, tapping(server.base_url, tmp_path) as tap:
        assert ask(tap.server.port) == sent.body
        tapped = tap.wait()
    capture = read_capture(tapped.file)
    assert b"".join(data for _, data in capture.reads) == sent.body
    assert (capture.path, capture.status, capture.end) == (PATH, sent.status, "chunked-end")
    assert KEY not in tapped.file.read_text("utf-8")


def test_a_cut_body_is_cut_for_the_client_too(tmp_path: Path) -> None:
    sent = reply("cut-after-event=3", "no-last-chunk")
    with SimulatedServer(sent) as server, tapping(server.base_url, tmp_path) as tap:
        with pytest.raises(http.client.IncompleteRead):
            ask(tap.server.port)
        assert read_capture(tap.wait().file).end == "eof"


def test_a_client_that_leaves_is_told_to_the_server(tmp_path: Path) -> None:
    left: list[Served] = []
    told = threading.Event()

    def on_served(served: Served) -> None:
        left.append(served)
        told.set()

    with (
        SimulatedServer(reply("stall-after-event=2"), on_served=on_served) as server,
        tapping(server.base_url, tmp_path) as tap,
    ):
        with socket.create_connection((HOST, tap.server.port), timeout=10) as client:
            client.sendall(f"POST {PATH} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}".encode())
            got = b""
            while b"content" not in got:
                got += client.recv(65536)
        assert told.wait(10)
        assert left[0].client_left
        assert read_capture(tap.wait().file).end == "client-abort"


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with SimulatedServer(reply()) as server:
        gone = server.base_url
    with tapping(gone, tmp_path) as tap:
        assert b"gave no answer" in ask(tap.server.port)
        assert tap.wait().status is None


def test_the_sdk_of_openai_through_the_command_and_the_replay(tmp_path: Path) -> None:
    with SimulatedServer(reply()) as server:
        running = Running("tap", server.base_url, "--into", str(tmp_path / "taps"))
        url = running.read_until(b"\n").decode().strip()
        client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
        with client, client.chat.completions.create(model="x", messages=[], stream=True) as chunks:
            texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        assert running.process.stderr is not None
        told = running.process.stderr.readline() + running.process.stderr.readline()
        running.interrupt()
        done = running.finish()
    assert "".join(texts) == "Grüße aus Köln 🙂"
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert "0001.jsonl" in told.decode()
    assert "✓" in told.decode()
    again = llmstream("replay", str(tmp_path / "taps" / "0001.jsonl"))
    assert (again.code, again.text) == (0, "Grüße aus Köln 🙂\n")
