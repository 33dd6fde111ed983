"""The same bytes of ``/generate_stream`` through Hugging Face's client and through us.

No TGI was recorded: the frames are built from its source. They come over a real socket.
"""

import json
from importlib import import_module
from typing import Any

import pytest

from llmstream_cli.events import EndStatus
from tests.support.sdk import Said, ours, said_in
from tests.support.wire_server import Reply, WireServer

# Not imported by name: its types alone would take mypy longer than all the rest.
hub = import_module("huggingface_hub")
errors = import_module("huggingface_hub.errors")


def frames(*items: dict[str, Any]) -> bytes:
    return b"".join(b"data:" + json.dumps(item, ensure_ascii=False).encode() + b"\n\n" for item in items)


def token(text: str, *, special: bool = False) -> dict[str, Any]:
    said = {"id": 5, "text": text, "logprob": -0.5, "special": special}
    return {"index": 1, "token": said, "generated_text": None, "details": None}


def last(text: str, reason: str, whole: str, *, special: bool = False) -> dict[str, Any]:
    details = {"finish_reason": reason, "generated_tokens": 3, "seed": 7, "input_length": 9}
    return {**token(text, special=special), "generated_text": whole, "details": details}


STREAMS = {
    "end": frames(token("Red"), token(" 👩‍👧"), last("</s>", "eos_token", "Red 👩‍👧", special=True)),
    "cap": frames(token("Red"), last(", gre", "length", "Red, gre")),
    "stop": frames(token("Red"), last("END", "stop_sequence", "RedEND")),
}
ERROR = {"error": "Request failed during generation: out of memory", "error_type": "generation"}


def ask(body: bytes) -> Said:
    """What its users put together: the tokens that are not special, and the last frame's details."""
    found = Said()
    with WireServer(Reply(writes=[body])) as server:
        client = hub.InferenceClient(model=server.base_url)
        for part in client.text_generation("Hi", stream=True, details=True):
            found.text += "" if part.token.special else part.token.text
            if part.details:
                found.finish = part.details.finish_reason
                found.usage = (part.details.input_length, part.details.generated_tokens, None)
    return found


@pytest.mark.parametrize("name", STREAMS)
def test_the_client_says_the_same(name: str) -> None:
    turn = ours("tgi", STREAMS[name], request={"parameters": {"details": True}})
    assert said_in(turn) == ask(STREAMS[name])
    assert turn.end.status is EndStatus.COMPLETE


def test_the_stop_sequence_stays_in_the_text_for_the_client_only() -> None:
    request = {"parameters": {"details": True, "stop": ["END"]}}
    mine = ours("tgi", STREAMS["stop"], request=request)
    assert ask(STREAMS["stop"]).text == "RedEND"
    assert mine.first.finish is not None
    assert mine.first.finish.stop_sequence == "END"


def test_an_error_after_the_first_words() -> None:
    body = frames(token("Red"), ERROR)
    with pytest.raises(errors.GenerationError, match="out of memory"):
        ask(body)
    turn = ours("tgi", body)
    assert (turn.first.text, turn.end.status) == ("Red", EndStatus.ERROR)
    assert turn.end.error is not None
    assert (turn.end.error.kind, turn.end.error.message) == (ERROR["error_type"], ERROR["error"])


def test_a_stream_that_is_cut_ends_well_for_the_client_and_not_for_us() -> None:
    body = frames(token("Red"), token(", gre"))
    found = ask(body)
    assert (found.text, found.finish) == ("Red, gre", None)
    assert ours("tgi", body).end.status is EndStatus.INCOMPLETE
