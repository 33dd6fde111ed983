"""What can go wrong, one entry each: a small function that makes another reply of a reply."""

import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from llmstream_cli.errors import UsageError
from llmstream_cli.events import Json
from llmstream_cli.simulate.replies import Reply, Tells, Write

LONGEST_S = 3600.0
_LARGEST = 10**9
_GZIP_WINDOW = 31
_FIELD = re.compile(rb"^(data|event|id|retry): ", re.MULTILINE)
_DATA = re.compile(rb"^(data: ?)?(\{.*\})$", re.MULTILINE)
_INSIDE_CHARACTER = re.compile(rb"(?<=[\xc0-\xff])(?=[\x80-\xbf])")
_COUNTS = frozenset(
    {
        "usage",
        "usageMetadata",
        "timings",
        "tokens_predicted",
        "tokens_evaluated",
        "prompt_eval_count",
        "eval_count",
        "generated_tokens",
        "input_length",
    }
)
"""Where the servers of all shapes report token counts."""
_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>\n"
_LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
_LIMITED = {"error": {"code": 429, "message": "Rate limit reached", "type": "rate_limit_error"}}

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


def _document(status: int, body: bytes, kind: str, *headers: tuple[str, str]) -> Callable[[Reply], Reply]:
    def instead(reply: Reply) -> Reply:
        return replace(
            reply, status=status, headers=(("Content-Type", kind), *headers), writes=(Write(data=body),)
        )

    return instead


def _html_page(reply: Reply, _: float) -> Reply:
    return _document(200, _HTML, "text/html")(reply)


def _too_many_requests(reply: Reply, seconds: float) -> Reply:
    body = json.dumps(_LIMITED).encode()
    return _document(429, body, "application/json", ("Retry-After", f"{seconds:g}"))(reply)


def _loading(reply: Reply, _: float) -> Reply:
    return _document(503, json.dumps(_LOADING).encode(), "application/json")(reply)


def _usage_null(reply: Reply, _: float) -> Reply:
    return _each(reply, lambda data: _DATA.sub(_without_counts, data))


def _without_counts(match: re.Match[bytes]) -> bytes:
    try:
        value = json.loads(match[2])
    except ValueError:
        return match[0]
    return (match[1] or b"") + json.dumps(_nulled(value), ensure_ascii=False).encode()


def _nulled(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: None if key in _COUNTS else _nulled(item) for key, item in value.items()}
    return [_nulled(item) for item in value] if isinstance(value, list) else value


def _no_marker(reply: Reply, _: float) -> Reply:
    return replace(reply, writes=tuple(write for write in reply.writes if write.tells is not Tells.MARKER))


def _no_terminal(reply: Reply, _: float) -> Reply:
    return replace(reply, writes=tuple(write for write in reply.writes if not _ends(write)))


def _twice_terminal(reply: Reply, _: float) -> Reply:
    doubled = (write for write in reply.writes for _ in range(2 if _ends(write) else 1))
    return replace(reply, writes=tuple(doubled))


def _ends(write: Write) -> bool:
    return write.tells in (Tells.FINISH, Tells.MARKER)


def _cut_after_event(reply: Reply, count: float) -> Reply:
    return replace(reply, writes=reply.writes[: int(count)])


def _error_after_event(reply: Reply, count: float) -> Reply:
    return replace(reply, writes=(*reply.writes[: int(count)], Write(data=reply.error)))


def _stall_after_event(reply: Reply, count: float) -> Reply:
    return replace(reply, writes=reply.writes[: int(count)], end="stall")


def _delay_headers(reply: Reply, seconds: float) -> Reply:
    return replace(reply, headers_delay_s=seconds)


def _delay_first_token(reply: Reply, seconds: float) -> Reply:
    first = next((at for at, write in enumerate(reply.writes) if write.tells is Tells.OUTPUT), 0)
    writes = (
        replace(write, delay_s=seconds) if at == first else write for at, write in enumerate(reply.writes)
    )
    return replace(reply, writes=tuple(writes))


def _delay_events(reply: Reply, seconds: float) -> Reply:
    first, *later = reply.writes or (Write(data=b""),)
    return replace(reply, writes=(first, *(replace(write, delay_s=seconds) for write in later)))


def _keep_alives(reply: Reply, _: float) -> Reply:
    return _each(reply, lambda data: reply.keep_alive + data)


def _crlf(reply: Reply, _: float) -> Reply:
    return _each(reply, lambda data: data.replace(b"\n", b"\r\n"))


def _no_space(reply: Reply, _: float) -> Reply:
    return _each(reply, lambda data: _FIELD.sub(rb"\1:", data))


def _split_characters(reply: Reply, _: float) -> Reply:
    return _pieces(reply, _INSIDE_CHARACTER.split)


def _split_bytes(reply: Reply, size: float) -> Reply:
    step = int(size)
    return _pieces(reply, lambda data: [data[at : at + step] for at in range(0, len(data), step)])


