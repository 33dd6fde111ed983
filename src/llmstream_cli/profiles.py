"""Profiles: built in, written by people in ``config.toml``, written by commands in ``profiles.toml``.

A later one of the three overlays an earlier one of the same name key by key. The file that people edit is
never written to, so that no comment is ever lost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from llmstream_cli.builtin_profiles import MANAGED, PROFILES
from llmstream_cli.documents import Document, read_document, subtable
from llmstream_cli.errors import ConfigError
from llmstream_cli.events import Json
from llmstream_cli.kinds import suggest
from llmstream_cli.spec_table import SPECS
from llmstream_cli.specs import Layer, Origin, Setting

COMMANDS_FILE = "profiles.toml"
KEYS_FILE = "keys.toml"

PROFILE_KEYS = tuple(spec.name for spec in SPECS.values() if spec.profile)
_TOP_KEYS = ("default_profile", "profiles", *PROFILE_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """``settings``: only what the profile itself sets. ``sources``: where it is written, in order.

    ``managed``: the server that llmstream runs for it, else None.
    """

    name: str
    sources: tuple[str, ...]
    settings: Mapping[str, Setting]
    managed: str | None = None

    def overlaid(self, source: str, settings: Mapping[str, Setting]) -> "Profile":
        merged = {**self.settings}
        for key, setting in settings.items():
            below = merged.get(key)
            merged[key] = merge(key, below, setting)
        return replace(self, sources=(*self.sources, source), settings=merged)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileStore:
    """All profiles. ``defaults``: the settings at the top of the files. ``warnings``: for stderr."""

    config_file: Path
    profiles: Mapping[str, Profile]
    defaults: Mapping[str, Setting]
    default_profile: Setting | None
    warnings: tuple[str, ...]

    @property
    def commands_file(self) -> Path:
        return self.config_file.with_name(COMMANDS_FILE)

    @property
    def keys_file(self) -> Path:
        return self.config_file.with_name(KEYS_FILE)

    def get(self, name: str) -> Profile:
        """The profile called `name`. ConfigError, with the nearest name, if there is none."""
        try:
            return self.profiles[name]
        except KeyError:
            raise ConfigError(
                f"There is no profile called {name!r}{suggest(name, tuple(self.profiles))}.",
                hint="See `llmstream profiles`; `llmstream profiles add NAME --base-url URL` adds one.",
            ) from None


def merge(name: str, below: Setting | None, above: Setting) -> Setting:
    """The setting called `name` of two layers: the higher value, or both if its kind merges."""
    kind = SPECS[name].kind
    if below is None or not kind.merges or not below.value:
        return above
    return Setting(kind.combine(below.value, above.value), below.origin.below(above.origin))


def load_store(config_file: Path) -> ProfileStore:
    """Read the configuration in and beside `config_file`; what does not exist is empty.

    ConfigError names the file and the line of what cannot be read or has the wrong type.
    """
    if config_file.name in (COMMANDS_FILE, KEYS_FILE):
        raise ConfigError(f"{config_file} is written by commands: the configuration needs another name.")
    warnings: list[str] = []
    profiles = {name: _builtin(name, table) for name, table in PROFILES.items()}
    defaults: dict[str, Setting] = {}
    default_profile: Setting | None = None
    for path in (config_file, config_file.with_name(COMMANDS_FILE)):
        document = read_document(path)
        top = {key: value for key, value in document.tables.items() if key in PROFILE_KEYS}
        _refuse_key(document, (), document.tables)
        warnings += _unknown(document, (), document.tables, _TOP_KEYS)
        for key, setting in _settings(document, (), top, Origin(Layer.CONFIG, path.name)).items():
            defaults[key] = merge(key, defaults.get(key), setting)
        default_profile = _default_profile(document) or default_profile
        for name, table in subtable(document, "profiles").items():
            settings = _profile_settings(document, name, table, warnings)
            known = profiles.get(name) or Profile(name=name, sources=(), settings={})
            profiles[name] = known.overlaid(path.name, settings)
    return ProfileStore(
        config_file=config_file,
        profiles=profiles,
        defaults=defaults,
        default_profile=default_profile,
        warnings=tuple(warnings),
    )


def _builtin(name: str, table: Mapping[str, Json]) -> Profile:
    origin = Origin(Layer.BUILTIN, f"built-in profile {name}")
    settings = {key: Setting(SPECS[key].kind.from_toml(value), origin) for key, value in table.items()}
    return Profile(name=name, sources=("built-in",), settings=settings, managed=MANAGED.get(name))


def _default_profile(document: Document) -> Setting | None:
    name = document.tables.get("default_profile")
    if name is None:
        return None
    if not isinstance(name, str):
        raise document.error("default_profile is not the name of a profile in quotes", key="default_profile")
    return Setting(name, Origin(Layer.CONFIG, f"default_profile ({document.path.name})"))


def _profile_settings(document: Document, name: str, table: Json, warnings: list[str]) -> dict[str, Setting]:
    place = ("profiles", name)
    if not isinstance(table, dict):
        raise document.error(f"profile {name} is not a table", table=("profiles",), key=name)
    _refuse_key(document, place, table)
    warnings += _unknown(document, place, table, PROFILE_KEYS)
    known = {key: value for key, value in table.items() if key in PROFILE_KEYS}
    origin = Origin(Layer.PROFILE, f"profile {name} ({document.path.name})")
    return _settings(document, place, known, origin)


def _refuse_key(document: Document, place: tuple[str, ...], table: Mapping[str, Json]) -> None:
    if "api_key" in table:
        raise document.error(
            "an API key does not belong in this file, which is easily shared",
            table=place,
            key="api_key",
            hint="Name a variable with api_key_env or a command with api_key_cmd, or keep the key in "
            f"a private file: llmstream profiles set {place[-1] if place else 'NAME'} api_key --stdin",
        )


def _settings(
    document: Document, place: tuple[str, ...], table: Mapping[str, Json], origin: Origin
) -> dict[str, Setting]:
    settings = {}
    for key, value in table.items():
        kind = SPECS[key].kind
        try:
            settings[key] = Setting(kind.from_toml(value), origin)
        except ValueError as error:
            whose = f"profile {place[-1]}: " if place else ""
            shown = key if kind.private or isinstance(value, dict) else f"{key} = {value!r}"
            raise document.error(f"{whose}{shown} {error}", table=place, key=key) from None
    return settings


def _unknown(
    document: Document, place: tuple[str, ...], table: Iterable[str], known: tuple[str, ...]
) -> list[str]:
    """One warning for each key that means nothing: a misspelt one would otherwise be ignored in silence."""
    whose = f"profile {place[-1]}: " if place else ""
    return [
        document.error(
            f"{whose}unknown key {key!r}{suggest(key, known)}, ignored", table=place, key=key
        ).message
        for key in table
        if key not in known
    ]
