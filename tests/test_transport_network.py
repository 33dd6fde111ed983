"""Addresses, TLS and proxies, over real sockets; only name look-ups are made up, where a test needs names."""

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from llmstream_cli.errors import (
    ConnectError,
    HttpStatusError,
    ServerTimeoutError,
    StreamBrokenError,
    TimeoutKind,
)
from llmstream_cli.transport import Timeouts
from llmstream_cli.transport.proxy import is_excluded
from tests.support.transport import read_answer
from tests.support.wire_server import CA_FILE, Reply, WireServer, json_reply

BODY = b"data: ok\n\n"
OK = Reply(writes=[BODY])
NAME = "llm.internal.test"


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> dict[str, Sequence[str]]:
    """Host name -> the addresses that it resolves to; other names resolve as always."""
    names: dict[str, Sequence[str]] = {}
    really = socket.getaddrinfo

    def look_up(host: str, port: int, *rest: Any, **options: Any) -> list[Any]:
        found: list[Any] = []
        for address in names.get(host, [host]):
            found += really(address, port, *rest, **options)
        return found

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    return names


@pytest.fixture
def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def connect_failure(url: str, **target: Any) -> ConnectError:
    with pytest.raises(ConnectError) as failure:
        read_answer(url, timeouts=Timeouts(connect_s=20), **target)
    return failure.value


