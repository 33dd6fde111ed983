"""Which server answered, as far as the answer itself tells: no probe, no guess. Source: its own headers
and the ``system_fingerprint`` that several servers put into every event."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_FINGERPRINTS = (
    (re.compile(r"^vllm-(?P<version>[0-9][^-]*)"), "vllm"),
    # A build from an archive does not know its number and calls itself b0-unknown.
    (re.compile(r"^(?:(?P<version>b[1-9][0-9]*)|b0)-"), "llama.cpp"),
    (re.compile(r"^fp_ollama$"), "ollama"),
    (re.compile(r"^(?P<version>[0-9]+\.[0-9]+\.[0-9]+(?:-dev[0-9]*)?)-(?:native|sha-[0-9a-f]+)$"), "tgi"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """None = the answer does not say."""

    kind: str | None = None
    version: str | None = None


UNKNOWN_SERVER = ServerIdentity()


def recognise(headers: Iterable[tuple[str, str]], fingerprint: str | None) -> ServerIdentity:
    """Kind and version from response headers and fingerprint."""
    known = {name.lower(): value for name, value in headers}
    for pattern, kind in _FINGERPRINTS:
        match = pattern.match(fingerprint or "")
        if match:
            return ServerIdentity(kind=kind, version=match.groupdict().get("version"))
    if known.get("server", "").startswith("llama.cpp"):
        return ServerIdentity(kind="llama.cpp")
    if "x-compute-type" in known:
        return ServerIdentity(kind="tgi")
    return UNKNOWN_SERVER
