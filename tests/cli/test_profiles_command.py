"""``llmstream profiles`` and ``llmstream config``, run in this process."""

import io
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from llmstream_cli.cli.config import config_app
from llmstream_cli.cli.profiles import profiles_app
from llmstream_cli.errors import ConfigError, ConnectError, UsageError
from llmstream_cli.local_profile import LOCAL_TEMPLATE
from tests.support.llama import LlamaServer

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLMSTREAM_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path


def runner(app: typer.Typer, capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[str, str]:
        capfd.readouterr()
        app(list(arguments), standalone_mode=False)
        return capfd.readouterr()

    return run


@pytest.fixture
def profiles(folder: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    return runner(profiles_app, capfd)


@pytest.fixture
def config(folder: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    return runner(config_app, capfd)


def test_bare_profiles_lists_them_in_columns(profiles: Run, folder: Path) -> None:
    (folder / "config.toml").write_text(
        "default_profile = 'w'\n[profiles.w]\nbase_url = 'https://u:SECRET@h.example/v1'\nmodel = 'm'\n",
        encoding="utf-8",
    )
    listed, notes = profiles()
    assert profiles("list") == (listed, "")
    assert notes == ""
    lines = listed.splitlines()
    assert lines[-1].split() == ["*", "w", "auto", "https://h.example/v1", "m", "config.toml"]
    assert lines[0].split() == ["ollama", "ollama-chat", "http://127.0.0.1:11434", "-", "built-in"]
    assert any("(runs on this machine)" in line for line in lines)
    assert "SECRET" not in listed


def test_add_set_show_use_remove(profiles: Run, folder: Path) -> None:
    options = ("-m", "m", "--stop", r"\nUser:", "-H", "Authorization: Bearer SECRET")
    _, notes = profiles("add", "work", "--url", "h:1", *options)
    assert notes.startswith(f"✓ work is in {folder / 'profiles.toml'}")
    profiles("set", "work", "max_tokens", "5")
    profiles("set", "work", "options", "a.b=1", "c=x")
    profiles("use", "work")
    shown, _ = profiles("show")
    assert tomllib.loads(shown)["profiles"]["work"] == {
        "base_url": "http://h:1",
        "model": "m",
        "stop": ["\nUser:"],
        "max_tokens": 5,
        "options": {"a": {"b": 1}, "c": "x"},
        "headers": {"Authorization": "Bearer ***"},
    }
    profiles("set", "work", "model", "--unset")
    assert "model" not in tomllib.loads(profiles("show", "work")[0])["profiles"]["work"]
    _, notes = profiles("remove", "work")
    assert notes == "✓ work is removed.\n"
    assert "work" not in profiles("list")[0]


def test_show_origin_tells_where_each_value_comes_from(
    profiles: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "config.toml").write_text("seed = 3\n", encoding="utf-8")
    monkeypatch.setenv("LLMSTREAM_MODEL", "m")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRET")
    shown, _ = profiles("show", "openai", "--origin")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in shown.splitlines()}
    assert rows["model"] == '"m" env LLMSTREAM_MODEL'
    assert rows["seed"] == "3 config.toml"
    assert rows["shape"] == '"openai-chat" built-in profile openai'
    assert rows["retries"] == "2 default"
    assert rows["temperature"] == "- default"
    assert rows["api_key"] == "$OPENAI_API_KEY, set (built-in profile openai)"
    assert "SECRET" not in shown


def test_long_values_are_cut_in_the_table_and_whole_in_the_profile(profiles: Run) -> None:
    table, _ = profiles("show", "local", "--origin")
    assert max(map(len, table.splitlines())) < 120
    assert tomllib.loads(profiles("show", "local")[0])["profiles"]["local"]["template"] == dict(
        LOCAL_TEMPLATE
    )


def test_show_without_any_profile_asks_which(profiles: Run) -> None:
    with pytest.raises(UsageError, match="Which profile"):
        profiles("show")


def test_a_key_is_kept_from_a_pipe_and_shown_nowhere(
    profiles: Run, config: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles("add", "work", "--url", "https://h.example")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"sk-SECRET\r\n")))
    _, notes = profiles("set", "work", "api_key", "--stdin")
    assert tomllib.loads((folder / "keys.toml").read_text(encoding="utf-8")) == {
        "keys": {"work": "sk-SECRET"}
    }
    shown = notes + "".join(profiles("show", "work", "--origin")) + "".join(config("show"))
    assert "SECRET" not in shown
    assert "*** (profile work (keys.toml))" in shown
    assert f"# {folder / 'keys.toml'}: API keys of work" in shown
    profiles("remove", "work")
    assert "SECRET" not in (folder / "keys.toml").read_text(encoding="utf-8")


