"""Settings: flag > environment > profile > configuration > default, each value with its origin."""

import itertools
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from llmstream_cli.errors import ConfigError, LlmstreamError, UsageError
from llmstream_cli.profiles import ProfileStore, load_store
from llmstream_cli.settings import Flags, Settings, resolve
from llmstream_cli.spec_table import SPECS

URL = {"base_url": "h:1"}
NOTHING: Mapping[str, str] = {}


def store_of(folder: Path, config: str = "", commands: str = "") -> ProfileStore:
    (folder / "config.toml").write_text(config, encoding="utf-8")
    (folder / "profiles.toml").write_text(commands, encoding="utf-8")
    return load_store(folder / "config.toml")


@pytest.fixture
def empty(tmp_path: Path) -> ProfileStore:
    return store_of(tmp_path)


def settle(store: ProfileStore, env: Mapping[str, str] = NOTHING, /, **given: Any) -> Settings:
    return resolve(Flags(given=given), env, store)


def test_the_table_and_the_dataclass_have_the_same_names() -> None:
    names = {spec.name for spec in SPECS.values() if not spec.into}
    assert {field.name for field in fields(Settings)} == names | {"managed", "origins"}


CONTRACT = """
-p --profile --base-url --url --shape -m --model -s --system -f --file -n --max-tokens --temperature --temp
--top-p --seed --stop --stop-raw --enforce-stop/--no-enforce-stop -o --option -H --header --api-key-env
--api-key-cmd --reasoning -R --format --json --plain --color --footer/--no-footer -q --quiet -v --verbose
--connect-timeout --first-token-timeout --idle-timeout --timeout --retries --record --no-stream
--fail-on-truncation --schema --curl --think-tags/--no-think-tags
"""


def test_every_option_of_the_contract_has_its_name_and_aliases() -> None:
    spelled = {flag for spec in SPECS.values() for flag in (*spec.flags, *spec.shorthands)}
    assert spelled == set(CONTRACT.split())


def test_defaults(empty: ProfileStore) -> None:
    settings = settle(empty, base_url="h:1")
    assert settings.profile is None
    assert settings.shape == "auto"
    assert settings.base_url == "http://h:1"
    assert (settings.connect_timeout, settings.first_token_timeout) == (10, 900)
    assert (settings.idle_timeout, settings.timeout, settings.retries) == (180, None, 2)
    assert settings.enforce_stop
    assert settings.stop == ()
    assert settings.footer is None
    spoken = {name for name, origin in settings.origins.items() if str(origin) != "default"}
    assert spoken == {"base_url", "profile"}


LAYERS = ("flag", "env", "profile", "config")


@pytest.mark.parametrize(
    "present", [set(some) for count in range(5) for some in itertools.combinations(LAYERS, count)], ids=sorted
)
def test_the_highest_layer_that_speaks_wins(tmp_path: Path, present: set[str]) -> None:
    config = 'model = "config"\n' if "config" in present else ""
    config += '[profiles.work]\nbase_url = "h:1"\n' + ('model = "profile"\n' if "profile" in present else "")
    env = {"LLMSTREAM_MODEL": "env"} if "env" in present else {}
    flags = {"model": "flag"} if "flag" in present else {}
    settings = settle(store_of(tmp_path, config), env, profile="work", **flags)
    assert settings.model == next((layer for layer in LAYERS if layer in present), None)
    expected = {
        "flag": "flag --model",
        "env": "env LLMSTREAM_MODEL",
        "profile": "profile work (config.toml)",
        "config": "config.toml",
        None: "default",
    }
    assert str(settings.origins["model"]) == expected[settings.model]


@pytest.mark.parametrize(
    ("flags", "env", "profile", "origin"),
    [
        ({"profile": "vllm"}, {"LLMSTREAM_PROFILE": "tgi"}, "vllm", "flag --profile"),
        ({"profile": "vllm", **URL}, {}, "vllm", "flag --profile"),
        (URL, {"LLMSTREAM_PROFILE": "tgi"}, None, "flag --base-url"),
        ({}, {"LLMSTREAM_PROFILE": "tgi"}, "tgi", "env LLMSTREAM_PROFILE"),
        ({}, {"LLMSTREAM_BASE_URL": "h:2"}, None, "env LLMSTREAM_BASE_URL"),
        ({}, {"LLMSTREAM_BASE_URL": "", "LLMSTREAM_PROFILE": ""}, "sglang", "default_profile (config.toml)"),
        ({}, {}, "sglang", "default_profile (config.toml)"),
    ],
)
def test_which_profile_is_in_force(
    tmp_path: Path, flags: dict[str, str], env: dict[str, str], profile: str | None, origin: str
) -> None:
    settings = settle(store_of(tmp_path, 'default_profile = "sglang"\n'), env, **flags)
    assert settings.profile == profile
    assert str(settings.origins["profile"]) == origin


