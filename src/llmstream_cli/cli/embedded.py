"""``-p local``: the embedded server around a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from llmstream_cli.local import start_local_server
from llmstream_cli.render import Output
from llmstream_cli.settings import Settings


@contextmanager
def embedded_server(settings: Settings, output: Output) -> Iterator[Settings]:
    """Start the server, yield `settings` with its address, always take it down."""
    output.waiting.start("starting the local server")
    with start_local_server(lambda _elapsed_s: None) as base_url:
        output.waiting.say("waiting")
        yield replace(settings, base_url=base_url)
