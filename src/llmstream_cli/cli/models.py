"""``llmstream models``: what the server offers."""

import json

from llmstream_cli.cli.options import takes_flags
from llmstream_cli.cli.setup import start
from llmstream_cli.errors import ConnectError, ExitCode
from llmstream_cli.planning import make_target
from llmstream_cli.render.console import StandardError, StandardOutput
from llmstream_cli.render.sanitize import harmless
from llmstream_cli.settings import Flags


@takes_flags
def models(flags: Flags) -> int:
    """List the models that the server of a profile offers.

    Examples:

      llmstream models -p ollama

      llmstream models --base-url localhost:8000 --json
    """
    from llmstream_cli.servers import identify, list_models

    run = start(flags)
    target = make_target(run.settings, run.key())
    info = identify(target)
    if info is None:
        raise ConnectError("No LLM server answers there", url=target.base_url)
    found = info.models or list_models(target, info.kind)
    stdout = StandardOutput()
    if run.settings.format == "json":
        stdout.write(json.dumps([{"id": model.id} for model in found], ensure_ascii=False) + "\n")
        return ExitCode.OK
    for model in found:
        stdout.write(harmless(model.id, one_line=True) + "\n")
    if not found:
        StandardError().line(f"{info.kind} lists no models.")
    return ExitCode.OK
