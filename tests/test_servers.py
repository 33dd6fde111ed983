"""Identification: real llama.cpp, and canned answers of the other servers over real TCP."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from llmstream_cli.errors import ConnectError, HttpStatusError
from llmstream_cli.listing import ModelInfo
from llmstream_cli.request import Message
from llmstream_cli.servers import (
    KINDS,
    apply_template,
    identify,
    list_models,
    scan_local_ports,
    with_version,
)
from llmstream_cli.shapes import SHAPES
from llmstream_cli.transport import Target
from tests.support.llama import TINY_NAME, LlamaServer, free_port, llama_server

SAY_HI = (Message(role="user", content="Say hi"),)


@dataclass(frozen=True, kw_only=True)
class Reply:
    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


NOT_FOUND = Reply(status=404, body="404 page not found")


def models(*owned: tuple[str, str], **fields: Any) -> Reply:
    """A list of models: (id, owner)."""
    data = [{"id": name, "object": "model", "owned_by": owner, **fields} for name, owner in owned]
    return Reply(body={"object": "list", "data": data})


@dataclass(frozen=True, kw_only=True)
class CannedServer:
    target: Target
    asked: list[str]
    bodies: list[Any]


@contextmanager
def canned(replies: Mapping[str, Reply]) -> Iterator[CannedServer]:
    """A server that knows the paths of `replies`; everything else is 404."""
    asked: list[str] = []
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            reply = replies.get(self.path, NOT_FOUND)
            content = reply.content()
            self.send_response_only(reply.status)
            always = {"Server": "uvicorn", "Content-Length": str(len(content))}
            for name, value in {**always, **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """The test's output is no place for an access log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield CannedServer(target=Target(base_url=url), asked=asked, bodies=bodies)
        finally:
            server.shutdown()


UNAUTHORIZED = Reply(status=401, body={"error": "Unauthorized"})

SERVERS = {
    "ollama": ({"/v1/models": models(("qwen3:8b", "library"))}, "ollama", 1),
    "ollama without models": (
        {"/v1/models": Reply(body={"object": "list", "data": None}), "/": Reply(body="Ollama is running")},
        "ollama",
        2,
    ),
    "ollama, a model of another namespace": (
        {"/v1/models": models(("me2/m", "me2")), "/": Reply(body="Ollama is running")},
        "ollama",
        2,
    ),
    "ollama of before /v1/models": ({"/": Reply(body="Ollama is running")}, "ollama", 2),
    "vllm": ({"/v1/models": models(("m", "vllm"))}, "vllm", 1),
    "vllm that wants a key": (
        {"/v1/models": UNAUTHORIZED, "/version": Reply(body={"version": "0.32.0"})},
        "vllm",
        4,
    ),
    "sglang": ({"/v1/models": models(("m", "sglang"))}, "sglang", 1),
    "sglang that calls itself Ollama": (
        {"/v1/models": models(("m", "sglang")), "/": Reply(body="Ollama is running")},
        "sglang",
        1,
    ),
    "tgi": (
        {
            "/v1/models": models(("org/m", "org/m")),
            "/info": Reply(body={"version": "3.3.7", "max_total_tokens": 4096}),
        },
        "tgi",
        3,
    ),
    "tgi by its header": (
        {"/v1/models": Reply(body={"data": []}, headers={"x-compute-type": "1-nvidia-l4"})},
        "tgi",
        1,
    ),
    "tgi of before /v1/models": ({"/info": Reply(body={"max_total_tokens": 4096})}, "tgi", 3),
    "lmstudio": ({"/v1/models": models(("m", "organization_owner"))}, "lmstudio", 1),
    "lmstudio, native list only": ({"/api/v0/models": models(("m", "publisher"))}, "lmstudio", 5),
    "llama-cpp-python": ({"/v1/models": models(("m", "me"))}, "llama-cpp-python", 1),
    "old llama.cpp": (
        {"/v1/models": Reply(status=404, body="File Not Found", headers={"Server": "llama.cpp"})},
        "llama.cpp",
        1,
    ),
    "a gateway": ({"/v1/models": models(("a", "acme"), ("b", "acme"))}, "openai-compatible", 2),
    "a bare list": ({"/v1/models": Reply(body=[{"id": "m"}])}, "openai-compatible", 2),
    "a web server": ({"/": Reply(body="<h1>It works</h1>")}, "unknown", 5),
    "a page for every path": (
        {path: Reply(body="<html>") for path in ("/", "/v1/models", "/info", "/version", "/api/v0/models")},
        "unknown",
        5,
    ),
}


@pytest.mark.parametrize("case", SERVERS)
def test_identifies(case: str) -> None:
    replies, kind, requests = SERVERS[case]
    with canned(replies) as server:
        info = identify(server.target)
    assert info is not None
    assert (info.kind, info.shape) == (kind, KINDS[kind].shape)
    assert len(server.asked) == requests, server.asked


def test_every_suggested_shape_exists() -> None:
    assert {kind.shape for kind in KINDS.values()} <= SHAPES.keys()


def test_a_server_that_wants_a_key_says_so() -> None:
    with canned({"/v1/models": UNAUTHORIZED}) as server:
        info = identify(server.target)
    assert info is not None
    assert (info.kind, info.detail, info.models) == ("unknown", "needs an API key", ())


