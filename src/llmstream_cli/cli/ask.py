"""``llmstream [ask] PROMPT``: one question, one streamed answer."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llmstream_cli.capture import CaptureWriter
from llmstream_cli.cli.inputs import gather_question, normalise
from llmstream_cli.cli.options import takes_flags
from llmstream_cli.cli.setup import conclude, start
from llmstream_cli.planning import Explain, make_plan, make_target
from llmstream_cli.render import Output, choose_renderer
from llmstream_cli.render.sanitize import harmless
from llmstream_cli.request import Message
from llmstream_cli.session import Plan
from llmstream_cli.session import ask as ask_server
from llmstream_cli.settings import Flags, Settings

if TYPE_CHECKING:
    from llmstream_cli.transport import WaitNotice

Prompt = Annotated[
    list[str] | None, typer.Argument(metavar="[PROMPT]...", help="The question; piped text comes before it.")
]


@takes_flags
def ask(flags: Flags, prompt: Prompt = None) -> int:
    """Ask one question and stream the answer.

    Examples:

      llmstream "why is the sky blue?"

      git diff | llmstream -p local "summarise this change"

      llmstream --base-url localhost:8080 --stop '\\nUser:' -n 200 "..."
    """
    run = start(flags)
    output = run.output
    question = gather_question(
        prompt or [], run.settings.files, warn=lambda text: output.stderr.line(f"⚠ {text}", "warning")
    )
    with served(run.settings, output) as settings:
        target = make_target(settings, run.key())
        plan = make_plan(
            settings,
            target,
            conversation(settings, question),
            explain=explainer(settings, output),
            warn=warner(settings, output),
        )
        if settings.curl:
            from llmstream_cli.cli.curl import curl_command

            output.stdout.write(curl_command(plan) + "\n")
            return 0
        return run_plan(plan, settings, output)


def conversation(settings: Settings, question: str) -> tuple[Message, ...]:
    """The system message, if any, and the question."""
    system = (Message(role="system", content=normalise(settings.system)),) if settings.system else ()
    return (*system, Message(role="user", content=question))


def explainer(settings: Settings, output: Output) -> Explain:
    """What ``-v`` shows: a line for each decision."""

    def explain(text: str) -> None:
        if settings.verbose:
            output.stderr.line(f"· {harmless(text)}", "dim")

    return explain


def warner(settings: Settings, output: Output) -> Explain:
    """Warnings before the request is sent."""

    def warn(text: str) -> None:
        if not settings.quiet:
            output.stderr.line(f"⚠ {harmless(text, one_line=True)}", "warning")

    return warn


def run_plan(plan: Plan, settings: Settings, output: Output) -> int:
    """Stream one answer to the chosen renderer, print its ending, return the exit code."""
    renderer = choose_renderer(output, settings.format, settings.reasoning)
    if settings.format not in ("jsonl", "raw"):
        output.waiting.start()

    def on_wait(notice: "WaitNotice") -> None:
        if output.waiting.live:
            output.waiting.say(notice.reason)
        elif not settings.quiet:
            output.stderr.line(f"⚠ {notice.reason}: waiting {notice.seconds:g} s", "warning")

    record = settings.record
    with _quiet_while_painted(output), output.stdout.holding():
        outcome = ask_server(
            plan,
            renderer,
            record=None
            if record is None
            else lambda: CaptureWriter(Path(record), secrets=plan.target.secrets),
            on_wait=on_wait,
            # --format json writes at the end only; whether anybody still reads matters to it as well.
            wanted=output.stdout.has_reader,
            before_wait=output.stdout.flush,
        )
    output.waiting.stop()
    return conclude(outcome, settings, output)


def _quiet_while_painted(output: Output) -> AbstractContextManager[None]:
    """An Enter that is echoed while the open block is painted would move it: echo is off for that long."""
    if output.painting is None:
        return nullcontext()
    from llmstream_cli.chat.keyboard import silent_keyboard

    return silent_keyboard()


def served(settings: Settings, output: Output) -> AbstractContextManager[Settings]:
    """The settings as they are, or with the address of the embedded server while it runs."""
    if settings.managed is None or settings.curl:
        return nullcontext(settings)
    from llmstream_cli.cli.embedded import embedded_server

    return embedded_server(settings, output)
