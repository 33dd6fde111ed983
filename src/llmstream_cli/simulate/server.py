"""The simulated server: sends the same reply to whoever asks."""

import json
import select
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass

from llmstream_cli.loopback import POLL_S, REQUEST_LIMIT_S, LoopbackServer, Received, head
from llmstream_cli.simulate.forms import MODEL
from llmstream_cli.simulate.replies import Reply

_MODELS = {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "llmstream"}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What became of one request. ``client_left``: before everything was sent."""

    method: str
    path: str
    status: int
    sent_bytes: int
    client_left: bool


class SimulatedServer(LoopbackServer):
    """Answers every POST with `reply`. `on_served` is called from the thread of the connection."""

    def __init__(
        self, reply: Reply, *, port: int = 0, on_served: Callable[[Served], None] = lambda _: None
    ) -> None:
        super().__init__(port=port)
        self._reply = reply
        self._on_served = on_served

    def answer(self, connection: socket.socket, request: Received) -> None:
        if request.method != "POST":
            _send_document(connection, request.path)
            return
        sender = _Sender(connection, self.stopping)
        try:
            sender.send(self._reply)
            left = False
        except OSError:
            left = True
        self._on_served(
            Served(
                method=request.method,
                path=request.path,
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
                self._pause(POLL_S)
                self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            case "stall":
                while True:
                    self._pause(REQUEST_LIMIT_S)
            case "cut":
                pass

    def _pause(self, seconds: float) -> None:
        """Wait, unless the client closes its side or the server is told to stop."""
        while seconds > 0:
            step = min(seconds, POLL_S)
            readable, _, _ = select.select([self._connection], [], [], step)
            if self._stopping.is_set() or (readable and not self._connection.recv(65536)):
                raise ConnectionError
            seconds -= step


def _send_document(connection: socket.socket, path: str) -> None:
    """Something for a client that looks around before it asks: the list of models, else nothing."""
    found = path.partition("?")[0].endswith("/models")
    body = json.dumps(_MODELS if found else {"error": {"message": "not found"}}).encode()
    headers = (("Content-Type", "application/json"), ("Content-Length", str(len(body))))
    connection.sendall(head(200 if found else 404, headers) + body)
