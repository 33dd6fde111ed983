"""``/completion`` of llama.cpp: the request, and what the conformance of the recordings does not look at."""

import json
from typing import Any

import pytest

from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    LogprobsDelta,
    PrefillProgress,
    ServerDetail,
    ServerTimings,
    StreamEnd,
    StreamError,
    StreamStart,
    TextDelta,
    TimingsReport,
    UnknownFrame,
    UsageReport,
)
from llmstream_cli.request import Request, Sampling
from llmstream_cli.shapes import get_shape
from llmstream_cli.turn import Turn
from tests.support.captures import decode, fold, load, one_by_one

SHAPE = get_shape("llamacpp")


def recorded(name: str) -> Turn:
    capture = load(name)
    return fold(
        decode(
            [capture.body],
            shape="llamacpp",
            body=capture.request_body,
            content_type=capture.content_type,
        )
    )


def answer(
    body: bytes, request: dict[str, Any] | None = None, kind: str = "text/event-stream"
) -> list[Event]:
    """The events of `body`, the same for one read and for reads of one byte."""
    request = {"prompt": "Hi", "stream": True} if request is None else request
    whole = decode([body], shape="llamacpp", body=request, content_type=kind)
    assert decode(one_by_one(body), shape="llamacpp", body=request, content_type=kind) == whole
    return whole


def stream(*frames: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)


def finish_of(terminal: dict[str, Any], request: dict[str, Any] | None = None) -> Finish:
    events = answer(stream({"content": "", "stop": True, **terminal}), request)
    (finish,) = [event for event in events if isinstance(event, Finish)]
    return finish


def end_of(events: list[Event]) -> StreamEnd:
    assert isinstance(events[-1], StreamEnd)
    return events[-1]


def test_request_with_everything() -> None:
    http = SHAPE.build(
        Request(
            messages=(),
            prompt="Once",
            model="m",
            sampling=Sampling(max_tokens=9, temperature=0, top_p=0.9, seed=3, stop=("END", "\n")),
            schema={"type": "object"},
            options={"cache_prompt": False, "n_probs": 2},
        )
    )
    assert (http.method, http.path) == ("POST", "/completion")
    assert http.body == {
        "model": "m",
        "prompt": "Once",
        "stream": True,
        "return_progress": True,
        "n_predict": 9,
        "temperature": 0,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["END", "\n"],
        "json_schema": {"type": "object"},
        "cache_prompt": False,
        "n_probs": 2,
    }


def test_request_with_nothing() -> None:
    http = SHAPE.build(Request(messages=(), prompt="", stream=False))
    assert http.body == {"prompt": "", "stream": False}
    assert SHAPE.needs_prompt(())
    assert (SHAPE.stop_field, SHAPE.max_tokens_field, SHAPE.terminal_marker) == ("stop", "n_predict", None)


@pytest.mark.parametrize(
    ("terminal", "reason", "raw", "word"),
    [
        ({"stop_type": "eos", "stopping_word": ""}, FinishReason.EOS, "eos", None),
        ({"stop_type": "eos", "stopping_word": "</s>"}, FinishReason.EOS, "eos", "</s>"),
        ({"stop_type": "word", "stopping_word": " four"}, FinishReason.STOP_SEQUENCE, "word", " four"),
        ({"stop_type": "word", "stopping_word": ""}, FinishReason.STOP_SEQUENCE, "word", None),
        ({"stop_type": "limit"}, FinishReason.LENGTH, "limit", None),
        ({"stop_type": "none"}, FinishReason.OTHER, "none", None),
        ({"stop_type": "meteor"}, FinishReason.OTHER, "meteor", None),
        ({}, FinishReason.STOP, None, None),
        ({"stopped_eos": True, "stopped_limit": True}, FinishReason.EOS, "eos", None),
        ({"stopped_word": True, "stopping_word": "END"}, FinishReason.STOP_SEQUENCE, "word", "END"),
        ({"stopped_eos": False, "stopped_limit": True}, FinishReason.LENGTH, "limit", None),
        (
            {"stopped_eos": False, "stopped_word": False, "stopped_limit": False},
            FinishReason.STOP,
            None,
            None,
        ),
    ],
)
def test_finish(terminal: dict[str, Any], reason: FinishReason, raw: str | None, word: str | None) -> None:
    assert finish_of(terminal) == Finish(reason=reason, raw_reason=raw, stop_sequence=word)


FULL = {"stop_type": "limit", "truncated": True, "tokens_predicted": 40}


