"""Each dialect of ``/v1/chat/completions`` through OpenAI's SDK and through us.

Where the two differ, the SDK knows less, and the tables here say what.
"""

from importlib import import_module

import pytest

from llmstream_cli.events import EndStatus
from tests.support.dialects import DIALECTS
from tests.support.sdk import ours, said_in
from tests.test_openai_sdk import ask_chat, said_by_chat

openai = import_module("openai")

STREAMS = {name: case for name, case in DIALECTS.items() if case.content_type == "text/event-stream"}
WHOLE = [name for name, case in STREAMS.items() if case.status is EndStatus.COMPLETE]
FAILED = [name for name in STREAMS if name not in WHOLE]
KNOWS_LESS = {
    "openrouter: cap, reasoning in details only": "reads no reasoning_details",
    "groq: cap, counts in Groq's own object only": "reads no x_groq",
    "mistral: tool calls without index": "tells calls apart by their index alone",
    "deepseek: end": "reads no prompt_cache_hit_tokens",
    "xai: end; reasoning is no part of its completion tokens": "takes the counts as they are",
}
USERS_CRASH = {
    "mistral: end, content in parts": TypeError,
    "azure: end": AttributeError,
    "azure: filtered after it was shown": AttributeError,
}
"""A list where text is expected; a choice without a delta."""
NO_FAILURE = {
    "groq: stopped early": "reads no x_groq",
    "deepseek: interrupted": "a finish reason like any other",
    "mistral: error": "an error without the key `error`",
    "ollama: an error that the server lost on its way: a chunk that says nothing, no marker": "cut",
    "ollama: given up by the server without a word": "cut",
    "llama-cpp-python: another request came first: the marker is no proof": "cut",
}

UNTOLD = "An error occurred during streaming"


@pytest.mark.parametrize("name", [name for name in WHOLE if name not in {**KNOWS_LESS, **USERS_CRASH}])
def test_the_sdk_says_the_same(name: str) -> None:
    body = STREAMS[name].body
    assert said_in(ours("openai-chat", body)) == said_by_chat(ask_chat(body))


@pytest.mark.parametrize("name", KNOWS_LESS)
def test_the_sdk_knows_less(name: str) -> None:
    body = STREAMS[name].body
    mine, theirs = said_in(ours("openai-chat", body)), said_by_chat(ask_chat(body))
    assert mine != theirs
    assert (mine.text, mine.finish) == (theirs.text, theirs.finish)


@pytest.mark.parametrize(("name", "crash"), USERS_CRASH.items())
def test_the_sdk_passes_on_what_its_types_rule_out(name: str, crash: type[Exception]) -> None:
    chunks = ask_chat(STREAMS[name].body)
    with pytest.raises(crash):
        said_by_chat(chunks)


@pytest.mark.parametrize("name", [name for name in FAILED if name not in NO_FAILURE])
def test_the_sdk_finds_the_error_too(name: str) -> None:
    case = STREAMS[name]
    assert case.error is not None
    with pytest.raises(openai.APIError) as caught:
        ask_chat(case.body)
    # Of an error that is a bare text it keeps nothing.
    assert caught.value.message == (UNTOLD if name == "xai: error" else case.error[1])


@pytest.mark.parametrize("name", NO_FAILURE)
def test_the_sdk_calls_a_failed_answer_finished(name: str) -> None:
    case = STREAMS[name]
    ask_chat(case.body)
    assert ours("openai-chat", case.body).end.status is case.status
