"""A server over real sockets that answers with given bytes, in given writes, and ends as told.

    with WireServer(Reply(writes=[b"data: 1\\n\\n", gate, b"data: 2\\n\\n"])) as server:
        ...                     # server.base_url, server.requests, server.wait_for_request()

Replies are used in order, the last one again and again; or a function chooses a reply for each request.
``tls/`` holds a certificate for localhost, the loopback addresses and llm.internal.test, valid until 2120 and
signed by ``tls/ca.pem``; its key protects nothing.
"""

import json
import queue
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

TLS_FOLDER = Path(__file__).parent / "tls"
CA_FILE = TLS_FOLDER / "ca.pem"
WAIT_S = 20.0
"""How long a test waits for what must happen; reached only when a test fails."""
_POLL_S = 0.02

Write = bytes | float | threading.Event
"""Bytes to send at once, seconds to wait, or an event to wait for."""
Transfer = Literal["chunked", "length", "close", "none"]
End = Literal["clean", "truncate", "reset", "hold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer. ``transfer``: how the body is delimited; ``none`` sends the writes only, without a head.

    ``end``: ``truncate`` closes before the end of the body, ``reset`` sends RST, ``hold`` keeps it
    open until the client closes it. ``length``: a Content-Length that is not true.
    """

    writes: Sequence[Write] = ()
    status: int = 200
    reason: str = "OK"
    headers: Sequence[tuple[str, str]] = (("Content-Type", "text/event-stream"),)
    transfer: Transfer = "chunked"
    end: End = "clean"
    length: int | None = None

    def head(self) -> bytes:
        lines = [
            f"HTTP/1.1 {self.status} {self.reason}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        if self.transfer == "chunked":
            lines.append("Transfer-Encoding: chunked")
        elif self.transfer == "length":
            body = sum(len(write) for write in self.writes if isinstance(write, bytes))
            lines.append(f"Content-Length: {body if self.length is None else self.length}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def json_reply(value: Any, *, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> Reply:
    return Reply(
        writes=[json.dumps(value).encode()],
        status=status,
        reason="",
        headers=[("Content-Type", "application/json"), *headers],
        transfer="length",
    )


NO_ANSWER = Reply(transfer="none")
"""Read the request, close without a byte."""


@dataclass(slots=True, kw_only=True)
class Received:
    """A request, and when its client closed the connection."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    closed: threading.Event = field(default_factory=threading.Event)
    closed_at: float | None = None

    def json(self) -> Any:
        return json.loads(self.body)

    def note_closed(self) -> None:
        self.closed_at = time.monotonic()
        self.closed.set()

    def wait_closed(self) -> float:
        """When (monotonic time) the client closed."""
        assert self.closed.wait(WAIT_S), "the client did not close the connection"
        assert self.closed_at is not None
        return self.closed_at


Chooser = Callable[[Received], Reply]


class WireServer:
    """Serves on a free port of `host` until the ``with`` block ends."""

    def __init__(self, *replies: Reply | Chooser, host: str = "127.0.0.1", tls: bool = False) -> None:
        self._replies = list(replies)
        self._context = _server_context() if tls else None
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        self.base_url = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"
        self.requests: list[Received] = []
        self._arrived: queue.Queue[Received] = queue.Queue()
        self._spoken = threading.Event()
        self._stopping = threading.Event()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(WAIT_S)

    def wait_for_bytes(self) -> None:
        """A client has sent something; it need not be a request."""
        assert self._spoken.wait(WAIT_S), "no client has sent anything"

    def wait_for_request(self) -> Received:
        """The next request that was not waited for yet; its body has been read."""
        return self._arrived.get(timeout=WAIT_S)

    def _start(self, work: Callable[..., None], *arguments: Any) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context:
                connection = self._context.wrap_socket(connection, server_side=True)
                self._connections.append(connection)
            request = _read_request(connection, self._spoken)
            if request is None:
                return
            reply = self._choose(request)
            self.requests.append(request)
            watch = None if self._context else self._start(_watch, connection, request)
            self._arrived.put(request)
            self._answer(connection, reply, request)
            _end(connection, reply.end, watch, request)
        except OSError:
            pass
        finally:
            connection.close()

    def _choose(self, request: Received) -> Reply:
        number = min(len(self.requests), len(self._replies) - 1)
        reply = self._replies[number]
        return reply if isinstance(reply, Reply) else reply(request)

    def _answer(self, connection: socket.socket, reply: Reply, request: Received) -> None:
        if reply.transfer != "none":
            connection.sendall(reply.head())
        for write in reply.writes:
            if isinstance(write, bytes):
                chunked = reply.transfer == "chunked"
                connection.sendall(b"%x\r\n%s\r\n" % (len(write), write) if chunked else write)
            else:
                self._wait(write, request)
        if reply.transfer == "chunked" and reply.end == "clean":
            connection.sendall(b"0\r\n\r\n")

    def _wait(self, what: float | threading.Event, request: Received) -> None:
        if not isinstance(what, threading.Event):
            request.closed.wait(what)
            return
        while not (what.wait(_POLL_S) or request.closed.is_set() or self._stopping.is_set()):
            pass


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS_FOLDER / "server.pem")
    return context


def _read_request(connection: socket.socket, spoken: threading.Event) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        got = connection.recv(65536)
        if not got:
            return None
        spoken.set()
        data += got
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    while len(body) < int(headers.get("content-length", "0")):
        got = connection.recv(65536)
        if not got:
            return None
        body += got
    return Received(method=method, path=path, headers=headers, body=body)


def _watch(connection: socket.socket, request: Received) -> None:
    """Wait for the client's close while the answer is written (OpenSSL allows no such thing for TLS)."""
    with suppress(OSError):
        while connection.recv(65536):
            pass
    request.note_closed()


def _end(connection: socket.socket, end: End, watch: threading.Thread | None, request: Received) -> None:
    if end == "hold":
        if watch is None:
            _watch(connection, request)
        request.closed.wait()
        return
    if end == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The watching thread must let go of the socket, else closing it sends nothing.
        connection.shutdown(socket.SHUT_RD)
    else:
        connection.shutdown(socket.SHUT_RDWR)
    if watch is not None:
        watch.join(WAIT_S)
