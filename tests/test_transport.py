"""One answer over a real socket: what is sent, every ending, every time-out, and Ctrl-C at any moment."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec

import pytest

from llmstream_cli import __version__
from llmstream_cli.errors import ConnectError, ServerTimeoutError, StreamBrokenError, TimeoutKind
from llmstream_cli.request import HttpRequest
from llmstream_cli.transport import Exchange, Target, Timeouts, ask_json, open_stream
from tests.support.transport import PATH, REQUEST, CtrlC, corpus_case, corpus_reply, read_answer
from tests.support.wire_server import NO_ANSWER, Reply, WireServer, Write, json_reply

CLOSE_LIMIT_S = 0.25
"""The connection is closed within milliseconds; the rest is for a busy machine."""
EVENT = b'data: {"a": 1}\n\n'
KEEP_ALIVES: list[Write] = [b": keep-alive\n\n", 0.02] * 200
SLOW = Timeouts(connect_s=30, first_token_s=30, idle_s=30)


def stalled(*writes: Write) -> Reply:
    return Reply(writes=writes, end="hold")


class TestRequest:
    def test_what_is_sent(self) -> None:
        request = HttpRequest(path=PATH, body={"text": "ä ✓"}, headers={"anthropic-version": "1"})
        with WireServer(Reply(writes=[EVENT])) as server:
            read_answer(f"{server.base_url}/v1/", request=request, headers={"Authorization": "Bearer k"})
            sent = server.wait_for_request()
        assert (sent.method, sent.path) == ("POST", PATH)
        assert sent.body == '{"text":"ä ✓"}'.encode()
        assert sent.headers == {
            "host": f"127.0.0.1:{server.port}",
            "user-agent": f"llmstream/{__version__}",
            "accept": "text/event-stream, application/x-ndjson, application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "content-length": str(len(sent.body)),
            "anthropic-version": "1",
            "authorization": "Bearer k",
        }

    def test_own_headers_can_be_replaced(self) -> None:
        with WireServer(Reply()) as server:
            read_answer(server.base_url, headers={"user-agent": "mine", "Accept": " */* "})
            sent = server.wait_for_request()
        assert (sent.headers["user-agent"], sent.headers["accept"]) == ("mine", "*/*")

    def test_the_last_of_a_name_in_any_case_is_sent_as_utf8(self) -> None:
        with WireServer(Reply()) as server:
            url = server.base_url.replace("//", "//me:pw@")
            read_answer(url, headers={"authorization": "Bearer kä", "Content-Length": "7"})
            sent = server.wait_for_request()
        assert sent.headers["authorization"].encode("latin-1").decode() == "Bearer kä"
        assert sent.headers["content-length"] == str(len(sent.body))

    def test_halves_of_characters_do_not_break_the_body(self) -> None:
        request = HttpRequest(path=PATH, body={"joined": "\ud83d\ude00", "lone": "\udcff"})
        with WireServer(Reply()) as server:
            read_answer(server.base_url, request=request)
            assert server.wait_for_request().json() == {"joined": "😀", "lone": "�"}

    def test_user_and_password_of_the_url_are_sent_but_not_shown(self) -> None:
        with WireServer(Reply()) as server:
            url = server.base_url.replace("//", "//me:p%40ss@") + "?key=SECRET"
            with open_stream(Target(base_url=url), REQUEST, timeouts=Timeouts()) as exchange:
                assert exchange.url == f"{server.base_url}{PATH}?key=***"
            sent = server.wait_for_request()
        assert sent.headers["authorization"] == "Basic bWU6cEBzcw=="
        assert sent.path == f"{PATH}?key=SECRET"

    def test_get_has_no_body(self) -> None:
        with WireServer(Reply()) as server:
            read_answer(server.base_url, request=HttpRequest(path="/health", body={}, method="GET"))
            sent = server.wait_for_request()
        assert (sent.method, sent.body) == ("GET", b"")
        assert "content-type" not in sent.headers


class TestAnswer:
    def test_facts_of_the_exchange(self) -> None:
        headers = [("Content-Type", "text/event-stream; charset=utf-8"), ("Content-Encoding", "GZIP")]
        with (
            WireServer(Reply(writes=[EVENT, 0.05, EVENT], headers=headers)) as server,
            open_stream(Target(base_url=server.base_url), REQUEST, timeouts=Timeouts()) as exchange,
        ):
            reads = list(exchange.reads())
            assert (exchange.method, exchange.path, exchange.status) == ("POST", PATH, 200)
            assert exchange.content_type == "text/event-stream; charset=utf-8"
            assert exchange.content_encoding == "gzip"
            assert exchange.headers[0] == headers[0]
            assert 0 < exchange.headers_s <= reads[0][0] < reads[-1][0] <= exchange.elapsed_s() < 5
            assert reads[-1][0] - reads[0][0] >= 0.04
            assert b"".join(data for _, data in reads) == EVENT * 2

    @pytest.mark.parametrize("transfer", ["chunked", "length", "close"])
    def test_every_way_to_delimit_a_body(self, transfer: str) -> None:
        reply = Reply(writes=[EVENT, EVENT], transfer=transfer)  # type: ignore[arg-type]
        with WireServer(reply) as server:
            assert read_answer(server.base_url) == EVENT * 2

    def test_single_byte_writes(self) -> None:
        body = EVENT * 20
        with WireServer(Reply(writes=[body[at : at + 1] for at in range(len(body))])) as server:
            assert read_answer(server.base_url) == body

    def test_a_byte_is_handed_over_when_it_comes(self) -> None:
        gate = threading.Event()
        with WireServer(Reply(writes=[EVENT, gate, EVENT])) as server:
            body = read_answer(server.base_url, timeouts=SLOW, on_read=lambda *_: gate.set())
        assert body == EVENT * 2

    def test_chunk_borders_mean_nothing(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire = head + b"3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
        with WireServer(
            Reply(writes=[wire[at : at + 1] for at in range(len(wire))], transfer="none")
        ) as server:
            assert read_answer(server.base_url) == b"abcde"

    def test_leaving_early_closes_the_connection(self) -> None:
        with WireServer(stalled(EVENT)) as server:
            with open_stream(Target(base_url=server.base_url), REQUEST, timeouts=SLOW) as exchange:
                assert next(exchange.reads())[1] == EVENT
                left = time.monotonic()
            assert server.wait_for_request().wait_closed() - left < CLOSE_LIMIT_S
            exchange.close()

    def test_read_all_stops_at_its_limit(self) -> None:
        with (
            WireServer(stalled(b"x" * 100)) as server,
            open_stream(Target(base_url=server.base_url), REQUEST, timeouts=SLOW) as exchange,
        ):
            assert exchange.read_all(limit=10) == b"x" * 10


class TestBrokenEnds:
    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (Reply(writes=[EVENT], end="truncate"), "closed in the middle"),
            (Reply(writes=[EVENT], transfer="length", length=1000), "closed in the middle"),
            (Reply(writes=[EVENT, 0.1], end="reset"), "reset in the middle"),
            (
                Reply(
                    writes=[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
                    transfer="none",
                    end="hold",
                ),
                "breaks the rules of HTTP",
            ),
            (Reply(writes=[b"HTTP/1.1 200 OK\r\nContent-"], transfer="none"), "within the headers"),
        ],
    )
    def test_a_cut_is_told_from_a_reset(self, reply: Reply, message: str) -> None:
        with WireServer(reply) as server, pytest.raises(StreamBrokenError, match=message):
            read_answer(server.base_url)
        assert len(server.requests) == 1

    def test_what_came_before_the_cut_is_handed_over(self) -> None:
        seen: list[bytes] = []
        with (
            WireServer(Reply(writes=[EVENT, EVENT], end="truncate")) as server,
            pytest.raises(StreamBrokenError),
        ):
            read_answer(server.base_url, on_read=lambda _, data: seen.append(data))
        assert b"".join(seen) == EVENT * 2

    def test_no_answer_is_tried_once_more(self) -> None:
        assert corpus_case("disconnect-not-in-retry-set")["end"].startswith("accept, read the request, close")
        with WireServer(NO_ANSWER, Reply(writes=[EVENT])) as server:
            assert read_answer(server.base_url) == EVENT
        assert len(server.requests) == 2

    @pytest.mark.parametrize("end", ["clean", "reset"])
    def test_no_answer_twice_is_final(self, end: str) -> None:
        reply = Reply(transfer="none", end=end)  # type: ignore[arg-type]
        with WireServer(reply) as server, pytest.raises(StreamBrokenError, match="without answering"):
            read_answer(server.base_url, retries=5)
        assert len(server.requests) == 2

    def test_no_answer_is_final_without_retries(self) -> None:
        with WireServer(NO_ANSWER) as server, pytest.raises(StreamBrokenError, match="without answering"):
            read_answer(server.base_url, retries=0)
        assert len(server.requests) == 1

    def test_what_is_not_http(self) -> None:
        reply = Reply(writes=[b"SSH-2.0-OpenSSH_9.6\r\n"], transfer="none", end="hold")
        with (
            WireServer(reply) as server,
            pytest.raises(ConnectError, match="does not answer in HTTP") as failure,
        ):
            read_answer(server.base_url)
        assert "https://" in (failure.value.hint or "")


def progress(exchange: Exchange, data: bytes) -> None:
    if data.startswith(b"data:"):
        exchange.progress()


class TestTimeouts:
    @pytest.mark.parametrize(
        ("reply", "timeouts", "which", "message"),
        [
            (
                Reply(transfer="none", end="hold"),
                Timeouts(first_token_s=0.2),
                TimeoutKind.FIRST_TOKEN,
                r"0.2 s .*--first-token-timeout",
            ),
            (stalled(), Timeouts(first_token_s=0.2), TimeoutKind.FIRST_TOKEN, "--first-token-timeout"),
            (
                stalled(EVENT),
                Timeouts(idle_s=0.2),
                TimeoutKind.IDLE,
                r"no event for 0.2 s \(--idle-timeout\)",
            ),
            (stalled(EVENT), Timeouts(total_s=0.2), TimeoutKind.TOTAL, r"0.2 s \(--timeout\)"),
            (
                Reply(writes=KEEP_ALIVES),
                Timeouts(first_token_s=0.2),
                TimeoutKind.FIRST_TOKEN,
                "first-token",
            ),
            (
                Reply(writes=[EVENT, *KEEP_ALIVES]),
                Timeouts(idle_s=0.2),
                TimeoutKind.IDLE,
                "idle",
            ),
            (Reply(writes=[EVENT, 0.02] * 200), Timeouts(total_s=0.2), TimeoutKind.TOTAL, "timeout"),
            (
                Reply(writes=[b"H", 0.02] * 200, transfer="none"),
                Timeouts(first_token_s=0.2),
                TimeoutKind.FIRST_TOKEN,
                "first-token",
            ),
        ],
        ids=[
            "no headers",
            "no token",
            "silence",
            "total",
            "keep-alives only",
            "keep-alives after an event",
            "endless",
            "dripping headers",
        ],
    )
    def test_each_names_itself_and_closes(
        self, reply: Reply, timeouts: Timeouts, which: TimeoutKind, message: str
    ) -> None:
        began = time.monotonic()
        with WireServer(reply) as server:
            with pytest.raises(ServerTimeoutError, match=message) as failure:
                read_answer(server.base_url, timeouts=timeouts, on_read=progress)
            raised = time.monotonic()
            assert server.wait_for_request().wait_closed() - raised < CLOSE_LIMIT_S
        assert failure.value.which is which
        assert 0.2 <= raised - began < 2

    def test_progress_restarts_the_idle_clock(self) -> None:
        reply = Reply(writes=[EVENT, 0.1] * 6)
        with WireServer(reply) as server:
            body = read_answer(server.base_url, timeouts=Timeouts(idle_s=0.4), on_read=progress)
        assert body == EVENT * 6

    def test_a_slow_first_token_is_waited_for(self) -> None:
        with WireServer(corpus_reply("header-sent-early-first-token-late")) as server:
            body = read_answer(server.base_url, timeouts=Timeouts(idle_s=0.1), on_read=progress)
        assert b"worth the wait" in body
        assert len(server.requests) == 1

    def test_a_cold_model_is_waited_for(self) -> None:
        with WireServer(corpus_reply("cold-load-mistaken-for-dead-server")) as server:
            assert b"load_duration" in read_answer(server.base_url, timeouts=Timeouts(idle_s=0.1))

    def test_a_stall_in_the_middle_of_an_answer(self) -> None:
        seen: list[bytes] = []

        def note(exchange: Exchange, data: bytes) -> None:
            seen.append(data)
            exchange.progress()

        with (
            WireServer(corpus_reply("stall-in-mid-answer")) as server,
            pytest.raises(ServerTimeoutError) as failure,
        ):
            read_answer(server.base_url, timeouts=Timeouts(idle_s=0.2), on_read=note)
        assert failure.value.which is TimeoutKind.IDLE
        assert b"first I" in b"".join(seen)

    @pytest.mark.parametrize("writes", [[EVENT], [EVENT, *KEEP_ALIVES]])
    def test_after_settling_silence_is_a_normal_end(self, writes: list[Write]) -> None:
        with WireServer(Reply(writes=writes, end="hold")) as server:
            body = read_answer(
                server.base_url, timeouts=SLOW, on_read=lambda exchange, _: self.settle_once(exchange)
            )
        assert body.startswith(EVENT)

    settled: set[Exchange]

    @pytest.fixture(autouse=True)
    def _forget(self) -> None:
        self.settled = set()

    def settle_once(self, exchange: Exchange) -> None:
        if exchange not in self.settled:
            self.settled.add(exchange)
            exchange.settle(0.15)

    def test_hanging_handshake_is_a_connect_time_out(self) -> None:
        with (
            WireServer(Reply()) as server,
            pytest.raises(ServerTimeoutError, match="--connect-timeout") as failure,
        ):
            read_answer(server.base_url.replace("http", "https"), timeouts=Timeouts(connect_s=0.2))
        assert failure.value.which is TimeoutKind.CONNECT

    def test_hanging_name_look_up_is_a_connect_time_out(self, hanging_look_up: threading.Event) -> None:
        with pytest.raises(ServerTimeoutError) as failure:
            read_answer("http://slow.test", timeouts=Timeouts(connect_s=0.2))
        assert failure.value.which is TimeoutKind.CONNECT
        assert hanging_look_up.is_set()


@pytest.fixture
def hanging_look_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Name look-ups never return; the event tells that one has begun."""
    begun = threading.Event()

    def hang(*_: object, **__: object) -> None:
        begun.set()
        threading.Event().wait()

    monkeypatch.setattr("socket.getaddrinfo", hang)
    return begun


