"""One answer in the chat: plan it, stream it, save it as it comes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from llmstream_cli.capture import CaptureWriter
from llmstream_cli.chat.conversation import (
    CONTINUE,
    Conversation,
    context_use,
    messages_to_send,
    overflow_warning,
)
from llmstream_cli.chat.keyboard import silent_keyboard
from llmstream_cli.chat.state import Chat, LastAnswer
from llmstream_cli.events import Event, Json, TextDelta
from llmstream_cli.outcome import Outcome
from llmstream_cli.planning import make_plan
from llmstream_cli.render import Renderer, choose_renderer
from llmstream_cli.request import Message, merge
from llmstream_cli.session import Plan
from llmstream_cli.session import ask as ask_server
from llmstream_cli.settings import Settings

if TYPE_CHECKING:
    from llmstream_cli.transport import WaitNotice

_RAW_LIMIT = 1 << 20
_TAKE_UP_SHAPES = frozenset({"llamacpp", "openai-completions", "tgi", "ollama-chat", "ollama-generate"})
"""Shapes whose servers go on with an assistant's message that comes last."""
_TAKE_UP_KINDS: Mapping[str, Mapping[str, Json]] = {
    "llama.cpp": {},
    "vllm": {"continue_final_message": True, "add_generation_prompt": False},
}
"""Servers of openai-chat that do so too -> the fields that they want for it."""
_MACHINE_FORMATS = frozenset({"json", "jsonl", "raw"})


class SavingRenderer:
    """Hands on what comes to `renderer`, keeps the text in the conversation and the bytes for ``/raw``."""

    def __init__(self, renderer: Renderer, conversation: Conversation) -> None:
        self._renderer = renderer
        self._conversation = conversation
        self._kept = bytearray()

    @property
    def kept(self) -> bytes:
        return bytes(self._kept)

    def raw(self, data: bytes) -> None:
        self._kept += data[: _RAW_LIMIT - len(self._kept)]
        self._renderer.raw(data)

    def event(self, event: Event) -> None:
        # First: what was shown must not be lost, whatever happens in between.
        match event:
            case TextDelta(choice=0):
                self._conversation.piece(event.text)
            case _:
                pass
        self._renderer.event(event)

    def finish(self, outcome: Outcome) -> None:
        self._renderer.finish(outcome)


def ask(chat: Chat, text: str) -> Outcome:
    """Put `text`, with the attached files before it, and stream the answer."""
    system = chat.settings().system
    if system != chat.conversation.dialogue.system:
        chat.conversation.set_system(system)
    chat.conversation.ask("\n\n".join([*chat.attached, text]))
    chat.attached.clear()
    return answer(chat)


def answer(chat: Chat) -> Outcome:
    """Answer the conversation as it stands."""
    settings, _, _ = chat.backend()
    messages = messages_to_send(chat.conversation.said, settings.system)
    return _run(chat, plan_of(chat, messages), messages, before="")


def go_on(chat: Chat) -> Outcome:
    """Go on with the last answer: in its own message where the server can, else by asking for the rest."""
    settings, _, facts = chat.backend()
    facts.wait()
    plan = plan_of(chat, messages_to_send(chat.conversation.said, settings.system, continuing=True))
    options = _take_up_options(plan.shape.name, facts.kind)
    if options is None:
        chat.conversation.ask(CONTINUE)
        return answer(chat)
    messages = plan.request.messages
    before = chat.conversation.resume()
    plan = replace(plan, request=replace(plan.request, options=merge(plan.request.options, options)))
    return _run(chat, plan, messages, before=before)


def plan_of(chat: Chat, messages: tuple[Message, ...]) -> Plan:
    """The request for `messages`, by the settings in force."""
    settings, target, _ = chat.backend()

    def explain(text: str) -> None:
        if settings.verbose:
            chat.say(f"· {text}", "dim")

    def warn(text: str) -> None:
        if not settings.quiet:
            chat.say(f"⚠ {text}", "warning")

    return make_plan(settings, target, messages, explain=explain, warn=warn)


def _take_up_options(shape: str, kind: str | None) -> Mapping[str, Json] | None:
    """The fields with which the server takes up the last answer; None if it cannot."""
    if shape in _TAKE_UP_SHAPES:
        return {}
    return _TAKE_UP_KINDS.get(kind or "") if shape == "openai-chat" else None


def _run(chat: Chat, plan: Plan, messages: tuple[Message, ...], before: str) -> Outcome:
    settings, _, facts = chat.backend()
    _warn_of_overflow(chat, messages, facts.context_tokens(plan.request.model))
    chat.output = output = chat.new_output()
    renderer = SavingRenderer(choose_renderer(output, settings.format, settings.reasoning), chat.conversation)
    if settings.format not in ("jsonl", "raw"):
        output.waiting.start()

    def on_wait(notice: "WaitNotice") -> None:
        if output.waiting.live:
            output.waiting.say(notice.reason)
        elif not settings.quiet:
            chat.say(f"⚠ {notice.reason}: waiting {notice.seconds:g} s", "warning")

    with silent_keyboard():
        outcome = ask_server(plan, renderer, record=_recording(settings, plan), on_wait=on_wait)
    output.waiting.stop()
    chat.conversation.answered(outcome, before)
    chat.last = LastAnswer(plan=plan, outcome=outcome, raw=renderer.kept)
    _count(chat, outcome, messages)
    print_outcome(chat, outcome, settings)
    return outcome


def _recording(settings: Settings, plan: Plan) -> Callable[[], CaptureWriter] | None:
    """With ``--record`` the file holds the last exchange of the chat."""
    record = settings.record
    return None if record is None else lambda: CaptureWriter(Path(record), secrets=plan.target.secrets)


def print_outcome(chat: Chat, outcome: Outcome, settings: Settings) -> None:
    """How the answer ended: warnings and the footer."""
    from llmstream_cli.render.footer import print_ending

    machine = settings.format in _MACHINE_FORMATS
    footer = settings.footer if settings.footer is not None else not (settings.quiet or machine)
    print_ending(
        outcome, chat.output.stderr, footer=footer, warnings=not settings.quiet, verbose=settings.verbose
    )
    if outcome.turn.truncated and outcome.turn.first.text and not settings.quiet:
        chat.say("  /continue goes on with this answer.", "dim")


def _warn_of_overflow(chat: Chat, messages: tuple[Message, ...], limit: int | None) -> None:
    use = context_use(messages, chat.counted, limit)
    if use.overflows:
        chat.say(f"⚠ {overflow_warning(use, chat.conversation.said)}", "warning")


def _count(chat: Chat, outcome: Outcome, messages: tuple[Message, ...]) -> None:
    usage = outcome.turn.usage
    chat.spent.add(usage)
    chat.counted = None
    if usage is not None and usage.prompt_tokens is not None:
        answered = bool(outcome.turn.first.text) and messages[-1].role == "user"
        chat.counted = len(messages) + answered, usage.prompt_tokens + (usage.completion_tokens or 0)
