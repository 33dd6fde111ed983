"""The slash commands that change what was said."""

from pathlib import Path

from llmstream_cli.chat import asking
from llmstream_cli.chat.conversation import Conversation
from llmstream_cli.chat.state import Chat
from llmstream_cli.errors import ConfigError, UsageError
from llmstream_cli.history import Summary, as_json, as_markdown

_LISTED = 10


def new(chat: Chat, _argument: str) -> None:
    _switch(chat, Conversation(chat.shelf.new()))
    chat.say("A new conversation.", "dim")


def clear(chat: Chat, _argument: str) -> None:
    chat.conversation.clear()
    chat.counted = None
    chat.say("Everything said so far is forgotten.", "dim")


def regenerate(chat: Chat, _argument: str) -> None:
    chat.counted = None
    if not chat.conversation.take_back_answer():
        raise UsageError("Nothing has been asked yet.")
    asking.answer(chat)


def go_on(chat: Chat, _argument: str) -> None:
    said = chat.conversation.said
    if not said:
        raise UsageError("There is no answer to continue.")
    if said[-1].role == "user":
        asking.answer(chat)
    else:
        asking.go_on(chat)


def undo(chat: Chat, _argument: str) -> None:
    question = _take_back(chat)
    chat.say(f"Taken back: {_beginning(question)}", "dim")


def edit(chat: Chat, _argument: str) -> None:
    question = _take_back(chat)
    # As it was typed: one slash alone would make a command of it.
    chat.draft = f"/{question}" if question.startswith("/") else question


def drop(chat: Chat, argument: str) -> None:
    count = int(argument) if argument.isdecimal() else 0
    if not 0 < count <= len(chat.conversation.said):
        raise UsageError(f"/drop N forgets the oldest N of the {len(chat.conversation.said)} messages.")
    chat.conversation.forget(count)
    chat.counted = None
    chat.say(f"The oldest {count} messages are forgotten.", "dim")


def attach(chat: Chat, argument: str) -> None:
    if not argument:
        raise UsageError("/file PATH puts a text file before the next message.")
    text = chat.tools.read_file(argument)
    chat.attached.append(f"--- {argument} ---\n{text}")
    chat.say(f"{argument}: {len(text):,} characters go before the next message.", "dim")


def save(chat: Chat, argument: str) -> None:
    if argument:
        chat.conversation.log.rename(chat.shelf.path(argument))
    name = chat.conversation.log.name
    chat.say(f"Saved as it goes; llmstream chat --session {name!r} takes it up again.", "dim")


def load(chat: Chat, argument: str) -> None:
    if not argument:
        _list(chat, list(chat.shelf.summaries())[:_LISTED], "There are no conversations yet.")
    elif not chat.shelf.exists(argument):
        _list(
            chat,
            list(chat.shelf.search(argument))[:_LISTED],
            f"No conversation is called or has {argument!r}.",
        )
    elif argument != chat.conversation.log.name:
        resume(chat, argument)


def resume(chat: Chat, name: str) -> None:
    """Take up the saved conversation called `name`. ConfigError if another program has it open."""
    log = chat.shelf.log(name)
    log.open()
    _switch(chat, Conversation(log, chat.shelf.load(name)))
    chat.say(f"{name}: {len(chat.conversation.said)} messages.", "dim")
    last = chat.conversation.last_answer
    if last is not None and last.cut is not None:
        chat.say(f"The last answer is cut ({last.cut.words}): /continue goes on with it.", "dim")


def export(chat: Chat, argument: str) -> None:
    name = chat.conversation.log.name
    path = Path(argument or f"{name}.md").expanduser()
    write = as_json if path.suffix == ".json" else as_markdown
    try:
        # "x": what is there already is somebody's.
        with path.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(write(chat.conversation.dialogue, name))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    chat.say(f"Written to {path}.", "dim")


def _take_back(chat: Chat) -> str:
    question = chat.conversation.undo()
    if question is None:
        raise UsageError("Nothing has been asked yet.")
    chat.counted = None
    return question


def _switch(chat: Chat, conversation: Conversation) -> None:
    chat.conversation.log.close()
    chat.conversation = conversation
    chat.counted = chat.last = None
    system = conversation.dialogue.system
    if system is not None and "system" not in chat.given:
        chat.change({**chat.given, "system": system})


def _list(chat: Chat, found: list[Summary], nothing: str) -> None:
    for summary in found:
        chat.say(f"{summary.name}  {summary.messages:>4} messages  {summary.title}")
    if not found:
        chat.say(nothing)


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:60]} …"
