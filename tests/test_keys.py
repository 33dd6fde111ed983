"""API keys: where they come from, for which host, and that they are shown nowhere."""

import os
import sys
from pathlib import Path

import pytest

from llmstream_cli import keys
from llmstream_cli.errors import ConfigError, MissingKeyError
from llmstream_cli.keys import Key, describe_key, keep_key, resolve_key
from llmstream_cli.profiles import load_store
from llmstream_cli.settings import Flags, resolve

WORK = """
[profiles.work]
base_url = "https://llm.example.com/v1"
api_key_env = "WORK_KEY"
[profiles.bare]
base_url = "https://llm.example.com/v1"
"""


class Case:
    """A configuration folder; `find` resolves the key of one run in it."""

    def __init__(self, folder: Path, config: str = WORK) -> None:
        self.config_file = folder / "config.toml"
        self.config_file.write_text(config, encoding="utf-8")

    def find(self, env: dict[str, str], **flags: str) -> Key | None:
        store = load_store(self.config_file)
        return resolve_key(resolve(Flags(given=flags), env, store), env, store)

    def text(self, env: dict[str, str], **flags: str) -> str | None:
        key = self.find(env, **flags)
        return key.secret.reveal() if key else None

    def describe(self, env: dict[str, str], **flags: str) -> str:
        store = load_store(self.config_file)
        return describe_key(resolve(Flags(given=flags), env, store), env, store)

    def keep(self, profile: str, key: str | None) -> None:
        keep_key(load_store(self.config_file).keys_file, profile, key)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def printing(code: str) -> str:
    """The command that runs a line of Python, as people would write it."""
    import shlex

    return shlex.join([sys.executable, "-c", code])


def test_the_order_of_sources(case: Case) -> None:
    env = {"FLAG_KEY": "f", "LLMSTREAM_API_KEY": "e", "VAR_KEY": "v", "WORK_KEY": "w"}
    named = {**env, "LLMSTREAM_API_KEY_ENV": "VAR_KEY"}
    assert case.text(named, profile="work", api_key_env="FLAG_KEY") == "f"
    assert case.text(named, profile="work", api_key_cmd=printing("print('c')")) == "c"
    assert case.text(named, profile="work") == "e"
    del named["LLMSTREAM_API_KEY"], env["LLMSTREAM_API_KEY"]
    assert case.text(named, profile="work") == "v"
    assert case.text(env, profile="work") == "w"
    case.keep("work", "k")
    assert case.text(env, profile="work") == "k"
    assert case.text(env, profile="bare") is None


def test_the_origin_is_told(case: Case) -> None:
    key = case.find({"WORK_KEY": " w \n"}, profile="work")
    assert key is not None
    assert key.secret.reveal() == "w"
    assert key.origin == "profile work (config.toml)"
    assert "w" not in repr(key.secret) + str(key.secret)
    assert "***" in repr(key)


def test_a_variable_that_was_named_has_to_be_set(case: Case) -> None:
    for env in ({}, {"WORK_KEY": " "}):
        with pytest.raises(
            MissingKeyError, match=r"WORK_KEY is not set.*profile work \(config\.toml\)"
        ) as caught:
            case.find(env, profile="work")
        assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("url", "variable", "sent"),
    [
        ("https://api.openai.com/v1", "OPENAI_API_KEY", True),
        ("api.openai.com", "OPENAI_API_KEY", True),
        ("https://API.OpenAI.com:443", "OPENAI_API_KEY", True),
        ("http://api.openai.com/v1", "OPENAI_API_KEY", False),
        ("https://api.openai.com:8443/v1", "OPENAI_API_KEY", False),
        ("https://api.openai.com.evil.example/v1", "OPENAI_API_KEY", False),
        ("https://evil.example/api.openai.com", "OPENAI_API_KEY", False),
        ("https://api.openai.com@evil.example/", "OPENAI_API_KEY", False),
        ("http://localhost:8000/v1", "OPENAI_API_KEY", False),
        ("https://api.anthropic.com", "ANTHROPIC_API_KEY", True),
        ("https://generativelanguage.googleapis.com", "GEMINI_API_KEY", True),
        ("https://api.groq.com/openai/v1", "GROQ_API_KEY", True),
        ("https://router.huggingface.co/v1", "HF_TOKEN", True),
        ("https://api.groq.com/openai/v1", "OPENAI_API_KEY", False),
    ],
)
def test_a_providers_variable_is_for_its_own_host_over_tls(
    case: Case, url: str, variable: str, sent: bool
) -> None:
    assert case.text({variable: "p"}, base_url=url) == ("p" if sent else None)


