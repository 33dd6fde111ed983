"""``llmstream diagnose``: ask, or read a recording, and explain what became of each stop string."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llmstream_cli.cli.ask import Prompt, conversation, explainer, served, warner
from llmstream_cli.cli.inputs import gather_question
from llmstream_cli.cli.options import takes_flags
from llmstream_cli.cli.setup import Run, conclude, start
from llmstream_cli.diagnose import Evidence, Probe, Probed, diagnose, prompt_in, stops_in
from llmstream_cli.diagnose.rules.tokens import MARKER
from llmstream_cli.errors import ConfigError, UsageError
from llmstream_cli.events import Event, Json
from llmstream_cli.identity import ServerIdentity
from llmstream_cli.outcome import Outcome
from llmstream_cli.planning import configured_shape, make_plan, make_target
from llmstream_cli.request import merge
from llmstream_cli.settings import Flags, Settings
from llmstream_cli.shapes import SHAPES, shape_for_path

if TYPE_CHECKING:
    from llmstream_cli.render.waiting import WaitingLine
    from llmstream_cli.session import Plan

_TOKEN_IDS: Mapping[str, Mapping[str, Json]] = {
    "openai-chat": {"verbose": True, "logprobs": True, "top_logprobs": 1},
    "openai-completions": {"verbose": True, "logprobs": 1},
    "llamacpp": {"n_probs": 1},
}
"""What makes llama.cpp tell the id of every token and the settings it used."""

CaptureFile = Annotated[
    Path | None, typer.Option("--capture", metavar="FILE", help="Diagnose a recorded exchange, offline.")
]
Probes = Annotated[
    bool, typer.Option("--probes/--no-probes", help="Ask the server about its tokens, template and model.")
]


@dataclass(slots=True)
class _Watcher:
    """Renders nothing: the diagnosis is shown when the answer is over."""

    waiting: "WaitingLine"
    outcomes: list[Outcome] = field(default_factory=list)

    def raw(self, data: bytes) -> None:
        pass

    def event(self, event: Event) -> None:
        self.waiting.note(event)

    def finish(self, outcome: Outcome) -> None:
        self.waiting.stop()
        self.outcomes.append(outcome)


BlackBox = Annotated[
    bool, typer.Option("--probe", help="Ask up to 3 short questions more: are stop strings honoured at all?")
]


@takes_flags
def diagnose_command(
    flags: Flags,
    prompt: Prompt = None,
    capture: CaptureFile = None,
    probes: Probes = True,
    probe: BlackBox = False,
) -> int:
    """Ask, then explain what became of each stop sequence, and why.

    Examples:

      llmstream diagnose --base-url localhost:8080 --stop '\\nUser:' "Count to ten"

      llmstream diagnose --capture answer.jsonl
    """
    run = start(flags, needs_server=capture is None)
    if run.settings.format in ("jsonl", "raw"):
        raise UsageError("diagnose has the formats text and json.")
    if capture is not None:
        return _conclude(run, _recorded(run, capture), ())
    with served(replace(run.settings, enforce_stop=False), run.output) as settings:
        plan = _planned(run, settings, prompt or [])
        if settings.curl:
            from llmstream_cli.cli.curl import curl_command

            run.output.stdout.write(curl_command(plan) + "\n")
            return 0
        evidence, log = _asked(run, plan, probes=probes)
        if probe and evidence.outcome.failure is None:
            evidence, tried = _tried(run, plan, evidence)
            log += tried
    return _conclude(run, evidence, log)


def _conclude(run: Run, evidence: Evidence, probes: tuple[Probe, ...]) -> int:
    _show(run, evidence, probes)
    return conclude(evidence.outcome, replace(run.settings, footer=False, quiet=True), run.output)


def _show(run: Run, evidence: Evidence, probes: tuple[Probe, ...]) -> None:
    from llmstream_cli.render.diagnosis import diagnosis_json, diagnosis_screen

    diagnosis = diagnose(evidence)
    if run.settings.format == "json":
        run.output.stdout.write(diagnosis_json(diagnosis, probes))
    else:
        run.output.stdout.write(diagnosis_screen(diagnosis, probes, verbose=run.settings.verbose))


def _recorded(run: Run, file: Path) -> Evidence:
    from llmstream_cli.capture import read_capture
    from llmstream_cli.session import replay

    settings = run.settings
    capture = read_capture(file)
    for fault in capture.faults:
        run.output.stderr.line(f"⚠ {file}: {fault}", "warning")
    name = settings.shape if settings.shape in SHAPES else shape_for_path(capture.path, capture.body)
    if name is None:
        raise ConfigError(
            f"cannot tell the shape of {capture.path or 'this capture'}", hint="Give it with --shape."
        )
    shape = configured_shape(name, settings.stream)
    # A recording that the client broke off would be cut at the stop string again.
    uncut = replace(capture, end=None) if capture.end == "client-abort" else capture
    outcome = replay(uncut, shape, _Watcher(run.output.waiting))
    return Evidence(
        outcome=outcome,
        path=capture.path,
        body=capture.body,
        stops=settings.stop or stops_in(capture.body),
        server=outcome.server,
        shape_field=shape.stop_field,
        prompt_text=prompt_in(capture.body),
    )


def _planned(run: Run, settings: Settings, prompt: list[str]) -> "Plan":
    """The request that `ask` would send; nothing is cut on the client."""
    output = run.output
    question = gather_question(
        prompt, settings.files, warn=lambda text: output.stderr.line(f"⚠ {text}", "warning")
    )
    return make_plan(
        settings,
        make_target(settings, run.key()),
        conversation(settings, question),
        explain=explainer(settings, output),
        warn=warner(settings, output),
    )


def _asked(run: Run, plan: "Plan", *, probes: bool) -> tuple[Evidence, tuple[Probe, ...]]:
    from llmstream_cli.capture import CaptureWriter
    from llmstream_cli.session import ask

    kind = _kind(plan) if probes else None
    if kind == "llama.cpp":
        plan = _telling(plan)
    run.output.waiting.start()
    record = run.settings.record
    outcome = ask(
        plan,
        _Watcher(run.output.waiting),
        record=None if record is None else lambda: CaptureWriter(record, secrets=plan.target.secrets),
    )
    request = plan.http_request()
    evidence = Evidence(
        outcome=outcome,
        path=request.path,
        body=request.body,
        stops=_wanted(run.settings, request.body),
        server=ServerIdentity(kind=outcome.server.kind or kind, version=outcome.server.version),
        shape_field=plan.shape.stop_field,
        prompt_text=prompt_in(request.body),
    )
    return _probed(plan, evidence) if probes else (evidence, ())


def _wanted(settings: Settings, body: Mapping[str, Json]) -> tuple[str, ...]:
    """The stop strings asked for: by --stop, and by -o wherever it put them."""
    return tuple(dict.fromkeys((*settings.stop, *stops_in(body))))


def _kind(plan: "Plan") -> str | None:
    from llmstream_cli.servers import COMPATIBLE, UNKNOWN, identify

    info = identify(plan.target)
    return None if info is None or info.kind in (UNKNOWN, COMPATIBLE) else info.kind


def _telling(plan: "Plan") -> "Plan":
    """The request, with what makes llama.cpp tell more. With tools it refuses to tell probabilities."""
    extra = _TOKEN_IDS.get(plan.shape.name, {})
    if "tools" in plan.request.options:
        extra = {"verbose": True}
    return replace(plan, request=replace(plan.request, options=merge(extra, plan.request.options)))


def _probed(plan: "Plan", evidence: Evidence) -> tuple[Evidence, tuple[Probe, ...]]:
    from llmstream_cli.probes import gather

    markers = [found[0] for found in MARKER.finditer(evidence.text)]
    found, log = gather(
        plan.target,
        evidence.server.kind,
        body=evidence.body,
        texts=(*evidence.stops, *markers),
        ids=evidence.generated_ids,
    )
    return replace(evidence, probed=found if log else Probed()), log


def _tried(run: Run, plan: "Plan", evidence: Evidence) -> tuple[Evidence, tuple[Probe, ...]]:
    from llmstream_cli.trial import MOST_REQUESTS, TRIAL_TOKENS, try_stops

    if not run.settings.quiet:
        what = f"up to {MOST_REQUESTS} questions more, {TRIAL_TOKENS} tokens each"
        run.output.stderr.line(f"· --probe: {what}", "dim")
    result = try_stops(plan, evidence.field)
    return replace(evidence, probed=replace(evidence.probed, trials=result.trials)), result.log
