"""The stream source of the benchmark: OpenAI chat over chunked HTTP, one chunk an event, rendered beforehand.

Run as a script it prints its URL, serves until its standard input ends, and then stops.  Settings are part of
the path, so that any client's base URL carries them: ``/p/n=1000,delay=0.02,stamp=1/v1/chat/completions``

    n       content events in the answer
    delay   seconds between two of them; 0 = as fast as the client reads
    stamp   1 = each event's text is ``@T@``, T being CLOCK_MONOTONIC in ns just before the event is sent; the
            first T is instead the time at which the request had been read to its last byte
"""

import json
import re
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

TEXT_BYTES: Final = 5  # of every event's text, unless stamped
CYCLE: Final = 1000  # different events; a whole cycle is one send, which keeps the source ahead of any client

HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
PATH: Final = re.compile(r"POST /p/([^/ ]*)/v1/chat/completions HTTP/1\.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What one request asks for; see the module's docstring."""

    n: int = 1
    delay: float = 0.0
    stamp: bool = False

    @classmethod
    def parse(cls, text: str) -> "Knobs":
        """Read ``n=..,delay=..,stamp=..``; raises ValueError or KeyError if it is anything else."""
        given = dict(part.split("=", 1) for part in text.split(","))
        return cls(n=int(given["n"]), delay=float(given.get("delay", 0)), stamp=given.get("stamp") == "1")


def chunk(data: bytes) -> bytes:
    """One HTTP chunk around ``data``."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def frame(choices: list[dict[str, object]], **more: object) -> bytes:
    """One SSE frame of the OpenAI chat stream."""
    body = {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "bench",
        "system_fingerprint": "fp_bench",
        "choices": choices,
        **more,
    }
    return b"data: %b\n\n" % json.dumps(body, separators=(",", ":")).encode()


def content(text: str) -> bytes:
    """One content event."""
    return frame([{"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}])


def tail(n: int) -> bytes:
    """What follows the content: finish reason, usage, terminal marker, last chunk."""
    finish = frame([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}])
    usage = frame([], usage={"prompt_tokens": 1, "completion_tokens": n, "total_tokens": n + 1})
    return chunk(finish) + chunk(usage) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


EVENTS: Final = [chunk(content(f" {i:04d}")) for i in range(CYCLE)]
BLOB: Final = b"".join(EVENTS)
STAMPED: Final = content("@@")


def writes(knobs: Knobs, read_ns: int) -> Iterator[bytes]:
    """The content of an answer, one send at a time; waits where the knobs ask for it."""
    if not knobs.stamp and not knobs.delay:
        yield from (BLOB for _ in range(knobs.n // CYCLE))
        yield b"".join(EVENTS[: knobs.n % CYCLE])
        return
    start = time.monotonic()
    for i in range(knobs.n):
        time.sleep(max(0.0, start + i * knobs.delay - time.monotonic()))
        if knobs.stamp:
            at_ns = time.monotonic_ns() if i else read_ns
            yield chunk(STAMPED.replace(b"@@", b"@%d@" % at_ns))
        else:
            yield EVENTS[i % CYCLE]


class Handler(socketserver.StreamRequestHandler):
    """One connection, one request after another."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Answer until the client leaves."""
        try:
            while self.answer():
                pass
        except ConnectionError:
            pass  # a client that is killed, or that stops reading, is no fault of this side

    def answer(self) -> bool:
        """Read one request and stream its answer; False at the end of the connection."""
        request = self.rfile.readline().decode("latin-1").strip()
        length = 0
        while (line := self.rfile.readline().strip().lower()) != b"":
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        self.rfile.read(length)
        read_ns = time.monotonic_ns()
        if not request:
            return False
        found = PATH.fullmatch(request)
        if found is None:
            self.request.sendall(NOT_FOUND)
            return True
        knobs = Knobs.parse(found[1])
        self.request.sendall(HEAD)
        for data in writes(knobs, read_ns):
            self.request.sendall(data)
        self.request.sendall(tail(knobs.n))
        return True


class Server(socketserver.ThreadingTCPServer):
    """A free port of the loopback interface; a thread for each connection."""

    daemon_threads = True
    allow_reuse_address = True


def main() -> None:
    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main()
