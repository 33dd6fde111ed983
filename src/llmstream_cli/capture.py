"""Recorded exchanges: JSON lines, one file each, written as the bytes arrive.

::

    {"v": 1, "server", "version", "endpoint", "request": {"method", "path", "headers", "body"}, "note"}
    {"t", "status": 200, "headers": [[name, value], ...]}
    {"t": seconds since the request was sent, "text": ...} or {"t", "b64"}    one per read, still encoded
    {"t", "end": "eof" | "chunked-end" | "reset" | "client-abort" | "timeout"}

Secrets are masked before anything is written; a new file is private.
"""

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from llmstream_cli.errors import ConfigError
from llmstream_cli.events import Json
from llmstream_cli.fields import as_number, as_object, as_text
from llmstream_cli.urls import redact_url

MASK = "***"
_SECRET_HEADER = re.compile(
    r"(?i)authorization|cookie|secret|password|(?:^|[-_])(?:(?:api)?-?key|auth|token)$"
)
_SHORTEST_SECRET = 8
"""A shorter one (``ollama``, ``test``) is a placeholder: masking it everywhere would spoil the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One exchange as read from a file. ``faults`` says in words what is missing or damaged."""

    request: Mapping[str, Json]
    status: int | None
    headers: tuple[tuple[str, str], ...]
    reads: tuple[tuple[float, bytes], ...]
    end: str | None
    end_s: float
    faults: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return as_text(self.request.get("path")) or ""

    @property
    def body(self) -> Mapping[str, Json]:
        return as_object(self.request.get("body"))

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


class CaptureWriter:
    """Writes a capture line by line, each flushed, so that a crash leaves a readable file."""

    def __init__(self, path: Path, *, secrets: Sequence[str] = ()) -> None:
        self._path = path
        self._secrets = tuple(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)
        try:
            self._file = open(path, "w", encoding="ascii", newline="\n", opener=_private)  # noqa: SIM115
        except OSError as error:
            raise self._unwritable(error) from error

    def request(
        self, *, method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Json], note: str = ""
    ) -> None:
        path = redact_url(path)
        request = {
            "method": method,
            "path": path,
            "headers": dict(mask_headers(headers.items())),
            "body": body,
        }
        self._line(
            {
                "v": 1,
                "server": None,
                "version": None,
                "endpoint": path,
                "request": request,
                "note": note or None,
            }
        )

    def head(self, at_s: float, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self._line(
            {"t": round(at_s, 6), "status": status, "headers": [list(item) for item in mask_headers(headers)]}
        )

    def read(self, at_s: float, data: bytes) -> None:
        for secret in self._secrets:
            data = data.replace(secret.encode("utf-8", "surrogatepass"), MASK.encode())
        try:
            self._line({"t": round(at_s, 6), "text": data.decode("utf-8")})
        except UnicodeDecodeError:
            self._line({"t": round(at_s, 6), "b64": base64.b64encode(data).decode("ascii")})

    def end(self, at_s: float, how: str) -> None:
        self._line({"t": round(at_s, 6), "end": how})
        self._file.close()

    def _line(self, value: Json) -> None:
        try:
            self._file.write(json.dumps(mask_secrets(value, self._secrets)) + "\n")
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ConfigError:
        return ConfigError(f"cannot write the capture {self._path}: {error.strerror}")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def mask_secrets(value: Json, secrets: Sequence[str]) -> Json:
    """`value` with the secrets masked in all of its strings."""
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, MASK)
            return value
        case Mapping():
            return {key: mask_secrets(item, secrets) for key, item in value.items()}
        case list() | tuple():
            return [mask_secrets(item, secrets) for item in value]
        case _:
            return value


def mask_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The same headers with the value of every one masked that by its name holds a secret.

    The scheme of an Authorization header is kept.
    """
    masked = []
    for name, value in headers:
        if _SECRET_HEADER.search(name.strip()):
            scheme, space, _ = value.partition(" ")
            value = f"{scheme} {MASK}" if space and "authorization" in name.lower() else MASK
        masked.append((name, value))
    return masked


def read_capture(path: Path) -> Capture:
    """Read a capture; damaged or missing lines are reported in ``faults``, never fatal.

    `ConfigError` only if nothing can be made of the file at all.
    """
    lines, faults = _lines(path)
    request: Mapping[str, Json] = {}
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    reads: list[tuple[float, bytes]] = []
    end: str | None = None
    at_s = 0.0
    for number, line in lines:
        at_s = as_number(line.get("t")) or at_s
        if "request" in line:
            request = as_object(line["request"])
        elif "status" in line:
            status = line["status"] if isinstance(line["status"], int) else None
            headers = _headers(line.get("headers"))
        elif "end" in line:
            end = as_text(line["end"])
        elif "text" in line or "b64" in line:
            data = _data(line)
            if data is None:
                faults.append(f"line {number} holds no readable bytes")
            else:
                reads.append((at_s, data))
    if not request and status is None and not reads:
        raise ConfigError(f"{path} is not a capture: no request, no status, no bytes in it")
    missing = {
        "the request": not request,
        "the response head": status is None,
        "the end of the exchange": end is None,
    }
    faults += [f"{what} is missing" for what, absent in missing.items() if absent]
    return Capture(
        request=request,
        status=status,
        headers=headers,
        reads=tuple(reads),
        end=end,
        end_s=at_s,
        faults=tuple(faults),
    )


def _lines(path: Path) -> tuple[list[tuple[int, Mapping[str, Json]]], list[str]]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"cannot read the capture {path}: {error.strerror}") from error
    found: list[tuple[int, Mapping[str, Json]]] = []
    faults: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            found.append((number, value))
        else:
            faults.append(f"line {number} is damaged")
    return found, faults


def _headers(value: Json) -> tuple[tuple[str, str], ...]:
    pairs = value if isinstance(value, list) else []
    return tuple((str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2)


def _data(line: Mapping[str, Json]) -> bytes | None:
    if isinstance(line.get("text"), str):
        return str(line["text"]).encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(line["b64"], validate=True)
    except (KeyError, TypeError, ValueError):
        return None
