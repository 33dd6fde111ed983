"""The changes that faults make: from a reply and a number to another reply."""

import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from llmstream_cli.events import Json
from llmstream_cli.simulate.replies import Reply, Tells, Write

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


def _document(reply: Reply, status: int, body: bytes, kind: str, *headers: tuple[str, str]) -> Reply:
    return replace(
        reply, status=status, headers=(("Content-Type", kind), *headers), writes=(Write(data=body),)
    )


def html_page(reply: Reply, _: float) -> Reply:
    return _document(reply, 200, _HTML, "text/html")


def too_many_requests(reply: Reply, seconds: float) -> Reply:
    body = json.dumps(_LIMITED).encode()
    return _document(reply, 429, body, "application/json", ("Retry-After", f"{seconds:g}"))


def loading(reply: Reply, _: float) -> Reply:
    return _document(reply, 503, json.dumps(_LOADING).encode(), "application/json")


def usage_null(reply: Reply, _: float) -> Reply:
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


def no_marker(reply: Reply, _: float) -> Reply:
    return replace(reply, writes=tuple(write for write in reply.writes if write.tells is not Tells.MARKER))


def no_terminal(reply: Reply, _: float) -> Reply:
    return replace(reply, writes=tuple(write for write in reply.writes if not _ends(write)))


def twice_terminal(reply: Reply, _: float) -> Reply:
    doubled = (write for write in reply.writes for _ in range(2 if _ends(write) else 1))
    return replace(reply, writes=tuple(doubled))


def _ends(write: Write) -> bool:
    return write.tells in (Tells.FINISH, Tells.MARKER)


def cut_after_event(reply: Reply, count: float) -> Reply:
    return replace(reply, writes=reply.writes[: int(count)])


def error_after_event(reply: Reply, count: float) -> Reply:
    return replace(reply, writes=(*reply.writes[: int(count)], Write(data=reply.error)))


def stall_after_event(reply: Reply, count: float) -> Reply:
    return replace(reply, writes=reply.writes[: int(count)], end="stall")


def delay_headers(reply: Reply, seconds: float) -> Reply:
    return replace(reply, headers_delay_s=seconds)


def delay_first_token(reply: Reply, seconds: float) -> Reply:
    first = next((at for at, write in enumerate(reply.writes) if write.tells is Tells.OUTPUT), 0)
    writes = (
        replace(write, delay_s=seconds) if at == first else write for at, write in enumerate(reply.writes)
    )
    return replace(reply, writes=tuple(writes))


def delay_events(reply: Reply, seconds: float) -> Reply:
    first, *later = reply.writes or (Write(data=b""),)
    return replace(reply, writes=(first, *(replace(write, delay_s=seconds) for write in later)))


def keep_alives(reply: Reply, _: float) -> Reply:
    return _each(reply, lambda data: reply.keep_alive + data)


def crlf(reply: Reply, _: float) -> Reply:
    return _each(reply, lambda data: data.replace(b"\n", b"\r\n"))


def no_space(reply: Reply, _: float) -> Reply:
    return _each(reply, lambda data: _FIELD.sub(rb"\1:", data))


def split_characters(reply: Reply, _: float) -> Reply:
    return _pieces(reply, _INSIDE_CHARACTER.split)


def split_bytes(reply: Reply, size: float) -> Reply:
    step = int(size)
    return _pieces(reply, lambda data: [data[at : at + step] for at in range(0, len(data), step)])


def burst(reply: Reply, size: float) -> Reply:
    step = int(size)
    groups = [reply.writes[at : at + step] for at in range(0, len(reply.writes), step)]
    return replace(reply, writes=tuple(map(_one_write, groups)))


def _one_write(group: Sequence[Write]) -> Write:
    return Write(data=b"".join(write.data for write in group), delay_s=sum(write.delay_s for write in group))


def gzip(reply: Reply, _: float) -> Reply:
    packer = zlib.compressobj(wbits=_GZIP_WINDOW)

    def packed() -> Iterator[Write]:
        for write in reply.writes:
            # Flushed, so that every event can be read when it comes.
            yield replace(write, data=packer.compress(write.data) + packer.flush(zlib.Z_SYNC_FLUSH))
        yield Write(data=packer.flush())

    return replace(reply, writes=tuple(packed()), headers=(*reply.headers, ("Content-Encoding", "gzip")))


def cut_after_byte(reply: Reply, count: float) -> Reply:
    left, kept = int(count), []
    for write in reply.writes:
        if left <= 0:
            break
        kept.append(replace(write, data=write.data[:left]))
        left -= len(write.data)
    return replace(reply, writes=tuple(kept))


def no_last_chunk(reply: Reply, _: float) -> Reply:
    return replace(reply, end="cut")


def reset(reply: Reply, _: float) -> Reply:
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
