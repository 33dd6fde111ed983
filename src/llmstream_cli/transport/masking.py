"""Keys do not leave the transport in a message or an error body, even where the server echoes them."""

import re
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote, unquote

from llmstream_cli.urls import split_url

MASK = "***"
_BEARER = re.compile(rb"(?i)(?<=\bbearer )[A-Za-z0-9._~+/=-]{16,}")
_SECRET_PARAMETER = re.compile(r"key|token|secret|sig|auth|code|pass", re.IGNORECASE)


class Mask:
    """Replaces secrets, and whatever stands after ``Bearer``, in text and bytes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {
            form for secret in secrets if secret.strip() for form in (secret.strip(), quote(secret, safe=""))
        }
        # The longest first, so that no rest of it stays where one secret begins another.
        known = sorted((form.encode("utf-8", "surrogatepass") for form in forms), key=len, reverse=True)
        self._known = re.compile(b"|".join(map(re.escape, known))) if known else None

    def data(self, data: bytes) -> bytes:
        if self._known:
            data = self._known.sub(MASK.encode(), data)
        return _BEARER.sub(MASK.encode(), data)

    def text(self, text: str) -> str:
        return self.data(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def secrets_in_url(url: str) -> list[str]:
    """Password, basic credentials and key-like query values of a URL."""
    parts = split_url(url)
    pairs = (item.partition("=") for item in parts.query.split("&"))
    found = [value for name, _, value in pairs if value and _SECRET_PARAMETER.search(name)]
    if parts.userinfo:
        found += [basic_credentials(parts.userinfo), unquote(parts.userinfo.partition(":")[2])]
    return [form for value in found for form in {value, unquote(value)}]


def basic_credentials(userinfo: str) -> str:
    """``user:password`` of a URL, as in an Authorization header of the basic scheme (RFC 7617)."""
    return b64encode(unquote(userinfo).encode()).decode()
