"""The simulated server: loopback only, one thread a connection, everything bounded."""

import json
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Self

from llmstream_cli.errors import ConnectError
from llmstream_cli.simulate.forms import MODEL
from llmstream_cli.simulate.replies import Reply

HOST = "127.0.0.1"
MOST_CONNECTIONS = 64
LARGEST_HEAD_BYTES = 64 * 1024
LARGEST_BODY_BYTES = 64 * 1024 * 1024
REQUEST_LIMIT_S = 30.0
_POLL_S = 0.2
_MODELS = {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "llmstream"}]}


class BadRequestError(Exception):
    """What came is no HTTP request that can be answered here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What became of one request. ``client_left``: before everything was sent."""

    method: str
    path: str
    status: int
    sent_bytes: int
    client_left: bool


class SimulatedServer:
    """Answers every POST with `reply`. Either `serve` until `stop`, or a ``with`` block around its clients.

    ConnectError if the port cannot be had. `on_served` is called from the thread of the connection.
    """

    def __init__(
        self, reply: Reply, *, port: int = 0, on_served: Callable[[Served], None] = lambda _: None
    ) -> None:
        self._reply = reply
        self._on_served = on_served
        self._stopping = threading.Event()
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._threads: set[threading.Thread] = set()
        try:
            self._listener = socket.create_server((HOST, port))
        except (OSError, OverflowError) as error:
            place = f"http://{HOST}:{port}"
            raise ConnectError(f"cannot listen on {place}: {error}", url=place) from error
        self._listener.settimeout(_POLL_S)
        self.port: int = self._listener.getsockname()[1]
        self.base_url = f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._serving = threading.Thread(target=self.serve, daemon=True)
        self._serving.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._serving.join()

    def serve(self) -> None:
        """Accept until `stop`; then wait for what is being answered to end, which `stop` also tells it."""
        try:
            while not self._stopping.is_set():
                self._accept()
        finally:
            self._stopping.set()
            self._listener.close()
            for thread in list(self._threads):
                thread.join(2 * _POLL_S)

    def stop(self) -> None:
        self._stopping.set()

    def _accept(self) -> None:
        if not self._free.acquire(timeout=_POLL_S):
            return
        try:
            connection, _ = self._listener.accept()
        except OSError:
            # Nobody came, or whoever came is gone already.
            self._free.release()
            return
        thread = threading.Thread(target=self._connected, args=(connection,), daemon=True)
        self._threads.add(thread)
        thread.start()

    def _connected(self, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError, BadRequestError):
                self._answer(connection)
        finally:
            self._threads.discard(threading.current_thread())
            self._free.release()

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(REQUEST_LIMIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        method, path = read_request(connection)
        if method != "POST":
            _send_document(connection, path)
            return
        sender = _Sender(connection, self._stopping)
        try:
            sender.send(self._reply)
            left = False
        except OSError:
            left = True
        self._on_served(
            Served(
                method=method,
                path=path,
                status=self._reply.status,
                sent_bytes=sender.sent_bytes,
                client_left=left,
            )
        )


class _Sender:
    """Sends one reply; ConnectionError once the client is gone or the server stops."""

    def __init__(self, connection: socket.socket, stopping: threading.Event) -> None:
        self._connection = connection
        self._stopping = stopping
        self.sent_bytes = 0

    def send(self, reply: Reply) -> None:
        self._pause(reply.headers_delay_s)
        self._connection.sendall(head(reply.status, (*reply.headers, ("Transfer-Encoding", "chunked"))))
        for write in reply.writes:
            self._pause(write.delay_s)
            if write.data:
                self._connection.sendall(b"%x\r\n%s\r\n" % (len(write.data), write.data))
                self.sent_bytes += len(write.data)
        match reply.end:
            case "clean":
                self._connection.sendall(b"0\r\n\r\n")
            case "reset":
                # The client must have read what was sent: a reset throws away what is still on its way.
                self._pause(_POLL_S)
                self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            case "stall":
                while True:
                    self._pause(REQUEST_LIMIT_S)
            case "cut":
                pass

    def _pause(self, seconds: float) -> None:
        """Wait, unless the client closes its side or the server is told to stop."""
        while seconds > 0:
            step = min(seconds, _POLL_S)
            readable, _, _ = select.select([self._connection], [], [], step)
            if self._stopping.is_set() or (readable and not self._connection.recv(65536)):
                raise ConnectionError
            seconds -= step


def head(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    """The head of a response after which the connection closes."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    lines = [f"{name}: {value}" for name, value in (*headers, ("Connection", "close"))]
    return "\r\n".join([f"HTTP/1.1 {status} {reason}", *lines, "", ""]).encode("latin-1", "replace")


def read_request(connection: socket.socket) -> tuple[str, str]:
    """Method and path of a request whose body is read and dropped; BadRequestError if it is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > LARGEST_HEAD_BYTES:
            raise BadRequestError
        data += _received(connection)
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if headers.get("expect", "").lower() == "100-continue":
        # curl waits for it before it sends a large body.
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    _drop_body(connection, headers, body)
    return method, rest.rpartition(" ")[0]


def _drop_body(connection: socket.socket, headers: Mapping[str, str], begun: bytes) -> None:
    if "chunked" in headers.get("transfer-encoding", ""):
        tail = begun
        while not tail.endswith(b"0\r\n\r\n"):
            tail = tail[-8:] + _received(connection)
        return
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length) > LARGEST_BODY_BYTES:
        raise BadRequestError
    left = int(length) - len(begun)
    while left > 0:
        left -= len(_received(connection))


def _received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise BadRequestError
    return data


def _send_document(connection: socket.socket, path: str) -> None:
    """Something for a client that looks around before it asks: the list of models, else nothing."""
    found = path.partition("?")[0].endswith("/models")
    body = json.dumps(_MODELS if found else {"error": {"message": "not found"}}).encode()
    headers = (("Content-Type", "application/json"), ("Content-Length", str(len(body))))
    connection.sendall(head(200 if found else 404, headers) + body)
