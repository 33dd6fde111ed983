"""``/v1/completions``: what differs from the chat endpoint."""

import json
from typing import Any

import pytest

from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    LogprobsDelta,
    ServerTimings,
    StreamEnd,
    TextDelta,
    UsageReport,
)
from llmstream_cli.framing import Frame
from llmstream_cli.request import Request, Sampling
from llmstream_cli.shapes import get_shape
from tests.support.captures import decode, fold, load

SHAPE = get_shape("openai-completions")


def events_of(*chunks: Any, **body: Any) -> list[Event]:
    frames = SHAPE.decoder({"stream": True, "prompt": "Hi", **body})
    return [event for chunk in chunks for event in frames.decode(Frame(json.dumps(chunk)))]


def chunk(text: Any, finish: Any = None, index: int = 0, **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "text": text, "finish_reason": finish, **choice}]}


def test_request() -> None:
    http = SHAPE.build(
        Request(
            messages=(), prompt="Once", model="m", sampling=Sampling(max_tokens=9, stop=("END",)), usage=False
        )
    )
    assert http.path == "/v1/completions"
    assert http.body == {"model": "m", "prompt": "Once", "stream": True, "max_tokens": 9, "stop": ["END"]}
    assert SHAPE.takes == "prompt"


def test_a_schema_stands_where_each_server_reads_it() -> None:
    schema = {"type": "object"}
    body = SHAPE.build(Request(messages=(), prompt="Once", schema=schema)).body
    assert body["json_schema"] == schema
    assert body["response_format"]["json_schema"]["schema"] == schema


@pytest.mark.parametrize("nothing", ["", None, 7])
def test_text_and_nothing(nothing: Any) -> None:
    logprobs = {"tokens": ["a"], "token_logprobs": [-0.5]}
    assert events_of(chunk("a", "", logprobs=logprobs), chunk(nothing)) == [
        TextDelta(text="a"),
        LogprobsDelta(data=logprobs),
    ]


@pytest.mark.parametrize(
    ("raw", "said", "reason", "sequence"),
    [
        ("length", {}, FinishReason.LENGTH, None),
        ("eos_token", {}, FinishReason.EOS, None),
        ("stop_sequence", {}, FinishReason.STOP_SEQUENCE, None),
        ("stop", {}, FinishReason.STOP, None),
        ("stop", {"stop_reason": None}, FinishReason.EOS, None),
        ("stop", {"stop_reason": "END"}, FinishReason.STOP_SEQUENCE, "END"),
    ],
)
def test_finish(raw: str, said: dict[str, Any], reason: FinishReason, sequence: str | None) -> None:
    assert events_of(chunk("x", raw, **said)) == [
        TextDelta(text="x"),
        Finish(reason=reason, raw_reason=raw, stop_sequence=sequence),
    ]


@pytest.mark.parametrize(
    ("prompt", "n", "choices"),
    [
        ("one", None, 1),
        ("one", 3, 3),
        (["one"], None, 1),
        (["one", "two"], None, 2),
        (["one", "two"], 2, 4),
        ([1, 2, 3], None, 1),
        ([1, "mixed", 3], 2, 2),
        ([[1, 2], [3]], None, 2),
        ([], None, 1),
        (None, "many", 1),
        ("one", 0, 1),
    ],
)
def test_how_many_answers_will_come(prompt: Any, n: Any, choices: int) -> None:
    assert SHAPE.decoder({"prompt": prompt, "n": n}).choices == choices


def test_counts_of_different_prompts_are_not_joined() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    report = {**chunk("", "length"), "usage": usage, "timings": {"prompt_ms": 1}}
    *_, last = [
        event for event in events_of(report, report, prompt=["a", "b"]) if isinstance(event, UsageReport)
    ]
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (None, 4)


def native(stop: bool, **fields: Any) -> dict[str, Any]:
    return {"content": "" if stop else "Hi", "stop": stop, "id_slot": 0, **fields}


@pytest.mark.parametrize(
    ("fields", "reason", "raw", "sequence"),
    [
        ({"stopped_eos": True, "stopping_word": ""}, FinishReason.EOS, "eos", None),
        ({"stopped_word": True, "stopping_word": "END"}, FinishReason.STOP_SEQUENCE, "word", "END"),
        ({"stopped_limit": True, "truncated": False}, FinishReason.LENGTH, "limit", None),
        ({"stop_type": "word", "stopping_word": "END"}, FinishReason.STOP_SEQUENCE, "word", "END"),
        ({}, FinishReason.OTHER, "none", None),
    ],
)
def test_native_frames_of_old_llama_cpp(
    fields: dict[str, Any], reason: FinishReason, raw: str, sequence: str | None
) -> None:
    events = events_of(native(False), native(True, **fields))
    assert events[0] == TextDelta(text="Hi")
    assert events[-1] == Finish(reason=reason, raw_reason=raw, stop_sequence=sequence)


def test_native_recording_of_old_llama_cpp() -> None:
    capture = load("llama.cpp-2024/cmpl_stream")
    turn = fold(
        decode(
            [capture.body],
            shape="openai-completions",
            body=capture.request_body,
            content_type=capture.content_type,
        )
    )
    assert turn.first.text == "Hello there!"
    assert turn.usage is not None
    assert (turn.usage.prompt_tokens, turn.usage.completion_tokens) == (17, 4)
    assert turn.timings == ServerTimings(prefill_s=0.000443, decode_s=0.000553)
    assert turn.detail["generation_settings"]["max_tokens"] == 20
    assert turn.start.model == "tiny-llama"


def test_a_whole_answer() -> None:
    body = json.dumps({"object": "text_completion", **chunk("Once upon", "length")}).encode()
    events = decode(
        [body], shape="openai-completions", body={"stream": True}, content_type="application/json"
    )
    assert events == [
        TextDelta(text="Once upon"),
        Finish(reason=FinishReason.LENGTH, raw_reason="length"),
        StreamEnd(status=EndStatus.COMPLETE, marker_seen=None, offset=len(body)),
    ]