def test_a_key_is_not_taken_from_the_command_line(profiles: Run, folder: Path) -> None:
    with pytest.raises(UsageError, match="can be seen by others") as caught:
        profiles("set", "ollama", "api_key", "sk-SECRET")
    assert "--stdin" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="no terminal"):
        profiles("set", "ollama", "api_key")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("set ollama model", "model needs a value, or --unset"),
        ("set ollama model x --unset", "model needs a value, or --unset"),
        ("set ollama model --stdin", "--stdin is for api_key only"),
        ("set ollama seed x", "seed 'x' is not a whole number"),
        ("add new", "needs its server"),
        ("add new --url --json", "--url needs a value"),
    ],
)
def test_wrong_usage(profiles: Run, folder: Path, arguments: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        profiles(*arguments.split())
    assert list(folder.iterdir()) == []


def test_warnings_go_to_stderr_and_control_characters_are_shown(profiles: Run, folder: Path) -> None:
    (folder / "config.toml").write_text('[profiles."a\\u001b[2J"]\nmodle = 1\n', encoding="utf-8")
    listed, notes = profiles("list")
    assert "unknown key 'modle' (did you mean model?)" in notes
    assert "\x1b" not in listed + notes


def test_test_asks_a_real_server_who_it_is(profiles: Run, tiny_server: LlamaServer) -> None:
    profiles("add", "tiny", "--base-url", tiny_server.base_url)
    told, _ = profiles("test", "tiny")
    rows = dict(line.split(maxsplit=1) for line in told.splitlines())
    assert rows["server"].startswith("llama.cpp")
    assert rows["url"] == tiny_server.base_url
    assert rows["shape"] == "openai-chat"
    assert rows["models"] != "none listed"


def test_test_says_that_nothing_answers(profiles: Run) -> None:
    profiles("add", "gone", "--base-url", "127.0.0.1:9")
    with pytest.raises(ConnectError, match=r"No server answers at http://127\.0\.0\.1:9"):
        profiles("test", "gone")


def test_config_path_is_one_line_for_scripts(config: Run, folder: Path) -> None:
    assert config("path") == (f"{folder / 'config.toml'}\n", "")


def test_config_show_is_toml(config: Run, folder: Path) -> None:
    (folder / "config.toml").write_text(
        "default_profile = 'w'\n[profiles.w]\nbase_url = 'http://u:SECRET@h/v1?key=SECRET'\n"
        "headers = {api-key = 'SECRET', X-Title = 't'}\n",
        encoding="utf-8",
    )
    shown, _ = config("show")
    assert tomllib.loads(shown) == {
        "default_profile": "w",
        "profiles": {
            "w": {"base_url": "http://h/v1?key=***", "headers": {"api-key": "***", "X-Title": "t"}},
        },
    }


def editor(folder: Path, code: str) -> str:
    script = folder / "editor.py"
    script.write_text(f"import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\n{code}\n", encoding="utf-8")
    return f'"{sys.executable}" "{script}"'


def test_edit_makes_a_private_file_and_checks_it(
    config: Run, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = "file.write_text(file.read_text() + '[profiles.w]\\nmodle = 1\\n')"
    monkeypatch.setenv("VISUAL", editor(tmp_path_factory.mktemp("editor"), append))
    _, notes = config("edit")
    file = folder / "config.toml"
    written = file.read_text(encoding="utf-8")
    assert written.startswith("# llmstream: settings and profiles.")
    assert "did you mean model" in notes
    assert f"✓ {file} is valid." in notes
    assert [entry.name for entry in folder.iterdir()] == ["config.toml"]
    uncommented = [line.removeprefix("# ") for line in written.splitlines() if "=" in line or "# [" in line]
    assert tomllib.loads("\n".join(uncommented))["profiles"]["work"]["stop"] == ["\nUser:"]


@pytest.mark.parametrize(
    ("code", "complaint"),
    [("sys.exit(3)", "failed with exit status 3"), ("file.write_text('x = ')", "not valid TOML")],
)
def test_edit_tells_what_went_wrong(
    config: Run,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    complaint: str,
) -> None:
    monkeypatch.setenv("EDITOR", editor(tmp_path_factory.mktemp("editor"), code))
    with pytest.raises(ConfigError, match=complaint):
        config("edit")


def test_an_editor_that_is_not_there(config: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "no-such-editor --wait")
    with pytest.raises(ConfigError, match="The editor no-such-editor cannot be run"):
        config("edit")