def test_a_base_url_beside_a_profile_replaces_only_its_address(empty: ProfileStore) -> None:
    settings = settle(empty, profile="ollama", base_url="box:1")
    assert (settings.base_url, settings.shape) == ("http://box:1", "ollama-chat")


def test_the_local_profile_has_a_managed_server_unless_an_address_is_given(empty: ProfileStore) -> None:
    settings = settle(empty, profile="local")
    assert (settings.managed, settings.base_url, settings.shape) == ("local", None, "llamacpp")
    assert settle(empty, profile="local", base_url="h:1").managed is None


def test_nothing_named_tells_a_newcomer_how_to_start(empty: ProfileStore) -> None:
    with pytest.raises(ConfigError) as caught:
        settle(empty)
    hint = caught.value.hint or ""
    for way in ("llmstream -p local", "--base-url", "profiles add", "llmstream servers"):
        assert way in hint
    assert resolve(Flags(), {}, empty, needs_server=False).base_url is None


def test_a_profile_without_an_address_says_how_to_give_it_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="work has no base_url") as caught:
        settle(store_of(tmp_path, "[profiles.work]\nmodel = 'm'\n"), profile="work")
    assert caught.value.hint == "llmstream profiles set work base_url URL"


def test_a_top_level_base_url_is_a_server_without_a_profile(tmp_path: Path) -> None:
    settings = settle(store_of(tmp_path, "base_url = 'h:7'\n"))
    assert (settings.profile, settings.base_url) == (None, "http://h:7")


def test_stop_flags_replace_the_profiles_and_raw_ones_come_last(empty: ProfileStore) -> None:
    assert settle(empty, profile="local").stop == ("\nUser:",)
    assert settle(empty, profile="local").stop_origin == "built-in profile local"
    settings = settle(empty, profile="local", stop_raw=(r"\n",), stop=(r"\n", r"\u00e9"))
    assert settings.stop == ("\n", "é", "\\n")
    assert settings.stop_origin == "flag --stop + flag --stop-raw"
    assert settle(empty, profile="local", stop=("",)).stop == ()
    assert settle(empty, {"LLMSTREAM_STOP": r"\t"}, profile="local").stop == ("\t",)


def test_headers_and_options_of_all_layers_are_merged(tmp_path: Path) -> None:
    store = store_of(
        tmp_path,
        "headers = {X-All = '1'}\n[profiles.w]\nbase_url='h:1'\n"
        "headers = {X-Title = 'a', X-Gone = 'b'}\noptions = {options = {num_ctx = 1}, top_k = 1}\n",
    )
    settings = settle(
        store,
        {"LLMSTREAM_HEADER": "X-Env: e"},
        profile="w",
        headers=("x-title: c: d", "X-Gone:"),
        options=(
            "options.num_ctx=8192",
            "options.word=hello",
            "list=[1, 2]",
            "top_k=null",
            "a.b.c=true",
            "n=NaN",
        ),
    )
    assert settings.headers == {"X-All": "1", "X-Env": "e", "x-title": "c: d"}
    assert settings.options == {
        "options": {"num_ctx": 8192, "word": "hello"},
        "top_k": None,
        "list": [1, 2],
        "a": {"b": {"c": True}},
        "n": "NaN",
    }
    assert str(settings.origins["options"]) == "profile w (config.toml) + flag --option"


def test_zero_seconds_are_no_limit(empty: ProfileStore) -> None:
    settings = settle(empty, {"LLMSTREAM_IDLE_TIMEOUT": "0"}, connect_timeout="0", timeout="1.5", **URL)
    assert (settings.idle_timeout, settings.connect_timeout, settings.timeout) == (None, None, 1.5)


def test_an_empty_text_takes_the_profiles_away(tmp_path: Path) -> None:
    store = store_of(tmp_path, "[profiles.w]\nbase_url='h:1'\nsystem='Be brief.'\n")
    assert settle(store, profile="w").system == "Be brief."
    assert settle(store, profile="w", system="").system is None