class TestAddresses:
    @pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
    def test_localhost_finds_the_server_on_either_family(
        self, addresses: dict[str, Sequence[str]], host: str
    ) -> None:
        addresses["localhost"] = ["::1", "127.0.0.1"] if host == "127.0.0.1" else ["127.0.0.1", "::1"]
        with WireServer(OK, host=host) as server:
            assert read_answer(f"http://localhost:{server.port}") == BODY

    def test_ipv6_literal(self) -> None:
        with WireServer(OK, host="::1") as server:
            assert read_answer(server.base_url) == BODY
            assert server.wait_for_request().headers["host"] == f"[::1]:{server.port}"

    def test_refused(self, closed_port: int) -> None:
        error = connect_failure(f"http://127.0.0.1:{closed_port}")
        assert error.message == f"cannot connect to 127.0.0.1:{closed_port}: connection refused"
        assert error.hint == "is the server running?"

    def test_all_addresses_tried_are_listed(
        self, addresses: dict[str, Sequence[str]], closed_port: int
    ) -> None:
        addresses["localhost"] = ["::1", "127.0.0.1"]
        error = connect_failure(f"http://localhost:{closed_port}")
        assert error.message.endswith("connection refused (tried ::1, 127.0.0.1)")

    def test_unlike_failures_are_listed_each(
        self, addresses: dict[str, Sequence[str]], closed_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        addresses["localhost"] = ["255.255.255.255", "127.0.0.1"]
        error = connect_failure(f"http://localhost:{closed_port}")
        assert "255.255.255.255: " in error.message
        assert error.message.endswith("; 127.0.0.1: connection refused")

    @pytest.mark.parametrize(
        ("port", "command"), [(11434, "ollama serve"), (8080, "llama-server"), (8000, "vllm serve")]
    )
    def test_the_hint_knows_the_usual_ports(
        self, monkeypatch: pytest.MonkeyPatch, port: int, command: str
    ) -> None:
        def refuse(*_: object) -> None:
            raise ConnectionRefusedError(111, "Connection refused")

        monkeypatch.setattr("socket.socket.connect", refuse)
        assert command in (connect_failure(f"http://127.0.0.1:{port}").hint or "")

    def test_unknown_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(*_: object, **__: object) -> None:
            raise socket.gaierror(-2, "Name or service not known")

        monkeypatch.setattr("socket.getaddrinfo", unknown)
        error = connect_failure("http://nowhere.test/v1?key=SECRET")
        assert error.message == "cannot find nowhere.test: Name or service not known"
        assert error.url == "http://nowhere.test/v1/chat/completions?key=***"

    @pytest.mark.parametrize("host", ["999.1.1.1", "xn--zz---.test"])
    def test_a_host_that_cannot_be(self, host: str) -> None:
        error = connect_failure(f"http://{host}/v1?key=SECRET")
        assert "the URL cannot be asked" in error.message
        assert "SECRET" not in error.message

    def test_a_name_that_no_resolver_takes(self) -> None:
        assert "cannot find" in connect_failure(f"http://{'x' * 70}.test").message


class TestTls:
    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
    def test_private_authority_by_option(self, host: str) -> None:
        with WireServer(OK, tls=True) as server:
            assert read_answer(f"https://{host}:{server.port}", ca_file=str(CA_FILE)) == BODY

    @pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
    def test_private_authority_by_environment(self, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
        monkeypatch.setenv(variable, str(CA_FILE))
        with WireServer(OK, tls=True) as server:
            assert read_answer(server.base_url) == BODY

    def test_private_authority_in_a_folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "93890343.0").write_bytes(CA_FILE.read_bytes())
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
        with WireServer(OK, tls=True) as server:
            assert read_answer(server.base_url) == BODY

    def test_unknown_authority_is_named_with_the_way_out(self) -> None:
        with WireServer(OK, tls=True) as server:
            error = connect_failure(f"https://localhost:{server.port}")
        assert "the certificate of localhost failed verification" in error.message
        assert "SSL_CERT_FILE" in (error.hint or "")

    def test_wrong_name(self, addresses: dict[str, Sequence[str]]) -> None:
        addresses["other.test"] = ["127.0.0.1"]
        with WireServer(OK, tls=True) as server:
            error = connect_failure(f"https://other.test:{server.port}", ca_file=str(CA_FILE))
        assert "other.test" in error.message

    def test_verification_can_be_switched_off(self) -> None:
        with WireServer(OK, tls=True) as server:
            assert read_answer(server.base_url, verify=False) == BODY

    def test_missing_file_is_named(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        error = connect_failure("https://127.0.0.1:1")
        assert "SSL_CERT_FILE" in error.message
        assert "none.pem" in error.message

    def test_file_without_certificates_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "ca.pem").write_text("no certificate")
        error = connect_failure("https://127.0.0.1:1", ca_file=str(tmp_path / "ca.pem"))
        assert "ca_file" in error.message

    def test_https_asked_of_a_plain_server(self) -> None:
        plain = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
        with socket.create_server(("127.0.0.1", 0)) as listener:
            accept_one(listener, plain)
            error = connect_failure(f"https://127.0.0.1:{listener.getsockname()[1]}")
        assert "does not speak TLS" in error.message
        assert error.hint == "try http://"

    def test_cut_in_the_middle_of_the_stream(self) -> None:
        with (
            WireServer(Reply(writes=[BODY], end="truncate"), tls=True) as server,
            pytest.raises(StreamBrokenError),
        ):
            read_answer(server.base_url, ca_file=str(CA_FILE))

    def test_idle_time_out(self) -> None:
        with (
            WireServer(Reply(writes=[BODY], end="hold"), tls=True) as server,
            pytest.raises(ServerTimeoutError) as e,
        ):
            read_answer(
                server.base_url,
                ca_file=str(CA_FILE),
                timeouts=Timeouts(idle_s=0.1),
                on_read=lambda exchange, _: exchange.progress(),
            )
        assert e.value.which is TimeoutKind.IDLE


class TestProxies:
    @pytest.fixture(autouse=True)
    def _dead_proxies(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever uses the environment's proxies where it must not, fails."""
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"])
    def test_never_for_this_machine(self, host: str) -> None:
        with WireServer(OK, host="::1" if host == "[::1]" else "127.0.0.1") as server:
            assert read_answer(f"http://{host}:{server.port}") == BODY

    def test_no_proxy_is_honoured(
        self, monkeypatch: pytest.MonkeyPatch, addresses: dict[str, Sequence[str]]
    ) -> None:
        monkeypatch.setenv("NO_PROXY", ".internal.test")
        addresses[NAME] = ["127.0.0.1"]
        with WireServer(OK) as server:
            assert read_answer(f"http://{NAME}:{server.port}") == BODY

    def test_other_hosts_go_through_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(OK) as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"me:p%77@127.0.0.1:{proxy.port}")
            assert read_answer("http://llm.example.com:8000/v1?key=K", headers={"Authorization": "x"}) == BODY
            sent = proxy.wait_for_request()
        assert sent.path == "http://llm.example.com:8000/v1/chat/completions?key=K"
        assert sent.headers["host"] == "llm.example.com:8000"
        assert sent.headers["proxy-authorization"] == "Basic bWU6cHc="

    def test_an_error_says_that_a_proxy_was_in_the_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(json_reply({"error": "no"}, status=403)) as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"http://me:pw@127.0.0.1:{proxy.port}")
            with pytest.raises(HttpStatusError) as failure:
                read_answer("http://llm.example.com")
        assert f"(through the proxy http://127.0.0.1:{proxy.port})" in failure.value.message

    def test_a_dead_proxy_is_named(self) -> None:
        error = connect_failure("http://llm.example.com")
        assert "cannot connect to the proxy 127.0.0.1:1: connection refused" in error.message

    @pytest.mark.parametrize("value", ["socks5h://127.0.0.1:9", "foo://bar", "http://h:bad", "https://h"])
    def test_an_unusable_one_matters_only_where_it_applies(
        self, monkeypatch: pytest.MonkeyPatch, value: str
    ) -> None:
        monkeypatch.setenv("HTTPS_PROXY", value)
        error = connect_failure("https://llm.example.com")
        assert f"the proxy {value} set for llm.example.com cannot be used" in error.message
        assert "HTTPS_PROXY" in (error.hint or "")
        with WireServer(OK, tls=True) as server:
            assert read_answer(server.base_url, verify=False) == BODY

    def test_https_is_tunnelled(
        self, monkeypatch: pytest.MonkeyPatch, addresses: dict[str, Sequence[str]]
    ) -> None:
        with WireServer(OK, tls=True) as server, Tunnel(server.port) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
            assert read_answer(f"https://{NAME}:{server.port}", ca_file=str(CA_FILE)) == BODY
            key = server.wait_for_request().headers
        assert proxy.request.startswith(f"CONNECT {NAME}:{server.port} HTTP/1.1".encode())
        assert b"Bearer" not in proxy.request
        assert key["host"] == f"{NAME}:{server.port}"

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (
                b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
                "refused: 407 Proxy Authentication Required",
            ),
            (b"", "was closed before the request was sent"),
            (b"what?", "does not answer in HTTP"),
        ],
    )
    def test_a_tunnel_that_fails(self, monkeypatch: pytest.MonkeyPatch, answer: bytes, message: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            accept_one(listener, answer)
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
            error = connect_failure("https://llm.example.com")
        assert message in error.message
        assert f"127.0.0.1:{port}" in error.message

    def test_a_tunnel_that_hangs_is_a_connect_time_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(Reply(transfer="none", end="hold")) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.base_url)
            with pytest.raises(ServerTimeoutError) as failure:
                read_answer("https://llm.example.com", timeouts=Timeouts(connect_s=0.2))
        assert failure.value.which is TimeoutKind.CONNECT


