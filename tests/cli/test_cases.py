"""Public failures of other command-line clients, by case of ``tests/corpus/cli-cases.jsonl``."""

import json
import os
import signal
import socket
import subprocess
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_terminal import ChatTerminal, conversations
from tests.support.command import COMMAND, Finished, Running, llmstream
from tests.support.screen import CommandOnScreen
from tests.support.wire_server import CA_FILE, Received, Reply, WireServer, Write, json_reply

CASES = Path(__file__).parent.parent / "corpus" / "cli-cases.jsonl"
ELSEWHERE = {
    "truncation-blamed-on-format": "validation of structured output comes with that feature",
    "indented-code-blocks-for-copy": "no such option is promised",
    "newline-smuggled-into-shell-command": "llmstream suggests no commands",
    "markdown-reparsed-for-every-token": "tests/render/markdown/test_commit.py: characters parsed",
    "sdk-import-cost": "bench/",
    "keys-file-empty-or-list": "tests/test_keys.py",
    "yaml-without-required-key": "tests/test_profiles.py",
    "stale-tail-after-shorter-write": "tests/test_profiles.py: files are replaced whole",
    "temp-file-shared-by-processes": "tests/test_profiles.py: unique temporary names",
    "no-proxy-must-be-honoured": "tests/test_transport_network.py",
    "localhost-resolves-to-ipv6-first": "tests/test_transport_network.py",
    "private-ca-not-accepted": "tests/test_transport_network.py",
}


def chunk(text: str | None, finish: str | None = None) -> bytes:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


END = chunk(None, "stop") + b"data: [DONE]\n\n"


def saying(*texts: str) -> Reply:
    return Reply(writes=[*(chunk(text) for text in texts), END])


def echo(request: Received) -> Reply:
    return saying(request.json()["messages"][-1]["content"])


def ask(server: WireServer, *arguments: str | bytes, **kwargs: Any) -> Finished:
    return llmstream("--base-url", server.base_url, "--shape", "openai-chat", *arguments, **kwargs)


@pytest.fixture
def ok() -> Iterator[WireServer]:
    with WireServer(saying("ok")) as server:
        yield server


@pytest.fixture
def echoing() -> Iterator[WireServer]:
    with WireServer(echo) as server:
        yield server


def history() -> list[dict[str, Any]]:
    """The records of the only conversation."""
    (path,) = conversations()
    return [json.loads(line) for line in path.read_text().splitlines()]


def in_chat(server: WireServer, *arguments: str) -> tuple[str, ...]:
    return ("chat", "--base-url", server.base_url, "--shape", "openai-chat", *arguments)


def test_surrogate_in_prompt_kills_history_write(echoing: WireServer) -> None:
    done = ask(echoing, b"caf\xe9")
    assert (done.code, done.text) == (0, "caf\ufffd\n")
    kept = llmstream(*in_chat(echoing), b"caf\xe9")
    assert (kept.code, kept.text) == (0, "caf\ufffd\n")
    said = [record["text"] for record in history() if record["type"] in ("user", "answer")]
    assert said == ["caf\ufffd", "caf\ufffd"]


def test_partial_turn_dropped_from_history() -> None:
    with WireServer(Reply(writes=[chunk("abc ")], end="hold")) as server:
        run = Running(*in_chat(server, "tell me"))
        run.read_until(b"abc ")
        run.interrupt()
        done = run.finish()
    assert done.code == 130
    assert "stopped by you" in done.err
    *_, question, piece, answer = history()
    assert question == {"type": "user", "text": "tell me"}
    assert piece["text"] == "abc "
    assert (answer["type"], answer["text"], answer["cut"]) == ("answer", "abc ", "stopped")


def test_ctrl_c_should_stop_the_answer_not_the_program() -> None:
    def choose(request: Received) -> Reply:
        endless = b"long" in request.body and b"next" not in request.body
        return Reply(writes=[chunk("partial")], end="hold") if endless else saying("ok")

    with WireServer(choose) as server, ChatTerminal(*in_chat(server)) as terminal:
        terminal.ready()
        terminal.send("long")
        terminal.until("partial")
        terminal.interrupt()
        assert "stopped by you" in terminal.ready()
        terminal.interrupt()
        terminal.until("again or Ctrl-D")
        terminal.ready()
        assert "ok" in terminal.say("next")
        assert terminal.leave() == 0


