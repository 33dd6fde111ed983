"""Base URLs: what people type, what is asked, and what may be shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmstream_cli.urls import (
    host_of,
    is_loopback,
    join_url,
    normalise_base_url,
    origin,
    redact_url,
    split_url,
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("http://localhost:8080", "http://localhost:8080"),
        ("localhost:8080/v1/", "http://localhost:8080/v1"),
        ("  http://h/v1//  ", "http://h/v1"),
        ("HTTP://Host.Example.com/Path", "http://host.example.com/Path"),
        ("https://api.example.com:443/v1", "https://api.example.com/v1"),
        ("http://h:80", "http://h"),
        ("http://u:p%40@h:81/v1?key=a&b=c#frag", "http://u:p%40@h:81/v1?key=a&b=c"),
        ("http:localhost:1", "http://localhost:1"),
        ("http:/localhost:1", "http://localhost:1"),
        ("//h/v1", "http://h/v1"),
        ("localhost:/v1", "http://localhost/v1"),
        ("http://h/a%20b", "http://h/a%20b"),
        ("http://h/ä", "http://h/%C3%A4"),
        ("münchen.example", "https://xn--mnchen-3ya.example"),
    ],
)
def test_forgiving_forms(typed: str, meant: str) -> None:
    assert normalise_base_url(typed) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("api.example.com", "https://api.example.com"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("api.example.com:443", "https://api.example.com"),
        ("api.example.com:8000", "http://api.example.com:8000"),
        ("localhost", "http://localhost"),
        ("gpubox", "http://gpubox"),
        ("gpubox.local", "http://gpubox.local"),
        ("192.168.1.5", "http://192.168.1.5"),
        ("8.8.8.8", "http://8.8.8.8"),
    ],
)
def test_scheme_is_guessed_only_where_none_is_given(typed: str, meant: str) -> None:
    assert normalise_base_url(typed) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("[::1]:8080", "http://[::1]:8080"),
        ("::1", "http://[::1]"),
        ("::1:8080", "http://[::1]:8080"),
        ("::1:11434", "http://[::1]:11434"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("2001:db8::7", "http://[2001:db8::7]"),
        ("fe80::1%eth0", "http://[fe80::1%eth0]"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("http://0.0.0.0:1", "http://127.0.0.1:1"),
        ("[::]:9", "http://[::1]:9"),
        (":8080", "http://localhost:8080"),
    ],
)
def test_addresses_and_wildcards(typed: str, meant: str) -> None:
    assert normalise_base_url(typed) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("localhost", "http://localhost:11434"),
        ("127.0.0.1:1234/", "http://127.0.0.1:1234"),
        (":1234", "http://localhost:1234"),
        ("[::1]:1234", "http://[::1]:1234"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("ollama.example.com", "http://ollama.example.com:11434"),
        ("http://localhost", "http://localhost"),
        ("https://h.example.com/prefix/", "https://h.example.com/prefix"),
        ("h.example.com/prefix/", "http://h.example.com:11434/prefix"),
    ],
)
def test_forms_of_ollama_host(typed: str, meant: str) -> None:
    assert normalise_base_url(typed, default_port=11434) == meant


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("two words", "spaces"),
        ("http://h/\x1b[31m", "control characters"),
        ("ftp://h", "unsupported scheme 'ftp'"),
        ("h:99999", "bad port '99999'"),
        ("h:0", "bad port '0'"),
        ("h:-1", "bad port"),
        ("h:²", "bad port"),
        ("http://h:x", "bad port 'x'"),
        ("http://", "no host"),
        ("/v1", "no host"),
        ("[::1", "brackets"),
        ("[nonsense]:1", "brackets"),
        ("[::1]x", "brackets"),
        ("a:b:3", "not a host name"),
        ("back\\slash", "not a host name"),
        ("ä" * 80 + ".com", "not a host name"),
    ],
)
def test_nonsense_is_named(typed: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        normalise_base_url(typed)


def test_error_shows_no_password() -> None:
    with pytest.raises(ValueError) as failure:
        normalise_base_url("http://me:hunter2@h:bad?key=hunter3")
    assert "hunter" not in str(failure.value)


@given(st.text(max_size=60))
def test_any_text_is_a_url_or_a_value_error(typed: str) -> None:
    try:
        url = normalise_base_url(typed)
    except ValueError:
        return
    assert normalise_base_url(url) == url
    assert split_url(url).scheme in ("http", "https")


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("http://h", "/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1", "/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1/", "/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1//", "/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/proxy/v1", "/v1/models", "http://h/proxy/v1/models"),
        ("http://h/api/paas/v4", "/v1/chat/completions", "http://h/api/paas/v4/chat/completions"),
        ("http://h/v1beta/openai", "/v1/chat/completions", "http://h/v1beta/openai/chat/completions"),
        ("http://h/openai", "/v1/chat/completions", "http://h/openai/v1/chat/completions"),
        ("http://h/v1", "/api/chat", "http://h/api/chat"),
        ("http://h/x/v1/", "/completion", "http://h/x/completion"),
        ("http://h/x", "/generate_stream", "http://h/x/generate_stream"),
        ("http://h/v1", "/version", "http://h/version"),
        ("http://h/v1?key=1", "/v1/models", "http://h/v1/models?key=1"),
        ("http://h?key=1", "/v1/stream?alt=sse", "http://h/v1/stream?alt=sse&key=1"),
        ("http://u:p@[::1]:8/v1", "/v1/models", "http://u:p@[::1]:8/v1/models"),
        ("http://h", "/", "http://h/"),
    ],
)
def test_join_never_doubles_the_version(base: str, path: str, url: str) -> None:
    assert join_url(base, path) == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:pw@127.0.0.1:9/v1?key=SECRETKEY", "http://127.0.0.1:9/v1?key=***"),
        ("http://h/v1?a=1&b=2&flag", "http://h/v1?a=***&b=***&flag=***"),
        ("http://h/m:generate?alt=sse&key=SECRETKEY", "http://h/m:generate?alt=sse&key=***"),
        ("http://h/x?api-version=2024-10-21&&sig=SECRET", "http://h/x?api-version=2024-10-21&sig=***"),
        ("http://a@b@h/v1#frag", "http://h/v1#frag"),
        ("http://h", "http://h"),
        ("user:pw@h/x", "h/x"),
        ("not a url", "not a url"),
    ],
)
def test_redacted_urls_hold_no_secret(url: str, shown: str) -> None:
    assert redact_url(url) == shown


def test_origin_host_and_loopback() -> None:
    assert origin("http://u:p@H:80/x") == origin("http://h/y") == "http://h"
    assert origin("https://h:8443/") == "https://h:8443"
    assert host_of("http://[::1]:8080/v1") == "::1"
    assert all(
        is_loopback(url)
        for url in (
            "http://localhost",
            "http://127.8.9.1:3",
            "http://[::1]",
            "http://0.0.0.0",
            "http://a.localhost",
        )
    )
    assert not any(
        is_loopback(url) for url in ("http://localhost.example.com", "http://10.0.0.1", "http://h")
    )


def test_a_url_without_scheme_is_refused_where_one_must_be() -> None:
    with pytest.raises(ValueError, match="no scheme"):
        split_url("h/v1")