@pytest.mark.parametrize(
    ("settings", "request_body", "reason"),
    [
        ({}, {}, FinishReason.CONTEXT),
        ({"n_predict": -1, "max_tokens": -1}, {"n_predict": -1}, FinishReason.CONTEXT),
        ({"n_predict": 41}, {}, FinishReason.CONTEXT),
        ({"n_predict": 40}, {}, FinishReason.LENGTH),
        ({"n_predict": -1, "max_tokens": 40}, {}, FinishReason.LENGTH),
        ({}, {"n_predict": 40}, FinishReason.LENGTH),
        ({}, {"max_tokens": 40}, FinishReason.LENGTH),
        ({}, {"n_predict": 50, "max_tokens": 40}, FinishReason.CONTEXT),
        ({}, {"n_predict": None, "max_completion_tokens": 40}, FinishReason.LENGTH),
    ],
)
def test_context_or_cap(settings: dict[str, Any], request_body: dict[str, Any], reason: FinishReason) -> None:
    assert finish_of({**FULL, "generation_settings": settings}, request_body).reason is reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("llama.cpp/ctx_full_native_stream", FinishReason.CONTEXT),
        ("llama.cpp/native_truncated_ctx_stream", FinishReason.CONTEXT),
        ("llama.cpp/ctx_shift_native_stream", FinishReason.LENGTH),
        ("llama.cpp/native_limit_stream", FinishReason.LENGTH),
        ("llama.cpp/native_t_max_stream", FinishReason.LENGTH),
        ("llama.cpp/native_response_fields_stream", FinishReason.LENGTH),
        ("llama.cpp/native_word_at_limit_stream", FinishReason.STOP_SEQUENCE),
        ("llama.cpp/native_eot_bias_stream", FinishReason.EOS),
        ("llama.cpp-2024/native_ctx_full_stream", FinishReason.LENGTH),
        ("llama.cpp-2024/native_long_prompt_stream", FinishReason.LENGTH),
        ("llama.cpp-2024/native_empty_stream", FinishReason.EOS),
        ("llama.cpp-2024/native_word", FinishReason.STOP_SEQUENCE),
    ],
)
def test_recorded_reason(name: str, reason: FinishReason) -> None:
    finish = recorded(name).first.finish
    assert finish is not None
    assert finish.reason is reason


def test_identity_counts_times_and_settings() -> None:
    turn = recorded("llama.cpp/native_cached_prompt_stream")
    assert turn.start == StreamStart(model="gemma-3-270m")
    assert turn.usage is not None
    assert (turn.usage.prompt_tokens, turn.usage.completion_tokens) == (1302, 4)
    assert turn.usage.cached_tokens == 1301
    assert turn.usage.total_tokens is None
    assert turn.usage.raw == {"tokens_evaluated": 1302, "tokens_predicted": 4, "tokens_cached": 1305}
    assert turn.timings.decode_s == pytest.approx(0.153805)
    assert turn.timings.load_s is None
    assert turn.detail["generation_settings"]["stop"] == []
    assert turn.detail["stop_type"] == "limit"
    assert turn.detail["prompt"].startswith("<bos>word word")
    assert turn.end.marker_seen is None


def test_an_old_build_does_not_tell_what_was_cached() -> None:
    usage = recorded("llama.cpp-2024/native_eos_stream").usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (17, 4, None)


def test_one_token_has_no_decoding_time() -> None:
    timings = recorded("llama.cpp/native_n_predict_1_stream").timings
    assert timings.decode_s is None
    assert timings.prefill_s is not None


def test_progress_comes_before_the_text() -> None:
    capture = load("llama.cpp/native_progress_stream")
    events = answer(capture.body, dict(capture.request_body))
    assert events[:4] == [
        PrefillProgress(processed_tokens=done, total_tokens=1302, cached_tokens=0)
        for done in (0, 786, 1298, 1302)
    ]
    assert events[4] == TextDelta(text="word")


def test_timings_of_every_token() -> None:
    events = answer(
        stream({"content": "a", "stop": False, "timings": {"prompt_ms": 250, "predicted_ms": 500}})
    )
    assert events[:2] == [
        TextDelta(text="a"),
        TimingsReport(timings=ServerTimings(prefill_s=0.25, decode_s=0.5)),
    ]


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("llama.cpp/native_n_probs_stream", 5),
        ("llama.cpp/native_n_probs", 5),
        # The terminal frame repeats all three.
        ("llama.cpp-2024/native_n_probs_stream", 3),
    ],
)
def test_logprobs_come_once(name: str, entries: int) -> None:
    logprobs = recorded(name).first.logprobs
    assert sum(len(piece) for piece in logprobs) == entries
    assert "completion_probabilities" not in recorded(name).detail


def test_no_logprobs_where_the_list_is_empty() -> None:
    events = answer(stream({"content": "a", "stop": False, "completion_probabilities": []}))
    assert not [event for event in events if isinstance(event, LogprobsDelta)]


@pytest.mark.parametrize(
    "name",
    [
        "llama.cpp/native_array_prompts",
        "llama.cpp/native_array_prompts_stream",
        "llama.cpp/native_array_interleaved_stream",
        "llama.cpp-2024/native_array",
    ],
)
def test_several_prompts_add_up(name: str) -> None:
    turn = recorded(name)
    assert [choice.index for choice in turn.choices] == [0, 1]
    assert turn.usage is not None
    assert turn.usage.completion_tokens in (9, 10)
    # Two answers at once: the time of one is not that of the turn.
    assert turn.timings == ServerTimings()


