"""Verdicts, the order of causes, and no false alarms on recordings of real servers."""

import pytest

from llmstream_cli.diagnose import Confidence, Verdict, diagnose
from llmstream_cli.diagnose.places import code_points, escaped, near_misses, positions, unescaped, window
from llmstream_cli.events import EndStatus, FinishReason
from tests.support import captures
from tests.support.evidence import make_evidence as answer
from tests.support.evidence import recorded

STOP, WORD, LENGTH = FinishReason.STOP, FinishReason.STOP_SEQUENCE, FinishReason.LENGTH


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (answer("a ", "b", reason=WORD, matched="b"), Verdict.HONOURED),
        (answer("a b", "b", reason=WORD, matched="b"), Verdict.HONOURED_KEPT),
        (answer("a b", "b", reason=WORD), Verdict.HONOURED_KEPT),
        (answer("a ", "b", reason=WORD), Verdict.HONOURED),
        (answer("a b c", "b"), Verdict.IGNORED),
        (answer("a b c", "b", reason=None, status=EndStatus.INCOMPLETE), Verdict.IGNORED),
        (answer("a b", "b", reason=LENGTH), Verdict.IGNORED),
        (answer("a B c", "b"), Verdict.IGNORED),
        (answer("a\nc", r"\n"), Verdict.IGNORED),
        (answer("a c", "b"), Verdict.NEVER_GENERATED),
        (answer("a c", "b", reason=LENGTH), Verdict.NEVER_GENERATED),
        (answer("a c", "b", reason=WORD, matched="d"), Verdict.NEVER_GENERATED),
        (answer("a c", "b", reason=STOP), Verdict.UNKNOWN),
        (answer("a b", "b", reason=STOP), Verdict.UNKNOWN),
        (answer("a", "b", reason=None, status=EndStatus.INCOMPLETE), Verdict.UNKNOWN),
        (answer("", "", reason=WORD), Verdict.HONOURED),
        (answer("a", ""), Verdict.UNKNOWN),
    ],
)
def test_verdict(evidence: object, verdict: Verdict) -> None:
    (stop,) = diagnose(evidence).stops  # type: ignore[arg-type]
    assert stop.verdict is verdict


def test_the_surest_cause_comes_first() -> None:
    found = diagnose(answer("a b c", " b", body={"options": {"stop": [" b"]}}, settings={"stop": []}))
    assert [cause.confidence for cause in found.stops[0].causes] == [Confidence.PROVED]
    found = diagnose(answer("a\nUser: b", r"\n", model_stops=("</s>",), settings={"stop": [r"\n"]}))
    assert found.stops[0].causes[0].code == "literal_escape"
    assert found.answer[0].code == "model_stops_replaced"


def test_only_one_choice_of_several_stops_matched() -> None:
    found = diagnose(answer("one two", "zzz", " three", reason=WORD, matched=" three"))
    assert [stop.verdict for stop in found.stops] == [Verdict.NEVER_GENERATED, Verdict.HONOURED]


SEEN = {
    "llama.cpp/native_word": {"zzz": "never_generated", " STOP": "honoured"},
    "llama.cpp/messages_stop_stream": {" three": "honoured"},
    "llama.cpp/chat_stop_word_stream": {" three": "unknown"},
    "llama.cpp/native_word_at_limit_stream": {" STOP": "honoured"},
    "vllm/chat_stop_string_stream": {"zzz": "never_generated", " four": "honoured"},
    "vllm/chat_stop_string_included_stream": {" four": "honoured_kept"},
    "vllm/chat_min_tokens_stop_stream": {" two": "ignored", " nine": "honoured"},
    "vllm/messages_stop_stream": {" four": "honoured"},
    "llama-cpp-python/chat_stop_stream": {" three": "unknown"},
}


@pytest.mark.parametrize("name", SEEN)
def test_recordings_of_stop_strings(name: str) -> None:
    assert {stop.stop: stop.verdict.value for stop in recorded(name).stops} == SEEN[name]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("vllm/chat_min_tokens_stop_stream", "min_tokens"),
        ("vllm/chat_reasoning_stop_stream", "matched_in_reasoning"),
        ("vllm/chat_stop_string_included_stream", "kept_in_text"),
        ("llama.cpp/native_word_first_stream", "matched_at_once"),
        ("llama.cpp/chat_stop_word_stream", "not_distinguishable"),
    ],
)
def test_recordings_with_a_cause(name: str, code: str) -> None:
    assert code in {cause.code for stop in recorded(name).stops for cause in stop.causes}


# Servers that were told to show control tokens in the text: there the doctor rightly wonders.
SHOWS_TOKENS = "special"
QUIET = [
    name
    for name in captures.names()
    if SHOWS_TOKENS not in name
    and captures.expected()[name].get("outcome") == "complete"
    and not {"stop", "stop_sequences", "ignore_eos"} & set(captures.load(name).request_body)
]


def test_no_false_alarms_on_complete_recordings() -> None:
    assert len(QUIET) > 50
    for name in QUIET:
        found = recorded(name)
        assert found.stops == (), name
        codes = {finding.code for finding in found.answer if finding.evidence} - {"slow_prefill"}
        assert not codes, (name, codes)


def test_places() -> None:
    assert escaped('\n"\\\x1b') == '"\\n\\"\\\\\\u001b"'
    assert code_points(r"\n") == "U+005C U+006E"
    assert code_points("x" * 9, limit=2) == "U+0078 U+0078 ..."
    assert window("one two three", 4, 3) == '"one «two» three"'
    assert window("x" * 40, 20, 1) == f'"...{"x" * 12}«x»{"x" * 12}..."'
    assert positions("abab", "b") == (1, 3)
    assert positions("abab", "") == ()
    assert unescaped(r"\nUser") == "\nUser"
    assert unescaped("User") is None
    assert list(near_misses("a Thursday b", "thursday")) == [("upper and lower case", "Thursday")]
