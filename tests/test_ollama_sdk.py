"""The same bytes through Ollama's own client and through us: the same is said, if not how it ended.

No Ollama was recorded: the lines are built from the fields of its API. They come over a real socket, because
its client uses the transport of its own.
"""

import json
from importlib import import_module
from typing import Any

import pytest

from llmstream_cli.events import EndStatus
from tests.support.sdk import HI, Said, ours, said_in
from tests.support.wire_server import Reply, WireServer

# Not imported by name: its types alone would take mypy longer than all the rest.
ollama = import_module("ollama")

NDJSON = "application/x-ndjson"
SHAPES = {"/api/chat": "ollama-chat", "/api/generate": "ollama-generate"}


def lines(*items: dict[str, Any]) -> bytes:
    head = {"model": "qwen3:8b", "created_at": "2026-11-30T09:00:00.123456789Z"}
    return b"".join(json.dumps({**head, **item}, ensure_ascii=False).encode() + b"\n" for item in items)


def said(content: str, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, **more}, "done": False}


def done(reason: str = "stop", **more: Any) -> dict[str, Any]:
    counts = {
        "total_duration": 4883583458,
        "load_duration": 1334875,
        "prompt_eval_count": 26,
        "prompt_eval_duration": 342546000,
        "eval_count": 282,
        "eval_duration": 4535599000,
    }
    return {**said("", **more), "done": True, "done_reason": reason, **counts}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}


CHATS = {
    "plain": lines(said("Red"), said(" 👩‍👧\n"), done()),
    "cap": lines(said("Red"), done("length")),
    "thinking": lines(said("", thinking="Hm"), said("", thinking="m."), said("Red"), done()),
    "tools": lines(said("", tool_calls=[call("weather", city="Zürich"), call("now")]), done()),
    "tools in the last line": lines(said("See"), done(tool_calls=[call("weather", days=[1, 2])])),
    "nothing counted": lines(said("Red"), {**said(""), "done": True, "done_reason": "stop"}),
}
GENERATED = {
    "plain": lines(
        {"response": "Red", "done": False},
        {"response": "", "done": True, "done_reason": "stop", "context": [1, 2], "eval_count": 2},
    ),
    "cap, thinking": lines(
        {"response": "", "thinking": "Hm", "done": False},
        {"response": "R", "done": True, "done_reason": "length", "prompt_eval_count": 3, "eval_count": 5},
    ),
}
ERROR = b'{"error":"an error was encountered while running the model: unexpected EOF"}\n'


def ask(body: bytes, path: str = "/api/chat") -> list[Any]:
    """What the client yields; raises what it raises."""
    with WireServer(Reply(writes=[body], headers=[("Content-Type", NDJSON)])) as server:
        client = ollama.Client(host=server.base_url, trust_env=False)
        with client._client:
            if path == "/api/chat":
                return list(client.chat(model="m", messages=HI, stream=True))
            return list(client.generate(model="m", prompt="Hi", stream=True))


def said_by(parts: list[Any]) -> Said:
    found = Said()
    for part in parts:
        message = getattr(part, "message", None)
        found.text += (part.response if message is None else message.content) or ""
        found.reasoning += (part if message is None else message).thinking or ""
        for tool in (message.tool_calls if message else None) or ():
            found.calls.append((None, tool.function.name, dict(tool.function.arguments)))
        found.finish = part.done_reason or found.finish
        if part.prompt_eval_count is not None or part.eval_count is not None:
            found.usage = (part.prompt_eval_count, part.eval_count, None)
    return found


@pytest.mark.parametrize("name", CHATS)
def test_chat(name: str) -> None:
    turn = ours("ollama-chat", CHATS[name], content_type=NDJSON)
    mine = said_in(turn)
    assert mine == said_by(ask(CHATS[name]))
    assert turn.end.status is EndStatus.COMPLETE


@pytest.mark.parametrize("name", GENERATED)
def test_generate(name: str) -> None:
    turn = ours("ollama-generate", GENERATED[name], content_type=NDJSON)
    assert said_in(turn) == said_by(ask(GENERATED[name], "/api/generate"))
    assert turn.end.status is EndStatus.COMPLETE


def test_an_error_after_the_first_words() -> None:
    body = lines(said("Red")) + ERROR
    with pytest.raises(ollama.ResponseError, match="unexpected EOF") as caught:
        ask(body)
    end = ours("ollama-chat", body, content_type=NDJSON).end
    assert end.status is EndStatus.ERROR
    assert end.error is not None
    assert end.error.message == caught.value.error


def test_a_stream_that_is_cut_ends_well_for_the_client_and_not_for_us() -> None:
    body = lines(said("Red"), said(", gre"))
    found = said_by(ask(body))
    assert (found.text, found.finish) == ("Red, gre", None)
    assert ours("ollama-chat", body, content_type=NDJSON).end.status is EndStatus.INCOMPLETE


def test_a_line_that_is_cut_crashes_the_client() -> None:
    body = lines(said("Red"), said(", green"))[:-20]
    with pytest.raises(json.JSONDecodeError):
        ask(body)
    turn = ours("ollama-chat", body, content_type=NDJSON)
    assert (turn.first.text, turn.end.status) == ("Red", EndStatus.INCOMPLETE)
