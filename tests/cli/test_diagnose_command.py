"""``llmstream diagnose`` and a real llama.cpp: each cause provoked, named, and cured as it advises."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import ROOT
from tests.support.command import Finished, llmstream
from tests.support.llama import LlamaServer, free_port, llama_server

LITERAL = r"\n"


def diagnose(server: LlamaServer, *arguments: str) -> Finished:
    return llmstream("diagnose", "--base-url", server.base_url, "--temp", "0", *arguments)


def diagnosis(server: LlamaServer, *arguments: str) -> dict[str, Any]:
    done = diagnose(server, "--json", *arguments)
    assert done.code == 0, done.err
    found = dict(json.loads(done.out))
    assert found["schema"] == "llmstream.diagnosis/1"
    assert found["turn"]["schema"] == "llmstream.turn/1"
    return found


def only_stop(found: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The verdict of the only stop string, and its causes' confidence by code."""
    (stop,) = found["stops"]
    return stop["verdict"], {cause["code"]: cause["confidence"] for cause in stop["causes"]}


@pytest.mark.parametrize("shape", ["openai-chat", "openai-completions", "llamacpp", "anthropic"])
def test_honoured(tiny_server: LlamaServer, shape: str) -> None:
    found = diagnosis(tiny_server, "--shape", shape, "--stop", " four", "Count")
    assert only_stop(found) == ("honoured", {})
    assert found["turn"]["text"] == "one two three"


def test_never_generated(tiny_server: LlamaServer) -> None:
    assert only_stop(diagnosis(tiny_server, "--stop", "zebra", "Count")) == (
        "never_generated",
        {"never_generated": "proved"},
    )


def test_wrong_case_and_its_cure(tiny_server: LlamaServer) -> None:
    found = diagnosis(tiny_server, "--stop", " Four", "Count")
    assert only_stop(found) == ("ignored", {"near_miss": "proved"})
    assert found["stops"][0]["causes"][0]["advice"] == '--stop " four"'
    assert only_stop(diagnosis(tiny_server, "--stop", " four", "Count"))[0] == "honoured"


def test_literal_backslash_n_and_its_cure(tiny_server: LlamaServer) -> None:
    asked = ("--shape", "llamacpp", "-n", "60", "1+1?")
    found = diagnosis(tiny_server, "--stop-raw", LITERAL, *asked)
    assert only_stop(found) == ("ignored", {"literal_escape": "proved"})
    (cause,) = found["stops"][0]["causes"]
    assert cause["evidence"][0] == r'sent     "stop": ["\\n"]'
    assert cause["advice"].startswith(r"--stop '\n'")
    assert only_stop(diagnosis(tiny_server, "--stop", LITERAL, *asked))[0] == "honoured"


def test_hidden_control_token_and_its_cure(tiny_server: LlamaServer) -> None:
    asked = ("--shape", "llamacpp", "-n", "30", "--stop", "<|sep|>", "Special")
    found = diagnosis(tiny_server, *asked)
    assert only_stop(found) == ("ignored", {"special_token_hidden": "proved"})
    (cause,) = found["stops"][0]["causes"]
    assert "preserved_tokens" in cause["advice"]
    cured = diagnosis(tiny_server, *asked, "-o", 'preserved_tokens=["<|sep|>"]')
    assert only_stop(cured)[0] == "honoured"


def test_hidden_control_token_on_the_chat_endpoint(tiny_server: LlamaServer) -> None:
    found = diagnosis(tiny_server, "-n", "30", "--stop", "<|sep|>", "Special")
    assert only_stop(found) == ("ignored", {"special_token_hidden": "likely"})


def test_misplaced_stop(tiny_server: LlamaServer) -> None:
    found = diagnosis(tiny_server, "-o", 'options.stop=[" four"]', "Count")
    assert only_stop(found) == ("ignored", {"wrong_field": "proved"})


def test_misplaced_stop_of_messages_needs_the_probe_for_proof(tiny_server: LlamaServer) -> None:
    asked = ("--shape", "anthropic", "-o", 'stop=[" four"]', "Count")
    assert only_stop(diagnosis(tiny_server, *asked)) == ("ignored", {"wrong_field": "likely"})
    done = diagnose(tiny_server, "--probe", *asked)
    assert "· --probe: up to 3 questions more, 32 tokens each" in done.err
    assert "proved   The stop list was sent where this endpoint does not look" in done.text
    assert 'with stop_sequences ["six"]  cut before it: honoured and removed' in done.text


def test_stop_that_is_not_sent_and_its_cure(tiny_server: LlamaServer) -> None:
    asked = ("--shape", "openai-responses", "--stop", " four", "Count")
    found = diagnosis(tiny_server, *asked)
    assert only_stop(found) == ("ignored", {"not_sent": "proved"})
    assert found["stops"][0]["causes"][0]["advice"] == "-o 'stop=[\" four\"]'"
    assert diagnosis(tiny_server, *asked, "-o", 'stop=[" four"]')["turn"]["text"] == "one two three"


def test_empty_stop(tiny_server: LlamaServer) -> None:
    found = diagnosis(tiny_server, "-o", 'stop=[""]', "Count")
    assert only_stop(found) == ("honoured", {"empty_stop": "proved"})


def test_wrong_type(tiny_server: LlamaServer) -> None:
    found = diagnosis(tiny_server, "-o", "stop=5", "Count")
    assert found["stops"] == []
    assert [finding["code"] for finding in found["answer"]] == ["wrong_type"]


