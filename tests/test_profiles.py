"""Profiles: built in, from the file that people edit, from the file that commands write."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from llmstream_cli import files, paths
from llmstream_cli.builtin_profiles import PROFILES
from llmstream_cli.errors import ConfigError, UsageError
from llmstream_cli.profile_edits import add_profile, remove_profile, set_value, unset_value, use_profile
from llmstream_cli.profiles import ProfileStore, load_store
from llmstream_cli.settings import Flags, read_flags

Write = Callable[..., ProfileStore]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write config.toml (and profiles.toml) and load them."""

    def write_files(config: str | bytes | None = None, commands: str | None = None) -> ProfileStore:
        if config is not None:
            data = config if isinstance(config, bytes) else config.encode()
            (tmp_path / "config.toml").write_bytes(data)
        if commands is not None:
            (tmp_path / "profiles.toml").write_text(commands, encoding="utf-8")
        return load_store(tmp_path / "config.toml")

    return write_files


def value(store: ProfileStore, profile: str, key: str) -> object:
    return store.get(profile).settings[key].value


def origin(store: ProfileStore, profile: str, key: str) -> str:
    return str(store.get(profile).settings[key].origin)


def test_without_files_there_are_the_built_in_profiles(write: Write) -> None:
    store = write()
    assert list(store.profiles) == list(PROFILES)
    assert store.default_profile is None
    assert store.warnings == ()
    assert value(store, "ollama", "base_url") == "http://127.0.0.1:11434"
    assert store.get("local").managed == "local"
    assert value(store, "local", "stop") == ("\nUser:",)


def test_the_later_file_overlays_key_by_key(write: Write) -> None:
    store = write(
        '[profiles.ollama]\nmodel = "a"\nheaders = {X-A = "1", X-B = "1"}\n',
        '[profiles.ollama]\nheaders = {x-b = "2"}\n',
    )
    assert store.get("ollama").sources == ("built-in", "config.toml", "profiles.toml")
    assert value(store, "ollama", "shape") == "ollama-chat"
    assert value(store, "ollama", "model") == "a"
    assert value(store, "ollama", "headers") == {"X-A": "1", "x-b": "2"}
    assert origin(store, "ollama", "base_url") == "built-in profile ollama"
    assert origin(store, "ollama", "model") == "profile ollama (config.toml)"
    assert (
        origin(store, "ollama", "headers") == "profile ollama (config.toml) + profile ollama (profiles.toml)"
    )


def test_options_are_merged_table_by_table(write: Write) -> None:
    store = write(
        "[profiles.a]\noptions = {options = {num_ctx = 1, top_k = 2}, keep = true}\n",
        "[profiles.a.options.options]\nnum_ctx = 8\n",
    )
    assert value(store, "a", "options") == {"options": {"num_ctx": 8, "top_k": 2}, "keep": True}


def test_every_profile_key_is_read(write: Write) -> None:
    store = write(
        """
        [profiles.all]
        shape = "openai-chat"
        base_url = "example.com/v1/"
        model = "m"
        api_key_env = "WORK_KEY"
        api_key_cmd = "pass show 'my key'"
        system = "Be brief."
        template = "chatml"
        path = "/v2/chat"
        max_tokens = 10
        temperature = 1
        top_p = 0.5
        seed = -3
        stop = "END"
        connect_timeout = 1.5
        first_token_timeout = 0
        idle_timeout = 3
        timeout = 4
        retries = 0
        reasoning = "hide"
        enforce_stop = false
        """
    )
    settings = {key: setting.value for key, setting in store.get("all").settings.items()}
    assert settings == {
        "shape": "openai-chat",
        "base_url": "https://example.com/v1",
        "model": "m",
        "api_key_env": "WORK_KEY",
        "api_key_cmd": ("pass", "show", "my key"),
        "system": "Be brief.",
        "template": "chatml",
        "path": "/v2/chat",
        "max_tokens": 10,
        "temperature": 1.0,
        "top_p": 0.5,
        "seed": -3,
        "stop": ("END",),
        "connect_timeout": 1.5,
        "first_token_timeout": None,
        "idle_timeout": 3.0,
        "timeout": 4.0,
        "retries": 0,
        "reasoning": "hide",
        "enforce_stop": False,
    }
    assert store.warnings == ()


def test_top_level_keys_are_defaults_for_all(write: Write) -> None:
    store = write('default_profile = "vllm"\nmax_tokens = 7\n')
    assert store.defaults["max_tokens"].value == 7
    assert str(store.defaults["max_tokens"].origin) == "config.toml"
    assert store.default_profile is not None
    assert store.default_profile.value == "vllm"
    assert str(store.default_profile.origin) == "default_profile (config.toml)"


