"""Passes each request on, and the response back as it comes; a client that leaves is told to the server."""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from llmstream_cli.capture import CaptureWriter
from llmstream_cli.events import Json
from llmstream_cli.loopback import LoopbackServer, Received, head
from llmstream_cli.urls import join_url, split_url

CONNECT_LIMIT_S = 15.0
_READ_BYTES = 65536
_OF_ONE_CONNECTION = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
    }
)
_FRAMING = frozenset({"host", "content-length"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tapped:
    """One exchange: its recording, which is complete. ``status`` is None where the server gave no answer."""

    method: str
    path: str
    status: int | None
    file: Path


class TapServer(LoopbackServer):
    """`on_tapped` is called from the thread of the connection, after each exchange."""

    def __init__(
        self, upstream: str, folder: Path, *, port: int = 0, on_tapped: Callable[[Tapped], None]
    ) -> None:
        super().__init__(port=port)
        self._upstream = upstream
        self._folder = folder
        self._on_tapped = on_tapped
        self._count = 0
        self._counting = threading.Lock()

    def answer(self, connection: socket.socket, request: Received) -> None:
        file = self._next_file()
        writer = CaptureWriter(file, secrets=_secrets(request.headers))
        writer.request(
            method=request.method, path=request.path, headers=dict(request.headers), body=_json(request.body)
        )
        status = _Exchange(connection, request, writer, self._upstream).run()
        self._on_tapped(Tapped(method=request.method, path=request.path, status=status, file=file))

    def _next_file(self) -> Path:
        with self._counting:
            while True:
                self._count += 1
                file = self._folder / f"{self._count:04}.jsonl"
                if not file.exists():
                    # Taken at once: another tap may count in the same folder.
                    file.touch(mode=0o600)
                    return file


class _Exchange:
    def __init__(
        self, client: socket.socket, request: Received, writer: CaptureWriter, upstream: str
    ) -> None:
        self._client = client
        self._request = request
        self._writer = writer
        self._url = split_url(join_url(upstream, request.path))
        self._began_s = monotonic()
        self._client_left = False

    def run(self) -> int | None:
        """Pass everything on and end the recording; the status of the response."""
        status, how = None, "eof"
        with closing(self._connection()) as server:
            try:
                response = self._ask(server)
                status = response.status
                self._writer.head(self._at_s(), status, response.getheaders())
                how = self._pass_on(response)
            except (OSError, http.client.HTTPException) as error:
                if self._client_left:
                    how = "client-abort"
                elif status is None:
                    self._refuse(error)
                else:
                    how = "reset" if isinstance(error, ConnectionResetError) else "eof"
        self._writer.end(self._at_s(), how)
        with suppress(OSError):
            # Closing alone says nothing to the client while it is still watched.
            self._client.shutdown(socket.SHUT_RDWR)
        return status

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._url.host, self._url.port_number
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=CONNECT_LIMIT_S, context=context)
        return http.client.HTTPConnection(host, port, timeout=CONNECT_LIMIT_S)

    def _ask(self, server: http.client.HTTPConnection) -> http.client.HTTPResponse:
        server.connect()
        server.sock.settimeout(None)
        threading.Thread(target=self._watch, args=(server.sock,), daemon=True).start()
        server.putrequest(self._request.method, self._url.target, skip_host=True, skip_accept_encoding=True)
        server.putheader("Host", self._url.netloc)
        for name, value in _passed(self._request.headers, _OF_ONE_CONNECTION | _FRAMING):
            server.putheader(name, value)
        if self._request.body or self._request.method != "GET":
            server.putheader("Content-Length", str(len(self._request.body)))
        server.endheaders(self._request.body)
        return server.getresponse()

    def _pass_on(self, response: http.client.HTTPResponse) -> str:
        """The body as it comes; how it ended, in the words of a recording."""
        chunked = response.chunked
        headers = _passed(response.getheaders(), _OF_ONE_CONNECTION)
        if chunked:
            headers += (("Transfer-Encoding", "chunked"),)
        self._send(head(response.status, headers))
        expected = response.length
        while data := response.read1(_READ_BYTES):
            self._writer.read(self._at_s(), data)
            self._send(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
            expected = None if expected is None else expected - len(data)
        if self._client_left and expected != 0:
            return "client-abort"
        if chunked:
            self._send(b"0\r\n\r\n")
        return "chunked-end" if chunked or expected == 0 else "eof"

    def _send(self, data: bytes) -> None:
        try:
            self._client.sendall(data)
        except OSError:
            self._client_left = True
            raise

    def _watch(self, server: socket.socket) -> None:
        """Wait for the client to close its side, then close the server's."""
        with suppress(OSError):
            self._client.settimeout(None)
            while self._client.recv(_READ_BYTES):
                pass
            self._client_left = True
            server.shutdown(socket.SHUT_RDWR)

    def _refuse(self, error: Exception) -> None:
        body = json.dumps(
            {"error": {"message": f"the server gave no answer: {error}", "type": "tap"}}
        ).encode()
        headers = (("Content-Type", "application/json"), ("Content-Length", str(len(body))))
        with suppress(OSError):
            self._client.sendall(head(502, headers) + body)

    def _at_s(self) -> float:
        return monotonic() - self._began_s


def _passed(headers: Iterable[tuple[str, str]], without: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in headers if name.lower() not in without)


def _secrets(headers: Iterable[tuple[str, str]]) -> list[str]:
    return [
        value.rpartition(" ")[2]
        for name, value in headers
        if name.lower() in ("authorization", "x-api-key", "api-key", "x-goog-api-key")
    ]


def _json(body: bytes) -> Mapping[str, Json]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
