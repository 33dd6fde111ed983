"""The example back end, run with the real libraries and a real HTTP server, read through its profile."""

import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.command import Finished, llmstream

EXAMPLE = Path(__file__).parent.parent / "examples" / "fastapi_llamaindex"
PROFILES = ["rag", "rag-plain", "rag-text"]
START_LIMIT_S = 60.0
QUESTION = "What is the\n\ncapital of Iceland?"
PROMPT = f"""\
Context information is below.
---------------------
Reykjavík is the capital of Iceland.

It has 140,000 inhabitants.
---------------------
Given the context information and not prior knowledge, answer the query.
Query: {QUESTION}
Answer: """
"""What the query engine asks its LLM, and the mock one answers with."""


@contextmanager
def served(module: str) -> Iterator[str]:
    """The base URL of `module` of the example, while uvicorn serves it on a free port."""
    command = [sys.executable, "-m", "uvicorn", f"{module}:app", "--port", "0", "--app-dir", str(EXAMPLE)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8") as server:
        assert server.stderr is not None
        watchdog = threading.Timer(START_LIMIT_S, server.kill)
        watchdog.start()
        found = next(filter(None, (re.search(r"running on (\S+)", line) for line in server.stderr)), None)
        watchdog.cancel()
        reader = threading.Thread(target=server.stderr.read)
        reader.start()
        try:
            assert found, "the server did not start"
            yield found[1]
        finally:
            server.terminate()
            reader.join()


@pytest.fixture(scope="module")
def backend() -> Iterator[str]:
    with served("app") as url:
        yield url


@pytest.fixture(scope="module")
def broken_backend() -> Iterator[str]:
    with served("broken") as url:
        yield url


def ask(url: str, profile: str, *flags: str) -> Finished:
    env = {"LLMSTREAM_CONFIG": str(EXAMPLE / "profile.toml")}
    return llmstream("-p", profile, "--url", url, *flags, QUESTION, env=env)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_answer_is_exact_and_complete(backend: str, profile: str) -> None:
    done = ask(backend, profile)
    assert (done.code, done.text) == (0, f"{PROMPT}\n")
    assert "finished (stop)" in done.err


def test_what_the_events_say_beside_the_answer_is_kept(backend: str) -> None:
    events = [json.loads(line) for line in ask(backend, "rag", "--format", "jsonl").out.splitlines()]
    assert "".join(event["text"] for event in events if event["type"] == "text") == PROMPT
    (sources,) = [event for event in events if event["type"] == "unknown"]
    assert "140,000 inhabitants" in sources["data"]
    assert events[-1]["status"] == "complete"


def test_an_error_event_is_an_error(broken_backend: str) -> None:
    done = ask(broken_backend, "rag")
    assert (done.code, done.text) == (9, f"{PROMPT[:7]}\n")
    assert "the model ran out of memory" in done.err


@pytest.mark.parametrize("profile", ["rag-plain", "rag-text"])
def test_a_broken_connection_is_no_end(broken_backend: str, profile: str) -> None:
    done = ask(broken_backend, profile)
    assert (done.code, done.text) == (8, f"{PROMPT[:7]}\n")
    assert "Incomplete: the connection closed" in done.err


def test_the_defaults_read_the_usual_form_too(backend: str) -> None:
    done = llmstream("--url", backend, "--shape", "sse", QUESTION)
    assert (done.code, done.text) == (0, f"{PROMPT}\n")


def test_without_the_profile_a_stream_without_a_mark_is_incomplete(backend: str, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[profiles.p]\nshape = "sse"\nbase_url = "{backend}"\nstream.path = "/chat/plain"\n')
    done = llmstream("-p", "p", "hello", env={"LLMSTREAM_CONFIG": str(config)})
    assert done.code == 8
    assert "without a finish reason or an end mark" in done.err


def test_a_stop_string_is_cut_here(backend: str) -> None:
    done = ask(backend, "rag", "--stop", "capital")
    assert (done.code, done.text) == (0, PROMPT[: PROMPT.index("capital")] + "\n")
    assert "sse has no stop parameter" in done.err


@pytest.mark.parametrize("profile", PROFILES)
def test_a_recording_is_read_through_the_same_profile(backend: str, profile: str, tmp_path: Path) -> None:
    capture = tmp_path / "capture.jsonl"
    asked = ask(backend, profile, "--record", str(capture))
    env = {"LLMSTREAM_CONFIG": str(EXAMPLE / "profile.toml")}
    replayed = llmstream("replay", "-p", profile, str(capture), env=env)
    assert (replayed.code, replayed.out) == (asked.code, asked.out)


def test_the_request_as_curl_sends_it(backend: str) -> None:
    curl = shlex.split(ask(backend, "rag-text", "--curl").text.replace("\\\n", ""))
    assert curl == ["curl", "-N", "-G", f"{backend}/ask", "--data-urlencode", f"q={QUESTION}"]
    assert '{"message": "What is the' in ask(backend, "rag", "--curl").text
