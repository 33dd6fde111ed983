"""The chat as a person sees it: in a terminal, against real servers."""

import json
import os
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_terminal import (
    ALT_ENTER,
    CTRL_C,
    CTRL_J,
    ChatTerminal,
    conversations,
    state_folder,
)
from tests.support.command import llmstream
from tests.support.llama import LlamaServer
from tests.support.wire_server import Received, Reply, WireServer, json_reply

TEN = "one two three four five six seven eight nine ten"
NOTE = "a note\nof two lines"


def chunk(text: str | None, finish: str | None = None) -> bytes:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def saying(*texts: str) -> Reply:
    return Reply(writes=[*(chunk(text) for text in texts), chunk(None, "stop"), b"data: [DONE]\n\n"])


def talking(*replies: Reply) -> Callable[[Received], Reply]:
    """Answers to questions in order, the last one again and again; no list of models."""
    left = list(replies)

    def choose(request: Received) -> Reply:
        if request.method == "GET":
            return json_reply({"data": []})
        return left.pop(0) if len(left) > 1 else left[0]

    return choose


def asked(server: WireServer) -> list[Any]:
    """The messages of each question."""
    return [request.json()["messages"] for request in server.requests if request.method == "POST"]


def contents(messages: list[dict[str, str]]) -> list[str]:
    return [message["content"] for message in messages]


def chat(server: WireServer | LlamaServer, *arguments: str, **more: Any) -> ChatTerminal:
    shape = ("--shape", "openai-chat") if isinstance(server, WireServer) else ("--temp", "0")
    return ChatTerminal("chat", "--base-url", server.base_url, *shape, "--plain", *arguments, **more)


@pytest.fixture
def ok() -> Iterator[WireServer]:
    with WireServer(talking(saying("ok"))) as server:
        yield server


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_question_an_answer_and_a_follow_up(tiny_server: LlamaServer) -> None:
    with chat(tiny_server) as terminal:
        assert "/help" in terminal.ready()
        first = terminal.say("Count")
        assert TEN in first
        assert "✓ finished (end of sequence)" in first
        assert "out tokens" in terminal.say("Say hi")
        assert "\n  -d" in terminal.say("/curl")
        assert terminal.leave() == 0
    (path,) = conversations()
    said = [
        (record["type"], record["text"]) for record in records(path) if record["type"] in ("user", "answer")
    ]
    assert said[:3] == [("user", "Count"), ("answer", TEN), ("user", "Say hi")]
    assert len(said) == 4


