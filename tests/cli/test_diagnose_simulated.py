"""``llmstream diagnose`` and servers that answer as Ollama, TGI and vLLM do, over real TCP."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.command import Finished, llmstream
from tests.support.wire_server import Received, Reply, WireServer, json_reply

NOT_FOUND = Reply(status=404, transfer="length")


def diagnosed(answers: Mapping[str, Any], *arguments: str, form: str = "json") -> Finished:
    """`answers`: a reply, or what is sent as JSON, by path."""

    def choose(request: Received) -> Reply:
        answer = answers.get(request.path, NOT_FOUND)
        return answer if isinstance(answer, Reply) else json_reply(answer)

    with WireServer(choose) as server:
        return llmstream("diagnose", "--base-url", server.base_url, "--format", form, *arguments)


def causes(done: Finished, stop: str) -> tuple[str, dict[str, str]]:
    """The verdict of `stop`, and the confidence of its causes."""
    found = next(item for item in json.loads(done.out)["stops"] if item["stop"] == stop)
    return found["verdict"], {cause["code"]: cause["confidence"] for cause in found["causes"]}


def models(owner: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner}]}


def lines(*values: Mapping[str, Any]) -> Reply:
    return Reply(
        writes=[json.dumps(value).encode() + b"\n" for value in values],
        headers=[("Content-Type", "application/x-ndjson")],
    )


def events(*values: Mapping[str, Any]) -> Reply:
    return Reply(writes=[*(b"data: %s\n\n" % json.dumps(value).encode() for value in values)])


def ollama(text: str, **shown: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    done = {"message": {"content": ""}, "done": True, "done_reason": "stop", "eval_count": 9}
    return {
        "/v1/models": models("library"),
        "/api/chat": lines({"message": message, "done": False}, done),
        "/api/show": shown,
    }


def test_ollama_replaces_the_stop_strings_of_the_model() -> None:
    shown = {"parameters": 'stop    "<|im_end|>"', "details": {"format": "gguf"}}
    done = diagnosed(
        ollama("one<|im_end|>\ntwo", **shown), "--shape", "ollama-chat", "-m", "m", "--stop", "zz", "Hi"
    )
    assert causes(done, "zz")[0] == "unknown"
    answer = {finding["code"]: finding for finding in json.loads(done.out)["answer"]}
    assert answer["model_stops_replaced"]["confidence"] == "proved"
    assert answer["model_stops_replaced"]["advice"] == 'Send both: --stop "<|im_end|>"'


def test_ollama_reads_no_stop_strings_for_mlx_models() -> None:
    shown = {"details": {"format": "safetensors"}}
    done = diagnosed(
        ollama("one two three", **shown), "--shape", "ollama-chat", "-m", "m", "--stop", "two", "Hi"
    )
    assert causes(done, "two") == ("ignored", {"no_stop_support": "likely"})


def test_ollama_drops_a_stop_list_at_the_top_level() -> None:
    done = diagnosed(ollama("one two three"), "--shape", "ollama-chat", "-m", "m", "-o", 'stop=["two"]', "Hi")
    assert causes(done, "two") == ("ignored", {"wrong_field": "likely"})


def tgi(text: str, reason: str) -> dict[str, Any]:
    chunk = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}
    last = {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": reason}]}
    return {
        "/info": {"max_total_tokens": 2048, "max_stop_sequences": 4, "version": "3.0.0"},
        "/v1/chat/completions": events(chunk, last),
    }


def test_tgi_keeps_the_stop_string() -> None:
    done = diagnosed(tgi("one two", "stop_sequence"), "--stop", "two", "Hi")
    assert causes(done, "two") == ("honoured_kept", {"kept_in_text": "proved"})


def test_tgi_looks_at_the_ends_of_tokens_only() -> None:
    done = diagnosed(tgi("it is Wednesday", "length"), "--stop", "Wed", "Hi")
    verdict, found = causes(done, "Wed")
    assert (verdict, found["token_end_only"]) == ("ignored", "likely")


def test_vllm_refuses_a_fifth_stop_string() -> None:
    error = {"error": {"message": "stop: at most 4 strings are allowed", "type": "Bad Request", "code": 400}}
    answers = {"/v1/models": models("vllm"), "/v1/chat/completions": json_reply(error, status=400)}
    stops = [argument for stop in "abcde" for argument in ("--stop", stop)]
    done = diagnosed(answers, *stops, "Hi")
    assert done.code == 4
    assert causes(done, "a") == ("unknown", {"too_many_stops": "proved"})


def test_vllm_hides_control_tokens() -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "one two"}}]}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length", "stop_reason": None}]}
    answers = {
        "/v1/models": models("vllm"),
        "/tokenize": {"tokens": [151645], "count": 1},
        "/v1/chat/completions": events(chunk, last),
    }
    done = diagnosed(answers, "--stop", "<|im_end|>", "Hi")
    assert causes(done, "<|im_end|>") == ("never_generated", {"special_token_hidden": "possible"})
    assert "stop_token_ids=[151645]" in done.text


def test_what_a_terminal_sees_is_harmless() -> None:
    answers = tgi("one \x1b]0;owned\x07 two three", "length")
    done = diagnosed(answers, "--stop", "\x1b[2J", "--stop", "two", "Hi", form="text")
    assert "\x1b" not in done.text
    assert "\x07" not in done.text
    assert "«two» three" in done.text
