"""Read a line, do what it says, read again."""

import os
from collections.abc import Callable
from pathlib import Path

from llmstream_cli.chat import asking, commands
from llmstream_cli.chat.keyboard import interruptible
from llmstream_cli.chat.prompt import Prompt, open_prompt
from llmstream_cli.chat.state import Chat
from llmstream_cli.errors import ExitCode, LlmstreamError

_VI_EDITORS = frozenset({"vi", "vim", "nvim", "vim.tiny", "gvim"})


def converse(chat: Chat, first: str | None, typed_before: Path) -> int:
    """Talk until the person leaves. `first`: the first message, else it is asked for.

    `typed_before`: the private file with what was typed in other chats.
    """
    if first is not None:
        _do(chat, lambda: asking.ask(chat, first))
    prompt = open_prompt(
        typed_before, commands.candidates(chat), dumb=os.environ.get("TERM") == "dumb", vi=_wants_vi(chat)
    )
    while not chat.leaving:
        line = _next_line(chat, prompt)
        if line is None:
            break
        if line.strip():
            _do(chat, lambda line=line: _obey(chat, line))  # type: ignore[misc]
    return ExitCode.OK


def chat_once(chat: Chat, message: str) -> int:
    """One question where nobody can type another: the exit code of its answer."""
    outcome = asking.ask(chat, message)
    return outcome.exit_code(fail_on_truncation=chat.settings().fail_on_truncation)


def _next_line(chat: Chat, prompt: Prompt) -> str | None:
    """None to leave."""
    draft, chat.draft = chat.draft, ""
    chat.output.stdout.end_line()
    _do(chat, lambda: _look_around(chat))
    try:
        with interruptible(one_press_s=0):
            return prompt.read(draft)
    except EOFError:
        return None


def _look_around(chat: Chat) -> None:
    """Ask who the server is while the person types. One of our own begins with the first question."""
    facts = chat.facts()
    if facts is None and chat.settings().managed is None:
        try:
            _, _, facts = chat.backend()
        except LlmstreamError:
            # No key, for one: the question that follows will say so.
            return
    if facts is not None:
        facts.look()


def _obey(chat: Chat, line: str) -> None:
    command = commands.parse(line)
    if command is None:
        asking.ask(chat, commands.message_of(line))
        return
    name, argument = command
    commands.find(name).run(chat, argument)


def _do(chat: Chat, deed: Callable[[], object]) -> None:
    """Whatever goes wrong, the conversation goes on."""
    try:
        with interruptible():
            deed()
    except LlmstreamError as error:
        chat.output.waiting.stop()
        chat.complain(error)
    except KeyboardInterrupt:
        chat.output.waiting.stop()
        chat.say("■ Stopped by you.")


def _wants_vi(chat: Chat) -> bool:
    """As it is set, else as the person's editor has it."""
    keys = chat.settings().edit_keys
    if keys is not None:
        return keys == "vi"
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    return bool(editor.split()) and Path(editor.split()[0]).name in _VI_EDITORS
