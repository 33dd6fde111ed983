"""Every shape, every fault: what the document says is what happens, and nothing ends as what it is not."""

import pytest

from llmstream_cli.events import EndStatus
from llmstream_cli.simulate.faults import FAULTS
from llmstream_cli.simulate.forms import FORMS
from tests.support.fault_table import DOCUMENT, ROWS, TEXT, Cell, Cells, document, run_all

HARMLESS = (
    "usage-null",
    "duplicate-terminal-event",
    "keep-alives",
    "crlf",
    "no-space",
    "split-characters",
    "burst",
    "gzip",
    "split-bytes",
    "no-last-chunk",
    "reset",
    "delay-headers",
    "delay-first-token",
    "delay-events",
)
"""After them the whole answer is there, unless they act with another or outlast a time-out."""
ENDS = {
    "html-page": (EndStatus.INCOMPLETE, 8),
    "too-many-requests": (EndStatus.ERROR, 4),
    "loading": (EndStatus.TIMEOUT, 7),
    "no-terminal-event": (EndStatus.INCOMPLETE, 8),
    "cut-after-event": (EndStatus.INCOMPLETE, 8),
    "cut-after-byte": (EndStatus.INCOMPLETE, 8),
    "error-after-event": (EndStatus.ERROR, 9),
    "stall-after-event": (EndStatus.TIMEOUT, 7),
}
TOO_LONG = ("delay-headers=20", "delay-first-token=20")


@pytest.fixture(scope="module")
def cells() -> Cells:
    return run_all()


def ending(cell: Cell) -> tuple[EndStatus, int]:
    return cell.outcome.status, int(cell.outcome.exit_code())


def test_the_document_says_what_happens(cells: Cells) -> None:
    text = DOCUMENT.read_text("utf-8")
    assert text == document(text, cells), "python -m tests.support.fault_table writes it anew"


def test_every_fault_is_in_the_table() -> None:
    assert {fault.partition("=")[0] for row in ROWS for fault in row.split()} == set(FAULTS)


def test_what_is_kept_is_the_beginning_of_what_was_sent(cells: Cells) -> None:
    assert [place for place, cell in cells.items() if not TEXT.startswith(cell.text)] == []


@pytest.mark.parametrize("row", ROWS)
def test_no_answer_ends_as_what_it_is_not(cells: Cells, row: str) -> None:
    first = row.split()[0].partition("=")[0]
    for name in FORMS:
        cell = cells[row, name]
        if row in TOO_LONG:
            assert ending(cell) == (EndStatus.TIMEOUT, 7), name
        elif first == "no-marker":
            # A finish reason came; only Anthropic's API has an event that alone proves the end.
            expected = (EndStatus.INCOMPLETE, 8) if name == "anthropic" else (EndStatus.COMPLETE, 0)
            assert (ending(cell), cell.text) == (expected, TEXT), name
        elif first in HARMLESS:
            assert (ending(cell), cell.text) == ((EndStatus.COMPLETE, 0), TEXT), name
        else:
            assert ending(cell) == ENDS[first], name


def test_nobody_is_left_without_a_word(cells: Cells) -> None:
    silent = [
        place
        for place, cell in cells.items()
        if cell.outcome.status is not EndStatus.COMPLETE and not cell.said
    ]
    assert silent == []
