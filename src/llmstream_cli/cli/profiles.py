"""``llmstream profiles``: list, show, add, set, remove, use, test."""

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from llmstream_cli.cli.options import Flags, StrictCommand, takes_profile_flags
from llmstream_cli.cli.shown import as_columns, origin_rows, print_warnings, profile_row, profile_toml
from llmstream_cli.errors import ConfigError, ConnectError, UsageError
from llmstream_cli.paths import config_file
from llmstream_cli.profiles import ProfileStore, load_store
from llmstream_cli.render.console import StandardError, StandardOutput
from llmstream_cli.render.sanitize import harmless
from llmstream_cli.settings import read_flags, resolve

if TYPE_CHECKING:
    from llmstream_cli.cli.setup import Run

profiles_app = typer.Typer(
    name="profiles",
    help="Backend profiles: a server, a model and settings under one name. Alone, lists them.",
    rich_markup_mode=None,
    invoke_without_command=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _complete_name(incomplete: str) -> list[str]:
    try:
        return [name for name in load_store(config_file(os.environ)).profiles if name.startswith(incomplete)]
    except ConfigError:
        return []


Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=_complete_name, help="The profile.")]
OptionalName = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", autocompletion=_complete_name, help="Default: the one in use."),
]


@profiles_app.callback()
def profiles(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        list_profiles()


@profiles_app.command("list", cls=StrictCommand)
def list_profiles() -> None:
    """List all profiles; * marks the default one."""
    store = _load()
    default = store.default_profile.value if store.default_profile else None
    StandardOutput().write(as_columns(profile_row(profile, default) for profile in store.profiles.values()))


@profiles_app.command("show", cls=StrictCommand)
def show(
    name: OptionalName = None,
    origin: Annotated[
        bool, typer.Option("--origin", help="Every setting in force and where it comes from.")
    ] = False,
) -> None:
    """Show what a profile sets, as TOML; keys are masked.

    Examples:

      llmstream profiles show ollama

      llmstream profiles show work --origin
    """
    store = _load()
    flags = Flags(given={"profile": name} if name else {})
    settings = resolve(flags, os.environ, store, needs_server=False)
    if origin:
        StandardOutput().write(as_columns(origin_rows(settings, store)))
        return
    if settings.profile is None:
        raise UsageError("Which profile?", hint="`llmstream profiles` lists them.")
    StandardOutput().write(profile_toml(store.get(settings.profile)))


@profiles_app.command("add", cls=StrictCommand)
@takes_profile_flags
def add(name: Name, flags: Flags) -> None:
    """Add a profile with the settings given as options.

    Examples:

      llmstream profiles add work --base-url https://llm.example.com/v1 --api-key-env WORK_API_KEY

      llmstream profiles add box --url box:11434 --shape ollama-chat --stop '\\nUser:'
    """
    from llmstream_cli.profile_edits import add_profile

    store = _load()
    add_profile(store, name, read_flags(flags))
    _done(f'{name} is in {store.commands_file}. Try: llmstream -p {name} "Hello"')


@profiles_app.command("set", cls=StrictCommand)
def set_(
    name: Name,
    key: Annotated[str, typer.Argument(metavar="KEY", help="What to set, e.g. model, temperature, api_key.")],
    value: Annotated[
        list[str] | None, typer.Argument(metavar="[VALUE]...", help="Several for stop, headers and options.")
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Take back what was set with this command.")] = False,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the value of api_key from standard input.")
    ] = False,
) -> None:
    """Set one key of a profile; a built-in one is overlaid.

    Examples:

      llmstream profiles set work model qwen3-32b

      llmstream profiles set ollama options options.num_ctx=8192

      pass show llm/work | llmstream profiles set work api_key --stdin
    """
    from llmstream_cli.profile_edits import set_value, unset_value

    store = _load()
    values = value or []
    if key == "api_key":
        _set_key(store, name, values, unset=unset, stdin=stdin)
        return
    if stdin:
        raise UsageError("--stdin is for api_key only.")
    if unset == bool(values):
        raise UsageError(f"{key} needs a value, or --unset to take it back; not both.")
    if unset:
        unset_value(store, name, key)
        _done(f"{store.commands_file} no longer sets {key} of {name}.")
        return
    set_value(store, name, key, values)
    _done(f"{key} of {name} is set in {store.commands_file}.")


