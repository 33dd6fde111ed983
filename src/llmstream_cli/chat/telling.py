"""The slash commands that tell something."""

import base64
import shutil
import subprocess

from llmstream_cli.chat.asking import plan_of
from llmstream_cli.chat.conversation import context_use, messages_to_send
from llmstream_cli.chat.state import Chat, LastAnswer
from llmstream_cli.errors import UsageError
from llmstream_cli.notices import notices

_CLIPBOARDS = (
    ("pbcopy",),
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("clip",),
)
_CLIPBOARD_LIMIT_S = 5.0


def show(chat: Chat, _argument: str) -> None:
    chat.say(chat.tools.show(chat.settings()).rstrip("\n"))
    chat.say(f"conversation  {chat.conversation.log.name}, {len(chat.conversation.said)} messages")


def usage(chat: Chat, _argument: str) -> None:
    settings, _, facts = chat.backend()
    facts.wait()
    messages = messages_to_send(chat.conversation.said, settings.system)
    use = context_use(messages, chat.counted, facts.context_tokens(settings.model))
    chat.say(f"context: {use.words()}")
    spent = chat.spent
    unknown = f"; {spent.unknown} not counted by the server" if spent.unknown else ""
    chat.say(
        f"this chat: {spent.answers} answers, {spent.prompt_tokens:,} in + {spent.completion_tokens:,} out"
        f" tokens{unknown}"
    )


def raw(chat: Chat, _argument: str) -> None:
    chat.say(_last(chat).raw.decode("utf-8", "replace"))


def curl(chat: Chat, _argument: str) -> None:
    settings, _, _ = chat.backend()
    said = chat.conversation.said
    asked = said[:-1] if said and said[-1].role == "assistant" else said
    if not asked:
        raise UsageError("Nothing has been asked yet.")
    messages = messages_to_send(asked, settings.system)
    chat.say(chat.tools.curl(plan_of(chat, messages)))


def copy(chat: Chat, _argument: str) -> None:
    answer = chat.conversation.last_answer
    if answer is None:
        raise UsageError("There is no answer to copy.")
    command = next((command for command in _CLIPBOARDS if shutil.which(command[0])), None)
    if command is not None and _piped_to(command, answer.text):
        chat.say(f"Copied with {command[0]}: {len(answer.text):,} characters.", "dim")
        return
    # OSC 52: the terminal itself puts it on the clipboard, over SSH too.
    chat.output.stdout.write_bytes(b"\x1b]52;c;%s\x07" % base64.b64encode(answer.text.encode()))
    chat.say(f"Handed to the terminal: {len(answer.text):,} characters.", "dim")


def why(chat: Chat, _argument: str) -> None:
    explain_ending(chat, _last(chat))


def explain_ending(chat: Chat, last: LastAnswer) -> None:
    """How the answer ended and what that means; what became of its stop strings, by `diagnose`."""
    from llmstream_cli.render.footer import footer_line

    chat.say(footer_line(last.outcome))
    finish = last.outcome.turn.first.finish
    if finish is not None:
        chat.say(f"The server's own word for it: {finish.raw_reason or 'none'}.")
    found = notices(last.outcome)
    for notice in found:
        chat.say(f"⚠ {notice.message}", "warning")
    stops = last.plan.request.sampling.stop
    # A text that was cut here is no evidence of what the server does at a stop string.
    if stops and last.outcome.local_stop is None:
        chat.say(_diagnosis(last).rstrip("\n"))
    elif not found:
        chat.say("Nothing is wrong with this answer as far as the stream tells.")


def _diagnosis(last: LastAnswer) -> str:
    from llmstream_cli.diagnose import Evidence, diagnose, prompt_in
    from llmstream_cli.render.diagnosis import diagnosis_screen

    request = last.plan.http_request()
    evidence = Evidence(
        outcome=last.outcome,
        path=request.path,
        body=request.body,
        stops=last.plan.request.sampling.stop,
        server=last.outcome.server,
        shape_field=last.plan.shape.stop_field,
        prompt_text=prompt_in(request.body),
    )
    return diagnosis_screen(diagnose(evidence), (), verbose=0)


def _last(chat: Chat) -> LastAnswer:
    if chat.last is None:
        raise UsageError("There is no answer yet.")
    return chat.last


def _piped_to(command: tuple[str, ...], text: str) -> bool:
    try:
        done = subprocess.run(
            command,
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_CLIPBOARD_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