def test_continue_mode_ignores_stdin(echoing: WireServer) -> None:
    llmstream(*in_chat(echoing, "before"))
    env = {"LLMSTREAM_BASE_URL": echoing.base_url, "LLMSTREAM_SHAPE": "openai-chat"}
    done = llmstream("--continue", stdin=b"hello\n", env=env)
    assert (done.code, done.text) == (0, "hello\n")
    assert [message["content"] for message in echoing.requests[-1].json()["messages"]] == [
        "before",
        "before",
        "hello",
    ]


def test_chat_without_anything_to_say_or_to_type_at(echoing: WireServer) -> None:
    assert llmstream(*in_chat(echoing)).code == 2
    assert llmstream(*in_chat(echoing, "--curl", "hi")).code == 2


def test_legacy_console_block_char() -> None:
    with WireServer(saying("\u2588\u2588 50%")) as server:
        done = ask(server, "draw a bar", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.code, done.text) == (0, "\u2588\u2588 50%\n")
    assert "Traceback" not in done.err


def test_ten_minute_library_default() -> None:
    with WireServer(Reply(end="hold", transfer="none")) as server:
        done = ask(server, "--first-token-timeout", "0.5", "hi")
    assert done.code == 7
    assert "--first-token-timeout" in done.err
    assert "0.5 s" in done.err


def test_server_keeps_generating_after_ctrl_c() -> None:
    with WireServer(Reply(writes=[chunk("abc ")], end="hold")) as server:
        run = Running("--base-url", server.base_url, "--shape", "openai-chat", "count")
        run.read_until(b"abc ")
        run.interrupt()
        done = run.finish()
        server.wait_for_request().wait_closed()
    assert done.code == 130
    assert "stopped by you" in done.err
    assert "Traceback" not in done.err
    assert done.out == b"\n"


def test_ctrl_c_while_prompt_is_processed() -> None:
    with WireServer(Reply(end="hold")) as server:
        run = Running("--base-url", server.base_url, "--shape", "openai-chat", "hi")
        request = server.wait_for_request()
        run.interrupt()
        done = run.finish()
        request.wait_closed()
    assert done.code == 130
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) == 1


def test_ctrl_c_before_headers() -> None:
    with WireServer(Reply(end="hold", transfer="none")) as server:
        run = Running("--base-url", server.base_url, "--shape", "openai-chat", "hi")
        request = server.wait_for_request()
        run.interrupt()
        done = run.finish()
        request.wait_closed()
    assert done.code == 130
    assert "Traceback" not in done.err


def test_ctrl_c_inside_a_tool_call() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "write", "arguments": '{"text": "ab'}}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
    head = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    with WireServer(Reply(writes=[head], end="hold")) as server:
        run = Running("--base-url", server.base_url, "--shape", "openai-chat", "--format", "jsonl", "hi")
        run.read_until(b"tool_call")
        run.interrupt()
        done = run.finish()
    assert done.code == 130
    end = json.loads(done.text.splitlines()[-1])
    assert (end["status"], end["tool_calls"][0]["valid"]) == ("cancelled", False)
    assert "Traceback" not in done.err


def test_two_ctrl_c_in_a_row() -> None:
    with WireServer(Reply(writes=[chunk("abc")], end="hold")) as server:
        run = Running("--base-url", server.base_url, "--shape", "openai-chat", "hi")
        run.read_until(b"abc")
        run.interrupt()
        run.interrupt()
        done = run.finish()
    assert done.code in (130, -signal.SIGINT)
    assert "Traceback" not in done.err


def test_ctrl_c_inside_asyncio_run() -> None:
    noisy = {"PYTHONWARNINGS": "default", "PYTHONDEVMODE": "1"}
    with WireServer(Reply(writes=[chunk("abc")], end="hold")) as server:
        run = Running("--base-url", server.base_url, "--shape", "openai-chat", "hi", env=noisy)
        run.read_until(b"abc")
        run.interrupt()
        done = run.finish()
    assert done.code == 130
    for word in ("Traceback", "Unclosed", "ResourceWarning"):
        assert word not in done.err


