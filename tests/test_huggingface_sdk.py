"""The same bytes of ``/generate_stream`` through Hugging Face's client and through us.

No TGI was recorded: the frames are built from its source. They come over a real socket.
"""

from importlib import import_module

import pytest

from llmstream_cli.events import EndStatus
from tests.support.built.tgi import ERROR, REQUEST, STREAMS, frames, token
from tests.support.sdk import Said, ours, said_in
from tests.support.wire_server import Reply, WireServer

# Not imported by name: its types alone would take mypy longer than all the rest.
hub = import_module("huggingface_hub")
errors = import_module("huggingface_hub.errors")


ANSWERS = {name: body for name, body in STREAMS.items() if name != "error"}


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


@pytest.mark.parametrize("name", ANSWERS)
def test_the_client_says_the_same(name: str) -> None:
    turn = ours("tgi", STREAMS[name], request=REQUEST)
    assert said_in(turn) == ask(STREAMS[name])
    assert turn.end.status is EndStatus.COMPLETE


def test_the_stop_sequence_stays_in_the_text_for_the_client_only() -> None:
    request = {"parameters": {"details": True, "stop": ["END"]}}
    mine = ours("tgi", STREAMS["stop"], request=request)
    assert ask(STREAMS["stop"]).text == "RedEND"
    assert mine.first.finish is not None
    assert mine.first.finish.stop_sequence == "END"


def test_an_error_after_the_first_words() -> None:
    body = STREAMS["error"]
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
