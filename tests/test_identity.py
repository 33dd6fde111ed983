"""Who answered, from headers and fingerprint alone; nothing is guessed."""

import pytest

from llmstream_cli.identity import UNKNOWN_SERVER, ServerIdentity, recognise
from tests.support.outcomes import replayed


@pytest.mark.parametrize(
    ("fingerprint", "kind", "version"),
    [
        ("b9436-6f79030", "llama.cpp", "b9436"),
        ("b0-unknown", "llama.cpp", None),
        ("vllm-0.11.0-tp1-abc", "vllm", "0.11.0"),
        ("vllm-0.11.0rc1.dev5+gabc-tp1", "vllm", "0.11.0rc1.dev5+gabc"),
        ("fp_ollama", "ollama", None),
        ("3.3.4-sha-9ea9a4c", "tgi", "3.3.4"),
        ("2.1.2-dev0-native", "tgi", "2.1.2-dev0"),
    ],
)
def test_fingerprints(fingerprint: str, kind: str, version: str | None) -> None:
    assert recognise([], fingerprint) == ServerIdentity(kind=kind, version=version)


@pytest.mark.parametrize(
    "fingerprint", [None, "", "fp_44709d6fcb", "gemma-3-270m", "1.2.3-beta", "build-b12-x", "b-1"]
)
def test_other_fingerprints_say_nothing(fingerprint: str | None) -> None:
    assert recognise([("Server", "uvicorn")], fingerprint) == UNKNOWN_SERVER


def test_headers() -> None:
    assert recognise([("SERVER", "llama.cpp")], None) == ServerIdentity(kind="llama.cpp")
    assert recognise([("X-Compute-Type", "gpu+optimized")], None) == ServerIdentity(kind="tgi")
    assert recognise([("Server", "llama.cpp")], "b9436-6f79030").version == "b9436"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("vllm/chat_eos_stream", "vllm"),
        ("llama.cpp/chat_eos_stream", "llama.cpp"),
        ("llama.cpp/err_no_prompt", "llama.cpp"),
        ("llama-cpp-python/chat_eos_stream", None),
        ("vllm/err_unknown_model", None),
    ],
)
def test_recordings(name: str, kind: str | None) -> None:
    assert replayed(name).server.kind == kind
