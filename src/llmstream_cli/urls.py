"""Base URLs as people type them, joined, compared and shown without secrets. Pure."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(https?):(?=[/\[A-Za-z])", re.IGNORECASE)
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+")
_VERSION_SEGMENT = re.compile(r"v\d+[a-z0-9]*", re.IGNORECASE)
_LOCAL_SUFFIXES = (".local", ".lan", ".internal", ".home.arpa", ".localhost")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"
_HARMLESS_IN_A_QUERY = frozenset({"alt", "api-version"})
"""Gemini's choice of the form of the stream, Azure's version: without them the URL means something else."""
_LOOPBACK_FOR_WILDCARD = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlParts:
    """A URL taken apart: ``host`` without brackets, ``query`` without its question mark."""

    scheme: str
    userinfo: str
    host: str
    port: int | None
    path: str
    query: str

    @property
    def netloc(self) -> str:
        """``host[:port]`` as in a Host header: IPv6 in brackets, the scheme's own port left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.port is None or self.port == _DEFAULT_PORTS[self.scheme]:
            return host
        return f"{host}:{self.port}"

    @property
    def port_number(self) -> int:
        """The port, also where it is only implied by the scheme."""
        return self.port or _DEFAULT_PORTS[self.scheme]

    @property
    def target(self) -> str:
        """What stands in the request line."""
        return (self.path or "/") + (f"?{self.query}" if self.query else "")

    def __str__(self) -> str:
        user = f"{self.userinfo}@" if self.userinfo else ""
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{user}{self.netloc}{self.path}{query}"


def split_url(url: str) -> UrlParts:
    """Take apart an absolute URL; a path keeps its trailing slash. ValueError for one that makes no sense."""
    scheme, rest = _split_scheme(url.strip())
    if scheme is None:
        raise ValueError("the URL has no scheme: begin it with http:// or https://")
    return _parts(scheme, rest)


def normalise_base_url(text: str, *, default_scheme: str = "http", default_port: int | None = None) -> str:
    """The base URL that `text` means, without trailing slashes.

    Without a scheme: a public host name without a port is https, everything else (an IP address, this
    machine, the local network, an explicit port) is `default_scheme`; `default_port` is then the port
    where none is given (11434 for the forms of OLLAMA_HOST). A wildcard address means this machine.
    ValueError, without any secret in its message, for what cannot be a URL.

    >>> normalise_base_url("localhost:8080/v1/")
    'http://localhost:8080/v1'
    >>> normalise_base_url("[::]", default_port=11434)
    'http://[::1]:11434'
    """
    text = text.strip()
    if not text:
        raise ValueError("the base URL is empty")
    if re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError("a URL has no spaces, line breaks or control characters in it")
    scheme, rest = _split_scheme(text)
    if scheme is None and text.startswith("//"):
        rest = text[2:]
    parts = _parts(scheme or default_scheme, rest)
    host, port = _LOOPBACK_FOR_WILDCARD.get(parts.host, parts.host), parts.port
    if scheme is None:
        port = default_port if port is None else port
        scheme = _guess_scheme(host, port, default_scheme)
    return str(
        UrlParts(
            scheme=scheme,
            userinfo=parts.userinfo,
            host=host,
            port=port,
            path=parts.path.rstrip("/"),
            query=parts.query,
        )
    )


def join_url(base: str, path: str) -> str:
    """The URL of `path` under `base`, whether `base` ends in ``/v1`` or not.

    A version that the base already has anywhere in its path is not repeated; a `path` without a version (the
    native endpoints of Ollama, llama.cpp, TGI) takes the place of a trailing ``/v1``. The base's query stays.

    >>> join_url("http://h/v1", "/v1/chat/completions")
    'http://h/v1/chat/completions'
    >>> join_url("http://h/prefix/v1", "/api/chat")
    'http://h/prefix/api/chat'
    """
    parts = split_url(base)
    path, _, own_query = path.partition("?")
    segments = [segment for segment in parts.path.split("/") if segment]
    first, _, rest = path.lstrip("/").partition("/")
    if _VERSION_SEGMENT.fullmatch(first):
        if any(_VERSION_SEGMENT.fullmatch(segment) for segment in segments):
            path = rest
    elif segments and segments[-1].lower() == "v1":
        segments.pop()
    return str(
        UrlParts(
            scheme=parts.scheme,
            userinfo=parts.userinfo,
            host=parts.host,
            port=parts.port,
            path="/" + "/".join([*segments, path.lstrip("/")]),
            query="&".join(part for part in (own_query, parts.query) if part),
        )
    )


