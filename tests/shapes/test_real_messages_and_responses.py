"""A real llama.cpp asked through Messages and Responses: every way in which an answer ends."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from llmstream_cli.events import EndStatus, FinishReason
from llmstream_cli.outcome import Outcome
from llmstream_cli.request import Message, Request, Sampling
from llmstream_cli.session import Plan, ask
from llmstream_cli.shapes import get_shape
from llmstream_cli.transport import Target, Timeouts
from tests.support.llama import LlamaServer, llama_server
from tests.support.outcomes import SilentRenderer

BOTH = ("anthropic", "openai-responses")
COUNTED = "one two three four five six seven eight nine ten"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
TOOLS = {
    "anthropic": [{"name": name, "input_schema": PARAMETERS} for name in ("get_weather", "add")],
    "openai-responses": [
        {"type": "function", "name": name, "parameters": PARAMETERS} for name in ("get_weather", "add")
    ],
}

THINKING_TEMPLATE = """{{- bos_token }}
{%- for m in messages %}
{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' }}
{%- if m.reasoning_content %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- m.content }}{{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""
"""The model's own, for messages alone; llama.cpp learns from it how this model marks its thoughts."""


@pytest.fixture(scope="module")
def thinking_server() -> Iterator[LlamaServer]:
    with llama_server(chat_template=THINKING_TEMPLATE) as server:
        yield server


def answer(
    server: LlamaServer,
    shape: str,
    *said: str,
    max_tokens: int | None = None,
    stop: tuple[str, ...] = (),
    stream: bool = True,
    **options: Any,
) -> Outcome:
    """The outcome of one question, or of a conversation that begins with a question."""
    roles = ("user", "assistant")
    plan = Plan(
        target=Target(base_url=server.base_url),
        timeouts=Timeouts(first_token_s=30, idle_s=30),
        shape=get_shape(shape),
        request=Request(
            messages=tuple(
                Message(role=roles[at % 2], content=content)  # type: ignore[arg-type]
                for at, content in enumerate(said)
            ),
            model="tiny-llama",
            sampling=Sampling(temperature=0, max_tokens=max_tokens, stop=stop),
            stream=stream,
            options=options,
        ),
    )
    return ask(plan, SilentRenderer())


def reason_of(outcome: Outcome) -> FinishReason:
    finish = outcome.turn.first.finish
    assert finish is not None
    return finish.reason


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "document"])
@pytest.mark.parametrize("shape", BOTH)
class TestComplete:
    def test_natural_end(self, tiny_server: LlamaServer, shape: str, stream: bool) -> None:
        outcome = answer(tiny_server, shape, "Say hi", stream=stream)
        assert outcome.status is EndStatus.COMPLETE
        assert outcome.turn.first.text == "Hello there!"
        assert reason_of(outcome) is (FinishReason.EOS if shape == "anthropic" else FinishReason.STOP)
        assert outcome.turn.end.marker_seen is (True if stream else None)
        usage = outcome.turn.usage
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (16, 4)
        assert outcome.turn.start.model == "tiny-llama"

    def test_cap(self, tiny_server: LlamaServer, shape: str, stream: bool) -> None:
        outcome = answer(tiny_server, shape, "Count", max_tokens=4, stream=stream)
        assert outcome.status is EndStatus.COMPLETE
        assert outcome.turn.first.text == "one two three four"
        assert reason_of(outcome) is FinishReason.LENGTH
        assert outcome.turn.truncated

    def test_thinking(self, thinking_server: LlamaServer, shape: str, stream: bool) -> None:
        first = answer(thinking_server, shape, "1+1?", stream=stream).turn.first
        assert (first.text, first.reasoning) == ("It is two.", "One and one.\n")

    def test_tools(self, tiny_server: LlamaServer, shape: str, stream: bool) -> None:
        outcome = answer(tiny_server, shape, "Weather in Oslo and Rome?", stream=stream, tools=TOOLS[shape])
        calls = outcome.turn.first.tool_calls
        assert [(call.name, call.arguments) for call in calls] == [
            ("get_weather", {"city": "Oslo", "days": 1}),
            ("get_weather", {"city": "Rome", "days": 2}),
        ]
        assert all(call.id for call in calls)
        assert reason_of(outcome) is FinishReason.TOOL_CALLS

    def test_characters_of_many_bytes(self, tiny_server: LlamaServer, shape: str, stream: bool) -> None:
        text = answer(tiny_server, shape, "Emoji", stream=stream).turn.first.text
        assert text == "Hi 👩‍👩‍👧 你好 🇩🇪 é 𒀀 end"

    def test_a_conversation_is_taken(self, tiny_server: LlamaServer, shape: str, stream: bool) -> None:
        said = ("Say hi", "Hello there!", "Count")
        outcome = answer(tiny_server, shape, *said, max_tokens=2, stream=stream)
        assert outcome.status is EndStatus.COMPLETE
        assert outcome.turn.usage is not None
        assert outcome.turn.usage.prompt_tokens == 34