def test_undecodable_arguments_become_sendable_text(empty: ProfileStore) -> None:
    settings = settle(empty, system="caf\udce9", stop_raw=("\ud83d",), options=("k=\udcff",), **URL)
    assert (settings.system, settings.stop, settings.options) == ("caf\ufffd", ("\ufffd",), {"k": "\ufffd"})


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("max_tokens", "abc", "'abc' is not a whole number"),
        ("max_tokens", "0", "'0' is less than 1"),
        ("temperature", "-1", "'-1' is negative"),
        ("temperature", "nan", "'nan' is not a number"),
        ("timeout", "inf", "'inf' is not a number"),
        ("top_p", "1.1", "'1.1' is more than 1"),
        ("retries", "1.5", "'1.5' is not a whole number"),
        ("format", "jsn", "'jsn' is not one of text, markdown, json, jsonl, raw (did you mean json?)"),
        ("reasoning", "off", "'off' is not one of show, hide, only"),
        ("options", "novalue", "'novalue' is not KEY=VALUE, e.g. top_k=40 or options.num_ctx=8192"),
        ("options", "a..b=1", "'a..b=1' is not KEY=VALUE, e.g. top_k=40 or options.num_ctx=8192"),
        ("headers", "SECRET", " is not a header: write 'Name: value'"),
        (
            "headers",
            "X: SECRET\r\nY: 1",
            " has a header value with a line break or characters outside latin-1",
        ),
        (
            "api_key_env",
            "sk-SECRET",
            " is not the name of an environment variable",
        ),
        ("api_key_cmd", "say 'SECRET", " is not a command: no closing quotation"),
        ("base_url", "ftp://u:SECRET@h", " is not usable: unsupported scheme 'ftp': use http:// or https://"),
    ],
)
def test_a_bad_value_names_its_origin(empty: ProfileStore, name: str, text: str, complaint: str) -> None:
    spec = SPECS[name]
    server = {} if name == "base_url" else URL
    with pytest.raises(UsageError) as flag:
        settle(empty, **server, **{name: (text,) if spec.kind.many else text})
    assert spec.variable is not None
    with pytest.raises(ConfigError) as variable:
        settle(empty, {spec.variable: text}, **server)
    space = "" if complaint.startswith(" ") else " "
    assert flag.value.message.startswith(f"{spec.flag}{space}{complaint}")
    assert variable.value.message.startswith(f"{spec.variable}{space.replace(' ', '=')}{complaint}")
    assert "SECRET" not in flag.value.message + variable.value.message
    assert (flag.value.exit_code, variable.value.exit_code) == (2, 3)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("Yes", True), ("off", False), ("false", False)])
def test_yes_and_no_in_the_environment(empty: ProfileStore, text: str, value: bool) -> None:
    assert settle(empty, {"LLMSTREAM_QUIET": text}, **URL).quiet is value


def test_yes_or_no_is_neither(empty: ProfileStore) -> None:
    with pytest.raises(ConfigError, match="LLMSTREAM_PLAIN='maybe' is neither yes nor no"):
        settle(empty, {"LLMSTREAM_PLAIN": "maybe"}, **URL)


def test_an_unknown_profile_is_a_matter_of_configuration(empty: ProfileStore) -> None:
    with pytest.raises(LlmstreamError) as caught:
        settle(empty, profile="nosuch")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("box:5000", "http://box:5000"),
        (":5000", "http://localhost:5000"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("[::]:99", "http://[::1]:99"),
        ("::1", "http://[::1]:11434"),
        (' "box" ', "http://box:11434"),
        ("http://box", "http://box"),
        ("https://box/prefix/", "https://box/prefix"),
        ("ollama.com", "https://ollama.com"),
    ],
)
def test_the_forms_of_ollama_host(empty: ProfileStore, text: str, url: str) -> None:
    settings = settle(empty, {"OLLAMA_HOST": text}, profile="ollama")
    assert settings.base_url == url
    assert str(settings.origins["base_url"]) == ("env OLLAMA_HOST" if text else "built-in profile ollama")


def test_ollama_host_is_the_last_resort_and_for_ollama_only(tmp_path: Path) -> None:
    env = {"OLLAMA_HOST": "box"}
    store = store_of(tmp_path, "[profiles.ollama]\nbase_url = 'mine:1'\n")
    assert settle(store, env, profile="ollama").base_url == "http://mine:1"
    assert settle(store, env, profile="vllm").base_url == "http://127.0.0.1:8000"
    assert settle(store, env, profile="ollama", base_url="flag:1").base_url == "http://flag:1"


def test_an_unusable_ollama_host_is_named(empty: ProfileStore) -> None:
    with pytest.raises(ConfigError, match="OLLAMA_HOST is not usable: bad port"):
        settle(empty, {"OLLAMA_HOST": "box:99999"}, profile="ollama")