def redact_url(url: str) -> str:
    """`url` as it may be shown: no user name or password, values of its query masked. Never raises.

    >>> redact_url("http://me:pw@host/v1?key=abc")
    'http://host/v1?key=***'
    """
    head, mark, query = url.partition("?")
    scheme, separator, rest = head.partition("://")
    if not separator:
        scheme, rest = "", head
    authority, slash, path = rest.partition("/")
    query = query.partition("#")[0]
    masked = "&".join(map(_masked, filter(None, query.split("&"))))
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}{mark}{masked}"


def _masked(item: str) -> str:
    name = item.partition("=")[0]
    return item if name in _HARMLESS_IN_A_QUERY else f"{name}=***"


def origin(url: str) -> str:
    """``scheme://host[:port]``: what decides whether a key may be sent along.

    >>> origin("https://api.example.com:443/v1")
    'https://api.example.com'
    """
    parts = split_url(url)
    return f"{parts.scheme}://{parts.netloc}"


def host_of(url: str) -> str:
    """The host in lower case, an IPv6 address without its brackets."""
    return split_url(url).host


def is_loopback(url: str) -> bool:
    """The URL's host is this machine."""
    return is_loopback_host(host_of(url))


def is_loopback_host(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = ip_address(host)
    return address is not None and (address.is_loopback or address.is_unspecified)


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that `host` is, or None for a name."""
    try:
        return ipaddress.ip_address(host.replace("%25", "%"))
    except ValueError:
        return None


def _split_scheme(text: str) -> tuple[str | None, str]:
    match = _SCHEME.match(text)
    if match is None:
        return None, text
    scheme = (match[1] or match[2]).lower()
    if scheme not in _DEFAULT_PORTS:
        raise ValueError(f"unsupported scheme {scheme!r}: use http:// or https://")
    return scheme, text[match.end() :].lstrip("/")


def _parts(scheme: str, rest: str) -> UrlParts:
    rest = rest.partition("#")[0]
    end = next((at for at, character in enumerate(rest) if character in "/?"), len(rest))
    userinfo, _, address = rest[:end].rpartition("@")
    path, _, query = rest[end:].partition("?")
    host, port = _split_port(address)
    return UrlParts(
        scheme=scheme,
        userinfo=userinfo,
        host=_checked_host(host),
        port=port,
        path=quote(path, safe=_PATH_SAFE),
        query=quote(query, safe=_PATH_SAFE + "?"),
    )


def _split_port(address: str) -> tuple[str, int | None]:
    """Host (brackets removed) and port of ``host``, ``host:port``, ``:port``, ``[v6]:port`` and bare v6."""
    if address.startswith("["):
        host, bracket, port = address[1:].partition("]")
        if not bracket or ip_address(host) is None or (port and not port.startswith(":")):
            raise ValueError(f"not an IPv6 address in brackets: {address!r}")
        return host, _port(port[1:])
    host, colon, port = address.rpartition(":")
    if not colon:
        return address, None
    if ":" not in host:
        return host or "localhost", _port(port)
    # "::1:8080" is an IPv6 address by the letter; nobody who types it means that.
    if ip_address(address) is not None and not (host in ("::1", "::") and port.isdigit()):
        return address, None
    return host, _port(port)


def _port(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) <= 65535):
        raise ValueError(f"bad port {text!r}: a port is a number from 1 to 65535")
    return int(text)


def _checked_host(host: str) -> str:
    host = host.lower()
    if not host:
        raise ValueError("the URL has no host")
    if ip_address(host) is not None:
        return host
    try:
        name = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        raise ValueError(f"not a host name: {host!r}") from None
    if not _HOST_NAME.fullmatch(name):
        raise ValueError(f"not a host name: {host!r}")
    return name


def _guess_scheme(host: str, port: int | None, default: str) -> str:
    if port is not None:
        return "https" if port == _DEFAULT_PORTS["https"] else default
    named = ip_address(host) is None and "." in host.rstrip(".")
    return "https" if named and not host.endswith(_LOCAL_SUFFIXES) else default
