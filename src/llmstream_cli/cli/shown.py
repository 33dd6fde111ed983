"""Settings as the configuration commands show them: secrets masked, one line each."""

import os
from collections.abc import Iterable
from typing import Any

from llmstream_cli.profiles import Profile, ProfileStore
from llmstream_cli.render.console import StandardError
from llmstream_cli.render.sanitize import harmless
from llmstream_cli.settings import Settings
from llmstream_cli.spec_table import SPECS
from llmstream_cli.urls import redact_url

_LINE_WIDTH = 60
"""Longer values are cut in a table; ``profiles show NAME`` has them whole."""


def shown_value(name: str, value: Any) -> Any:
    """`value` of the setting `name` without its secrets."""
    if name == "headers" and isinstance(value, dict):
        from llmstream_cli.capture import mask_headers

        return dict(mask_headers(value.items()))
    if name == "base_url" and isinstance(value, str):
        return redact_url(value)
    return value


def as_line(name: str, value: Any) -> str:
    """`value` on one line, quoted, cut if it is long; ``-`` where there is none."""
    if value is None or value == () or value == {}:
        return "-"
    import json

    value = list(value) if isinstance(value, tuple) else shown_value(name, value)
    line = harmless(json.dumps(value, ensure_ascii=False), one_line=True)
    return line if len(line) <= _LINE_WIDTH else f"{line[: _LINE_WIDTH - 3]}..."


def profile_row(profile: Profile, default: str | None) -> tuple[str, ...]:
    """For ``profiles list``: mark of the default one, name, shape, base URL, model, where it is written."""

    def shown(key: str, absent: str = "-") -> str:
        setting = profile.settings.get(key)
        return harmless(str(shown_value(key, setting.value)), one_line=True) if setting else absent

    runs_here = profile.managed and "base_url" not in profile.settings
    return (
        "*" if profile.name == default else " ",
        harmless(profile.name, one_line=True),
        shown("shape", "auto"),
        "(runs on this machine)" if runs_here else shown("base_url"),
        shown("model"),
        " + ".join(profile.sources),
    )


def origin_rows(settings: Settings, store: ProfileStore) -> list[tuple[str, ...]]:
    """For ``show --origin``: name, value and origin of every setting, then of the key."""
    from llmstream_cli.keys import describe_key

    rows = [
        (name, as_line(name, getattr(settings, name)), str(origin))
        for name, origin in settings.origins.items()
        if SPECS[name].profile or name == "profile"
    ]
    return [*rows, ("api_key", describe_key(settings, os.environ, store), "")]


def profile_toml(profile: Profile) -> str:
    """What the profile itself sets, as it could stand in a configuration file."""
    import tomli_w

    table = {
        key: shown_value(key, SPECS[key].kind.to_toml(setting.value))
        for key, setting in profile.settings.items()
    }
    heading = f"# {' + '.join(profile.sources)}\n"
    return heading + tomli_w.dumps({"profiles": {profile.name: table}})


def as_columns(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows with their columns lined up, two spaces between them."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def print_warnings(warnings: Iterable[str]) -> None:
    stderr = StandardError()
    for warning in warnings:
        stderr.line(f"⚠ {harmless(warning, one_line=True)}", "warning")