def test_what_is_kept_is_private(ok: WireServer) -> None:
    with chat(ok) as terminal:
        terminal.ready()
        terminal.say("secret")
        terminal.leave()
    (path,) = conversations()
    for file in (path, state_folder() / "typed"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "secret" in file.read_text()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_ctrl_c_keeps_the_partial_and_says_so_to_the_model() -> None:
    begun = Reply(writes=[chunk("abc"), chunk(" def")], end="hold")
    with WireServer(talking(begun, saying("ok"))) as server:
        with chat(server) as terminal:
            terminal.ready()
            terminal.send("tell me")
            terminal.until("abc def")
            terminal.interrupt()
            assert "stopped by you" in terminal.ready()
            assert "ok" in terminal.say("next")
            assert "stopped by you" not in terminal.say("/why")
            terminal.leave()
        assert contents(asked(server)[1]) == [
            "tell me",
            "abc def\n\n[This answer was cut off here: stopped by the user.]",
            "next",
        ]
        next(request for request in server.requests if request.method == "POST").wait_closed()
    answers = [record for record in records(conversations()[0]) if record["type"] == "answer"]
    assert (answers[0]["text"], answers[0]["cut"]) == ("abc def", "stopped")


def test_what_is_typed_during_an_answer_is_the_next_message() -> None:
    go_on = threading.Event()
    slow = Reply(writes=[chunk("abc"), go_on, *saying(" def").writes])
    with WireServer(talking(slow, saying("ok"))) as server:
        with chat(server) as terminal:
            terminal.ready()
            terminal.send("one")
            terminal.until("abc")
            terminal.send("two")
            go_on.set()
            assert "two" not in terminal.until(" def")
            terminal.until("ok")
            terminal.ready()
            terminal.leave()
        assert contents(asked(server)[1]) == ["one", "abc def", "two"]


def test_ctrl_c_before_the_first_token() -> None:
    with WireServer(talking(Reply(end="hold"), saying("ok"))) as server:
        with chat(server) as terminal:
            terminal.ready()
            terminal.send("one")
            while not asked_yet(server):
                time.sleep(0.01)
            terminal.interrupt()
            terminal.ready()
            terminal.say("two")
            assert terminal.leave() == 0
        assert contents(asked(server)[1]) == ["one\n\ntwo"]


def asked_yet(server: WireServer) -> bool:
    return any(request.method == "POST" for request in server.requests)


def test_regen_undo_edit_and_a_message_with_a_slash(ok: WireServer) -> None:
    with chat(ok) as terminal:
        terminal.ready()
        terminal.say("one")
        terminal.say("/regen")
        terminal.say("//two")
        assert "Taken back: /two" in terminal.say("/undo")
        terminal.say(" /three")
        terminal.say("/edit")
        terminal.type(" four")
        terminal.say("")
        assert "Nothing has been asked yet" not in terminal.say("/undo")
        terminal.say("/undo")
        assert "Nothing has been asked yet" in terminal.say("/undo")
        terminal.leave()
    assert [contents(messages) for messages in asked(ok)] == [
        ["one"],
        ["one"],
        ["one", "ok", "/two"],
        ["one", "ok", "/three"],
        ["one", "ok", "/three four"],
    ]


@pytest.mark.parametrize("shape", ["auto", "llamacpp", "openai-completions"])
def test_continue_goes_on_inside_a_cut_answer(tiny_server: LlamaServer, shape: str) -> None:
    with chat(tiny_server, "-n", "3", "--shape", shape) as terminal:
        terminal.ready()
        assert "/continue goes on" in terminal.say("Count")
        terminal.say("/set max_tokens 60")
        assert "four five" in terminal.say("/continue")
        terminal.leave()
    last = records(conversations()[0])[-1]
    assert (last["type"], last["text"]) == ("answer", TEN)
    assert "cut" not in last


def test_continue_asks_where_the_server_cannot(ok: WireServer) -> None:
    with chat(ok) as terminal:
        terminal.ready()
        assert "no answer to continue" in terminal.say("/continue")
        terminal.say("one")
        terminal.say("/continue")
        terminal.leave()
    assert "Continue exactly" in contents(asked(ok)[1])[-1]


def test_another_profile_in_the_middle_of_a_conversation(ok: WireServer) -> None:
    ollama = {"OLLAMA_HOST": f"127.0.0.1:{ok.port}"}
    with chat(ok, env=ollama) as terminal:
        terminal.ready()
        terminal.say("one")
        assert "ollama" in terminal.say("/profile")
        terminal.say("/profile ollama")
        terminal.say("/model small")
        terminal.say("two")
        terminal.leave()
    posts = [request for request in ok.requests if request.method == "POST"]
    assert [request.path for request in posts] == ["/v1/chat/completions", "/api/chat"]
    assert posts[1].json()["model"] == "small"
    assert contents(posts[1].json()["messages"]) == ["one", "ok", "two"]


def test_settings_that_make_no_sense_change_nothing(ok: WireServer) -> None:
    with chat(ok) as terminal:
        terminal.ready()
        assert "temperature" in terminal.say("/set temperature warm")
        assert "There is no profile called" in terminal.say("/profile nope")
        assert "no setting" in terminal.say("/set warmth 1")
        terminal.say("/set temperature 0.5")
        terminal.say(r"/stop add \nUser:")
        assert r'"\nUser:"' in terminal.say("/stop")
        terminal.say("/system be brief")
        terminal.say("one")
        terminal.say("/stop clear")
        terminal.say("/system -")
        terminal.say("two")
        terminal.leave()
    first, second = (request.json() for request in ok.requests if request.method == "POST")
    assert (first["temperature"], first["stop"]) == (0.5, ["\nUser:"])
    assert first["messages"][0] == {"role": "system", "content": "be brief"}
    assert "stop" not in second
    assert contents(second["messages"]) == ["one", "ok", "two"]


def test_killed_in_the_middle_of_an_answer_and_taken_up_again() -> None:
    begun = Reply(writes=[chunk("abc"), chunk(" def")], end="hold")
    with WireServer(talking(begun, saying("ok"))) as server:
        with chat(server) as terminal:
            terminal.ready()
            terminal.send("tell me")
            terminal.until("abc def")
            wait_for_piece(" def")
            terminal.child.kill(9)
        with chat(server, "--continue") as terminal:
            assert "The last answer is cut (the program ended)" in terminal.ready()
            terminal.say("next")
            terminal.leave()
        assert contents(asked(server)[1]) == [
            "tell me",
            "abc def\n\n[This answer was cut off here: the program ended.]",
            "next",
        ]


def wait_for_piece(text: str) -> None:
    """Until the conversation's file holds `text`."""
    limit_s = time.monotonic() + 10
    while not any(text in path.read_text() for path in conversations()):
        assert time.monotonic() < limit_s
        time.sleep(0.02)


def test_named_saved_loaded_exported(ok: WireServer, tmp_path: Path) -> None:
    with chat(ok, "--session", "trip") as terminal:
        terminal.ready()
        terminal.say("to Oslo")
        terminal.say("/new")
        terminal.say("to Rome")
        terminal.say("/save second")
        listed = terminal.say("/load")
        assert "trip" in listed
        assert "to Rome" in listed
        assert "to Oslo" in terminal.say("/load oslo")
        assert "trip: 2 messages" in terminal.say("/load trip")
        terminal.say(f"/export {tmp_path}/trip.md")
        terminal.say(f"/export {tmp_path}/trip.json")
        assert "cannot write" in terminal.say(f"/export {tmp_path}/trip.md")
        terminal.say("/clear")
        terminal.leave()
    assert [path.stem for path in conversations()] == ["second", "trip"]
    assert "## You\n\nto Oslo" in (tmp_path / "trip.md").read_text()
    assert json.loads((tmp_path / "trip.json").read_text())["messages"][1]["text"] == "ok"


def test_two_chats_at_once(ok: WireServer) -> None:
    with chat(ok, "--session", "trip") as one, chat(ok) as other:
        one.ready()
        other.ready()
        one.say("to Oslo")
        other.say("to Rome")
        assert "open in another llmstream" in other.say("/load trip")
        third = llmstream("chat", "--base-url", ok.base_url, "--session", "trip", "hi")
        assert third.code == 3
        one.leave()
        assert "trip: 2 messages" in other.say("/load trip")
        other.leave()


def test_ctrl_c_at_the_prompt(ok: WireServer) -> None:
    with chat(ok) as terminal:
        terminal.ready()
        terminal.type(f"never sent{CTRL_C}")
        terminal.say("sent")
        terminal.interrupt()
        terminal.until("again or Ctrl-D")
        terminal.interrupt()
        assert terminal.ended() == 0
    assert [contents(messages) for messages in asked(ok)] == [["sent"]]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (f"a{CTRL_J}b\r", "a\nb"),
        (f"a{ALT_ENTER}b\r", "a\nb"),
        ('"""a\rb\r"""\r', "a\nb"),
        ("\x1b[200~" + "line\r" * 9999 + "end\x1b[201~\r", "line\n" * 9999 + "end"),
    ],
)
def test_messages_of_many_lines(ok: WireServer, typed: str, message: str) -> None:
    with chat(ok) as terminal:
        terminal.ready()
        # A terminal's buffer is smaller than a long paste.
        sender = threading.Thread(target=terminal.type, args=(typed,))
        sender.start()
        terminal.until("ok")
        sender.join()
        terminal.ready()
        terminal.leave()
    assert contents(asked(ok)[0]) == [message]


