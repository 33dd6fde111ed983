"""Every cause is found where it is at work, with honest confidence, and not where it only looks like it."""

from collections.abc import Mapping

import pytest

from llmstream_cli.diagnose import Confidence, Evidence, Tokens, Trial
from llmstream_cli.diagnose.findings import Rule
from llmstream_cli.diagnose.rules import ANSWER_RULES, STOP_RULES
from llmstream_cli.events import EndStatus, FinishReason, ServerTimings, StreamError
from llmstream_cli.timing import Timing
from tests.support.evidence import make_evidence as answer

PROVED, LIKELY, POSSIBLE = Confidence.PROVED, Confidence.LIKELY, Confidence.POSSIBLE
STOP, WORD, LENGTH = FinishReason.STOP, FinishReason.STOP_SEQUENCE, FinishReason.LENGTH
RULES: Mapping[str, Rule] = {rule.code: rule for rule in (*STOP_RULES, *ANSWER_RULES)}
REFUSED = StreamError(kind="bad_request", message="stop cannot contain an empty string", http_status=400)
CUT = StreamError(kind="connection_closed", message="the connection closed")
SPECIAL = {"<|x|>": Tokens(ids=(5,), special=True)}
TYPED = {"<|im_end|>": Tokens(ids=(1, 2, 3))}
HELPS = {"stop": Trial.HONOURED}
BROKEN = EndStatus.INCOMPLETE
BURST = Timing(decode_s=2.0, first_byte_s=2.1, total_s=2.2)
STEADY = Timing(decode_s=2.0, first_byte_s=0.1, total_s=2.2)
LONG = "x" * 250