def test_nothing_answers() -> None:
    target = Target(base_url=f"http://127.0.0.1:{free_port()}")
    assert identify(target) is None
    with pytest.raises(ConnectError):
        list_models(target, "vllm")


def test_a_base_url_with_v1_is_probed_at_its_root_too() -> None:
    with canned({"/": Reply(body="Ollama is running")}) as server:
        info = identify(Target(base_url=server.target.base_url + "/v1"))
    assert info is not None
    assert info.kind == "ollama"
    assert server.asked == ["/v1/models", "/"]


@pytest.mark.parametrize(
    ("kind", "path", "body", "version"),
    [
        ("ollama", "/api/version", {"version": "0.30.1"}, "0.30.1"),
        ("vllm", "/version", {"version": "0.32.0"}, "0.32.0"),
        ("tgi", "/info", {"version": "3.3.7"}, "3.3.7"),
        ("sglang", "/server_info", {"version": "0.5.10"}, "0.5.10"),
        ("llama.cpp", "/props", {"build_info": "b11434-abc"}, "b11434-abc"),
        ("vllm", "/version", "not JSON", None),
        ("vllm", "/elsewhere", {}, None),
        ("lmstudio", "/version", {"version": "1"}, None),
    ],
)
def test_version(kind: str, path: str, body: Any, version: str | None) -> None:
    with canned({"/v1/models": models(("m", "x")), path: Reply(body=body)}) as server:
        info = identify(server.target)
        assert info is not None
        told = with_version(server.target, type(info)(kind=kind, shape=info.shape))
    assert told.version == version


def test_lists_models_with_what_is_known_of_them() -> None:
    with canned({"/v1/models": models(("a", "vllm"), max_model_len=32768)}) as server:
        assert list_models(server.target, "vllm") == (ModelInfo(id="a", context_tokens=32768),)
    tags = {"models": [{"name": "qwen3:8b", "size": 5_200_000_000}, {"size": 1}, None]}
    with canned({"/api/tags": Reply(body=tags)}) as server:
        assert list_models(server.target, "ollama") == (ModelInfo(id="qwen3:8b", size_bytes=5_200_000_000),)


def test_a_refused_list_is_an_error_that_names_the_url() -> None:
    with canned({"/v1/models": UNAUTHORIZED}) as server, pytest.raises(HttpStatusError) as failure:
        list_models(server.target, "openai-compatible")
    assert failure.value.message == f"401 from GET {server.target.base_url}/v1/models: Unauthorized"
    assert (failure.value.status, failure.value.hint) == (401, "needs an API key")


def test_scan_finds_what_answers_in_the_order_of_the_ports() -> None:
    with (
        canned({"/v1/models": models(("m", "vllm")), "/version": Reply(body={"version": "1"})}) as vllm,
        canned({"/": Reply(body="Ollama is running")}) as ollama,
    ):
        ports = [free_port(), *(int(s.target.base_url.rpartition(":")[2]) for s in (ollama, vllm))]
        found = scan_local_ports(ports)
    assert [(url, info.kind, info.version) for url, info in found] == [
        (ollama.target.base_url, "ollama", None),
        (vllm.target.base_url, "vllm", "1"),
    ]


def test_tgi_flattens_a_conversation() -> None:
    with canned({"/chat_tokenize": Reply(body={"templated_text": "<s>Say hi"})}) as server:
        assert apply_template(server.target, "tgi", SAY_HI) == "<s>Say hi"
    assert server.bodies == [{"messages": [{"role": "user", "content": "Say hi"}]}]


@pytest.mark.parametrize("kind", ["tgi", "llama.cpp", "vllm"])
def test_no_template_is_none(kind: str) -> None:
    with canned({}) as server:
        assert apply_template(server.target, kind, SAY_HI) is None


def test_real_llama_cpp(tiny_server: LlamaServer) -> None:
    target = Target(base_url=tiny_server.base_url)
    info = identify(target)
    assert info is not None
    assert (info.kind, info.shape, info.detail) == ("llama.cpp", "openai-chat", None)
    assert info.models == list_models(target, info.kind)
    assert [model.id for model in info.models] == [TINY_NAME]
    assert info.models[0].context_tokens == 1024
    assert with_version(target, info).version == tiny_server.get("/props")["build_info"]


def test_real_llama_cpp_flattens_a_conversation(tiny_server: LlamaServer) -> None:
    prompt = apply_template(Target(base_url=tiny_server.base_url), "llama.cpp", SAY_HI)
    said = tiny_server.post("/completion", {"prompt": prompt, "temperature": 0})
    assert said["content"] == "Hello there!"
    assert said["prompt"].count("<|begin_of_text|>") == 1


def test_real_llama_cpp_with_a_key() -> None:
    with llama_server(api_key="correct") as server:
        refused = identify(Target(base_url=server.base_url))
        accepted = identify(
            Target(
                base_url=server.base_url, headers={"Authorization": "Bearer correct"}, secrets=("correct",)
            )
        )
    assert refused is not None
    assert (refused.kind, refused.detail) == ("llama.cpp", "needs an API key")
    assert accepted is not None
    assert (accepted.kind, accepted.detail) == ("llama.cpp", None)
