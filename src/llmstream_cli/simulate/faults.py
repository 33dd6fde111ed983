"""What can go wrong, one entry each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from llmstream_cli.errors import UsageError
from llmstream_cli.simulate import changes
from llmstream_cli.simulate.replies import Reply

LONGEST_S = 3600.0
_LARGEST = 10**9
Apply = Callable[[Reply, float], Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``takes``: the meaning of the number behind ``=``, which `apply` gets; None for a fault without one."""

    name: str
    help: str
    apply: Apply
    takes: Literal["events", "bytes", "seconds"] | None = None
    least: int = 0

    @property
    def usage(self) -> str:
        return f"{self.name}={self.takes.upper()}" if self.takes else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    fault: Fault
    value: float = 0.0


def parse_fault(text: str) -> Chosen:
    """``name`` or ``name=number``; UsageError for an unknown name or a number that makes no sense."""
    name, mark, given = text.partition("=")
    fault = FAULTS.get(name)
    if fault is None:
        raise UsageError(f"There is no fault {name!r}.", hint="llmstream simulate --list names them all.")
    if fault.takes is None:
        if mark:
            raise UsageError(f"The fault {name} takes no number.")
        return Chosen(fault=fault)
    return Chosen(fault=fault, value=_number(fault, given))


def apply_faults(reply: Reply, chosen: Sequence[Chosen]) -> Reply:
    """All of them, in the order of the table: what changes events comes before what changes bytes."""
    order = list(FAULTS)
    for one in sorted(chosen, key=lambda one: order.index(one.fault.name)):
        reply = one.fault.apply(reply, one.value)
    return reply


def _number(fault: Fault, given: str) -> float:
    try:
        value = float(given) if fault.takes == "seconds" else int(given)
    except ValueError:
        value = -1
    most = LONGEST_S if fault.takes == "seconds" else _LARGEST
    if not fault.least <= value <= most:
        raise UsageError(f"{fault.usage} wants a number from {fault.least} to {most:g}, not {given!r}.")
    return value


_TABLE = (
    Fault(
        name="html-page", help="an HTML page with status 200 in place of the stream", apply=changes.html_page
    ),
    Fault(
        name="too-many-requests",
        help="status 429 with a Retry-After of so many seconds",
        apply=changes.too_many_requests,
        takes="seconds",
    ),
    Fault(name="loading", help="status 503 while the model is loaded", apply=changes.loading),
    Fault(name="usage-null", help="every token count is null", apply=changes.usage_null),
    Fault(name="no-marker", help="no [DONE], or what this API has in its place", apply=changes.no_marker),
    Fault(name="no-terminal-event", help="no finish reason and no marker", apply=changes.no_terminal),
    Fault(
        name="duplicate-terminal-event",
        help="finish reason and marker come twice",
        apply=changes.twice_terminal,
    ),
    Fault(
        name="cut-after-event",
        help="the body ends after N events, as if it were whole; see no-last-chunk and reset",
        apply=changes.cut_after_event,
        takes="events",
    ),
    Fault(
        name="error-after-event",
        help="an error in the form of this API after N events",
        apply=changes.error_after_event,
        takes="events",
    ),
    Fault(
        name="stall-after-event",
        help="silence after N events, until the client leaves",
        apply=changes.stall_after_event,
        takes="events",
    ),
    Fault(
        name="delay-headers",
        help="wait before the response begins",
        apply=changes.delay_headers,
        takes="seconds",
    ),
    Fault(
        name="delay-first-token",
        help="wait before the first text",
        apply=changes.delay_first_token,
        takes="seconds",
    ),
    Fault(
        name="delay-events",
        help="wait before every event but the first",
        apply=changes.delay_events,
        takes="seconds",
    ),
    Fault(name="keep-alives", help="a keep-alive before every event", apply=changes.keep_alives),
    Fault(name="crlf", help="lines end with CR LF", apply=changes.crlf),
    Fault(name="no-space", help="no space after the colon of a field", apply=changes.no_space),
    Fault(
        name="split-characters",
        help="writes are cut inside every character of several bytes",
        apply=changes.split_characters,
    ),
    Fault(
        name="burst",
        help="N events in one write, as behind a proxy that buffers",
        apply=changes.burst,
        takes="events",
        least=1,
    ),
    Fault(name="gzip", help="the body is compressed, whatever the client accepts", apply=changes.gzip),
    Fault(
        name="cut-after-byte",
        help="the body ends after N bytes, as if it were whole; see no-last-chunk and reset",
        apply=changes.cut_after_byte,
        takes="bytes",
    ),
    Fault(name="split-bytes", help="writes of N bytes", apply=changes.split_bytes, takes="bytes", least=1),
    Fault(
        name="no-last-chunk", help="the connection closes without the last chunk", apply=changes.no_last_chunk
    ),
    Fault(name="reset", help="the connection is reset at the end", apply=changes.reset),
)
FAULTS = {fault.name: fault for fault in _TABLE}
"""Name -> fault, in the order in which they act."""
