"""The tables of ``docs/reliability.md``: every shape, every fault, each run against the simulated server.

``python -m tests.support.fault_table`` runs them all and writes the tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from llmstream_cli.outcome import Outcome
from llmstream_cli.render.console import StandardError, Style
from llmstream_cli.render.footer import print_ending
from llmstream_cli.request import Message, Request
from llmstream_cli.session import Plan, ask
from llmstream_cli.shapes import get_shape
from llmstream_cli.simulate.faults import apply_faults, parse_fault
from llmstream_cli.simulate.forms import FORMS, MODEL
from llmstream_cli.simulate.replies import reply_of_text
from llmstream_cli.simulate.server import SimulatedServer
from llmstream_cli.transport import Target, Timeouts
from tests.support.outcomes import SilentRenderer

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "reliability.md"
TEXT = "Grüße aus Köln: eins, zwei, drei, vier 🙂 fertig."
WORDS = len(TEXT.split())
AT_ONCE = 16
"""How many run at the same time: they mostly wait."""
PATIENT = Timeouts(first_token_s=60, idle_s=60)
BRIEF = Timeouts(first_token_s=1, idle_s=1)

ROWS: Mapping[str, Timeouts] = {
    **dict.fromkeys(
        (
            "html-page",
            "too-many-requests=1",
            "usage-null",
            "no-marker",
            "no-terminal-event",
            "duplicate-terminal-event",
            "cut-after-event=0",
            "cut-after-event=5",
            "cut-after-event=5 no-last-chunk",
            "cut-after-event=5 reset",
            "cut-after-byte=700",
            "cut-after-byte=700 no-last-chunk",
            "cut-after-byte=700 reset",
            "error-after-event=0",
            "error-after-event=5",
        ),
        PATIENT,
    ),
    **dict.fromkeys(
        ("loading", "stall-after-event=0", "stall-after-event=5", "delay-headers=20", "delay-first-token=20"),
        BRIEF,
    ),
    **dict.fromkeys(
        (
            "delay-headers=0.05",
            "delay-first-token=0.05",
            "delay-events=0.01",
            "keep-alives",
            "crlf",
            "no-space",
            "split-characters",
            "burst=4",
            "gzip",
            "split-bytes=1",
            "no-last-chunk",
            "reset",
            "crlf no-space keep-alives split-bytes=1 gzip",
        ),
        PATIENT,
    ),
}
"""Faults that act together, and how patient the client is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What came of one run. ``said``: the lines on stderr before the footer."""

    outcome: Outcome
    said: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.outcome.turn.first.text

    @property
    def kept(self) -> str:
        if self.text == TEXT:
            return "whole"
        return f"{len(self.text.split())}/{WORDS}" if self.text else "none"


class _Lines(StandardError):
    def __init__(self) -> None:
        super().__init__("never")
        self.lines: list[str] = []

    def line(self, text: str, style: Style = "plain") -> None:
        self.lines.append(text)


Cells = Mapping[tuple[str, str], Cell]
"""(row, shape) -> what came of it."""


def run_cell(row: str, name: str) -> Cell:
    shape = get_shape(name)
    reply = apply_faults(reply_of_text(TEXT, shape), [parse_fault(fault) for fault in row.split()])
    request = Request(messages=(Message(role="user", content="Hallo?"),), prompt=_prompt(name), model=MODEL)
    with SimulatedServer(reply) as server:
        plan = Plan(
            target=Target(base_url=server.base_url),
            timeouts=ROWS[row],
            shape=shape,
            request=request,
            retries=0,
        )
        outcome = ask(plan, SilentRenderer())
        lines = _Lines()
        print_ending(outcome, lines, footer=False, warnings=True)
        said = (line.replace(server.base_url, "http://server") for line in lines.lines)
        return Cell(outcome=outcome, said=tuple(said))


def run_all() -> Cells:
    places = [(row, name) for row in ROWS for name in FORMS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(places, pool.map(lambda place: run_cell(*place), places), strict=True))


def document(text: str, cells: Cells) -> str:
    """`text`, the document, with its tables as they should be."""
    for name, lines in (("endings", endings(cells)), ("words", words(cells))):
        start, end = f"<!-- {name}: generated -->\n", f"<!-- end of {name} -->\n"
        before, found_start, rest = text.partition(start)
        _, found_end, after = rest.partition(end)
        if not (found_start and found_end):
            raise ValueError(f"{DOCUMENT} has no place for the table {name!r}")
        text = "".join((before, start, *(f"{line}\n" for line in lines), end, after))
    return text


def endings(cells: Cells) -> Iterator[str]:
    """Fault x shape: the exit code, and how much of the text was kept."""
    yield _row(("fault", *FORMS))
    yield _row("---" for _ in range(len(FORMS) + 1))
    for row in ROWS:
        found = (cells[row, name] for name in FORMS)
        yield _row((f"`{row}`", *(f"{int(cell.outcome.exit_code())} {cell.kept}" for cell in found)))


def words(cells: Cells) -> Iterator[str]:
    """For each fault what is said on standard error, for one shape."""
    yield _row(("fault", "status", "what is said (openai-chat)"))
    yield _row("---" for _ in range(3))
    for row in ROWS:
        cell = cells[row, "openai-chat"]
        said = "<br>".join(line.replace("|", "\\|").replace("<", "&lt;") for line in cell.said)
        yield _row((f"`{row}`", cell.outcome.status.value, said or "nothing"))


def _prompt(name: str) -> str | None:
    return "Hallo?" if get_shape(name).takes == "prompt" else None


def _row(cells: Sequence[str] | Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text("utf-8"), run_all()), "utf-8")