def test_no_tty_but_nothing_piped(ok: WireServer) -> None:
    closed = [*COMMAND, "--base-url", ok.base_url, "--shape", "openai-chat", "say hi"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *closed], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"ok\n")


def test_no_tty_but_a_socket_as_stdin(ok: WireServer) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = ask(ok, "hi", stdin=theirs.fileno())
    assert (done.code, done.text) == (0, "ok\n")


def test_reads_stdin_with_no_data(ok: WireServer) -> None:
    read_end, write_end = os.pipe()
    try:
        done = ask(ok, "hi", stdin=read_end, env={"TERM": "dumb", "CI": "1"})
    finally:
        os.close(read_end)
        os.close(write_end)
    assert (done.code, done.text) == (0, "ok\n")
    assert "nothing came through the pipe" in done.err


def test_stdin_silently_dropped(echoing: WireServer) -> None:
    done = ask(echoing, "QUESTION", stdin=b"DATA\n")
    assert (done.code, done.text) == (0, "DATA\n\nQUESTION\n")


def test_pipe_starts_a_repl(echoing: WireServer) -> None:
    done = ask(echoing, stdin=b"hello\n")
    assert (done.code, done.text) == (0, "hello\n")


def test_keyboard_reader_needs_terminal(ok: WireServer) -> None:
    arguments = [*COMMAND, "--base-url", ok.base_url, "--shape", "openai-chat", "q"]
    done = subprocess.run(
        arguments, input=b"text", capture_output=True, timeout=60, check=False, start_new_session=True
    )
    assert (done.returncode, done.stdout) == (0, b"ok\n")


def test_special_files_refused(echoing: WireServer) -> None:
    command = '"$@" -f <(echo I am a banana) "who are you"'
    arguments = [*COMMAND, "--base-url", echoing.base_url, "--shape", "openai-chat"]
    done = subprocess.run(
        ["bash", "-c", command, "bash", *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"I am a banana\n\nwho are you\n")


@pytest.mark.parametrize("env", [{}, {"COLUMNS": "", "LINES": "", "TERM": ""}, {"TERM": "dumb"}])
def test_control_characters_in_redirected_output(env: dict[str, str]) -> None:
    with WireServer(Reply(writes=[0.6, chunk("hello"), END])) as server:
        done = ask(server, "hi", env=env)
    assert (done.code, done.out) == (0, b"hello\n")
    assert "\x1b" not in done.err


def test_invalid_bytes_on_stdin(echoing: WireServer) -> None:
    done = ask(echoing, "which colour", stdin=b"gr\xfcn")
    assert (done.code, done.text) == (0, "gr\ufffdn\n\nwhich colour\n")
    assert "not valid UTF-8 at byte 2" in done.err


def test_windows_pipe_gives_surrogates(echoing: WireServer) -> None:
    env = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "utf-8:surrogateescape"}
    done = ask(echoing, stdin=b"\xe2\x80\x9cq\xe2\x80\x9d \x9d", env=env)
    assert done.code == 0
    assert "\u201cq\u201d" in done.text


def test_stop_in_the_wrong_place() -> None:
    line = {"message": {"content": "ok"}, "done": True, "done_reason": "stop"}
    with WireServer(json_reply(line, headers=[])) as server:
        arguments = ("--base-url", server.base_url, "--shape", "ollama-chat", "-m", "m")
        done = llmstream(*arguments, "--stop", "Observation:", "hi")
        body = server.requests[-1].json()
    assert done.code == 0
    assert body["options"]["stop"] == ["Observation:"]
    assert "stop" not in body
    assert None not in [*body.values(), *body["options"].values()]


def test_newline_as_stop_cannot_be_typed(ok: WireServer) -> None:
    ask(ok, "--stop", r"\n", "hi")
    ask(ok, "--stop-raw", r"\n", "hi")
    assert [request.json()["stop"] for request in ok.requests] == [["\n"], ["\\n"]]


def test_stop_option_swallows_next_option(ok: WireServer) -> None:
    done = ask(ok, "--stop", "--verbose", "hi")
    assert done.code == 2
    assert "--stop needs a value" in done.err
    assert not ok.requests


