"""A small HTTP server for this machine only: a thread a connection, a request each, everything bounded."""

import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Self

from llmstream_cli.errors import ConnectError

HOST = "127.0.0.1"
MOST_CONNECTIONS = 64
LARGEST_HEAD_BYTES = 64 * 1024
LARGEST_BODY_BYTES = 64 * 1024 * 1024
REQUEST_LIMIT_S = 30.0
POLL_S = 0.2


class BadRequestError(Exception):
    """What came is no HTTP request that can be answered here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request. ``path`` with its query."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class LoopbackServer(ABC):
    """Either `serve` until `stop`, or a ``with`` block around its clients. ConnectError for a taken port."""

    def __init__(self, *, port: int = 0) -> None:
        self.stopping = threading.Event()
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._threads: set[threading.Thread] = set()
        try:
            self._listener = socket.create_server((HOST, port))
        except (OSError, OverflowError) as error:
            place = f"http://{HOST}:{port}"
            raise ConnectError(f"cannot listen on {place}: {error}", url=place) from error
        self._listener.settimeout(POLL_S)
        self.port: int = self._listener.getsockname()[1]
        self.base_url = f"http://{HOST}:{self.port}"

    @abstractmethod
    def answer(self, connection: socket.socket, request: Received) -> None:
        """Send the response; called in a thread of its own. The connection is closed after it."""

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
        """Accept until `stop`; then wait for what is being answered to end, which ``stopping`` also tells."""
        try:
            while not self.stopping.is_set():
                self._accept()
        finally:
            self.stopping.set()
            self._listener.close()
            for thread in list(self._threads):
                thread.join(2 * POLL_S)

    def stop(self) -> None:
        self.stopping.set()

    def _accept(self) -> None:
        if not self._free.acquire(timeout=POLL_S):
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
                connection.settimeout(REQUEST_LIMIT_S)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.answer(connection, read_request(connection))
        finally:
            self._threads.discard(threading.current_thread())
            self._free.release()


def head(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    """The head of a response after which the connection closes."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    lines = [f"{name}: {value}" for name, value in (*headers, ("Connection", "close"))]
    return "\r\n".join([f"HTTP/1.1 {status} {reason}", *lines, "", ""]).encode("latin-1", "replace")


def read_request(connection: socket.socket) -> Received:
    """BadRequestError if it is none, or too large."""
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > LARGEST_HEAD_BYTES:
            raise BadRequestError
        data += _received(connection)
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    pairs = tuple((name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines))
    headers = {name.lower(): value for name, value in pairs}
    if headers.get("expect", "").lower() == "100-continue":
        # curl waits for it before it sends a large body.
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    whole = _read_body(connection, headers, body)
    return Received(method=method, path=rest.rpartition(" ")[0], headers=pairs, body=whole)


def _read_body(connection: socket.socket, headers: Mapping[str, str], begun: bytes) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _read_chunks(connection, begun)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length) > LARGEST_BODY_BYTES:
        raise BadRequestError
    return _at_least(connection, begun, int(length))[: int(length)]


def _read_chunks(connection: socket.socket, data: bytes) -> bytes:
    body = b""
    while True:
        while b"\r\n" not in data:
            data = _at_least(connection, data, len(data) + 1)
        size_text, _, data = data.partition(b"\r\n")
        try:
            size = int(size_text.split(b";")[0], 16)
        except ValueError:
            raise BadRequestError from None
        if not 0 <= size <= LARGEST_BODY_BYTES - len(body):
            raise BadRequestError
        data = _at_least(connection, data, size + 2)
        if size == 0:
            return body
        body, data = body + data[:size], data[size + 2 :]


def _at_least(connection: socket.socket, data: bytes, size: int) -> bytes:
    pieces, have = [data], len(data)
    while have < size:
        pieces.append(_received(connection))
        have += len(pieces[-1])
    return b"".join(pieces)


def _received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise BadRequestError
    return data
