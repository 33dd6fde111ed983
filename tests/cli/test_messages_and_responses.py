"""What people see of the endings that only Messages and Responses have, and of what they do not take."""

import json
from typing import Any

import pytest

from tests.support.command import Finished, llmstream
from tests.support.llama import LlamaServer
from tests.support.sdk import wire
from tests.support.wire_server import Reply, WireServer

TEXT = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Part"}}
STOP = {"type": "message_stop"}


def message_delta(reason: str, **more: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **more}}


def ask(shape: str, *events: dict[str, Any]) -> Finished:
    with WireServer(Reply(writes=[wire(*events)])) as server:
        return llmstream("--base-url", server.base_url, "--shape", shape, "-m", "m", "hi")


def test_a_paused_answer() -> None:
    done = ask("anthropic", TEXT, message_delta("pause_turn"), STOP)
    assert (done.code, done.text) == (8, "Part\n")
    assert "Incomplete: the server has only paused (pause_turn)" in done.err


def test_no_message_stop() -> None:
    done = ask("anthropic", TEXT, message_delta("end_turn"))
    assert (done.code, done.text) == (8, "Part\n")
    assert "Incomplete: the stream ended before message_stop" in done.err


def test_a_refusal() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "This was blocked."}
    done = ask("anthropic", message_delta("refusal", stop_details=details), STOP)
    assert done.code == 0
    assert "This was blocked." in done.err + done.text


def test_a_cancelled_response() -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0, "delta": "Part"}
    ended = {"type": "response.completed", "response": {"status": "cancelled"}}
    done = ask("openai-responses", delta, ended)
    assert (done.code, done.text) == (8, "Part\n")
    assert "Incomplete: the server calls the response cancelled" in done.err


def test_a_stop_sequence_where_the_api_has_none(tiny_server: LlamaServer) -> None:
    server = ("--base-url", tiny_server.base_url, "--shape", "openai-responses", "--temp", "0")
    done = llmstream(*server, "--stop", " four", "Count")
    assert (done.code, done.text) == (0, "one two three\n")
    assert "⚠ openai-responses has no stop parameter: the answer is cut here" in done.err
    assert "⚠" not in llmstream(*server, "--stop", " four", "-q", "Count").err


@pytest.mark.parametrize(
    ("shape", "key_header"), [("anthropic", "x-api-key"), ("openai-responses", "authorization")]
)
def test_the_key_is_sent_as_the_api_wants_it(shape: str, key_header: str) -> None:
    with WireServer(Reply(writes=[wire(TEXT, message_delta("end_turn"), STOP)])) as server:
        arguments = ("--base-url", server.base_url, "--shape", shape, "-m", "m", "hi")
        done = llmstream(*arguments, env={"LLMSTREAM_API_KEY": "sk-secret-0123456789"})
        (request,) = server.requests
    assert request.headers[key_header].removeprefix("Bearer ") == "sk-secret-0123456789"
    assert [name for name, value in request.headers.items() if "sk-secret" in value] == [key_header]
    assert request.headers.get("anthropic-version") == ("2023-06-01" if shape == "anthropic" else None)
    assert json.loads(request.body)["stream"] is True
    assert "sk-secret" not in done.text + done.err