PRESENT: list[tuple[str, Confidence, Evidence]] = [
    ("wrong_field", LIKELY, answer("a b c", " b", body={"options": {"stop": [" b"]}})),
    ("wrong_field", PROVED, answer("a b c", " b", body={"options": {"stop": [" b"]}}, settings={"stop": []})),
    (
        "wrong_field",
        LIKELY,
        answer("a b c", " b", shape="anthropic", path="/v1/messages", body={"stop": [" b"]}),
    ),
    ("wrong_field", PROVED, answer("a b c", " b", body={"x": 1, "options": {"stop": [" b"]}}, trials=HELPS)),
    ("not_sent", PROVED, answer("a b", "b", shape="openai-responses", kind="llama.cpp", body={})),
    ("not_sent", PROVED, answer("a b", "b", shape="openai-responses", body={})),
    ("no_stop_support", LIKELY, answer("a b", "b", shape="openai-responses", path="/v1/responses")),
    ("no_stop_support", LIKELY, answer("a b", "b", path="/api/v1/chat")),
    ("no_stop_support", LIKELY, answer("a b c", "b", kind="ollama", model_format="safetensors")),
    ("no_stop_support", PROVED, answer("a b c", "b", trials={"stop": Trial.IGNORED})),
    ("wrong_type", LIKELY, answer("a", body={"stop": 5})),
    ("wrong_type", LIKELY, answer("a", body={"stop": ["b", 5]})),
    ("wrong_type", PROVED, answer("", body={"stop": {"a": 1}}, error=REFUSED)),
    ("wrong_type", LIKELY, answer("a", shape="ollama-chat", body={"options": {"stop": "b"}})),
    ("empty_stop", PROVED, answer("", "", reason=WORD)),
    ("empty_stop", PROVED, answer("", "", reason=None, status=EndStatus.ERROR, error=REFUSED)),
    ("empty_stop", POSSIBLE, answer("a", "")),
    ("too_many_stops", LIKELY, answer("a", *"12345", kind="vllm")),
    ("too_many_stops", PROVED, answer("", *"12345", kind="vllm", error=REFUSED)),
    ("too_many_stops", LIKELY, answer("a", *"123", max_stops=2)),
    ("literal_escape", PROVED, answer("Red\nGreen", r"\n", settings={"stop": [r"\n"]})),
    ("literal_escape", LIKELY, answer("Red\nGreen", r"\nGreen")),
    ("literal_escape", POSSIBLE, answer("Red", r"\n")),
    ("near_miss", PROVED, answer("It is Thursday.", "thursday", settings={"stop": ["thursday"]})),
    ("near_miss", LIKELY, answer("say “no” now", '"no"')),
    ("near_miss", LIKELY, answer("one\r\ntwo", "one\ntwo")),
    ("near_miss", LIKELY, answer("cafe\u0301", "caf\u00e9")),
    ("near_miss", LIKELY, answer("User:  Bob", "User: Bob")),
    ("near_miss", LIKELY, answer("User:\nBob", "User: ")),
    ("special_token_hidden", PROVED, answer("a b", "<|x|>", tokens=5, ids=(1, 5, 2, 3), tokens_=SPECIAL)),
    ("special_token_hidden", LIKELY, answer("a b", "<|x|>", tokens=4, ids=(1, 2), tokens_=SPECIAL)),
    ("special_token_hidden", POSSIBLE, answer("a b", "<|x|>", tokens_=SPECIAL)),
    ("special_token_hidden", POSSIBLE, answer("a b", "<|im_end|>")),
    ("marker_not_a_token", PROVED, answer("a<|im_end|>b", eos="<eos>", tokens_=TYPED)),
    ("marker_not_a_token", POSSIBLE, answer("a<|im_end|>b")),
    ("grammar_escapes", LIKELY, answer('{"a":"b\\nc"}', "\n", body={"grammar": "root ::= x"})),
    ("min_tokens", LIKELY, answer("one two three", " two", body={"min_tokens": 8, "stop": [" two"]})),
    ("token_end_only", LIKELY, answer("it is Wednesday", "Wed", kind="tgi", reason=LENGTH)),
    ("stop_too_long", LIKELY, answer(f"a {LONG} b", LONG, kind="tgi")),
    ("limit_coincided", PROVED, answer("a b", "b", kind="tgi", reason=LENGTH)),
    ("limit_coincided", LIKELY, answer("a b", "b", reason=LENGTH)),
    ("old_build", LIKELY, answer("a b c", "b", kind="llama.cpp", version="b4599")),
    ("proxy_dropped", POSSIBLE, answer("a b c", "b", settings={"stop": []})),
    ("proxy_dropped", POSSIBLE, answer("a b c", "b", kind="vllm", trials={"stop": Trial.IGNORED})),
    ("proxy_dropped", POSSIBLE, answer("a b c", "b")),
    ("kept_in_text", PROVED, answer("a b", "b", reason=WORD)),
    ("kept_in_text", LIKELY, answer("a b", "b", reason=STOP)),
    ("matched_in_reasoning", PROVED, answer("", "b", reasoning="a ", reason=WORD, matched="b")),
    ("matched_in_reasoning", POSSIBLE, answer("", "b", reasoning="a ", reason=STOP)),
    ("cut_tool_call", PROVED, answer("", "}", arguments='{"a": ', reason=WORD, matched="}")),
    ("cut_tool_call", LIKELY, answer("", "}", arguments='{"a": ', reason=STOP)),
    ("matched_at_once", PROVED, answer("", "\n", reason=WORD, matched="\n", prompt_="user:")),
    ("matched_at_once", POSSIBLE, answer("", "\n", reason=STOP)),
    ("tail_lost", PROVED, answer("one", " two NO", kind="llama.cpp", reason=LENGTH, detokenized="one two")),
    (
        "tail_lost",
        POSSIBLE,
        answer("a", "bc", kind="llama.cpp", reason=LENGTH, ids=(1,), tokens=3, body={"stream": True}),
    ),
    ("never_generated", PROVED, answer("a b c", "zebra")),
    ("never_generated", PROVED, answer("a b c", "zebra", reason=LENGTH)),
    ("only_in_prompt", POSSIBLE, answer("a b c", "zebra", prompt="no zebra please")),
    ("not_distinguishable", POSSIBLE, answer("a b c", "zebra", reason=STOP, raw="stop")),
    ("ended_early", PROVED, answer("a", "b", reason=None, status=EndStatus.INCOMPLETE, error=CUT)),
    ("model_stops_replaced", PROVED, answer("a</s>b", "x", model_stops=("</s>",))),
    ("model_stops_replaced", LIKELY, answer("a\nUser: b", "x", model_stops=("</s>",))),
    ("model_stops_replaced", POSSIBLE, answer("a b", "x", model_stops=("</s>",))),
    ("default_stops", PROVED, answer("a", reason=WORD, matched="###", settings={"stop": ["###"]})),
    ("default_stops", POSSIBLE, answer("a", reason=STOP, model_stops=("</s>",))),
    ("ignore_eos", PROVED, answer("a", reason=LENGTH, body={"ignore_eos": True})),
    ("wrong_shape", LIKELY, answer("", reason=None, status=BROKEN, path="/api/chat")),
    ("only_keep_alives", PROVED, answer("", reason=None, status=BROKEN, keep_alives=3)),
    (
        "context_full",
        PROVED,
        answer("a", reason=LENGTH, tokens=100, prompt_tokens=1948, context_tokens=2048),
    ),
    ("buffered", PROVED, answer("a", body={"stream": True}, timing=BURST, tokens=40)),
    ("slow_prefill", PROVED, answer("a", timings=ServerTimings(prefill_s=9.0, decode_s=1.0))),
]

