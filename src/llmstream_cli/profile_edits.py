"""What the profile commands write: ``profiles.toml``, beside the file that people edit."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llmstream_cli.documents import read_document, subtable, write_document
from llmstream_cli.errors import ConfigError, UsageError
from llmstream_cli.kinds import suggest
from llmstream_cli.profiles import PROFILE_KEYS, ProfileStore
from llmstream_cli.settings import read_texts
from llmstream_cli.spec_table import SPECS
from llmstream_cli.specs import Layer, Origin, Setting

_HEADING = "Written by `llmstream profiles`; what you write yourself belongs in config.toml."
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def add_profile(store: ProfileStore, name: str, settings: dict[str, Setting]) -> None:
    """Write a new profile. UsageError for a name that is taken, unusable, or without a base URL."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a profile: letters, digits, '.', '_' and '-' are.")
    if name in store.profiles:
        raise UsageError(
            f"There is a profile {name} already ({' + '.join(store.profiles[name].sources)}).",
            hint=f"llmstream profiles set {name} KEY VALUE",
        )
    if "base_url" not in settings:
        raise UsageError("A profile needs its server.", hint=f"llmstream profiles add {name} --base-url URL")
    with _editing(store) as tables:
        tables["profiles"][name] = {
            key: SPECS[key].kind.to_toml(setting.value) for key, setting in settings.items()
        }


def set_value(store: ProfileStore, name: str, key: str, texts: Sequence[str]) -> None:
    """Set one key of a profile, or add to it if its kind merges (headers, options)."""
    _check_key_name(key)
    store.get(name)
    spec = SPECS[key]
    if len(texts) > 1 and not spec.kind.many:
        raise UsageError(f"{key} takes one value; put it in quotes.")
    value = read_texts(spec, texts, Origin(Layer.FLAG, key)).value
    with _editing(store) as tables:
        table = tables["profiles"].setdefault(name, {})
        if spec.kind.merges:
            value = spec.kind.combine(table.get(key, {}), value)
        table[key] = spec.kind.to_toml(value)


def unset_value(store: ProfileStore, name: str, key: str) -> None:
    """Take back what commands set. ConfigError if it is set elsewhere, or nowhere."""
    _check_key_name(key)
    setting = store.get(name).settings.get(key)
    with _editing(store) as tables:
        if key not in tables["profiles"].get(name, {}):
            where = f"it is set by {setting.origin}" if setting else "it is not set"
            raise ConfigError(f"{store.commands_file.name} does not set {key} of {name}: {where}.")
        del tables["profiles"][name][key]
        if not tables["profiles"][name]:
            del tables["profiles"][name]


def remove_profile(store: ProfileStore, name: str) -> None:
    """Remove what commands wrote of a profile. ConfigError if it is written elsewhere only."""
    sources = store.get(name).sources
    if store.commands_file.name not in sources:
        where = (
            f"Remove it from {store.config_file}." if store.config_file.name in sources else "It is built in."
        )
        raise ConfigError(f"{name} was not made by a command. {where}")
    with _editing(store) as tables:
        del tables["profiles"][name]
        if len(sources) == 1 and tables.get("default_profile") == name:
            del tables["default_profile"]


def use_profile(store: ProfileStore, name: str) -> None:
    """Make `name` the profile that is used when none is named."""
    store.get(name)
    with _editing(store) as tables:
        tables["default_profile"] = name


@contextmanager
def _editing(store: ProfileStore) -> Iterator[dict[str, Any]]:
    """The content of ``profiles.toml`` to change; written if the block ends well."""
    document = read_document(store.commands_file)
    tables = {**document.tables, "profiles": subtable(document, "profiles")}
    yield tables
    # A bare key has to stand before the first table.
    top = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    write_document(store.commands_file, top | tables, _HEADING)


def _check_key_name(key: str) -> None:
    if key not in PROFILE_KEYS:
        raise UsageError(
            f"A profile has no key {key!r}{suggest(key, PROFILE_KEYS)}.",
            hint=f"Keys: {', '.join(PROFILE_KEYS)}",
        )
