"""Settings as the configuration commands show them: secrets masked, one line each."""

from collections.abc import Iterable
from typing import Any

from llmstream_cli.render.console import StandardError
from llmstream_cli.render.sanitize import harmless
from llmstream_cli.urls import redact_url


def shown_value(name: str, value: Any) -> Any:
    """`value` of the setting `name` without its secrets."""
    if name == "headers" and isinstance(value, dict):
        from llmstream_cli.capture import mask_headers

        return dict(mask_headers(value.items()))
    if name == "base_url" and isinstance(value, str):
        return redact_url(value)
    return value


def as_line(name: str, value: Any) -> str:
    """`value` on one line, as TOML would have it; ``-`` where there is none."""
    if value is None or value == () or value == {}:
        return "-"
    import json

    value = list(value) if isinstance(value, tuple) else shown_value(name, value)
    return harmless(json.dumps(value, ensure_ascii=False, default=str), one_line=True)


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
