"""The black-box probe, on servers that treat stop strings in every way there is."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from llmstream_cli.diagnose import Trial
from llmstream_cli.request import Message, Request
from llmstream_cli.session import Plan
from llmstream_cli.shapes import get_shape
from llmstream_cli.transport import Target, Timeouts
from llmstream_cli.trial import MOST_REQUESTS, TrialResult, try_stops
from tests.support.wire_server import Received, Reply, WireServer

ANSWER = "one two three four five"
Cut = Callable[[dict[str, Any], int], str]


def chat(text: str, *, finish: bool = True) -> Reply:
    chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]}]
    if finish:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    frames = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return Reply(writes=[*frames, b"data: [DONE]\n\n"])


def tried(cut: Cut, field: str | None = "stop", **options: Any) -> tuple[TrialResult, list[dict[str, Any]]]:
    """`cut` gives the answer to a request body; with its number."""
    bodies: list[dict[str, Any]] = []

    def choose(request: Received) -> Reply:
        bodies.append(request.json())
        return chat(cut(bodies[-1], len(bodies)))

    with WireServer(choose) as server:
        plan = Plan(
            target=Target(base_url=server.base_url),
            timeouts=Timeouts(),
            shape=get_shape("openai-chat"),
            request=Request(messages=(Message(role="user", content="Count"),), options=options),
        )
        result = try_stops(plan, field)
    return result, bodies


def before(body: dict[str, Any], number: int) -> str:
    return ANSWER.split(body["stop"][0])[0] if "stop" in body else ANSWER


def behind(body: dict[str, Any], number: int) -> str:
    return before(body, number) + "".join(body.get("stop", []))


@pytest.mark.parametrize(
    ("cut", "trials"),
    [
        (before, {"stop": Trial.HONOURED}),
        (behind, {"stop": Trial.KEPT}),
        (lambda body, number: ANSWER, {"stop": Trial.IGNORED, "stop_sequences": Trial.IGNORED}),
        (lambda body, number: f"{ANSWER} {number}", {"stop": Trial.UNSTABLE}),
    ],
)
def test_what_servers_do(cut: Cut, trials: dict[str, Trial]) -> None:
    result, bodies = tried(cut)
    assert result.trials == trials
    assert len(bodies) == len(trials) + 1 <= MOST_REQUESTS
    assert all(body["temperature"] == 0 for body in bodies)


def test_another_field_is_found() -> None:
    result, _ = tried(before, "options.stop")
    assert result.trials == {"options.stop": Trial.IGNORED, "stop": Trial.HONOURED}
    assert "options.stop" in result.log[1].request
    assert result.log[1].said == "the same answer again: ignored"


def test_the_users_own_stop_strings_are_left_out() -> None:
    _, bodies = tried(before, "stop", options={"stop": ["x"], "num_ctx": 8}, stop=["y"])
    assert "stop" not in bodies[0]
    assert bodies[0]["options"] == {"num_ctx": 8}


def test_an_answer_without_words_proves_nothing() -> None:
    result, bodies = tried(lambda body, number: "...")
    assert (result.trials, len(bodies)) == ({}, 1)
    assert result.log[0].said == "the answer has no word to stop at"