def test_stop_that_matches_at_once(tiny_server: LlamaServer) -> None:
    found = diagnosis(tiny_server, "--stop", "one", "Count")
    assert only_stop(found) == ("honoured", {"matched_at_once": "proved"})
    assert any("assistant" in line for line in found["stops"][0]["causes"][0]["evidence"])


def test_stop_inside_a_tool_call(tiny_server: LlamaServer) -> None:
    names = ("get_weather", "add")
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]
    found = diagnosis(tiny_server, "-o", f"tools={json.dumps(tools)}", "--stop", "}", "Weather in Oslo?")
    assert only_stop(found) == ("honoured", {"cut_tool_call": "proved"})


def test_stop_inside_reasoning(tiny_server: LlamaServer) -> None:
    found = diagnosis(tiny_server, "--stop", " one.", "1+1?")
    assert only_stop(found) == ("honoured", {"matched_in_reasoning": "proved"})


def test_grammar_that_escapes_line_feeds_and_its_cure(tiny_server: LlamaServer) -> None:
    asked = ("-o", "grammar=" + json.dumps(r'root ::= "a: \"x\\ny\""'), "Count")
    found = diagnosis(tiny_server, "--stop", LITERAL, *asked)
    assert found["turn"]["text"] == r'a: "x\ny"'
    assert only_stop(found) == ("ignored", {"grammar_escapes": "proved"})
    assert found["stops"][0]["causes"][0]["advice"].endswith(r"--stop-raw '\n'")
    assert only_stop(diagnosis(tiny_server, "--stop-raw", LITERAL, *asked))[0] == "honoured"


def test_stop_string_of_the_server() -> None:
    with llama_server(antiprompt=[" four"]) as server:
        (finding,) = diagnosis(server, "Count")["answer"]
    assert (finding["code"], finding["confidence"]) == ("default_stops", "proved")
    assert finding["evidence"] == ['matched " four"; the server\'s stop strings: [" four"]']


def test_tail_lost_at_the_cap(tiny_server: LlamaServer) -> None:
    found = diagnosis(tiny_server, "--shape", "llamacpp", "-n", "4", "--stop", " four NEVER", "Count")
    verdict, causes = only_stop(found)
    assert (verdict, causes["tail_lost"]) == ("never_generated", "proved")
    assert [finding["code"] for finding in found["answer"]] == ["truncated"]


def test_probes_are_listed_and_can_be_refused(tiny_server: LlamaServer) -> None:
    found = diagnosis(tiny_server, "--stop", " four", "Count")
    assert {probe["request"] for probe in found["probes"]} >= {"GET /props", "POST /tokenize"}
    assert all(probe["ok"] for probe in found["probes"])
    assert diagnosis(tiny_server, "--no-probes", "--stop", " four", "Count")["probes"] == []


def test_one_screen_for_people(tiny_server: LlamaServer) -> None:
    done = diagnose(tiny_server, "--stop", " Four", "Count")
    assert done.code == 0
    assert done.err == ""
    lines = done.text.splitlines()
    assert lines[0] == "Answer: 11 tokens, ended by the model (end of sequence)"
    assert lines[1] == "  1  one two three four five six seven eight nine ten"
    assert lines[3].startswith('Stop 1 of 1   " Four"   5 characters: U+0020 U+0046')
    assert lines[3].endswith("IGNORED")
    assert 'do       --stop " four"' in done.text
    assert len(lines) < 24


def test_a_recording_of_the_cli_itself(tiny_server: LlamaServer, tmp_path: Path) -> None:
    """Recorded while the client cut the answer: what came after the stop string is judged all the same."""
    file = tmp_path / "answer.jsonl"
    asked = ("--shape", "anthropic", "-o", 'stop=[" four"]', "--record", str(file), "Count")
    assert llmstream("--base-url", tiny_server.base_url, "--temp", "0", *asked).code == 0
    done = llmstream("diagnose", "--capture", str(file), "--json")
    assert only_stop(json.loads(done.out)) == ("ignored", {"wrong_field": "likely"})


def test_recordings_need_no_server() -> None:
    file = ROOT / "vllm" / "chat_min_tokens_stop_stream.jsonl"
    done = llmstream("diagnose", "--capture", str(file))
    assert done.code == 0
    assert "likely   The first tokens do not count: `min_tokens` swallowed the stop string." in done.text
    assert 'in the answer at 3: "one« two» three four' in done.text


def test_curl_and_record_as_with_ask(tiny_server: LlamaServer, tmp_path: Path) -> None:
    assert diagnose(tiny_server, "--curl", "Count").text.startswith("curl ")
    file = tmp_path / "answer.jsonl"
    live = diagnosis(tiny_server, "--record", str(file), "--stop", " Four", "Count")
    again = json.loads(llmstream("diagnose", "--capture", str(file), "--json").out)
    assert only_stop(again) == only_stop(live) == ("ignored", {"near_miss": "proved"})


def test_nobody_answers() -> None:
    done = llmstream(
        "diagnose", "--base-url", f"http://127.0.0.1:{free_port()}", "--probe", "--stop", "x", "Hi"
    )
    assert done.code == 6
    assert "connection refused" in done.err
    assert "UNKNOWN" in done.text


def test_formats() -> None:
    file = ROOT / "vllm" / "chat_min_tokens_stop_stream.jsonl"
    done = llmstream("diagnose", "--capture", str(file), "--format", "raw")
    assert done.code == 2
    assert "text and json" in done.err
