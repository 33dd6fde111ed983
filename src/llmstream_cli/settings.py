"""Every setting of a run, decided: flag > environment > profile > configuration > default."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Literal

from llmstream_cli.builtin_profiles import HOST_VARIABLES
from llmstream_cli.errors import ConfigError, LlmstreamError, UsageError
from llmstream_cli.events import Json
from llmstream_cli.profiles import Profile, ProfileStore, merge
from llmstream_cli.spec_table import SPECS
from llmstream_cli.specs import DEFAULT, Layer, Origin, Setting, Spec
from llmstream_cli.urls import normalise_base_url

_GETTING_STARTED = """Three ways to start:
  llmstream -p local "Hello"                    a small model on this machine
  llmstream --base-url localhost:8080 "Hello"   a server that runs; `llmstream servers` looks for some
  llmstream profiles add NAME --base-url URL    remember one, then `llmstream profiles use NAME`"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What was typed: setting name -> its text, its texts if repeatable, True or False, or a count.

    Only what was typed is in it.
    """

    given: Mapping[str, str | tuple[str, ...] | bool | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One run's settings; the meaning of each is in `SPECS`. Time-outs in seconds, None = no limit.

    ``profile`` is None for a bare base URL. ``managed`` names the server that llmstream runs itself; its
    ``base_url`` is None until it runs.
    """

    profile: str | None
    base_url: str | None
    shape: str
    model: str | None
    path: str | None
    stream: Mapping[str, Json]
    system: str | None
    files: tuple[str, ...]
    template: str | Mapping[str, Json] | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    seed: int | None
    stop: tuple[str, ...]
    enforce_stop: bool
    options: Mapping[str, Json]
    headers: Mapping[str, str]
    api_key_env: str | None
    api_key_cmd: tuple[str, ...] | None
    auth: str | None
    reasoning: Literal["show", "hide", "only"] | None
    think_tags: bool
    format: Literal["text", "markdown", "json", "jsonl", "raw"] | None
    plain: bool
    color: Literal["auto", "always", "never"]
    edit_keys: Literal["emacs", "vi"] | None
    footer: bool | None
    quiet: bool
    verbose: int
    connect_timeout: float | None
    first_token_timeout: float | None
    idle_timeout: float | None
    timeout: float | None
    retries: int
    record: Path | None
    no_stream: bool
    fail_on_truncation: bool
    schema: Path | None
    curl: bool
    managed: str | None
    origins: Mapping[str, Origin]

    @property
    def stop_origin(self) -> str:
        return str(self.origins["stop"])


def resolve(
    flags: Flags, env: Mapping[str, str], store: ProfileStore, *, needs_server: bool = True
) -> Settings:
    """Decide every setting.

    UsageError for a flag, ConfigError for a variable or a profile that makes no sense, and where a server is
    needed but none is named.
    """
    typed = read_flags(flags)
    variables = _variables(env)
    profile, chosen_by = _choose(typed, variables, store)
    merged = {name: Setting(spec.default, DEFAULT) for name, spec in SPECS.items() if not spec.into}
    for layer in (store.defaults, _profile_settings(profile, env), variables, typed):
        for name, setting in layer.items():
            merged[name] = merge(name, merged[name], setting)
    merged["profile"] = Setting(profile.name if profile else None, chosen_by)
    settings = Settings(
        **{name: SPECS[name].kind.settled(setting.value) for name, setting in merged.items()},
        managed=profile.managed if profile and merged["base_url"].value is None else None,
        origins={name: setting.origin for name, setting in merged.items()},
    )
    if needs_server:
        _require_server(settings)
    return settings


def read_flags(flags: Flags) -> dict[str, Setting]:
    """The values of the flags by setting. UsageError for one that makes no sense."""
    typed: dict[str, Setting] = {}
    for spec in SPECS.values():
        given = flags.given.get(spec.name)
        if given is None:
            continue
        origin = Origin(Layer.FLAG, f"flag {spec.flag}")
        setting = (
            Setting(given, origin)
            if isinstance(given, bool | int)
            else read_texts(spec, (given,) if isinstance(given, str) else given, origin)
        )
        name = spec.into or spec.name
        typed[name] = _joined(spec, typed[name], setting) if name in typed else setting
    return typed


def _variables(env: Mapping[str, str]) -> dict[str, Setting]:
    """The ``LLMSTREAM_*`` variables; an empty one counts as not set."""
    return {
        name: read_texts(spec, (env[spec.variable],), Origin(Layer.ENV, f"env {spec.variable}"))
        for name, spec in SPECS.items()
        if spec.variable and env.get(spec.variable)
    }


def read_texts(spec: Spec, texts: Iterable[str], origin: Origin) -> Setting:
    """The value that `texts` spell. UsageError or ConfigError names where they stand."""
    values = []
    for text in texts:
        try:
            values.append(spec.kind.from_text(text))
        except ValueError as error:
            raise _bad_value(spec, text, origin, str(error)) from None
    return Setting(reduce(spec.kind.combine, values), origin)


def _bad_value(spec: Spec, text: str, origin: Origin, complaint: str) -> LlmstreamError:
    shown = "" if spec.kind.private else repr(text)
    name = origin.text.removeprefix("env ").removeprefix("flag ")
    if origin.layer is Layer.ENV:
        return ConfigError(f"{name}{shown and '='}{shown} {complaint}")
    return UsageError(f"{name}{shown and ' '}{shown} {complaint}")


def _joined(spec: Spec, first: Setting, then: Setting) -> Setting:
    return Setting(spec.kind.combine(first.value, then.value), first.origin.below(then.origin))


def _choose(
    typed: Mapping[str, Setting], variables: Mapping[str, Setting], store: ProfileStore
) -> tuple[Profile | None, Origin]:
    """The profile in force. A base URL that comes before any choice of a profile stands for itself."""
    for layer in (typed, variables):
        if "profile" in layer and layer["profile"].value:
            return store.get(layer["profile"].value), layer["profile"].origin
        if "base_url" in layer:
            return None, layer["base_url"].origin
    if store.default_profile:
        return store.get(store.default_profile.value), store.default_profile.origin
    return None, DEFAULT


def _profile_settings(profile: Profile | None, env: Mapping[str, str]) -> Mapping[str, Setting]:
    """What the profile sets; a built-in address gives way to the one that the server's own programs use."""
    if profile is None:
        return {}
    variable, port = HOST_VARIABLES.get(profile.name, ("", 0))
    host = env.get(variable, "").strip().strip("\"'").strip()
    if not host or profile.settings["base_url"].origin.layer is not Layer.BUILTIN:
        return profile.settings
    if host == "ollama.com":
        host = "https://ollama.com"
    try:
        url = normalise_base_url(host, default_port=port)
    except ValueError as error:
        raise ConfigError(f"{variable} is not usable: {error}") from None
    return {**profile.settings, "base_url": Setting(url, Origin(Layer.BUILTIN, f"env {variable}"))}


def _require_server(settings: Settings) -> None:
    if settings.base_url or settings.managed:
        return
    if settings.profile:
        raise ConfigError(
            f"The profile {settings.profile} has no base_url.",
            hint=f"llmstream profiles set {settings.profile} base_url URL",
        )
    raise ConfigError("No server is named.", hint=_GETTING_STARTED)