HONOURED = answer("a ", "b", reason=WORD, matched="b", settings={"stop": ["b"]})
ABSENT: list[tuple[str, Evidence]] = [
    ("wrong_field", answer("a b c", " b")),
    ("wrong_field", answer("a b c", " b", shape="ollama-chat", body={"options": {"stop": [" b"]}})),
    ("not_sent", answer("a b", "b", body={"options": {"stop": ["b"]}})),
    ("no_stop_support", answer("a b c", "b", trials={"stop": Trial.IGNORED, "options.stop": Trial.KEPT})),
    ("no_stop_support", answer("a b", "b", shape="openai-responses", kind="llama.cpp")),
    ("no_stop_support", answer("a b", "c", kind="ollama", model_format="gguf")),
    ("no_stop_support", answer("a b c", "b", trials={"stop": Trial.HONOURED})),
    ("wrong_type", answer("a", "b", body={"stop": "b"})),
    ("wrong_type", answer("a")),
    ("empty_stop", answer("", "b", reason=WORD, matched="b")),
    ("too_many_stops", answer("a", *"1234", kind="vllm")),
    ("too_many_stops", answer("a", *"123456", kind="llama.cpp")),
    ("literal_escape", answer("a\nb", "\n")),
    ("literal_escape", answer(r"C:\new", r"\new")),
    ("near_miss", answer("Thursday", "Thursday")),
    ("near_miss", answer("Thursday", "Friday")),
    ("near_miss", answer("a b", " ")),
    ("near_miss", answer("Bob ", "b", reason=WORD, matched="b")),
    ("special_token_hidden", answer("a four", " four", tokens_={" four": Tokens(ids=(7,))})),
    ("special_token_hidden", answer("a<|x|>", "<|x|>", tokens_=SPECIAL)),
    ("special_token_hidden", answer("a", "<|x|>", reason=WORD, matched="<|x|>", tokens_=SPECIAL)),
    ("marker_not_a_token", answer("a <b> | c")),
    ("marker_not_a_token", answer("a<|im_end|>")),
    ("marker_not_a_token", answer("a<|x|>b", tokens_=SPECIAL)),
    ("grammar_escapes", answer("a\\nb", "\n")),
    ("grammar_escapes", answer("a\\nb", "\n", matched="\n", reason=WORD, body={"grammar": "root ::= x"})),
    ("grammar_escapes", answer('{"a":1}', "zebra", body={"grammar": "root ::= x"})),
    ("min_tokens", answer("one two three", " two")),
    ("min_tokens", answer("one", " two", body={"min_tokens": 8})),
    ("token_end_only", answer("it is Wednesday", "Wed", kind="vllm")),
    ("token_end_only", answer("it is Wed", "Wed", kind="tgi", reason=WORD)),
    ("stop_too_long", answer("a b c", "b", kind="tgi")),
    ("limit_coincided", answer("a b c", "b", reason=LENGTH)),
    ("limit_coincided", answer("a b", "b", reason=WORD)),
    ("old_build", answer("a b c", "b", kind="llama.cpp", version="b6000")),
    ("old_build", answer("a c", "b", kind="llama.cpp", version="b4599")),
    ("proxy_dropped", answer("a b c", "b", settings={"stop": ["b"]})),
    ("proxy_dropped", answer("a b c", " b", body={"options": {"stop": [" b"]}}, settings={"stop": []})),
    ("kept_in_text", answer("a b", "b", reason=LENGTH)),
    ("kept_in_text", HONOURED),
    ("matched_in_reasoning", answer("an answer", "b", reasoning="a ", reason=WORD, matched="b")),
    ("matched_in_reasoning", answer("", "b", reasoning="a ", reason=LENGTH)),
    ("cut_tool_call", answer("", "}", arguments='{"a": 1}', reason=STOP)),
    ("cut_tool_call", answer("", "}", arguments='{"a": ', reason=LENGTH)),
    ("matched_at_once", HONOURED),
    ("matched_at_once", answer("", "\n", reason=LENGTH)),
    ("tail_lost", answer("one two", " two NO", kind="llama.cpp", reason=LENGTH, detokenized="one two")),
    ("tail_lost", answer("one", " two NO", kind="llama.cpp", detokenized="one two")),
    ("never_generated", HONOURED),
    ("never_generated", answer("Thursday", "thursday")),
    ("never_generated", answer("a", "b", status=EndStatus.INCOMPLETE)),
    ("never_generated", answer("a", "b", reason=STOP)),
    ("only_in_prompt", answer("a zebra", "zebra", prompt="zebra")),
    ("not_distinguishable", answer("a", "b", reason=STOP, kind="vllm")),
    ("not_distinguishable", answer("a", "b")),
    ("ended_early", answer("a", "b")),
    ("ended_early", answer("a b c", "b", reason=None, status=EndStatus.INCOMPLETE)),
    ("model_stops_replaced", answer("a\nUser: b", "</s>", model_stops=("</s>",))),
    ("default_stops", HONOURED),
    ("default_stops", answer("a")),
    ("ignore_eos", answer("a", reason=LENGTH)),
    ("wrong_shape", answer("", reason=None, status=BROKEN)),
    ("wrong_shape", answer("a", path="/api/chat")),
    ("only_keep_alives", answer("a", keep_alives=3)),
    ("only_keep_alives", answer("", reason=None, status=BROKEN)),
    ("context_full", answer("a", reason=LENGTH, tokens=100, prompt_tokens=948, context_tokens=2048)),
    ("context_full", answer("a", tokens=100, prompt_tokens=1948, context_tokens=2048)),
    ("context_full", answer("a", reason=LENGTH, tokens=100, context_tokens=2048)),
    ("buffered", answer("a", timing=BURST, tokens=40)),
    ("buffered", answer("a", body={"stream": True}, timing=BURST, tokens=4)),
    ("buffered", answer("a", body={"stream": True}, timing=Timing(decode_s=2.0), tokens=40)),
    ("buffered", answer("a", body={"stream": True}, timing=STEADY, tokens=40)),
    ("slow_prefill", answer("a", timings=ServerTimings(prefill_s=9.0, decode_s=10.0))),
    ("slow_prefill", answer("a")),
    ("ignore_eos", answer("a", body={"ignore_eos": True})),
]


