"""For tests that compare us with an SDK: the same bytes for both, one form for what each understood."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from llmstream_cli.turn import Turn
from tests.support.captures import decode, expected, fold, load, names

# Not imported by name: the types alone would take mypy longer than all the rest.
httpx2 = import_module("httpx2")

EVENTS = "text/event-stream"
HI = [{"role": "user", "content": "Hi"}]


@dataclass(slots=True)
class Said:
    """What an answer said. ``usage``: prompt, completion and cached tokens."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[tuple[str | None, str, Any]] = field(default_factory=list)
    finish: str | None = None
    stop_sequence: str | None = None
    usage: tuple[int | None, int | None, int | None] | None = None


def ours(
    shape: str, body: bytes, *, request: Mapping[str, Any] | None = None, content_type: str = EVENTS
) -> Turn:
    request = {"stream": True} if request is None else request
    return fold(decode([body], shape=shape, body=request, content_type=content_type))


def said_in(turn: Turn) -> Said:
    first, usage = turn.first, turn.usage
    counts = usage and (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
    return Said(
        text=first.text,
        reasoning=first.reasoning or "",
        refusal=first.refusal or "",
        calls=[(call.id, call.name, call.arguments) for call in first.tool_calls],
        finish=first.finish.raw_reason if first.finish else None,
        stop_sequence=first.finish.stop_sequence if first.finish else None,
        usage=counts or None,
    )


def client(make: Any, body: bytes, content_type: str = EVENTS) -> Any:
    """An SDK's client, made by its class and connected to a server whose every answer is `body`."""

    def answer(_: Any) -> Any:
        return httpx2.Response(200, headers={"content-type": content_type}, content=body)

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return make(api_key="k", base_url="http://server.test/v1", max_retries=0, http_client=transport)


def whole_streams(endpoint: str) -> list[str]:
    return [
        name
        for name in names()
        if load(name).endpoint == endpoint
        and expected()[name]["outcome"] == "complete"
        and expected()[name]["stream"]
    ]


def wire(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {said['type']}\ndata: {json.dumps(said)}\n\n".encode() for said in events)


def parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return None