@pytest.mark.parametrize(
    ("no_proxy", "host", "excluded"),
    [
        ("", "a.test", False),
        ("*", "a.test", True),
        ("b.test, a.test", "a.test", True),
        ("A.Test", "a.test", True),
        ("test", "a.test", True),
        (".test", "a.test", True),
        ("*.test", "a.test", True),
        (".a.test", "a.test", True),
        ("a.test", "ba.test", False),
        ("a.test:8000", "a.test", True),
        ("a.test:9000", "a.test", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("0.0.1", "10.0.0.1", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/99", "10.1.2.3", False),
        ("fd00::1", "fd00::1", True),
        ("[fd00::1]", "fd00::1", True),
        ("[fd00::1]:8000", "fd00::1", True),
        ("[fd00::1]:9000", "fd00::1", False),
        ("fd00::/8", "fd00::1", True),
        ("10.0.0.0/8", "fd00::1", False),
    ],
)
def test_no_proxy_rules(no_proxy: str, host: str, excluded: bool) -> None:
    assert is_excluded(no_proxy, host, 8000) is excluded


def accept_one(listener: socket.socket, answer: bytes) -> None:
    """Serve one connection: wait for its first bytes, send `answer`, close."""

    def work() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass

    threading.Thread(target=work, daemon=True).start()


class Tunnel:
    """An HTTP proxy for one CONNECT, which leads to `port` on this machine."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self.port: int = self._listener.getsockname()[1]
        self.request = b""

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            each.close()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._target))
        self._sockets += [client, server]
        while b"\r\n\r\n" not in self.request:
            self.request += client.recv(65536)
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        threading.Thread(target=self._copy, args=(server, client), daemon=True).start()
        self._copy(client, server)

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
