"""Error statuses, redirects, retries and waits; keys that must not leave the transport."""

import gzip
import threading
import time
from dataclasses import replace
from email.utils import formatdate

import pytest

from llmstream_cli.errors import ConfigError, ExitCode, HttpStatusError, ServerTimeoutError, TimeoutKind
from llmstream_cli.request import HttpRequest
from llmstream_cli.transport import Timeouts, WaitNotice
from llmstream_cli.transport.masking import Mask
from llmstream_cli.transport.status import parse_retry_after
from tests.support.transport import PATH, corpus_reply, read_answer
from tests.support.wire_server import WAIT_S, Received, Reply, WireServer, json_reply

OK = Reply(writes=[b"data: ok\n\n"])
KEY = "sk-test-SECRET1234567890"
LOADING = json_reply({"error": {"message": "Loading model", "code": 503}}, status=503)


def failing(status: int, *headers: tuple[str, str]) -> Reply:
    return json_reply({"error": {"message": "not now"}}, status=status, headers=headers)


def status_failure(*replies: Reply, retries: int = 0, secrets: tuple[str, ...] = ()) -> HttpStatusError:
    with WireServer(*replies) as server, pytest.raises(HttpStatusError) as failure:
        read_answer(server.base_url, retries=retries, secrets=secrets)
    return failure.value


class TestStatus:
    def test_the_message_says_what_was_asked_and_what_came_back(self) -> None:
        with (
            WireServer(corpus_reply("plain-404-parsed-as-json")) as server,
            pytest.raises(HttpStatusError) as failure,
        ):
            read_answer(server.base_url, request=HttpRequest(path="/api/chat", body={}))
        error = failure.value
        assert error.message == f"404 X from POST {server.base_url}/api/chat: 404 page not found".replace(
            " X", " OK"
        )
        assert (error.status, error.body, error.content_type) == (404, b"404 page not found", "text/plain")
        assert error.exit_code is ExitCode.HTTP_CLIENT
        assert "base URL" in (error.hint or "")

    def test_a_html_page_becomes_its_title(self) -> None:
        page = replace(corpus_reply("html-error-page-inside-stream"), status=503)
        error = status_failure(page)
        assert error.message.endswith("503 Service Temporarily Unavailable (text/html)")
        assert "<" not in error.message
        assert error.exit_code is ExitCode.HTTP_SERVER

    def test_a_key_that_the_server_echoes_is_masked(self) -> None:
        error = status_failure(corpus_reply("key-in-exception-text"), secrets=(KEY,))
        assert "Incorrect API key provided: ***" in error.message
        assert b"Incorrect API key" in error.body
        assert "SECRET" not in error.message + error.body.decode() + str(error.headers)

    def test_bearer_values_are_masked_even_if_unknown(self) -> None:
        error = status_failure(corpus_reply("key-in-exception-text"))
        assert f"Bearer {KEY}" not in error.message
        assert "Bearer ***" in error.message

    def test_secrets_of_the_url_are_masked(self) -> None:
        def echo(request: Received) -> Reply:
            return Reply(writes=[f"no {request.path} for hunter2".encode()], status=400)

        with WireServer(echo) as server, pytest.raises(HttpStatusError) as failure:
            read_answer(server.base_url.replace("//", "//me:hunter2@") + "?key=SECRETKEY")
        shown = failure.value.message + failure.value.body.decode() + failure.value.url
        assert "SECRETKEY" not in shown
        assert "hunter2" not in shown

    def test_headers_are_masked(self) -> None:
        error = status_failure(Reply(status=400, headers=[("X-Echo", f"key {KEY}")]), secrets=(KEY,))
        assert ("X-Echo", "key ***") in error.headers

    def test_a_compressed_error_is_read(self) -> None:
        headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")]
        error = status_failure(Reply(writes=[gzip.compress(b'{"error": "no"}')], status=400, headers=headers))
        assert error.body == b'{"error": "no"}'
        assert error.message.endswith(": no")

    def test_a_huge_body_is_cut(self) -> None:
        error = status_failure(Reply(writes=[b"x" * 1000] * 200, status=400))
        assert len(error.body) == 64 * 1024
        assert len(error.message) < 1000

    def test_a_broken_body_does_not_hide_the_status(self) -> None:
        error = status_failure(Reply(writes=[b"half an err"], status=400, end="truncate"))
        assert (error.status, error.body) == (400, b"half an err")

    def test_a_body_that_never_ends_is_not_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("llmstream_cli.transport.status.ERROR_BODY_S", 0.1)
        error = status_failure(Reply(writes=[b"no"], status=400, end="hold"))
        assert (error.status, error.body) == (400, b"no")

    def test_a_key_that_cannot_be_a_header_is_not_shown(self) -> None:
        with WireServer(OK) as server, pytest.raises(ConfigError) as failure:
            read_answer(server.base_url, headers={"Authorization": f"Bearer {KEY}\n{KEY}"})
        assert "SECRET" not in failure.value.message

    def test_a_key_that_is_no_text_is_not_shown(self) -> None:
        with WireServer(OK) as server, pytest.raises(ConfigError, match="header") as failure:
            read_answer(server.base_url, headers={"Authorization": "Bearer SECRET\udcff"})
        assert "SECRET" not in failure.value.message

    def test_a_key_with_white_space_around_it_works(self) -> None:
        with WireServer(OK) as server:
            read_answer(server.base_url, headers={"Authorization": f"Bearer {KEY}\n"})
            assert server.wait_for_request().headers["authorization"] == f"Bearer {KEY}"

    def test_a_senseless_base_url_is_a_config_error(self) -> None:
        with pytest.raises(ConfigError, match="base URL"):
            read_answer("ftp://h")


