"""A request ready for the wire, and which of its headers may go where."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from llmstream_cli import __version__
from llmstream_cli.events import Json
from llmstream_cli.fields import compact
from llmstream_cli.transport.masking import Mask, basic_credentials, secrets_in_url
from llmstream_cli.transport.target import Target
from llmstream_cli.urls import UrlParts, join_url, redact_url, split_url

_OWN_HEADERS = {
    "User-Agent": f"llmstream/{__version__}",
    "Accept": "text/event-stream, application/x-ndjson, application/json",
    # A compressed stream comes in blocks, not token by token.
    "Accept-Encoding": "identity",
}
_CREDENTIALS = {"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``headers`` are for any host, ``private_headers`` for the target's own only."""

    target: Target
    mask: Mask
    method: str
    path: str
    url: UrlParts
    headers: Mapping[str, str]
    private_headers: Mapping[str, str]
    body: bytes

    @property
    def shown_url(self) -> str:
        return self.mask.text(redact_url(str(self.url)))

    def all_headers(self) -> list[tuple[str, str]]:
        """In the order in which a later one replaces an earlier one of the same name, in whatever case."""
        merged = [*self.headers.items(), *self.private_headers.items()]
        return [(name.strip(), value.strip()) for name, value in merged]

    def redirected(self, url: UrlParts) -> "Call":
        """The same request to `url`, without anything private if that is another server."""
        if not _is_same_server(self.url, url):
            return replace(self, url=url, private_headers={})
        return replace(self, url=url)


def make_call(
    target: Target,
    *,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: Mapping[str, Json] | None,
) -> Call:
    """Raises ValueError for a base URL that makes no sense."""
    url = split_url(join_url(target.base_url, path))
    mask = Mask([*target.secrets, *secrets_in_url(target.base_url)])
    public = {name: value for name, value in headers.items() if not _is_private(name, value, mask)}
    private = {name: value for name, value in headers.items() if name not in public}
    if url.userinfo:
        private["Authorization"] = f"Basic {basic_credentials(url.userinfo)}"
    encoded = encode_json(body) if body is not None else b""
    content_type = {"Content-Type": "application/json"} if encoded else {}
    return Call(
        target=target,
        mask=mask,
        method=method,
        path=path,
        url=url,
        headers={**_OWN_HEADERS, **content_type, **public},
        private_headers={**private, **target.headers},
        body=encoded,
    )


def encode_json(body: Mapping[str, Json]) -> bytes:
    """Compact UTF-8. Halves of a surrogate pair are joined, a lone one (undecodable input) becomes U+FFFD."""
    text = compact(body)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _is_private(name: str, value: str, mask: Mask) -> bool:
    return name.strip().lower() in _CREDENTIALS or mask.text(value) != value


def _is_same_server(before: UrlParts, after: UrlParts) -> bool:
    """Same origin, or the same host moved from http to https on the usual ports."""
    if (before.scheme, before.netloc) == (after.scheme, after.netloc):
        return True
    upgraded = (before.scheme, after.scheme) == ("http", "https")
    return upgraded and before.host == after.host and (before.port_number, after.port_number) == (80, 443)
