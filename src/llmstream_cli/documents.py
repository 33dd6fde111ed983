"""TOML files: read with errors that name the place, written whole or not at all."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmstream_cli.errors import ConfigError
from llmstream_cli.events import Json
from llmstream_cli.files import write_private


@dataclass(frozen=True, slots=True)
class Document:
    """A TOML file; one that does not exist is empty. ``tables`` is what it says."""

    path: Path
    text: str
    tables: dict[str, Json]

    def error(
        self, complaint: str, *, table: tuple[str, ...] = (), key: str | None = None, hint: str | None = None
    ) -> ConfigError:
        """`complaint` about `key` in `table`, with the file and, where it can be found, the line."""
        line = _line_of(self.text, table, key)
        return ConfigError(f"{self.path}{f', line {line}' if line else ''}: {complaint}", hint=hint)


def read_document(path: Path) -> Document:
    """The file at `path`. ConfigError if it cannot be read, is not UTF-8 (a BOM is allowed) or not TOML."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Document(path, "", {})
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from None
    return Document(path, text, _parse(path, text))


def write_document(path: Path, tables: Mapping[str, Json], heading: str) -> None:
    """Write `tables` under a comment. ConfigError if the file cannot be written."""
    import tomli_w

    data = f"# {heading}\n\n{tomli_w.dumps(tables)}".encode()
    try:
        write_private(path, data)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None


def subtable(document: Document, name: str) -> dict[str, Any]:
    """The table `name` at the top of `document`, empty if absent. ConfigError if it is something else."""
    value = document.tables.get(name, {})
    if not isinstance(value, dict):
        raise document.error(f"{name} is not a table", key=name)
    return value


def _parse(path: Path, text: str) -> dict[str, Json]:
    if not text.strip():
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path} is not valid TOML: {error}", hint="The file was left as it is; nothing was written."
        ) from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply") from None


def _line_of(text: str, table: tuple[str, ...], key: str | None) -> int | None:
    """The line where `key` of `table` is set (the header's if that cannot be found), counted from 1."""
    inside = not table
    found: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if header:
            inside = tuple(re.split(r"\s*\.\s*", re.sub(r"[\"']", "", header[1]))) == table
            found = number if inside else found
        elif inside and key is not None and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
            return number
    return found