def test_the_longer_secret_is_masked_first() -> None:
    mask = Mask(["abc", "abcdef", " ", "a/b"])
    assert mask.text("abcdef abc a/b a%2Fb x") == "*** *** *** *** x"
    assert mask.data(b"\xff abc") == b"\xff ***"
    assert Mask([]).text("you must send a Bearer token") == "you must send a Bearer token"


class TestRedirects:
    @pytest.mark.parametrize("status", [307, 308])
    def test_same_origin_is_followed_with_everything(self, status: int) -> None:
        with WireServer(Reply(status=status, headers=[("Location", "/other?x=1")]), OK) as server:
            body = read_answer(server.base_url, headers={"Authorization": "Bearer k"})
        first, second = server.requests
        assert body == b"data: ok\n\n"
        assert (second.method, second.path, second.body) == ("POST", "/other?x=1", first.body)
        assert second.headers["authorization"] == "Bearer k"

    def test_cookies_are_not_kept(self) -> None:
        moved = Reply(status=307, headers=[("Set-Cookie", "a=b"), ("Location", "/other")])
        with WireServer(moved, OK) as server:
            read_answer(server.base_url)
        assert "cookie" not in server.requests[1].headers

    def test_another_origin_gets_no_secret(self) -> None:
        secret_headers = {"Authorization": f"Bearer {KEY}", "x-api-key": KEY, "Cookie": "c=1", "X-Mine": KEY}
        request = HttpRequest(
            path=PATH,
            body={"a": 1},
            headers={"x-goog-api-key": KEY, "X-Other": KEY, "anthropic-version": "1"},
        )
        with WireServer(OK) as other:
            moved = Reply(status=307, headers=[("Location", f"{other.base_url}{PATH}")])
            with WireServer(moved) as server:
                url = server.base_url.replace("//", "//me:pw@") + "?key=SECRETKEY"
                read_answer(url, headers=secret_headers, secrets=(KEY,), request=request)
            sent = other.wait_for_request()
            first = server.wait_for_request()
        assert first.headers["x-goog-api-key"] == first.headers["x-mine"] == KEY
        assert sent.body == b'{"a":1}'
        assert sent.headers["anthropic-version"] == "1"
        assert sent.headers["host"] == f"127.0.0.1:{other.port}"
        shown = repr((sent.path, sent.headers))
        assert not any(word in shown for word in ("SECRET", "cookie", "authorization", "api-key", "x-mine"))

    def test_a_loop_ends_after_three(self) -> None:
        with (
            WireServer(Reply(status=307, headers=[("Location", "/round")])) as server,
            pytest.raises(HttpStatusError, match=r"redirected to .*/round"),
        ):
            read_answer(server.base_url)
        assert len(server.requests) == 4

    @pytest.mark.parametrize("status", [301, 302, 303])
    def test_a_post_never_becomes_a_get(self, status: int) -> None:
        location = "https://me:pw@api.example.com/base/v1/chat/completions?key=SECRET"
        with (
            WireServer(Reply(status=status, headers=[("Location", location)])) as server,
            pytest.raises(HttpStatusError) as failure,
        ):
            read_answer(server.base_url)
        error = failure.value
        assert [request.method for request in server.requests] == ["POST"]
        assert "redirected to https://api.example.com/base/v1/chat/completions?key=***" in error.message
        assert error.hint == "if you trust it, set the base URL to https://api.example.com/base"

    def test_the_location_of_the_corpus_is_shown(self) -> None:
        error = status_failure(corpus_reply("post-turned-into-get"))
        assert "https://127.0.0.1/v1/chat/completions" in error.message

    def test_never_from_https_to_http(self) -> None:
        from tests.support.wire_server import CA_FILE

        moved = Reply(status=307, headers=[("Location", "http://127.0.0.1:1/")])
        with WireServer(moved, tls=True) as server, pytest.raises(HttpStatusError, match="307"):
            read_answer(server.base_url, ca_file=str(CA_FILE))

    @pytest.mark.parametrize("location", ["", "ftp://h/", "http://[bad"])
    def test_a_useless_location(self, location: str) -> None:
        error = status_failure(Reply(status=308, headers=[("Location", location)]))
        assert error.status == 308