def test_stop_with_trailing_space(ok: WireServer) -> None:
    done = ask(ok, "-v", "--stop", "### ", "hi")
    assert ok.requests[0].json()["stop"] == ["### "]
    assert "ends in a space" in done.err


def test_thoughts_and_answer_run_together() -> None:
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "hmm"}, "finish_reason": None}]}
    reply = Reply(writes=[b"data: " + json.dumps(thought).encode() + b"\n\n", chunk("4"), END])
    with WireServer(reply) as server:
        plain, shown = ask(server, "q"), ask(server, "--reasoning", "show", "q")
        only = ask(server, "--reasoning", "only", "q")
    assert (plain.out, shown.out, only.out) == (b"4\n", b"4\n", b"hmm\n")
    assert "hmm" not in plain.err
    assert "hmm" in shown.err


def test_key_in_url() -> None:
    done = llmstream("-v", "--base-url", "http://user:pw@127.0.0.1:9/v1?key=SECRETKEY", "hi")
    assert done.code == 6
    assert "SECRETKEY" not in done.err
    assert "pw" not in done.err


PROXIES = {
    "HTTP_PROXY": "http://127.0.0.1:1",
    "http_proxy": "http://127.0.0.1:1",
    "ALL_PROXY": "http://127.0.0.1:1",
    "NO_PROXY": "",
}


def test_proxy_used_for_localhost(ok: WireServer) -> None:
    url = f"http://localhost:{ok.port}/v1"
    done = llmstream("--base-url", url, "--shape", "openai-chat", "hi", env=PROXIES)
    assert (done.code, done.text) == (0, "ok\n")


def test_no_proxy_does_not_match_0000() -> None:
    line = {"message": {"content": "ok"}, "done": True, "done_reason": "stop"}
    with WireServer(json_reply(line)) as server:
        env = {**PROXIES, "OLLAMA_HOST": f"0.0.0.0:{server.port}"}
        done = llmstream("-p", "ollama", "-m", "m", "hi", env=env)
    assert (done.code, done.text) == (0, "ok\n")


def test_socks_proxy_breaks_import() -> None:
    done = llmstream("--version", env={"HTTP_PROXY": "socks5h://127.0.0.1:9", "ALL_PROXY": "foo://bar"})
    assert done.code == 0


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/", "/v1//"])
def test_trailing_slash_gives_double_slash(ok: WireServer, suffix: str) -> None:
    done = llmstream("--base-url", f"http://127.0.0.1:{ok.port}{suffix}", "--shape", "openai-chat", "hi")
    assert done.code == 0
    assert ok.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize("form", ["localhost:{}", ":{}", "http://localhost:{}/", "127.0.0.1:{}/"])
def test_ollama_host_forms(form: str) -> None:
    line = {"message": {"content": "ok"}, "done": True, "done_reason": "stop"}
    with WireServer(json_reply(line)) as server:
        done = llmstream("-p", "ollama", "-m", "m", "hi", env={"OLLAMA_HOST": form.format(server.port)})
    assert (done.code, done.text) == (0, "ok\n")


def test_bare_ipv6_host() -> None:
    with WireServer(saying("ok"), host="::1") as server:
        done = ask(server, "hi")
        assert server.requests[0].headers["host"] == f"[::1]:{server.port}"
    assert (done.code, done.text) == (0, "ok\n")


def test_private_ca(tmp_path: Path) -> None:
    with WireServer(saying("ok"), tls=True) as server:
        url = f"https://localhost:{server.port}/v1"
        trusted = llmstream(
            "--base-url", url, "--shape", "openai-chat", "hi", env={"SSL_CERT_FILE": str(CA_FILE)}
        )
        strange = llmstream("--base-url", url, "--shape", "openai-chat", "hi")
    assert (trusted.code, trusted.text) == (0, "ok\n")
    assert strange.code == 6
    assert "SSL_CERT_FILE" in strange.err


def test_whole_answer_redrawn_each_time() -> None:
    text = [f"paragraph {number}\n\n" for number in range(50)]
    with WireServer(saying(*text)) as server:
        done = ask(server, "long")
    assert done.text == "".join(text)


def test_rendering_starves_the_socket() -> None:
    texts = ["x" * 99 + "\n"] * 2000
    with WireServer(saying(*texts)) as server:
        run = Running("--base-url", server.base_url, "--shape", "openai-chat", "long")
        server.wait_for_request()
        done = run.finish()
    assert done.code == 0
    assert done.text == "".join(texts)