def check(code: str, evidence: Evidence) -> Confidence | None:
    stop = next(iter(evidence.stops), "") if RULES[code] in STOP_RULES else ""
    found = RULES[code].find(evidence, stop)
    return found.confidence if found else None


@pytest.mark.parametrize(("code", "confidence", "evidence"), PRESENT, ids=lambda value: str(value)[:24])
def test_found(code: str, confidence: Confidence, evidence: Evidence) -> None:
    assert check(code, evidence) is confidence


@pytest.mark.parametrize(("code", "evidence"), ABSENT, ids=lambda value: str(value)[:24])
def test_not_found(code: str, evidence: Evidence) -> None:
    assert check(code, evidence) is None


def test_every_rule_is_tested_both_ways() -> None:
    assert {code for code, _, _ in PRESENT} == {code for code, _ in ABSENT} == set(RULES)


@pytest.mark.parametrize(("code", "confidence", "evidence"), PRESENT, ids=lambda value: str(value)[:24])
def test_a_finding_says_why_and_what_to_do(code: str, confidence: Confidence, evidence: Evidence) -> None:
    stop = next(iter(evidence.stops), "")
    found = RULES[code].find(evidence, stop)
    assert found is not None
    assert found.confidence is confidence
    assert found.says.endswith(".")
    assert found.evidence
    assert found.advice
