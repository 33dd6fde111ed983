"""The table of slash commands: one line each gives the help, the completion and what is done."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from llmstream_cli.chat import adjusting, talking, telling
from llmstream_cli.chat.completing import Candidates, paths
from llmstream_cli.chat.state import Chat
from llmstream_cli.errors import UsageError

Words = Callable[[Chat, str], Iterable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """``takes``: its argument in the help. ``words``: what Tab offers for it."""

    name: str
    help: str
    run: Callable[[Chat, str], None]
    aliases: tuple[str, ...] = ()
    takes: str = ""
    words: Words = lambda _chat, _typed: ()


def parse(line: str) -> tuple[str, str] | None:
    """Name and argument of a slash command; None for a message."""
    if not line.startswith("/") or line.startswith("//"):
        return None
    name, _, argument = line[1:].partition(" ")
    return name.strip(), argument.strip()


def message_of(line: str) -> str:
    """What is sent: ``//text`` and `` /text`` are messages that begin with a slash."""
    return line[1:] if line.startswith(("//", " /")) else line


def find(name: str) -> Command:
    """By name or alias. UsageError, with the nearest one, if there is none."""
    for command in COMMANDS:
        if name == command.name or name in command.aliases:
            return command
    near = get_close_matches(name, [command.name for command in COMMANDS], 1)
    meant = f"; did you mean /{near[0]}?" if near else "."
    raise UsageError(
        f"There is no command /{name}{meant}",
        hint=f"/help lists them. A message that starts with a slash: //{name}",
    )


def candidates(chat: Chat) -> Candidates:
    """What Tab offers in this chat."""

    def words(name: str, typed: str) -> Iterable[str]:
        try:
            return find(name).words(chat, typed)
        except UsageError:
            return ()

    return Candidates(commands=tuple(command.name for command in COMMANDS), words=words)


def _help(chat: Chat, _argument: str) -> None:
    for command in COMMANDS:
        names = " ".join(f"/{name}" for name in (command.name, *command.aliases))
        chat.say(f"  {f'{names} {command.takes}'.strip():34} {command.help}")
    chat.say(
        '  Enter sends; Alt-Enter or Ctrl-J begins a new line, a block between """ has many.\n'
        "  Ctrl-C stops an answer and keeps it; Ctrl-R searches what was typed; Ctrl-X Ctrl-E opens the\n"
        "  editor; Ctrl-D leaves. //text sends a message that starts with a slash."
    )


def _leave(chat: Chat, _argument: str) -> None:
    chat.leaving = True


def _models(chat: Chat, _typed: str) -> Iterator[str]:
    facts = chat.facts()
    return (info.id for info in facts.models) if facts else iter(())


def _conversations(chat: Chat, _typed: str) -> Iterator[str]:
    return (summary.name for summary in chat.shelf.summaries())


def _files(_chat: Chat, typed: str) -> list[str]:
    return paths(typed)


COMMANDS = (
    Command(name="help", aliases=("?",), help="this list", run=_help),
    Command(name="exit", aliases=("quit", "bye"), help="leave; the conversation is saved", run=_leave),
    Command(name="clear", help="forget what was said", run=talking.clear),
    Command(name="new", help="begin another conversation", run=talking.new),
    Command(
        name="model",
        takes="[NAME]",
        help="use another model, or list them",
        run=adjusting.model,
        words=_models,
    ),
    Command(
        name="profile",
        takes="[NAME]",
        help="go on with another profile, or list them",
        run=adjusting.profile,
        words=lambda chat, _typed: chat.store.profiles,
    ),
    Command(name="system", takes="[TEXT|-]", help="the system prompt; - for none", run=adjusting.system),
    Command(
        name="set",
        takes="NAME [VALUE]",
        help="a setting, e.g. temperature 0; no value takes it back",
        run=adjusting.set_,
        words=lambda _chat, _typed: adjusting.SETTABLE,
    ),
    Command(name="show", help="the settings in force and where they come from", run=telling.show),
    Command(
        name="stop",
        takes="add S|list|clear",
        help="stop sequences",
        run=adjusting.stop,
        words=lambda _chat, _typed: ("add", "list", "clear"),
    ),
    Command(name="regen", aliases=("retry",), help="answer the last question again", run=talking.regenerate),
    Command(name="continue", help="go on with a cut answer", run=talking.go_on),
    Command(name="undo", help="take back the last question and its answer", run=talking.undo),
    Command(name="edit", help="change the last question and ask again", run=talking.edit),
    Command(name="drop", takes="N", help="forget the oldest N messages", run=talking.drop),
    Command(
        name="file",
        takes="PATH",
        help="put a text file before the next message",
        run=talking.attach,
        words=_files,
    ),
    Command(name="usage", aliases=("tokens",), help="tokens spent, and of the context", run=telling.usage),
    Command(name="raw", help="the bytes of the last answer as they came", run=telling.raw),
    Command(name="curl", help="the last request as a curl command", run=telling.curl),
    Command(name="save", takes="[NAME]", help="give the conversation a name", run=talking.save),
    Command(
        name="load",
        takes="[NAME|WORDS]",
        help="take up another conversation; list or search them",
        run=talking.load,
        words=_conversations,
    ),
    Command(
        name="export",
        takes="[FILE]",
        help="write it as Markdown, or JSON to a .json file",
        run=talking.export,
        words=_files,
    ),
    Command(name="copy", help="the last answer to the clipboard", run=telling.copy),
    Command(name="why", help="explain how the last answer ended", run=telling.why),
)