@pytest.mark.parametrize(
    ("prompt", "more", "choices"),
    [
        ("one", {}, 1),
        ([5, 6, 7], {}, 1),
        ([5, "six", 7], {}, 1),
        (["one", "two"], {}, 2),
        ([[5, 6], [7]], {}, 2),
        ([], {}, 1),
        ({"prompt_string": "one"}, {}, 1),
        ("one", {"n": 3}, 3),
        ("one", {"n_cmpl": 2}, 2),
        (["one", "two"], {"n": 2}, 4),
    ],
)
def test_every_answer_asked_for_must_end(prompt: Any, more: dict[str, Any], choices: int) -> None:
    request = {"prompt": prompt, "stream": True, **more}
    terminals = [{"index": index, "content": "", "stop": True} for index in range(choices)]
    assert end_of(answer(stream(*terminals), request)).status is EndStatus.COMPLETE
    assert end_of(answer(stream(*terminals[:-1]), request)).status is EndStatus.INCOMPLETE


def test_pieces_without_owner_in_one_frame_are_not_complete() -> None:
    turn = recorded("llama.cpp-2024/native_array_stream")
    assert turn.end.status is EndStatus.INCOMPLETE
    assert turn.first.text == "Hello there!one"


def test_nothing_is_read_after_the_last_answer() -> None:
    body = stream({"content": "a", "stop": False}, {"content": "", "stop": True, "stop_type": "eos"})
    events = answer(body + b"data: {broken\n\n")
    assert not [event for event in events if isinstance(event, UnknownFrame)]
    assert end_of(events).status is EndStatus.COMPLETE
    assert end_of(events).offset == body.rindex(b"data:")


def test_the_option_response_fields_may_leave_only_the_reason() -> None:
    events = answer(stream({"content": "a", "stop": False}, {"content": "", "stop_type": "limit"}))
    assert events[1:-1] == [
        ServerDetail(data={"stop_type": "limit"}),
        Finish(reason=FinishReason.LENGTH, raw_reason="limit"),
    ]
    assert end_of(events).status is EndStatus.COMPLETE


ERROR = {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}
SAID = StreamError(kind="server_error", message="Context size has been exceeded.", code=500)


@pytest.mark.parametrize(
    "bad",
    [
        stream({"error": ERROR}),
        b"error: " + json.dumps(ERROR).encode() + b"\n\n",
        b"error: " + json.dumps({"error": ERROR}).encode() + b"\n\n",
        b"event: error\ndata: " + json.dumps(ERROR).encode() + b"\n\n",
    ],
)
def test_an_error_ends_the_answer_and_keeps_the_text(bad: bytes) -> None:
    events = answer(stream({"content": "Hel", "stop": False}) + bad + stream({"content": "lo", "stop": True}))
    assert events[:-1] == [TextDelta(text="Hel")]
    assert (end_of(events).status, end_of(events).error) == (EndStatus.ERROR, SAID)


@pytest.mark.parametrize("words", ["out of memory", ""])
def test_an_error_that_is_no_json(words: str) -> None:
    error = end_of(answer(f"error: {words}\n\n".encode())).error
    assert error == StreamError(kind="server_error", message=words)


@pytest.mark.parametrize(
    "data", ["17", '"text"', "{}", "[]", '{"results": []}', '{"results": null}', '{"id": 1}']
)
def test_frames_of_another_kind_are_kept(data: str) -> None:
    events = answer(f"data: {data}\n\n".encode())
    assert events[:-1] == [UnknownFrame(name=None, data=data)]
    assert end_of(events).status is EndStatus.INCOMPLETE


@pytest.mark.parametrize(
    "frame",
    [
        {"content": 7, "stop": False},
        {"content": None, "stop": "yes"},
        {"content": [], "prompt_progress": None, "timings": 3, "index": "x"},
        {"stop": True, "generation_settings": [], "timings": None, "tokens_predicted": "many"},
    ],
)
def test_fields_of_the_wrong_type_do_no_harm(frame: dict[str, Any]) -> None:
    events = answer(stream(frame))
    assert not [event for event in events if isinstance(event, TextDelta | UnknownFrame)]


def test_counts_stay_unknown_where_none_came() -> None:
    events = answer(stream({"content": "", "stop": True, "stop_type": "eos"}))
    assert not [event for event in events if isinstance(event, UsageReport)]


def test_a_whole_answer_in_place_of_a_stream() -> None:
    whole = {"index": 0, "content": "Hi!", "stop": True, "model": "m", "stop_type": "eos"}
    for body in (whole, [whole], {"results": [whole]}):
        turn = fold(answer(json.dumps(body).encode(), kind="application/json"))
        assert (turn.first.text, turn.end.status) == ("Hi!", EndStatus.COMPLETE)
        assert turn.end.marker_seen is None