def test_stream_options_refused() -> None:
    refusal = {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "no"}]}

    def choose(request: Received) -> Reply:
        return json_reply(refusal, status=422) if "stream_options" in request.json() else saying("ok")

    with WireServer(choose) as server:
        done = ask(server, "hi")
        assert len(server.requests) == 2
    assert (done.code, done.text) == (0, "ok\n")


def test_reader_that_leaves(ok: WireServer) -> None:
    # After the second delta the server is silent: the reader's leaving must be noticed without a write.
    with WireServer(Reply(writes=[chunk("line\n"), chunk("more\n")], end="hold")) as server:
        arguments = [*COMMAND, "--base-url", server.base_url, "--shape", "openai-chat", "long"]
        done = subprocess.run(
            ["bash", "-c", '"$@" | head -n 1; exit ${PIPESTATUS[0]}', "bash", *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        server.wait_for_request().wait_closed()
    assert (done.returncode, done.stdout) == (141, b"line\n")
    assert done.stderr == b""


def on_screen(server: WireServer, columns: int = 80, rows: int = 24) -> CommandOnScreen:
    return CommandOnScreen(
        *("--base-url", server.base_url, "--shape", "openai-chat", "--quiet", "go"),
        columns=columns,
        rows=rows,
    )


def test_live_redraw_miscounts_rows() -> None:
    lines = [f"{number:02} 👩‍💻 ⚠️ 中文 text\n" for number in range(60)]
    resized = threading.Event()
    writes: list[Write] = [*map(chunk, lines[:30]), resized, *map(chunk, lines[30:]), END]
    with WireServer(Reply(writes=writes)) as server:
        run = on_screen(server, columns=40)
        run.wait_until(lambda rows: any(row.startswith("29") for row in rows))
        run.resize(30)
        resized.set()
        assert run.ended() == 0
    assert [row[:2] for row in run.screen.lines()] == [f"{number:02}" for number in range(60)]


def test_taller_than_screen_cropped() -> None:
    lines = [f"line {number}" for number in range(1, 201)]
    with WireServer(saying(*(f"{line}\n" for line in lines))) as server:
        run = on_screen(server, rows=10)
        assert run.ended() == 0
    assert run.screen.lines() == lines


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6])
def test_negative_slice_drops_lines(count: int) -> None:
    lines = [f"line {number}" for number in range(count)]
    seen = threading.Event()
    writes: list[Write] = [
        *(chunk(f"{line}\n") for line in lines[:-1]),
        seen,
        *(chunk(line) for line in lines[-1:]),
        END,
    ]
    with WireServer(Reply(writes=writes)) as server:
        run = on_screen(server)
        run.wait_until(lambda rows: rows == lines[:-1])
        seen.set()
        assert run.ended() == 0
    assert run.screen.lines() == lines


def test_reflow_overwrites_previous_row() -> None:
    words = ["fifteen"] * 9 + ["code", ",", "ich", " weiß"]
    text = "".join(f" {word}" if word.isalpha() else word for word in words).lstrip()
    with WireServer(saying(*(letter for letter in text))) as server:
        run = on_screen(server)
        assert run.ended() == 0
    assert run.screen.lines() == textwrap.wrap(text, 79)


@pytest.mark.parametrize("columns", [38, 39, 40])
def test_wide_glyph_doubled_at_wrap(columns: int) -> None:
    text = "".join(chr(0x4E00 + number) for number in range(60))
    with WireServer(saying(*text)) as server:
        run = on_screen(server, columns=columns)
        assert run.ended() == 0
    assert "".join(run.screen.lines()) == text


def test_every_case_is_somewhere() -> None:
    """Each case of the corpus is a test of this module or has its reason in `ELSEWHERE`."""
    names = {json.loads(line)["id"] for line in CASES.read_text().splitlines()}
    tested = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    covered = {
        "ctrl-c-while-prompt-is-processed",
        "interrupt-handler-itself-crashes",
        "hang-under-dumb-term",
        "spinner-breaks-captured-console",
    }
    assert names - tested - covered == set(ELSEWHERE)
