"""The command against a real llama.cpp: every ending that the server knows, on every shape it speaks."""

import json
import threading
from typing import Any

import pytest

from tests.support.command import Finished, Running, llmstream
from tests.support.llama import LlamaServer, free_port, llama_server

TEN = "one two three four five six seven eight nine ten"
EMOJI = "Hi \U0001f469\u200d\U0001f469\u200d\U0001f467 你好 \U0001f1e9\U0001f1ea é \U00012000 end"
SHAPES = ("openai-chat", "openai-completions", "llamacpp")
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
TOOLS = json.dumps([TOOL, {"type": "function", "function": {"name": "add", "parameters": {}}}])


def ask(server: LlamaServer, *arguments: str) -> Finished:
    return llmstream("--base-url", server.base_url, "--temp", "0", *arguments)


def turn(server: LlamaServer, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = ask(server, "--json", *arguments)
    assert done.code == code, done.err
    return dict(json.loads(done.out))


@pytest.mark.parametrize("shape", SHAPES)
def test_natural_end(tiny_server: LlamaServer, shape: str) -> None:
    said = turn(tiny_server, "--shape", shape, "-n", "60", "Count")
    assert (said["status"], said["text"], said["truncated"]) == ("complete", TEN, False)
    assert said["finish"]["reason"] == ("eos" if shape == "llamacpp" else "stop")
    assert said["usage"]["completion_tokens"] == 11


@pytest.mark.parametrize("shape", SHAPES)
def test_stop_string(tiny_server: LlamaServer, shape: str) -> None:
    said = turn(tiny_server, "--shape", shape, "-n", "60", "--stop", " four", "Count")
    assert (said["status"], said["text"]) == ("complete", "one two three")
    assert said["warnings"] == []
    if shape == "llamacpp":
        assert said["finish"] == {"reason": "stop_sequence", "raw": "word", "stop_sequence": " four"}


def test_identified_llama_cpp_says_which_stop_string_matched(tiny_server: LlamaServer) -> None:
    done = ask(tiny_server, "--stop", " four", "Count")
    assert (done.code, done.text) == (0, "one two three\n")
    assert done.err.startswith('✓ stopped at " four" · 15 in')
    for fact in ("out tokens", "first token", "tok/s", "tiny-llama"):
        assert fact in done.err


@pytest.mark.parametrize("shape", SHAPES)
def test_cap(tiny_server: LlamaServer, shape: str) -> None:
    done = ask(tiny_server, "--shape", shape, "-n", "3", "Count")
    assert (done.code, done.text) == (0, "one two three\n")
    assert "⚠ Cut off at 3 tokens (the cap set by -n)" in done.err
    assert ask(tiny_server, "--shape", shape, "-n", "3", "--fail-on-truncation", "Count").code == 10


@pytest.mark.parametrize("shape", SHAPES)
def test_emoji_split_over_tokens(tiny_server: LlamaServer, shape: str) -> None:
    assert ask(tiny_server, "--shape", shape, "-n", "80", "Emoji").text == EMOJI + "\n"


def test_tools(tiny_server: LlamaServer) -> None:
    said = turn(tiny_server, "-o", f"tools={TOOLS}", "Weather in Oslo?")
    assert said["finish"]["reason"] == "tool_calls"
    assert {(call["name"], call["valid"]) for call in said["tool_calls"]} == {("get_weather", True)}


def test_cut_tool_call(tiny_server: LlamaServer) -> None:
    said = turn(tiny_server, "-n", "20", "-o", f"tools={TOOLS}", "Weather in Oslo?")
    assert said["truncated"]
    assert [call["valid"] for call in said["tool_calls"]] == [False]


def test_reasoning() -> None:
    # The test model's template knows nothing of thinking; the server is told how its thoughts look.
    with llama_server(reasoning_format=2) as server:
        said = turn(server, "1+1?")
    assert "It is two." in said["text"]
    assert "One and one." in (said["reasoning"] or said["text"])


@pytest.mark.parametrize("shape", SHAPES)
def test_empty_answer(tiny_server: LlamaServer, shape: str) -> None:
    done = ask(tiny_server, "--shape", shape, "Nothing")
    assert (done.code, done.out) == (0, b"")
    assert "The answer is empty" in done.err


def test_prompt_over_the_context(tiny_server: LlamaServer) -> None:
    said = turn(tiny_server, "word " * 3000, code=4)
    assert said["status"] == "error"
    assert said["error"]["kind"] == "exceed_context_size_error"
    assert said["error"]["http_status"] == 400


@pytest.mark.parametrize("shape", SHAPES)
def test_context_fills_while_generating(shape: str) -> None:
    with llama_server(context_tokens=256) as server:
        said = turn(server, "--shape", shape, "-o", "ignore_eos=true", "Count")
    assert said["truncated"]
    assert said["finish"]["reason"] == ("context" if shape == "llamacpp" else "length")


def test_wrong_key() -> None:
    with llama_server(api_key="right") as server:
        env = {"KEY": "wrong-SECRET", "GOOD": "right"}
        arguments = ("--base-url", server.base_url, "--shape", "openai-chat", "--api-key-env")
        wrong = llmstream(*arguments, "KEY", "Count", env=env)
        right = llmstream(*arguments, "GOOD", "--temp", "0", "Count", env=env)
    assert wrong.code == 4
    assert "Invalid API Key" in wrong.err
    assert "SECRET" not in wrong.err
    assert (right.code, right.text) == (0, TEN + "\n")


def test_loading_is_waited_for(gemma_model: Any) -> None:
    port = free_port()
    started = threading.Event()

    def serve() -> None:
        with llama_server(gemma_model, name="gemma", port=port):
            started.wait(60)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        while True:
            done = llmstream("--base-url", f"127.0.0.1:{port}", "--shape", "llamacpp", "-n", "2", "hi")
            if done.code != 6:
                break
    finally:
        started.set()
        thread.join()
    assert done.code == 0, done.err


def test_server_killed_in_mid_stream(gemma_model: Any) -> None:
    with llama_server(gemma_model, name="gemma") as server:
        run = Running(
            "--base-url",
            server.base_url,
            "--shape",
            "llamacpp",
            "--json",
            "-o",
            "ignore_eos=true",
            "-n",
            "400",
            "Go",
        )
        server_is_busy(server)
        server.process.kill()
        done = run.finish()
    assert done.code in (8, 5), done.err
    assert json.loads(done.out)["status"] == "incomplete"
    assert "Traceback" not in done.err


def test_client_abort_frees_the_slot(gemma_server: LlamaServer) -> None:
    run = Running(
        "--base-url",
        gemma_server.base_url,
        "--shape",
        "llamacpp",
        "-o",
        "ignore_eos=true",
        "-n",
        "1500",
        "Go on",
    )
    assert run.first_output()
    run.interrupt()
    done = run.finish()
    assert gemma_server.wait_until_idle() < 10
    assert done.code == 130
    assert "stopped by you" in done.err


def server_is_busy(server: LlamaServer) -> None:
    while server.is_idle():
        pass


def test_local_profile() -> None:
    done = llmstream("-p", "local", "What is the capital of Iceland?")
    assert (done.code, done.text) == (0, "The capital of Iceland is Reykjavik.\n")
    assert done.err.startswith('✓ stopped at "\\nUser:" · ')
    assert done.err.rstrip().endswith("gemma-3-270m @ local")


def test_record_and_replay(tiny_server: LlamaServer, tmp_path: Any) -> None:
    file = tmp_path / "answer.jsonl"
    said = turn(tiny_server, "--record", str(file), "--stop", " four", "Count")
    replayed = llmstream("replay", str(file), "--json")
    again = json.loads(replayed.out)
    assert replayed.code == 0
    for key in ("status", "text", "finish", "usage"):
        assert again[key] == said[key]
    assert file.stat().st_mode & 0o077 == 0


def test_formats(tiny_server: LlamaServer) -> None:
    lines = ask(tiny_server, "--format", "jsonl", "Count").text.splitlines()
    events = [json.loads(line) for line in lines]
    assert "".join(event["text"] for event in events if event["type"] == "text") == TEN
    assert events[-1]["type"] == "end"
    assert "text" not in events[-1]
    raw = ask(tiny_server, "--format", "raw", "Count").text
    assert raw.startswith("data: {")
    assert raw.endswith("data: [DONE]\n\n")
    assert ask(tiny_server, "--no-stream", "Count").text == TEN + "\n"


def test_models(tiny_server: LlamaServer) -> None:
    done = llmstream("models", "--base-url", tiny_server.base_url)
    assert (done.code, done.text) == (0, "tiny-llama\n")


def test_curl_gives_the_same_answer(tiny_server: LlamaServer) -> None:
    done = ask(tiny_server, "--curl", "Count")
    assert done.text.startswith(f"curl -N {tiny_server.base_url}/v1/chat/completions")