def _burst(reply: Reply, size: float) -> Reply:
    step = int(size)
    groups = [reply.writes[at : at + step] for at in range(0, len(reply.writes), step)]
    return replace(reply, writes=tuple(map(_one_write, groups)))


def _one_write(group: Sequence[Write]) -> Write:
    return Write(data=b"".join(write.data for write in group), delay_s=sum(write.delay_s for write in group))


def _gzip(reply: Reply, _: float) -> Reply:
    packer = zlib.compressobj(wbits=_GZIP_WINDOW)

    def packed() -> Iterator[Write]:
        for write in reply.writes:
            # Flushed, so that every event can be read when it comes.
            yield replace(write, data=packer.compress(write.data) + packer.flush(zlib.Z_SYNC_FLUSH))
        yield Write(data=packer.flush())

    return replace(reply, writes=tuple(packed()), headers=(*reply.headers, ("Content-Encoding", "gzip")))


def _cut_after_byte(reply: Reply, count: float) -> Reply:
    left, kept = int(count), []
    for write in reply.writes:
        if left <= 0:
            break
        kept.append(replace(write, data=write.data[:left]))
        left -= len(write.data)
    return replace(reply, writes=tuple(kept))


def _no_last_chunk(reply: Reply, _: float) -> Reply:
    return replace(reply, end="cut")


def _reset(reply: Reply, _: float) -> Reply:
    return replace(reply, end="reset")


def _each(reply: Reply, change: Callable[[bytes], bytes]) -> Reply:
    return replace(reply, writes=tuple(replace(write, data=change(write.data)) for write in reply.writes))


def _pieces(reply: Reply, cut: Callable[[bytes], list[bytes]]) -> Reply:
    """Every write in the pieces that `cut` makes; the first one keeps the delay."""
    writes = (
        replace(write, data=piece, delay_s=0.0 if number else write.delay_s)
        for write in reply.writes
        for number, piece in enumerate(cut(write.data))
    )
    return replace(reply, writes=tuple(writes))


_TABLE = (
    Fault(name="html-page", help="an HTML page with status 200 in place of the stream", apply=_html_page),
    Fault(
        name="too-many-requests",
        help="status 429 with a Retry-After of so many seconds",
        apply=_too_many_requests,
        takes="seconds",
    ),
    Fault(name="loading", help="status 503 while the model is loaded", apply=_loading),
    Fault(name="usage-null", help="every token count is null", apply=_usage_null),
    Fault(name="no-marker", help="no [DONE], or what this API has in its place", apply=_no_marker),
    Fault(name="no-terminal-event", help="no finish reason and no marker", apply=_no_terminal),
    Fault(name="duplicate-terminal-event", help="finish reason and marker come twice", apply=_twice_terminal),
    Fault(
        name="cut-after-event",
        help="the body ends after N events, as if it were whole; see no-last-chunk and reset",
        apply=_cut_after_event,
        takes="events",
    ),
    Fault(
        name="error-after-event",
        help="an error in the form of this API after N events",
        apply=_error_after_event,
        takes="events",
    ),
    Fault(
        name="stall-after-event",
        help="silence after N events, until the client leaves",
        apply=_stall_after_event,
        takes="events",
    ),
    Fault(
        name="delay-headers", help="wait before the response begins", apply=_delay_headers, takes="seconds"
    ),
    Fault(
        name="delay-first-token",
        help="wait before the first text",
        apply=_delay_first_token,
        takes="seconds",
    ),
    Fault(
        name="delay-events",
        help="wait before every event but the first",
        apply=_delay_events,
        takes="seconds",
    ),
    Fault(name="keep-alives", help="a keep-alive before every event", apply=_keep_alives),
    Fault(name="crlf", help="lines end with CR LF", apply=_crlf),
    Fault(name="no-space", help="no space after the colon of a field", apply=_no_space),
    Fault(
        name="split-characters",
        help="writes are cut inside every character of several bytes",
        apply=_split_characters,
    ),
    Fault(
        name="burst",
        help="N events in one write, as behind a proxy that buffers",
        apply=_burst,
        takes="events",
        least=1,
    ),
    Fault(name="gzip", help="the body is compressed, whatever the client accepts", apply=_gzip),
    Fault(
        name="cut-after-byte",
        help="the body ends after N bytes, as if it were whole; see no-last-chunk and reset",
        apply=_cut_after_byte,
        takes="bytes",
    ),
    Fault(name="split-bytes", help="writes of N bytes", apply=_split_bytes, takes="bytes", least=1),
    Fault(name="no-last-chunk", help="the connection closes without the last chunk", apply=_no_last_chunk),
    Fault(name="reset", help="the connection is reset at the end", apply=_reset),
)
FAULTS = {fault.name: fault for fault in _TABLE}
"""Name -> fault, in the order in which they act."""