class TestInterrupt:
    @pytest.mark.parametrize(
        "reply",
        [Reply(transfer="none", end="hold"), stalled(), stalled(EVENT)],
        ids=["before the headers", "in prefill", "mid-stream"],
    )
    def test_closes_at_once(self, reply: Reply) -> None:
        with WireServer(reply) as server:
            press = CtrlC(server.wait_for_request)
            with pytest.raises(KeyboardInterrupt):
                read_answer(server.base_url, timeouts=SLOW)
            assert server.requests[0].wait_closed() - press.at < CLOSE_LIMIT_S

    def test_between_two_reads(self) -> None:
        with WireServer(stalled(EVENT)) as server:
            with pytest.raises(KeyboardInterrupt):
                read_answer(server.base_url, on_read=self.raise_interrupt)
            assert server.wait_for_request().closed.wait(CLOSE_LIMIT_S)

    @staticmethod
    def raise_interrupt(exchange: Exchange, data: bytes) -> None:
        raise KeyboardInterrupt

    def test_during_a_look_up(self, hanging_look_up: threading.Event) -> None:
        press = CtrlC(hanging_look_up.wait)
        with pytest.raises(KeyboardInterrupt):
            read_answer("http://slow.test", timeouts=SLOW)
        assert time.monotonic() - press.at < CLOSE_LIMIT_S

    def test_during_a_handshake(self) -> None:
        with WireServer(Reply()) as server:
            press = CtrlC(server.wait_for_bytes)
            with pytest.raises(KeyboardInterrupt):
                read_answer(server.base_url.replace("http", "https"), timeouts=SLOW)
            assert time.monotonic() - press.at < CLOSE_LIMIT_S

    def test_during_a_wait(self) -> None:
        waiting = threading.Event()
        press = CtrlC(waiting.wait)
        with (
            WireServer(json_reply({}, status=429, headers=[("Retry-After", "30")])) as server,
            pytest.raises(KeyboardInterrupt),
        ):
            read_answer(server.base_url, on_wait=lambda _: waiting.set())
        assert time.monotonic() - press.at < CLOSE_LIMIT_S

    def test_no_thread_delays_the_exit(self) -> None:
        code = """
import socket, threading
from llmstream_cli.errors import ServerTimeoutError
from llmstream_cli.request import HttpRequest
from llmstream_cli.transport import *
socket.getaddrinfo = lambda *_, **__: threading.Event().wait()
try:
    with open_stream(Target(base_url="http://slow.test"), HttpRequest(path="/", body={}),
                     timeouts=Timeouts(connect_s=0.05)):
        pass
except ServerTimeoutError:
    print("timed out")
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20, check=True)
        assert done.stdout.split() == [b"timed", b"out"]


class TestAskJson:
    def test_any_status_is_an_answer(self) -> None:
        with WireServer(json_reply({"error": "no"}, status=404, headers=[("Server", "llama.cpp")])) as server:
            answer = ask_json(Target(base_url=server.base_url), "GET", "/props")
        assert (answer.status, answer.json, answer.text) == (404, {"error": "no"}, '{"error": "no"}')
        assert answer.headers["server"] == "llama.cpp"

    def test_body_and_text(self) -> None:
        with WireServer(Reply(writes=[b"Ollama is running"])) as server:
            answer = ask_json(Target(base_url=server.base_url), "POST", "/tokenize", {"content": "x"})
            assert server.wait_for_request().json() == {"content": "x"}
        assert (answer.json, answer.text) == (None, "Ollama is running")

    def test_get_follows_redirects(self) -> None:
        moved = Reply(status=301, headers=[("Location", "/elsewhere")])
        with WireServer(moved, json_reply([1])) as server:
            assert ask_json(Target(base_url=server.base_url), "GET", "/models").json == [1]
        assert [request.path for request in server.requests] == ["/models", "/elsewhere"]

    @pytest.mark.parametrize(
        "reply", [NO_ANSWER, Reply(writes=[b"{"], end="truncate"), Reply(status=200, end="reset")]
    )
    def test_a_broken_answer_is_a_connect_error(self, reply: Reply) -> None:
        with WireServer(reply) as server, pytest.raises(ConnectError):
            ask_json(Target(base_url=server.base_url), "GET", "/props")
        assert len(server.requests) == 1

    def test_time_out_covers_everything(self) -> None:
        with WireServer(Reply(writes=[b"x", 0.02] * 200)) as server, pytest.raises(ServerTimeoutError):
            ask_json(Target(base_url=server.base_url), "GET", "/props", timeout_s=0.2)


def loaded(code: str, names: set[str]) -> set[str]:
    """Those of the modules `names` that a fresh interpreter has loaded after `code`."""
    code = f"import sys; {code}; print(*{names} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True
    )
    return set(done.stdout.split())


def test_importing_the_transport_loads_no_network_code() -> None:
    assert loaded("import llmstream_cli.transport", {"httpcore", "h11", "ssl", "httpx"}) == set()


def test_a_request_does_not_load_the_command_line_of_httpx() -> None:
    assert find_spec("click"), "without click, httpx would not load it anyway"
    names = {"httpx", "click", "pygments", "rich"}
    with WireServer(json_reply({})) as server:
        url = server.base_url
        ask = f"from llmstream_cli.transport import *; ask_json(Target(base_url={url!r}), 'GET', '/')"
        assert loaded(ask, names) == {"httpx"}


def test_no_key_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with WireServer(Reply()) as server:
        read_answer(f"{server.base_url}?key=SECRET", headers={"Authorization": "Bearer SECRET"})
    assert caplog.records
    assert "SECRET" not in caplog.text


def test_progress_costs_next_to_nothing() -> None:
    calls = 20_000
    with (
        WireServer(stalled(EVENT)) as server,
        open_stream(Target(base_url=server.base_url), REQUEST, timeouts=Timeouts()) as exchange,
    ):
        best_s = min(timed(exchange.progress, calls) for _ in range(5))
    assert best_s / calls < 2e-6


def timed(work: Callable[[], None], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        work()
    return time.perf_counter() - began
