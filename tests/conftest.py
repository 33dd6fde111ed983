"""What holds for every test: nothing of the user's machine is read or written; real servers on demand."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmstream_cli.local.model import unpacked_model
from llmstream_cli.local_profile import LOCAL_MODEL
from tests.support.llama import LlamaServer, llama_server

FOLDERS = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
XDG_FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
UNSET_PREFIXES = ("LLMSTREAM_",)
UNSET_SUFFIXES = ("_API_KEY", "_PROXY", "_API_TOKEN")
UNSET = ("OLLAMA_HOST", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "PAGER")


@pytest.fixture(scope="session")
def cache_home(pytestconfig: pytest.Config) -> Path:
    """The one folder that outlives a test: the unpacked model is in it."""
    return pytestconfig.cache.mkdir("home")


@pytest.fixture(autouse=True)
def _isolated(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, cache_home: Path
) -> None:
    home = tmp_path_factory.mktemp("home")
    for name in os.environ:
        upper = name.upper()
        if upper.startswith(UNSET_PREFIXES) or upper.endswith(UNSET_SUFFIXES) or upper in UNSET:
            monkeypatch.delenv(name)
    for name in (*FOLDERS, *XDG_FOLDERS):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))


@pytest.fixture(scope="session")
def gemma_model(cache_home: Path) -> Path:
    return unpacked_model(lambda: None, folder=cache_home / "llmstream")


@pytest.fixture(scope="session")
def tiny_server() -> Iterator[LlamaServer]:
    """llama.cpp with the model that knows its answers by heart (``tests/models``): four slots."""
    with llama_server(slots=4, context_tokens=4 * 1024) as server:
        yield server


@pytest.fixture(scope="session")
def gemma_server(gemma_model: Path) -> Iterator[LlamaServer]:
    """llama.cpp with gemma-3-270m, slow enough (tens of tokens a second) to be interrupted: two slots."""
    with llama_server(gemma_model, name=LOCAL_MODEL, slots=2, context_tokens=2 * 2048) as server:
        yield server
