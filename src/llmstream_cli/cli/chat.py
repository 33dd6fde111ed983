"""``llmstream chat``: talk, see every answer live, take up old conversations."""

import os
import sys
from typing import Annotated

import typer

from llmstream_cli.chat import Chat, Tools, chat_once, converse
from llmstream_cli.chat.conversation import Conversation
from llmstream_cli.cli.curl import curl_command
from llmstream_cli.cli.embedded import embedded_server
from llmstream_cli.cli.inputs import gather_question, normalise, read_text_file
from llmstream_cli.cli.options import takes_flags
from llmstream_cli.cli.setup import Run, start
from llmstream_cli.cli.shown import as_columns, origin_rows
from llmstream_cli.errors import UsageError
from llmstream_cli.history import Shelf
from llmstream_cli.paths import state_dir
from llmstream_cli.render import open_output
from llmstream_cli.settings import Flags
from llmstream_cli.urls import redact_url

Prompt = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PROMPT]...", help="The first message; piped text comes before it."),
]
Continue = Annotated[bool, typer.Option("-c", "--continue", help="Take up the last conversation.")]
Session = Annotated[
    str | None,
    typer.Option(
        "--session", metavar="NAME", help="Take up the conversation NAME, or begin one of that name."
    ),
]


@takes_flags
def chat(flags: Flags, prompt: Prompt = None, continue_: Continue = False, session: Session = None) -> int:
    """Talk with a model; every conversation is saved as it goes.

    Examples:

      llmstream chat -p local

      git diff | llmstream chat "What is wrong with this change?"

      llmstream chat --continue
    """
    run = start(flags)
    if run.settings.curl:
        raise UsageError(
            "--curl shows one request: /curl does in a chat, llmstream ask --curl outside of one."
        )
    first = _first_message(run, prompt or [])
    talk = _new_chat(run, flags)
    with talk.open():
        _choose_conversation(talk, continue_=continue_, session=session)
        if not _can_type(run):
            if first is None:
                raise UsageError("There is nobody to chat with: this is not a terminal.")
            return chat_once(talk, first)
        _greet(talk)
        return converse(talk, first, state_dir() / "typed")


def _first_message(run: Run, prompt: list[str]) -> str | None:
    if not prompt and not run.settings.files and (sys.stdin is None or sys.stdin.isatty()):
        return None
    return gather_question(
        prompt, run.settings.files, warn=lambda text: run.output.stderr.line(f"⚠ {text}", "warning")
    )


def _new_chat(run: Run, flags: Flags) -> Chat:
    settings = run.settings

    def warn(text: str) -> None:
        new.say(f"⚠ {text}", "warning")

    shelf = Shelf(state_dir() / "conversations")
    given = {
        name: normalise(value) if isinstance(value, str) else value for name, value in flags.given.items()
    }
    new = Chat(
        store=run.store,
        tools=Tools(
            serve=embedded_server,
            read_file=lambda path: read_text_file(path, warn),
            curl=curl_command,
            show=lambda now: as_columns(origin_rows(now, run.store)),
        ),
        shelf=shelf,
        conversation=Conversation(shelf.new()),
        given=given,
        new_output=lambda: open_output(
            color=settings.color, plain=settings.plain, term=os.environ.get("TERM"), env=os.environ
        ),
        output=run.output,
    )
    return new


def _choose_conversation(chat: Chat, *, continue_: bool, session: str | None) -> None:
    from llmstream_cli.chat.talking import resume

    name = session or (chat.shelf.last() if continue_ else None)
    if name is None:
        if continue_:
            chat.say("There is no conversation yet: this is the first.", "dim")
    elif chat.shelf.exists(name):
        resume(chat, name)
    else:
        chat.conversation = Conversation(chat.shelf.log(name))


def _can_type(run: Run) -> bool:
    """A terminal to write on is a terminal to type at, whatever stdin is."""
    return run.output.stdout.is_terminal


def _greet(chat: Chat) -> None:
    settings = chat.settings()
    if not settings.quiet:
        where = settings.profile or redact_url(settings.base_url or "")
        who = " @ ".join(word for word in (settings.model, where) if word)
        chat.say(f"llmstream chat · {who} · /help, Ctrl-D leaves", "dim")
