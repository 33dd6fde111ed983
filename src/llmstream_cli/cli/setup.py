"""What every command that talks to a server begins and ends with."""

import os
from dataclasses import dataclass

from llmstream_cli.keys import Key, resolve_key
from llmstream_cli.outcome import Outcome
from llmstream_cli.paths import config_file
from llmstream_cli.profiles import ProfileStore, load_store
from llmstream_cli.render import Output, open_output
from llmstream_cli.settings import Flags, Settings, resolve

MACHINE_FORMATS = frozenset({"json", "jsonl", "raw"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings of this run and the streams that it writes to."""

    settings: Settings
    store: ProfileStore
    output: Output

    def key(self) -> Key | None:
        """The API key, looked up only when a request is about to be made."""
        return resolve_key(self.settings, os.environ, self.store)


def start(flags: Flags, *, needs_server: bool = True) -> Run:
    """Read the configuration, decide the settings, look at the standard streams."""
    store = load_store(config_file(os.environ))
    settings = resolve(flags, os.environ, store, needs_server=needs_server)
    output = open_output(
        color=settings.color, plain=settings.plain, term=os.environ.get("TERM"), env=os.environ
    )
    if not settings.quiet:
        for warning in store.warnings:
            output.stderr.line(f"⚠ {warning}", "warning")
    return Run(settings=settings, store=store, output=output)


def conclude(outcome: Outcome, settings: Settings, output: Output) -> int:
    """Print how the answer ended; the exit code."""
    from llmstream_cli.render.footer import print_ending

    machine = settings.format in MACHINE_FORMATS
    footer = settings.footer if settings.footer is not None else not (settings.quiet or machine)
    print_ending(outcome, output.stderr, footer=footer, warnings=not settings.quiet, verbose=settings.verbose)
    return outcome.exit_code(fail_on_truncation=settings.fail_on_truncation)