def test_tab_completes_commands_and_files(ok: WireServer, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(NOTE + "\n")
    with chat(ok) as terminal:
        terminal.ready()
        terminal.type("/fil")
        terminal.until("fil")
        terminal.type("\t")
        terminal.until("e")
        terminal.type(f" {tmp_path}/no\t")
        terminal.until("tes.txt")
        assert "go before the next message" in terminal.say("")
        terminal.say("what is it?")
        terminal.leave()
    (message,) = contents(asked(ok)[0])
    assert message == f"--- {tmp_path}/notes.txt ---\n{NOTE}\n\nwhat is it?"


def test_what_was_typed_is_found_again(ok: WireServer) -> None:
    with chat(ok) as terminal:
        terminal.ready()
        terminal.say("alpha")
        terminal.say("beta")
        terminal.leave()
    with chat(ok) as terminal:
        terminal.ready()
        terminal.type("\x12")
        terminal.until("-search")
        terminal.type("alp\r")
        terminal.say("")
        terminal.leave()
    assert contents(asked(ok)[-1]) == ["alpha"]


def test_the_editor_of_the_person(ok: WireServer, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "from the editor" > "$1"\n')
    editor.chmod(0o700)
    with chat(ok, env={"EDITOR": str(editor), "VISUAL": ""}) as terminal:
        terminal.ready()
        terminal.type("\x18\x05")
        terminal.until("ok")
        terminal.ready()
        terminal.leave()
    assert contents(asked(ok)[0]) == ["from the editor"]


@pytest.mark.parametrize(("editor", "config"), [("/usr/bin/vim", ""), ("nano", 'edit_keys = "vi"\n')])
def test_vi_keys_for_those_who_want_them(ok: WireServer, tmp_path: Path, editor: str, config: str) -> None:
    (tmp_path / "config.toml").write_text(config)
    env = {"EDITOR": editor, "VISUAL": "", "LLMSTREAM_CONFIG": str(tmp_path / "config.toml")}
    with chat(ok, env=env) as terminal:
        terminal.ready()
        terminal.type("abc\x1b")
        terminal.until("abc")
        time.sleep(0.6)  # so long a lone Escape may be the beginning of a key
        terminal.say("0x")
        terminal.leave()
    assert contents(asked(ok)[0]) == ["bc"]


def test_a_terminal_that_can_only_print(ok: WireServer) -> None:
    with chat(ok, env={"TERM": "dumb"}) as terminal:
        terminal.until("> ")
        terminal.type("one\n")
        shown = terminal.until("ok\r\n.*> ")
        terminal.type('"""two\nthree"""\n')
        shown += terminal.until("ok\r\n.*> ")
        terminal.interrupt()
        terminal.until("again or Ctrl-D")
        terminal.interrupt()
        assert terminal.ended() == 0
    assert "\x1b" not in shown
    assert [contents(messages)[-1] for messages in asked(ok)] == ["one", "two\nthree"]


def test_piped_text_is_the_first_message_and_the_keyboard_goes_on(ok: WireServer) -> None:
    with chat(ok, "what is it?", shell='printf piped | "$@"') as terminal:
        assert "ok" in terminal.ready()
        terminal.say("and then?")
        terminal.leave()
    assert [contents(messages)[-1] for messages in asked(ok)] == ["piped\n\nwhat is it?", "and then?"]


def test_bare_llmstream_on_a_terminal(ok: WireServer) -> None:
    env = {"LLMSTREAM_BASE_URL": ok.base_url, "LLMSTREAM_SHAPE": "openai-chat"}
    with ChatTerminal(env=env) as terminal:
        terminal.ready()
        assert "ok" in terminal.say("hi")
        assert terminal.leave() == 0


def test_an_overflowing_conversation_is_said_before_it_is_sent(tiny_server: LlamaServer) -> None:
    with chat(tiny_server) as terminal:
        terminal.ready()
        terminal.say("Count")
        assert "26 of 1,024 tokens (2 %)" in terminal.say("/usage")
        shown = terminal.say("word " * 1500)
        assert "/drop 2 forgets the oldest 2 messages" not in shown
        assert "of 1,024 tokens" in shown
        assert shown.index("of 1,024 tokens") < shown.index("✗")
        terminal.leave()


def test_no_secret_is_shown(ok: WireServer) -> None:
    url = ok.base_url.replace("http://", "http://me:SECRET1@")
    with ChatTerminal("chat", "--base-url", url, "--shape", "openai-chat", "--plain") as terminal:
        shown = terminal.ready()
        for line in ("/set headers X-Key: SECRET2", f"/set base_url {url}", "/show", "one", "/curl"):
            shown += terminal.say(line).replace(line, "")
        terminal.leave()
    assert "***" in shown
    assert "SECRET" not in shown.replace("/set headers X-Key: SECRET2", "")


def test_commands_that_tell(ok: WireServer) -> None:
    with chat(ok) as terminal:
        terminal.ready()
        for command in ("/why", "/raw", "/copy", "/curl"):
            assert "✗" in terminal.say(command)
        terminal.say("one")
        assert "/regen" in terminal.say("/help")
        assert "finished (stop)" in terminal.say("/why")
        terminal.say("/stop add k")
        terminal.say("two")
        assert "Stop 1 of 1" not in terminal.say("/why")
        terminal.say("/stop clear")
        terminal.say("/stop add never")
        terminal.say("two")
        assert "Stop 1 of 1" in terminal.say("/why")
        assert "data: [DONE]" in terminal.say("/raw")
        assert "curl -N" in terminal.say("/curl")
        assert "--base-url" in terminal.say("/show")
        assert "3 answers" in terminal.say("/usage")
        assert "size of the model's context is not known" in terminal.say("/usage")
        assert "2 characters" in terminal.say("/copy")
        terminal.send("/exit")
        assert terminal.ended() == 0


def test_the_embedded_server_lives_as_long_as_the_chat(gemma_model: Path) -> None:
    assert gemma_model.exists()
    with ChatTerminal("chat", "-p", "local", "--plain") as terminal:
        terminal.ready()
        assert "Reykjav" in terminal.say("What is the capital of Iceland?")
        servers = children(terminal.child.pid)
        assert servers
        terminal.say("/regen")
        assert children(terminal.child.pid) == servers
        assert terminal.leave() == 0
    for server in servers:
        with pytest.raises(ProcessLookupError):
            os.kill(server, 0)


def children(process: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, check=False, text=True)
    return [int(line) for line in found.stdout.split()]


def test_a_server_that_is_not_there_costs_no_message(ok: WireServer) -> None:
    with ChatTerminal("chat", "--base-url", "127.0.0.1:9", "--retries", "0", "--plain") as terminal:
        terminal.ready()
        assert "✗" in terminal.say("one")
        terminal.say(f"/set base_url {ok.base_url}")
        terminal.say("/set shape openai-chat")
        assert "ok" in terminal.say("/regen")
        terminal.leave()
    assert contents(asked(ok)[0]) == ["one"]
