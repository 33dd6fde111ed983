"""``llmstream simulate``, as the server of ``llmstream ask`` and of others."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import openai
import pytest

from llmstream_cli.simulate.faults import FAULTS
from tests.support.captures import ROOT
from tests.support.command import Finished, Running, llmstream

NATIVE = ROOT / "llama.cpp" / "native_limit_stream.jsonl"


@contextmanager
def simulated(*arguments: str) -> Iterator[tuple[str, Running]]:
    """The base URL of a running server; Ctrl-C ends it."""
    running = Running("simulate", *arguments)
    try:
        yield running.read_until(b"\n").decode().strip(), running
    finally:
        running.interrupt()
        done = running.finish()
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert "Stopped" in done.err


def asked(url: str, *arguments: str) -> Finished:
    return llmstream("--base-url", url, "--retries", "0", *arguments, "hi")


def test_an_answer_and_its_end() -> None:
    with simulated("--text", "Grüße aus Köln") as (url, _):
        done = asked(url, "--shape", "openai-chat")
    assert (done.code, done.text) == (0, "Grüße aus Köln\n")


def test_faults_add_up() -> None:
    with simulated("--shape", "ollama-chat", "--fault", "cut-after-event=2", "--fault", "reset") as (url, _):
        done = asked(url, "--shape", "ollama-chat", "-m", "x")
    assert done.code == 8
    assert done.text == "Grüße! This\n"


def test_a_recording() -> None:
    whole = llmstream("replay", str(NATIVE))
    with simulated("--capture", str(NATIVE)) as (url, _):
        done = asked(url, "--shape", "llamacpp")
    assert (done.code, done.out) == (whole.code, whole.out)


def test_the_sdk_of_openai_reads_it() -> None:
    with simulated("--text", "one two") as (url, _):
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        with client, client.chat.completions.create(model="x", messages=[], stream=True) as chunks:
            texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "one two"


def test_the_list_names_every_fault() -> None:
    done = llmstream("simulate", "--list")
    assert done.code == 0
    assert [line.split("=")[0].split()[0] for line in done.text.splitlines()] == list(FAULTS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--shape", "nope"), "There is no shape 'nope'"),
        (("--shape", "vercel-ai"), "--capture FILE"),
        (("--fault", "nope"), "--list names them all"),
        (("--fault", "cut-after-event=x"), "wants a number"),
        (("--text", "a", "--capture", "b"), "contradict"),
        (("--port", "70000"), "--port wants"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], says: str) -> None:
    done = llmstream("simulate", *arguments)
    assert (done.code, done.out) == (2, b"")
    assert says in done.err


def test_a_file_that_is_no_recording() -> None:
    done = llmstream("simulate", "--capture", __file__)
    assert (done.code, done.out) == (3, b"")
    assert "is not a capture" in done.err


def test_nothing_of_the_client_is_loaded() -> None:
    modules = "llmstream_cli.simulate.server, llmstream_cli.simulate.faults"
    code = f"import sys, {modules}; print('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"
