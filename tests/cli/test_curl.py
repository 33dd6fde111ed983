"""``--curl``: the same request, runnable by a shell, without secrets."""

import json
import shlex
import subprocess
from dataclasses import replace
from typing import Any

from llmstream_cli.cli.curl import curl_command
from llmstream_cli.request import Message, Request, Sampling
from llmstream_cli.session import Plan
from llmstream_cli.shapes import get_shape
from llmstream_cli.transport import Target, Timeouts
from tests.support.wire_server import Reply, WireServer

KEY = "sk-proj-0123456789abcdef"
PROMPT = 'What\'s "this"?\n$HOME `id` \\n é\x9b'


def make_plan(base_url: str, **target: Any) -> Plan:
    return Plan(
        target=Target(base_url=base_url, **target),
        timeouts=Timeouts(),
        shape=get_shape("openai-chat"),
        request=Request(
            messages=(Message(role="user", content=PROMPT),),
            model="m",
            sampling=Sampling(stop=("\nUser:",), max_tokens=5),
        ),
    )


def test_the_words_of_the_command() -> None:
    plan = make_plan("http://localhost:8080/v1", headers={"Authorization": f"Bearer {KEY}"}, secrets=(KEY,))
    words = shlex.split(curl_command(plan).replace("\\\n", ""))
    assert words[:3] == ["curl", "-N", "http://localhost:8080/v1/chat/completions"]
    assert [word for word, before in zip(words[1:], words, strict=False) if before == "-H"] == [
        "Content-Type: application/json",
        "Authorization: Bearer ***",
    ]
    assert words[-2] == "-d"
    assert json.loads(words[-1]) == plan.http_request().body


def test_no_secret_is_shown_wherever_it_stands() -> None:
    headers = {"X-Api-Key": KEY, "X-Custom": f"key {KEY}", "X-Auth-Token": "other-secret"}
    plan = make_plan(f"http://me:pw@host:1/v1?key={KEY}", headers=headers, secrets=(KEY,))
    plan = replace(plan, request=replace(plan.request, options={"api_key": KEY}))
    command = curl_command(plan)
    for secret in (KEY, "other-secret", "me:pw"):
        assert secret not in command
    assert "'http://host:1/v1/chat/completions?key=***'" in command


def test_curl_sends_the_same_body() -> None:
    """Through a real shell and a real curl."""
    with WireServer(Reply(writes=[b"data: [DONE]\n\n"])) as server:
        plan = make_plan(server.base_url, headers={"X-Extra": "it's"})
        subprocess.run(["sh", "-c", curl_command(plan)], check=True, capture_output=True, timeout=30)
        request = server.wait_for_request()
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.json() == plan.http_request().body
    assert request.headers["x-extra"] == "it's"