class TestStop:
    def test_messages_tell_which_sequence_matched(self, tiny_server: LlamaServer) -> None:
        outcome = answer(tiny_server, "anthropic", "Count", stop=(" ten", " four"))
        assert outcome.turn.first.text == "one two three"
        finish = outcome.turn.first.finish
        assert finish is not None
        assert (finish.reason, finish.stop_sequence) == (FinishReason.STOP_SEQUENCE, " four")
        assert outcome.local_stop is None

    def test_an_end_without_a_match_is_only_called_stopped(self, tiny_server: LlamaServer) -> None:
        outcome = answer(tiny_server, "anthropic", "Count", stop=("END",))
        assert outcome.turn.first.text == COUNTED
        assert reason_of(outcome) is FinishReason.STOP

    def test_responses_have_no_stop_so_that_the_answer_is_cut_here(self, tiny_server: LlamaServer) -> None:
        outcome = answer(tiny_server, "openai-responses", "Count", stop=(" four",))
        assert outcome.status is EndStatus.COMPLETE
        assert outcome.turn.first.text == "one two three"
        finish = outcome.turn.first.finish
        assert finish is not None
        assert (finish.reason, finish.stop_sequence) == (FinishReason.STOP_SEQUENCE, " four")
        assert outcome.local_stop is not None
        assert outcome.local_stop.server_went_on
        tiny_server.wait_until_idle()


@pytest.mark.parametrize("shape", BOTH)
class TestFailure:
    def test_before_the_stream(self, tiny_server: LlamaServer, shape: str) -> None:
        outcome = answer(tiny_server, shape, "word " * 3000)
        assert outcome.status is EndStatus.ERROR
        error = outcome.turn.end.error
        assert error is not None
        assert (error.http_status, error.kind) == (400, "exceed_context_size_error")

    def test_an_error_in_the_middle_of_the_stream(self, shape: str) -> None:
        """Two answers share a context; when they have filled it, both end in an error."""
        with llama_server(context_tokens=2048, slots=2, kv_unified=True) as server, filling(server):
            outcome = answer(server, shape, "Long")
        assert outcome.status is EndStatus.ERROR
        assert outcome.turn.first.text.startswith("the quick brown fox")
        assert outcome.turn.first.finish is None
        error = outcome.turn.end.error
        assert error is not None
        assert (error.kind, error.message) == ("server_error", "Context size has been exceeded.")


@contextmanager
def filling(server: LlamaServer) -> Iterator[None]:
    """Another answer that leaves too little of the context for a long one. It has begun, and goes on.

    Its grammar of many equal branches slows it down to a few milliseconds a token, and whatever is answered
    beside it, so that it is still there when the other question comes.
    """
    grammar = "root ::= branch*\nbranch ::= " + " | ".join(['"z"'] * 80)
    body = {"prompt": [300] * 1800, "ignore_eos": True, "stream": True, "grammar": grammar}
    request = urllib.request.Request(
        f"{server.base_url}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as filler:
        filler.readline()
        yield