@pytest.mark.parametrize(
    "content",
    [b"", b"  \r\n", b"# only a comment\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf[profiles.a]\r\nmodel = 'm'\r\n"],
    ids=["empty", "blank", "comment", "bom-only", "bom-and-crlf"],
)
def test_harmless_oddities_of_files(write: Write, content: bytes) -> None:
    store = write(content)
    assert store.warnings == ()
    assert ("a" in store.profiles) == (b"model" in content)


@pytest.mark.parametrize(
    ("config", "place", "complaint"),
    [
        ("[profiles.work]\nmax_tokens = 'abc'\n", "line 2", "work: max_tokens = 'abc' is not a whole number"),
        ("# x\n\n[profiles.work]\n\ntop_p = 2\n", "line 5", "top_p = 2 is more than 1"),
        (
            "[profiles.a]\nseed = 1\n[profiles.b]\nseed = 1.5\n",
            "line 4",
            "b: seed = 1.5 is not a whole",
        ),
        ("[profiles.a]\nstop = [1]\n", "line 2", "is not a list of texts"),
        ("[profiles.a]\nshape = 'openai'\n", "line 2", "openai-chat"),
        ("[profiles.a]\nretries = true\n", "line 2", "is not a whole number"),
        ("[profiles.a]\nbase_url = 'http://u:SECRET@'\n", "line 2", "base_url is not usable"),
        ("[profiles.a.headers]\nX = 1\n", "config.toml", "headers is not a table of texts"),
        ("[profiles.a]\nheaders = {X = \"SECRET\\n\"}\nseed = 'x'\n", "line 3", "seed"),
        ('[profiles.a]\nheaders = {X = "SECRET\\nY"}\n', "line 2", "line break"),
        ("[profiles.a]\napi_key_env = 'sk-SECRET'\n", "line 2", "the name, not the key itself"),
        ("[profiles.a]\ntemplate = 'nosuch'\n", "line 2", "no template is called 'nosuch'"),
        ("[profiles.a]\ntemplate = {user = 'x'}\n", "line 2", "template is not usable"),
        ("[profiles.a]\noptions = {at = 2026-01-01}\n", "line 2", "holds a date"),
        ("max_tokens = 0\n", "line 1", "is less than 1"),
        ("default_profile = 3\n", "line 1", "default_profile is not the name"),
        ("profiles = 3\n", "line 1", "profiles is not a table"),
        ("[profiles]\nwork = 3\n", "line 2", "profile work is not a table"),
        ("[profiles.a\n", "line 1", "not valid TOML"),
        ("a = [" + "[" * 9999, "config.toml", ""),
        ("[profiles.a]\napi_key = 'SECRET'\n", "line 2", "an API key does not belong in this file"),
        ("api_key = 'SECRET'\n", "line 1", "an API key does not belong in this file"),
    ],
)
def test_a_wrong_file_is_named_with_the_place_and_left_alone(
    write: Write, tmp_path: Path, config: str, place: str, complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        write(config)
    message = caught.value.message
    assert str(tmp_path / "config.toml") in message
    assert place in message
    assert complaint in message
    assert "SECRET" not in message + (caught.value.hint or "")
    assert (tmp_path / "config.toml").read_text(encoding="utf-8") == config


def test_a_file_in_another_encoding_is_named_with_the_line(write: Write) -> None:
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        write(b"# a\nmodel = 'caf\xe9'\n")


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match=r"config\.toml cannot be read"):
        load_store(tmp_path / "config.toml")


def test_unknown_keys_are_warnings_with_the_nearest_name(write: Write) -> None:
    store = write("modell = 'x'\n[profiles.work]\nmax_token = 5\nzzz = 1\n")
    assert [warning.partition(": ")[2] for warning in store.warnings] == [
        "unknown key 'modell' (did you mean model?), ignored",
        "profile work: unknown key 'max_token' (did you mean max_tokens?), ignored",
        "profile work: unknown key 'zzz', ignored",
    ]
    assert "line 3" in store.warnings[1]
    assert store.get("work").settings == {}


def test_an_unknown_profile_is_answered_with_the_nearest(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"no profile called 'olama' \(did you mean ollama\?\)"):
        write().get("olama")