@profiles_app.command("remove", cls=StrictCommand)
def remove(name: Name) -> None:
    """Remove what commands have written of a profile, its private key too."""
    from llmstream_cli.keys import keep_key, read_keys
    from llmstream_cli.profile_edits import remove_profile

    store = _load()
    remove_profile(store, name)
    if name in read_keys(store.keys_file):
        keep_key(store.keys_file, name, None)
    left = " + ".join(source for source in store.get(name).sources if source != store.commands_file.name)
    _done(f"{name} is removed." if not left else f"{name} is what {left} says again.")


@profiles_app.command("use", cls=StrictCommand)
def use(name: Name) -> None:
    """Make a profile the one that is used when none is named."""
    from llmstream_cli.profile_edits import use_profile

    store = _load()
    use_profile(store, name)
    _done(f"llmstream now uses {name} when no profile is named.")


@profiles_app.command("test", cls=StrictCommand)
def test(name: Name) -> None:
    """Ask the profile's server who it is. Nothing is generated."""
    from llmstream_cli.cli.setup import start

    run = start(Flags(given={"profile": name}))
    if run.settings.managed is None:
        _identify(run)
        return
    from llmstream_cli.cli.embedded import embedded_server

    with embedded_server(run.settings, run.output) as settings:
        run.output.waiting.stop()
        _identify(replace(run, settings=settings))


def _identify(run: "Run") -> None:
    from llmstream_cli.planning import make_target
    from llmstream_cli.servers import identify, list_models, with_version
    from llmstream_cli.urls import redact_url

    target = make_target(run.settings, run.key())
    info = identify(target)
    where = redact_url(target.base_url)
    if info is None:
        raise ConnectError(
            f"No server answers at {where}.", url=where, hint="Look for some: llmstream servers"
        )
    info = with_version(target, info)
    models = info.models or list_models(target, info.kind)
    rows = [
        ("server", f"{info.kind} {info.version or ''}".strip()),
        ("url", where),
        ("shape", info.shape if run.settings.shape == "auto" else run.settings.shape),
        ("models", ", ".join(model.id for model in models) or "none listed"),
    ]
    if info.detail:
        rows.append(("note", info.detail))
    StandardOutput().write(as_columns((name, harmless(text, one_line=True)) for name, text in rows))


def _load() -> ProfileStore:
    store = load_store(config_file(os.environ))
    print_warnings(store.warnings)
    return store


def _done(message: str) -> None:
    StandardError().line(f"✓ {harmless(message, one_line=True)}", "ok")


def _set_key(store: ProfileStore, name: str, values: list[str], *, unset: bool, stdin: bool) -> None:
    """Keep a key in the private file. It never comes from an argument, which others can see."""
    from llmstream_cli.keys import keep_key

    store.get(name)
    if unset:
        keep_key(store.keys_file, name, None)
        _done(f"The key of {name} is removed from {store.keys_file}.")
        return
    if values:
        raise UsageError(
            "A key on the command line can be seen by others and stays in the shell's history.",
            hint=f"Leave it out to be asked for it, or: ... | llmstream profiles set {name} api_key --stdin",
        )
    if stdin:
        key = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    elif sys.stdin is not None and sys.stdin.isatty():
        key = str(typer.prompt(f"API key of {name}", hide_input=True, err=True)).strip()
    else:
        raise UsageError("There is no terminal to ask for the key.", hint="--stdin reads it from a pipe.")
    keep_key(store.keys_file, name, key)
    _done(f"The key of {name} is kept in {store.keys_file}, which only you can read.")