def test_the_built_in_profiles_key_does_not_follow_to_another_server(case: Case) -> None:
    env = {"OPENAI_API_KEY": "p"}
    assert case.text(env, profile="openai") == "p"
    assert case.text(env, profile="openai", base_url="localhost:8080") is None
    with pytest.raises(MissingKeyError):
        case.find({}, profile="openai")


def test_a_kept_key_does_not_follow_to_another_server(case: Case) -> None:
    case.keep("bare", "k")
    assert case.text({}, profile="bare") == "k"
    assert case.text({}, profile="bare", base_url="https://llm.example.com/other") == "k"
    assert case.text({}, profile="bare", base_url="http://llm.example.com/v1") is None
    assert case.text({"LLMSTREAM_BASE_URL": "h:1"}, profile="bare") is None


def test_a_command_is_run_without_a_shell_and_its_first_line_taken(case: Case) -> None:
    command = printing("print('  k$HOME;ls  \\nsecond line')")
    assert case.text({}, profile="bare", api_key_cmd=command) == "k$HOME;ls"


def test_a_command_may_be_a_list(tmp_path: Path) -> None:
    words = f"{[sys.executable, '-c', 'print(1 + 1)']}"
    config = f"[profiles.c]\nbase_url = 'h:1'\napi_key_cmd = {words}\n"
    assert Case(tmp_path, config).text({}, profile="c") == "2"


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (printing("print('SECRET'); raise SystemExit(3)"), "failed with exit status 3"),
        (printing("print()"), "printed nothing"),
        ("no-such-program SECRET", "no-such-program cannot be run"),
        (
            printing("import sys; sys.stdout.buffer.write(b'SECRET\\xff')"),
            "that HTTP headers cannot carry",
        ),
        (printing("print('SECRET\\tx')"), "control character"),
    ],
)
def test_a_command_that_fails_shows_nothing_of_what_it_printed(
    case: Case, command: str, complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        case.find({}, profile="bare", api_key_cmd=command)
    assert "SECRET" not in caught.value.message + (caught.value.hint or "")


def test_a_command_that_hangs_is_given_up(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "COMMAND_TIMEOUT_S", 0.2)
    with pytest.raises(ConfigError, match=r"did not end within 0\.2 seconds"):
        case.find({}, profile="bare", api_key_cmd=printing("import time; time.sleep(60)"))


@pytest.mark.parametrize("key", ["SECRET\nX: y", "SECRET\r", "SECR\x00ET", "SECRET\u2028", "SECRETž"])
def test_a_key_that_no_header_can_carry_is_refused(case: Case, key: str) -> None:
    env = {"LLMSTREAM_API_KEY": f"a{key}a"}
    with pytest.raises(ConfigError) as caught:
        case.find(env, profile="bare")
    assert "SECRET" not in caught.value.message
    assert "env LLMSTREAM_API_KEY" in caught.value.message


def test_kept_keys_are_in_a_private_file_of_their_own(case: Case, tmp_path: Path) -> None:
    case.keep("work", "one")
    case.keep("bare", "two")
    case.keep("work", None)
    file = tmp_path / "keys.toml"
    assert keys.read_keys(file) == {"bare": "two"}
    assert case.config_file.read_text(encoding="utf-8") == WORK
    if os.name == "posix":
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)
        with pytest.raises(ConfigError, match="can be read by other users") as caught:
            case.find({}, profile="bare")
        assert caught.value.hint == f"chmod 600 {file}"


@pytest.mark.parametrize("content", ["[keys", "keys = 3", "[keys]\nbare = 5\n"])
def test_a_damaged_keys_file_is_named_and_left_alone(case: Case, tmp_path: Path, content: str) -> None:
    file = tmp_path / "keys.toml"
    file.touch(mode=0o600)
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"keys\.toml"):
        case.find({}, profile="bare")
    with pytest.raises(ConfigError, match=r"keys\.toml"):
        case.keep("bare", "new")
    assert file.read_text(encoding="utf-8") == content


def test_a_description_names_the_source_and_runs_nothing(case: Case, tmp_path: Path) -> None:
    assert case.describe({}, profile="bare") == "none"
    assert case.describe({}, profile="work") == "$WORK_KEY, not set (profile work (config.toml))"
    assert case.describe({"WORK_KEY": "w"}, profile="work") == "$WORK_KEY, set (profile work (config.toml))"
    described = case.describe({}, profile="bare", api_key_cmd="touch SECRET-argument")
    assert described == "output of touch (flag --api-key-cmd)"
    case.keep("bare", "k")
    assert case.describe({}, profile="bare") == "*** (profile bare (keys.toml))"
