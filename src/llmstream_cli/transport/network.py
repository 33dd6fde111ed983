"""Sockets for the HTTP engine: every blocking call ends at the clock's next deadline."""

# ruff: noqa: ARG002 - the engine passes time-outs and options; the clock and the code below replace them.

import socket
import ssl
import threading
from collections.abc import Iterable
from typing import Any

import httpcore

from llmstream_cli.errors import ConnectError
from llmstream_cli.transport.clock import Clock
from llmstream_cli.transport.tls import handshake_failure
from llmstream_cli.urls import ip_address, is_loopback_host

Address = tuple[socket.AddressFamily, Any]

_HTTP = b"HTTP/"
_KEEPALIVE_AFTER_S = 60
_SERVERS_BY_PORT = {11434: "ollama serve", 8080: "llama-server", 8000: "vllm serve"}


class Network(httpcore.NetworkBackend):
    """Opens the connections of one attempt and notes what came over them.

    ``is_sent``: the request is under way. ``received``: bytes since then. ``ended``: the peer closed.
    ``url`` and ``proxy`` are for messages.
    """

    def __init__(self, clock: Clock, url: str, *, proxy: str | None = None) -> None:
        self.clock = clock
        self.url = url
        self.proxy = proxy
        self.is_sent = False
        self.received = 0
        self.ended = False

    def sent(self) -> None:
        self.clock.sent()
        self.is_sent = True
        self.received = 0

    def note(self, data: bytes) -> None:
        """`data` was received; an empty read is the peer's end."""
        if data and not self.received and not data.startswith(_HTTP[: len(data)]):
            # Some other protocol, whose server may now wait for us for ever.
            raise httpcore.RemoteProtocolError(f"it begins with {data[:16]!r}")
        self.received += len(data)
        self.ended = not data

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Try the addresses of `host` in order; each gets its share of the time that is left."""
        addresses = self._resolve(host, port)
        failures: list[tuple[str, OSError]] = []
        for number, address in enumerate(addresses):
            left = self.clock.remaining_s()
            try:
                return SocketStream(
                    _connected(address, None if left is None else left / (len(addresses) - number)),
                    self,
                    host,
                )
            except OSError as error:
                failures.append((str(address[1][0]), error))
        self.clock.remaining_s()
        raise self._refused(host, port, failures)

    def _resolve(self, host: str, port: int) -> list[Address]:
        try:
            if ip_address(host) is not None or is_loopback_host(host):
                return _look_up(host, port)
            return self._look_up_aside(host, port)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ConnectError(
                f"cannot find {self._named(host)}: {reason}",
                url=self.url,
                hint="check the spelling of the host name and the network connection",
            ) from None

    def _look_up_aside(self, host: str, port: int) -> list[Address]:
        """Look up in a daemon thread: the C library's look-up heeds neither time-outs nor Ctrl-C."""
        results: list[list[Address] | Exception] = []
        done = threading.Event()

        def work() -> None:
            try:
                results.append(_look_up(host, port))
            except (OSError, UnicodeError) as error:
                results.append(error)
            done.set()

        threading.Thread(target=work, name="name look-up", daemon=True).start()
        while not done.is_set():
            done.wait(self.clock.slice_s())
        if isinstance(results[0], Exception):
            raise results[0]
        return results[0]

    def _refused(self, host: str, port: int, failures: list[tuple[str, OSError]]) -> ConnectError:
        reasons = [f"{address}: {_reason(error)}" for address, error in failures]
        if len({_reason(error) for _, error in failures}) == 1:
            reason = _reason(failures[0][1])
            tried = [address for address, _ in failures if address != host]
            reasons = [f"{reason} (tried {', '.join(tried)})" if tried else reason]
        hint = None
        if self.proxy is None and any(isinstance(error, ConnectionRefusedError) for _, error in failures):
            command = _SERVERS_BY_PORT.get(port)
            hint = "is the server running?" + (f" On this port it is usually: {command}" if command else "")
        named = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return ConnectError(
            f"cannot connect to {self._named(named)}: {'; '.join(reasons)}", url=self.url, hint=hint
        )

    def _named(self, host: str) -> str:
        return f"the proxy {host}" if self.proxy is not None else host


class SocketStream(httpcore.NetworkStream):
    """One connection, with or without TLS. Time-outs come from the clock, whatever the engine passes."""

    def __init__(self, sock: socket.socket, network: Network, host: str) -> None:
        self._sock = sock
        self._network = network
        self._host = host

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._network.clock.about_to_wait()
        while True:
            self._sock.settimeout(self._network.clock.slice_s())
            try:
                data = self._sock.recv(max_bytes)
            except TimeoutError:
                self._network.clock.waited()
                continue
            self._network.note(data)
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        while rest:
            self._sock.settimeout(self._network.clock.slice_s())
            try:
                rest = rest[self._sock.send(rest) :]
            except TimeoutError:
                continue
            except OSError as error:
                # The engine then reads on: a server may answer and close before it has read everything.
                raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        host = server_hostname or self._host
        sock = ssl_context.wrap_socket(self._sock, server_hostname=host, do_handshake_on_connect=False)
        try:
            sock.settimeout(self._network.clock.remaining_s())
            sock.do_handshake()
        except BaseException as error:
            sock.close()
            if isinstance(error, TimeoutError):
                self._network.clock.remaining_s()
            if isinstance(error, OSError):
                raise handshake_failure(error, host, self._network.url) from None
            raise
        return SocketStream(sock, self._network, host)

    def get_extra_info(self, info: str) -> Any:
        return self._sock if info == "socket" else None


def _look_up(host: str, port: int) -> list[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _connected(address: Address, timeout_s: float | None) -> socket.socket:
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        sock.connect(where)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A long prefill is silent; without probes a router forgets the connection and nobody notices.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_AFTER_S)
    except BaseException:
        sock.close()
        raise
    return sock


def _reason(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).lower()
