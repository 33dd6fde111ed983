"""``llmstream servers``: who answers at the well-known local ports."""

import json
from typing import Annotated

import typer

from llmstream_cli.errors import ExitCode
from llmstream_cli.render.console import StandardError, StandardOutput
from llmstream_cli.render.sanitize import harmless


def servers(as_json: Annotated[bool, typer.Option("--json", help="One JSON list.")] = False) -> int:
    """Look for LLM servers at the well-known local ports.

    Example:

      llmstream servers
    """
    from llmstream_cli.servers import scan_local_ports

    found = scan_local_ports()
    stdout = StandardOutput()
    if as_json:
        rows = [
            {
                "url": url,
                "kind": info.kind,
                "version": info.version,
                "models": [model.id for model in info.models],
            }
            for url, info in found
        ]
        stdout.write(json.dumps(rows, ensure_ascii=False) + "\n")
        return ExitCode.OK
    for url, info in found:
        names = ", ".join(model.id for model in info.models) or "no models listed"
        what = f"{info.kind} {info.version or ''}".strip()
        stdout.write(f"{url}  {harmless(what, one_line=True)}  {harmless(names, one_line=True)}\n")
    if not found:
        StandardError().line(
            'No LLM server answers at the well-known local ports. Try: llmstream -p local "hi"'
        )
    return ExitCode.OK
