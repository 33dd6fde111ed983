"""The corpus of public failures over real TCP, with its exact writes, through the command."""

import json
from typing import Any

import pytest

from tests.support.command import Finished, llmstream
from tests.support.corpus import FINISHED_ALL_THE_SAME, Case, body_of, cases, own_reads
from tests.support.wire_server import End, Reply, WireServer, Write

SHAPES = {
    "/v1/chat/completions": "openai-chat",
    "/api/chat": "ollama-chat",
    "/api/generate": "ollama-generate",
    "/v1/messages": "anthropic",
    "/v1/responses": "openai-responses",
}
ELSEWHERE = {
    "stream-options-refused": "tests/cli/test_cases.py: two different answers",
    "disconnect-not-in-retry-set": "tests/test_transport.py: two different connections",
}
EXTRA_ARGUMENTS = {
    "stall-in-mid-answer": ["--idle-timeout", "0.4"],
    "silent-hang-on-429": ["--retries", "0"],
}
ENDS: dict[str, End] = {"hold-open": "hold", "rst": "reset", "truncate": "truncate"}
LONGEST_PAUSE_S = 0.3
"""The pauses of a case are shortened to this: their order counts, not their length."""


def mine() -> list[str]:
    return [
        name for name, case in cases().items() if case["repro"]["path"] in SHAPES and name not in ELSEWHERE
    ]


def reply_of(case: Case) -> Reply:
    repro = case["repro"]
    body = body_of(case)
    pauses = {int(at): ms / 1000 for at, ms in repro.get("pauses_ms", {}).items()}
    writes: list[Write] = []
    at = 0
    for piece in own_reads(case, body):
        if at in pauses:
            writes.append(min(pauses[at], LONGEST_PAUSE_S))
        writes.append(piece)
        at += len(piece)
    return Reply(
        writes=[write for write in writes if write != b""],
        status=repro["status"],
        headers=tuple(repro["headers"].items()),
        transfer=repro["transfer"],
        end=ENDS.get(repro["end"].split()[0], "clean"),
    )


def run(case: Case, *arguments: str) -> tuple[Finished, list[Any]]:
    with WireServer(reply_of(case)) as server:
        done = llmstream(
            "--base-url",
            server.base_url,
            "--shape",
            SHAPES[case["repro"]["path"]],
            "-m",
            "m",
            "--json",
            *EXTRA_ARGUMENTS.get(case["id"], []),
            *arguments,
            "hi",
        )
        return done, list(server.requests)


@pytest.mark.parametrize("name", mine())
def test_case(name: str) -> None:
    case = cases()[name]
    expect = case["repro"]["expect"]
    done, requests = run(case, *(["--no-think-tags"] if "if_think_parsing" in expect else []))
    assert "Traceback" not in done.err
    turn = json.loads(done.out)
    assert turn["schema"] == "llmstream.turn/1"
    check_exit(name, expect, done)
    check_text(expect, turn)
    if "server_requests" in expect:
        assert len(requests) == expect["server_requests"]
    for words in wanted_words(expect):
        assert words.lower() in done.err.lower(), done.err


@pytest.mark.parametrize(
    "name", [name for name in mine() if "if_think_parsing" in cases()[name]["repro"]["expect"]]
)
def test_reasoning_between_tags(name: str) -> None:
    expect = cases()[name]["repro"]["expect"]["if_think_parsing"]
    done, _ = run(cases()[name])
    turn = json.loads(done.out)
    if isinstance(expect, dict):
        assert {key: turn[key] for key in expect} == expect
    else:
        # "text is not lost: shown with a note"
        assert turn["text"] == "The answer is 4."
        assert "never closed" in done.err
    assert done.code == 0


def check_exit(name: str, expect: dict[str, Any], done: Finished) -> None:
    wants_failure = expect.get("exit", "0").startswith("nonzero")
    if name in FINISHED_ALL_THE_SAME:
        assert done.code == 0
        assert "⚠" in done.err
    else:
        assert (done.code != 0) == wants_failure, done.err


def check_text(expect: dict[str, Any], turn: dict[str, Any]) -> None:
    for key in ("text", "raw_text", "text_written"):
        if key in expect:
            assert turn["text"] == expect[key]
    if "text_len" in expect:
        assert len(turn["text"]) == expect["text_len"]
    if "reasoning" in expect:
        assert turn["reasoning"] == expect["reasoning"]
    if "finish" in expect:
        assert turn["finish"]["raw"] == expect["finish"]
    if "tool_calls" in expect:
        calls = [[call["id"] or "", call["name"], call["arguments_text"]] for call in turn["tool_calls"]]
        assert calls == expect["tool_calls"]


WORDS = {
    "last-event-without-blank-line": ["cut off", "token limit"],
    "last-token-in-finish-chunk": ["cut off", "token limit"],
    "ollama-length-reported-as-stop": ["cut off", "token limit"],
    "budget-spent-on-thinking": ["spent on reasoning"],
    "html-error-page-inside-stream": ["503 Service Temporarily Unavailable", "text/html"],
    "clean-200-with-no-events": ["without a single event"],
    "json-error-with-status-200": ["top_p must be below 1"],
    "incomplete-chunked-read": ["closed after"],
    "known-disconnect-shown-as-unknown-error": ["reset", "1 event"],
    "cut-inside-tool-arguments": ["tool call write"],
    "anthropic-cut-before-message-stop": ["tool call edit"],
    "anthropic-error-event-ignored": ["overloaded_error", "try later"],
    "explicit-error-retried-as-truncation": ["context too long"],
    "error-chunk-without-choices-then-done": ["Loading model"],
    "finish-stop-but-nothing-generated": ["empty"],
    "silent-hang-on-429": ["429", "50 s"],
    "absurd-retry-after": ["86400"],
    "stall-in-mid-answer": ["--idle-timeout"],
    "user-stop-replaces-default-stop": ["control tokens"],
    "key-in-exception-text": ["Incorrect API key"],
    "post-turned-into-get": ["301"],
    "plain-bytes-before-brotli": ["gzip"],
    "blank-line-never-comes": ["larger than the limit"],
    "ndjson-error-reported-as-timeout": ["error parsing tool call"],
    "plain-404-parsed-as-json": ["404", "page not found"],
}
"""What the case's ``stderr`` asks for, in our words."""


def wanted_words(expect: dict[str, Any]) -> list[str]:
    name = next(name for name, case in cases().items() if case["repro"]["expect"] is expect)
    return WORDS.get(name, [])


def test_every_case_is_somewhere() -> None:
    """A case that asks for words on stderr has them in the table."""
    unasked = {
        name
        for name in mine()
        if cases()[name]["repro"]["expect"].get("stderr", "no traceback") != "no traceback"
        and name not in WORDS
    }
    assert unasked == {"comment-rewrapped-as-data", "cold-load-mistaken-for-dead-server"}