class TestRetries:
    @pytest.mark.parametrize("status", [429, 502, 503, 504, 529])
    def test_an_overloaded_server_is_asked_again(self, status: int) -> None:
        notices: list[WaitNotice] = []
        with WireServer(failing(status, ("Retry-After", "0.01")), OK) as server:
            assert read_answer(server.base_url, on_wait=notices.append) == b"data: ok\n\n"
        (notice,) = notices
        assert (notice.seconds, notice.attempt) == (0.01, 1)
        assert f"({status})" in notice.reason

    @pytest.mark.parametrize("status", [400, 401, 404, 422, 500, 501])
    def test_other_errors_are_final(self, status: int) -> None:
        with WireServer(failing(status, ("Retry-After", "0"))) as server, pytest.raises(HttpStatusError):
            read_answer(server.base_url, retries=5)
        assert len(server.requests) == 1

    def test_the_back_off_doubles(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("llmstream_cli.transport.retrying.FIRST_BACKOFF_S", 0.01)
        notices: list[WaitNotice] = []
        with WireServer(failing(429)) as server, pytest.raises(HttpStatusError):
            read_answer(server.base_url, retries=3, on_wait=notices.append)
        assert [notice.seconds for notice in notices] == [0.01, 0.02, 0.04]
        assert [notice.attempt for notice in notices] == [1, 2, 3]
        assert len(server.requests) == 4

    def test_the_notice_comes_before_the_wait(self) -> None:
        noticed = threading.Event()
        done: list[bytes] = []
        with WireServer(failing(429, ("Retry-After", "1")), OK) as server:
            work = threading.Thread(
                target=lambda: done.append(read_answer(server.base_url, on_wait=lambda _: noticed.set()))
            )
            work.start()
            assert noticed.wait(WAIT_S)
            assert len(server.requests) == 1
            work.join(WAIT_S)
        assert done == [b"data: ok\n\n"]

    def test_retry_after_of_the_corpus_is_announced(self) -> None:
        class Enough(Exception):
            pass

        def stop(notice: WaitNotice) -> None:
            assert (notice.reason, notice.seconds) == ("rate limited (429)", 50)
            raise Enough

        with WireServer(corpus_reply("silent-hang-on-429")) as server, pytest.raises(Enough):
            read_answer(server.base_url, on_wait=stop)

    @pytest.mark.parametrize("retries", [0, 2])
    def test_an_absurd_retry_after_fails_at_once(self, retries: int) -> None:
        began = time.monotonic()
        error = status_failure(corpus_reply("absurd-retry-after"), retries=retries)
        assert time.monotonic() - began < 2
        assert error.retry_after_s == 86400
        assert error.hint == "the server asks to wait 86400 s, longer than the 60 s waited for"

    def test_the_wait_asked_for_is_named_without_retries(self) -> None:
        assert status_failure(failing(429, ("Retry-After", "20"))).hint == "the server asks to wait 20 s"
        assert status_failure(failing(429, ("Retry-After", "0"))).hint is None

    def test_a_wait_beyond_the_total_time_out_is_pointless(self) -> None:
        with WireServer(failing(429, ("Retry-After", "20"))) as server, pytest.raises(HttpStatusError):
            read_answer(server.base_url, timeouts=Timeouts(total_s=5))
        assert len(server.requests) == 1

    def test_a_server_that_forbids_it_is_not_asked_again(self) -> None:
        reply = failing(429, ("x-should-retry", "false"), ("Retry-After", "0"))
        with WireServer(reply) as server, pytest.raises(HttpStatusError):
            read_answer(server.base_url)
        assert len(server.requests) == 1


class TestLoading:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("llmstream_cli.transport.retrying._LOADING_POLL_S", (0.01, 0.02))

    def test_is_waited_for_without_using_up_retries(self) -> None:
        notices: list[WaitNotice] = []
        with WireServer(*[LOADING] * 5, OK) as server:
            assert read_answer(server.base_url, retries=0, on_wait=notices.append) == b"data: ok\n\n"
        assert {notice.reason for notice in notices} == {"server is loading the model (503)"}
        assert [notice.attempt for notice in notices] == [1, 2, 3, 4, 5]
        assert [notice.seconds for notice in notices] == pytest.approx([0.01, 0.015, 0.02, 0.02, 0.02])

    def test_ends_at_the_first_token_time_out(self) -> None:
        with (
            WireServer(LOADING) as server,
            pytest.raises(
                ServerTimeoutError, match=r"still loading .* 0.2 s .*--first-token-timeout"
            ) as failure,
        ):
            read_answer(server.base_url, timeouts=Timeouts(first_token_s=0.2))
        assert failure.value.which is TimeoutKind.FIRST_TOKEN
        assert len(server.requests) > 2


NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        (" 50 ", 50.0),
        ("1.5", 1.5),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e9", None),
        ("٣", None),
        ("9" * 400, None),
        ("Foo, 99 Bar 2020", None),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert parse_retry_after(text, now=NOW) == seconds
