"""What servers tell when asked: real llama.cpp, and canned answers of the other servers over real TCP."""

from collections.abc import Mapping
from typing import Any

import pytest

from llmstream_cli.diagnose import Probed, Tokens
from llmstream_cli.probes import gather, modelfile_stops
from llmstream_cli.transport import Target
from tests.support.llama import LlamaServer, free_port
from tests.support.wire_server import Received, Reply, WireServer, json_reply

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
NOT_FOUND = Reply(status=404, transfer="length")


def canned(answers: Mapping[str, Any]) -> WireServer:
    """A server that answers at the paths of `answers`; everything else is 404."""

    def choose(request: Received) -> Reply:
        return json_reply(answers[request.path]) if request.path in answers else NOT_FOUND

    return WireServer(choose)


def asked(kind: str, answers: Mapping[str, Any], *texts: str) -> tuple[Probed, list[str]]:
    with canned(answers) as server:
        found, log = gather(Target(base_url=server.base_url), kind, body=BODY, texts=texts)
    return found, [f"{probe.request} {probe.said}".strip() for probe in log]


def test_llama_cpp(tiny_server: LlamaServer) -> None:
    found, log = gather(
        Target(base_url=tiny_server.base_url),
        "llama.cpp",
        body=BODY,
        texts=["<|sep|>", "zebra", "", "zebra"],
        ids=[5],
    )
    assert found.tokens["<|sep|>"] == Tokens(ids=(5,), special=True)
    assert not found.tokens["zebra"].special
    assert list(found.tokens) == ["<|sep|>", "zebra"]
    assert (found.eos, found.detokenized) == ("<|eot_id|>", "<|sep|>")
    assert found.prompt is not None
    assert found.prompt.endswith("<|start_header_id|>assistant<|end_header_id|>\n\n")
    assert found.context_tokens
    assert all(probe.ok for probe in log)


def test_vllm() -> None:
    answers = {"/tokenize": {"tokens": [7], "count": 1}, "/v1/models": {"data": [{"max_model_len": 4096}]}}
    found, log = asked("vllm", answers, "<|im_end|>", " four")
    assert found.tokens == {"<|im_end|>": Tokens(ids=(7,), special=True), " four": Tokens(ids=(7,))}
    assert found.context_tokens == 4096
    assert log == ["POST /tokenize", "POST /tokenize", "GET /v1/models"]


def test_ollama() -> None:
    parameters = 'num_ctx                        4096\nstop                           "<|im_end|>"\n'
    answers = {
        "/api/show": {"parameters": parameters, "details": {"format": "gguf"}},
        "/api/ps": {
            "models": [{"name": "other", "context_length": 1}, {"name": "m", "context_length": 8192}]
        },
    }
    found, _ = asked("ollama", answers)
    assert (found.model_stops, found.model_format) == (("<|im_end|>",), "gguf")
    assert found.context_tokens == 8192


def test_tgi() -> None:
    answers = {
        "/info": {"max_stop_sequences": 4, "max_total_tokens": 2048},
        "/tokenize": [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}],
    }
    found, _ = asked("tgi", answers, "ab")
    assert (found.max_stops, found.context_tokens) == (4, 2048)
    assert found.tokens == {"ab": Tokens(ids=(1, 2))}


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm", "ollama", "tgi"])
def test_a_failing_probe_is_a_line(kind: str) -> None:
    found, log = asked(kind, {}, "a")
    assert (found.tokens, found.model_stops, found.prompt) == ({}, (), None)
    assert log
    assert all(line.endswith("HTTP status 404") for line in log)


def test_nobody_there() -> None:
    target = Target(base_url=f"http://127.0.0.1:{free_port()}")
    found, log = gather(target, "tgi", body=BODY, texts=[])
    assert found == Probed()
    assert [(probe.request, probe.ok) for probe in log] == [("GET /info", False)]


def test_an_unknown_server_is_not_asked() -> None:
    with canned({}) as server:
        assert gather(Target(base_url=server.base_url), None, body=BODY, texts=["a"]) == (Probed(), ())
        assert server.requests == []


def test_stop_strings_of_a_modelfile() -> None:
    assert modelfile_stops('stop    "\\n\\"User:\\""\ntemperature 1\nstop    "</s>"') == ('\n"User:"', "</s>")
