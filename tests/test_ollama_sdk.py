"""The same bytes through Ollama's own client and through us: the same is said, if not how it ended.

No Ollama was recorded: the lines are built from the fields of its API. They come over a real socket, because
its client uses the transport of its own.
"""

import json
from importlib import import_module
from typing import Any

import pytest

from llmstream_cli.events import EndStatus
from tests.support.built.ollama import CONTENT_TYPE, GENERATED, STREAMS, call, done, lines, said
from tests.support.sdk import HI, Said, ours, said_in
from tests.support.wire_server import Reply, WireServer

# Not imported by name: its types alone would take mypy longer than all the rest.
ollama = import_module("ollama")

SHAPES = {"/api/chat": "ollama-chat", "/api/generate": "ollama-generate"}


CHATS = {
    **{name: body for name, body in STREAMS.items() if name != "error"},
    "tools in the last line": lines(said("See"), done(tool_calls=[call("weather", days=[1, 2])])),
    "nothing counted": lines(said("Red"), {**said(""), "done": True, "done_reason": "stop"}),
}
ANSWERS = {name: body for name, body in GENERATED.items() if name != "error"}


def ask(body: bytes, path: str = "/api/chat") -> list[Any]:
    """What the client yields; raises what it raises."""
    with WireServer(Reply(writes=[body], headers=[("Content-Type", CONTENT_TYPE)])) as server:
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
    turn = ours("ollama-chat", CHATS[name], content_type=CONTENT_TYPE)
    mine = said_in(turn)
    assert mine == said_by(ask(CHATS[name]))
    assert turn.end.status is EndStatus.COMPLETE


@pytest.mark.parametrize("name", ANSWERS)
def test_generate(name: str) -> None:
    turn = ours("ollama-generate", ANSWERS[name], content_type=CONTENT_TYPE)
    assert said_in(turn) == said_by(ask(ANSWERS[name], "/api/generate"))
    assert turn.end.status is EndStatus.COMPLETE


def test_an_error_after_the_first_words() -> None:
    body = STREAMS["error"]
    with pytest.raises(ollama.ResponseError, match="unexpected EOF") as caught:
        ask(body)
    end = ours("ollama-chat", body, content_type=CONTENT_TYPE).end
    assert end.status is EndStatus.ERROR
    assert end.error is not None
    assert end.error.message == caught.value.error


def test_a_stream_that_is_cut_ends_well_for_the_client_and_not_for_us() -> None:
    body = lines(said("Red"), said(", gre"))
    found = said_by(ask(body))
    assert (found.text, found.finish) == ("Red, gre", None)
    assert ours("ollama-chat", body, content_type=CONTENT_TYPE).end.status is EndStatus.INCOMPLETE


def test_a_line_that_is_cut_crashes_the_client() -> None:
    body = lines(said("Red"), said(", green"))[:-20]
    with pytest.raises(json.JSONDecodeError):
        ask(body)
    turn = ours("ollama-chat", body, content_type=CONTENT_TYPE)
    assert (turn.first.text, turn.end.status) == ("Red", EndStatus.INCOMPLETE)