def test_commands_write_their_own_file_only(write: Write, tmp_path: Path) -> None:
    config = (
        "# my notes\ndefault_profile = 'vllm'   # for now\n[profiles.work]\nbase_url='h:1'\nmodel='old'\n"
    )
    store = write(config)
    set_value(store, "work", "model", ["new"])
    set_value(write(), "work", "stop", [r"\nUser:", "END"])
    set_value(write(), "work", "options", ["options.num_ctx=8"])
    set_value(write(), "work", "options", ["options.top_k=40"])
    use_profile(write(), "work")
    store = write()
    assert value(store, "work", "model") == "new"
    assert value(store, "work", "stop") == ("\nUser:", "END")
    assert value(store, "work", "options") == {"options": {"num_ctx": 8, "top_k": 40}}
    assert store.default_profile is not None
    assert store.default_profile.value == "work"
    assert (tmp_path / "config.toml").read_text(encoding="utf-8") == config


def test_add_then_unset_then_remove(write: Write) -> None:
    flags = Flags(given={"base_url": "box:8080", "model": "m", "timeout": "0", "enforce_stop": False})
    add_profile(write(), "box", read_flags(flags))
    use_profile(write(), "box")
    assert value(write(), "box", "base_url") == "http://box:8080"
    assert value(write(), "box", "timeout") is None
    unset_value(write(), "box", "model")
    assert "model" not in write().get("box").settings
    remove_profile(write(), "box")
    store = write()
    assert "box" not in store.profiles
    assert store.default_profile is None


def test_removing_an_overlay_gives_the_built_in_profile_back(write: Write) -> None:
    set_value(write(), "ollama", "model", ["m"])
    remove_profile(write(), "ollama")
    assert write().get("ollama").sources == ("built-in",)


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda store: add_profile(store, "ollama", {}), "a profile ollama already"),
        (lambda store: add_profile(store, "a b", {}), "no name for a profile"),
        (lambda store: add_profile(store, "new", {}), "needs its server"),
        (lambda store: set_value(store, "nosuch", "model", ["m"]), "no profile called 'nosuch'"),
        (lambda store: set_value(store, "ollama", "modle", ["m"]), "did you mean model"),
        (lambda store: set_value(store, "ollama", "seed", ["x"]), "seed 'x' is not a whole number"),
        (lambda store: set_value(store, "ollama", "model", ["a", "b"]), "takes one value"),
        (lambda store: unset_value(store, "ollama", "shape"), "set by built-in profile ollama"),
        (lambda store: unset_value(store, "ollama", "seed"), "it is not set"),
        (lambda store: remove_profile(store, "ollama"), "built in"),
        (lambda store: remove_profile(store, "mine"), "Remove it from"),
        (lambda store: use_profile(store, "nosuch"), "no profile called 'nosuch'"),
    ],
)
def test_an_edit_that_makes_no_sense_writes_nothing(
    write: Write, tmp_path: Path, edit: Callable[[ProfileStore], None], complaint: str
) -> None:
    with pytest.raises((ConfigError, UsageError), match=complaint):
        edit(write("[profiles.mine]\nbase_url = 'h:1'\n"))
    assert not (tmp_path / "profiles.toml").exists()


def test_a_file_that_broke_meanwhile_is_not_overwritten(write: Write, tmp_path: Path) -> None:
    store = write()
    (tmp_path / "profiles.toml").write_text("[broken", encoding="utf-8")
    with pytest.raises(ConfigError, match="not valid TOML"):
        use_profile(store, "ollama")
    assert (tmp_path / "profiles.toml").read_text(encoding="utf-8") == "[broken"


def test_the_configuration_is_not_the_file_that_commands_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs another name"):
        load_store(tmp_path / "profiles.toml")


def test_written_files_are_private_whole_and_keep_links(tmp_path: Path) -> None:
    real = tmp_path / "real" / "profiles.toml"
    link = tmp_path / "profiles.toml"
    link.symlink_to(real)
    files.write_private(link, b"first, which is longer")
    files.write_private(link, b"second")
    assert link.is_symlink()
    assert real.read_bytes() == b"second"
    if os.name == "posix":
        assert stat.S_IMODE(real.stat().st_mode) == 0o600
        assert stat.S_IMODE(real.parent.stat().st_mode) == 0o700
    assert list(real.parent.iterdir()) == [real]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "profiles.toml"
    target.write_bytes(b"old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        files.write_private(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_where_files_are(tmp_path: Path) -> None:
    xdg = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE")}
    assert paths.config_file(xdg) == tmp_path / "config" / "llmstream" / "config.toml"
    assert paths.state_dir(xdg) == tmp_path / "state" / "llmstream"
    assert paths.cache_dir(xdg) == tmp_path / "cache" / "llmstream"
    named = {**xdg, "LLMSTREAM_CONFIG": str(tmp_path / "own.toml")}
    assert paths.config_file(named) == tmp_path / "own.toml"
    assert paths.config_dir({"XDG_CONFIG_HOME": "relative"}).is_absolute()
