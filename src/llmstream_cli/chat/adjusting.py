"""The slash commands that change the settings of what follows."""

from llmstream_cli.chat.state import Chat
from llmstream_cli.errors import UsageError
from llmstream_cli.kinds import suggest
from llmstream_cli.notices import quoted
from llmstream_cli.spec_table import SPECS
from llmstream_cli.urls import redact_url

_A_SERVERS = ("base_url", "shape", "model", "options", "headers", "api_key_env", "api_key_cmd")
"""Flags that were meant for the profile before: another one comes with its own."""
_FIXED = frozenset({"files", "curl", "profile", "model", "system", "record"})
SETTABLE = tuple(name for name, spec in SPECS.items() if spec.flags and name not in _FIXED)


def model(chat: Chat, argument: str) -> None:
    if argument:
        chat.change({**chat.given, "model": argument})
        return
    _, _, facts = chat.backend()
    facts.wait()
    chat.say(f"model: {chat.settings().model or 'the only one, or the server chooses'}")
    for info in facts.models:
        chat.say(f"  {info.id}")


def profile(chat: Chat, argument: str) -> None:
    if argument:
        kept = {name: value for name, value in chat.given.items() if name not in _A_SERVERS}
        chat.change({**kept, "profile": argument})
        return
    chat.say(f"profile: {chat.settings().profile or 'none'}")
    for name in chat.store.profiles:
        chat.say(f"  {name}")


def system(chat: Chat, argument: str) -> None:
    if argument:
        text = None if argument in ("-", "none", '""') else argument
        chat.change({**chat.given, "system": text or ""})
    chat.say(f"system prompt: {chat.settings().system or 'none'}")


def set_(chat: Chat, argument: str) -> None:
    name, _, value = argument.partition(" ")
    name, value = name.replace("-", "_").lstrip("_"), value.strip()
    if name not in SETTABLE:
        raise UsageError(
            f"There is no setting {name!r} to set{suggest(name, SETTABLE)}.",
            hint="For example: /set temperature 0, /set max_tokens 200, /set options top_k=40; "
            "/set NAME alone takes it back.",
        )
    given = {key: old for key, old in chat.given.items() if key != name}
    if value:
        given[name] = (value,) if SPECS[name].kind.many else value
    chat.change(given)
    chat.say(f"{name} = {_shown(name, getattr(chat.settings(), SPECS[name].into or name))}", "dim")


def stop(chat: Chat, argument: str) -> None:
    deed, _, text = argument.partition(" ")
    match deed:
        case "add" if text:
            kept = chat.given.get("stop", ())
            chat.change({**chat.given, "stop": (*(kept if isinstance(kept, tuple) else ()), text)})
        case "clear":
            rest = {key: value for key, value in chat.given.items() if key not in ("stop", "stop_raw")}
            # An empty one drops those of the profile too.
            chat.change({**rest, "stop": ("",)})
        case "" | "list":
            pass
        case _:
            raise UsageError(r"/stop add S, /stop list or /stop clear; \n in S is a line feed.")
    settings = chat.settings()
    shown = ", ".join(map(quoted, settings.stop)) or "none"
    chat.say(f"stop sequences: {shown} ({settings.stop_origin})")


def _shown(name: str, value: object) -> object:
    """Without secrets."""
    if isinstance(value, str) and name == "base_url":
        return redact_url(value)
    return "***" if SPECS[name].kind.private and name != "base_url" else value
