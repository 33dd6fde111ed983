"""What the callers of the transport give and get."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from llmstream_cli.events import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds; None waits for ever.

    ``connect_s``: name look-up, TCP, proxy and TLS together. ``first_token_s``: from the moment the request
    was sent until the first `Exchange.progress`. ``idle_s``: between two calls of it; bytes without an event
    (keep-alives) do not count. ``total_s``: everything, with retries and waits.
    """

    connect_s: float | None = 10.0
    first_token_s: float | None = 900.0
    idle_s: float | None = 180.0
    total_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server. ``headers`` go to its own origin only; ``secrets`` are masked in every message.

    ``base_url`` as `urls.normalise_base_url` gives it; user name and password in it are sent as basic
    authentication. ``ca_file``: the only certificates to trust, PEM; ``verify=False`` trusts everyone.
    """

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    ca_file: str | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitNotice:
    """The request will be sent again in ``seconds``; ``attempt`` were made so far."""

    reason: str
    seconds: float
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer of any status. ``headers`` by lower-case name; ``json``: None if the text is no JSON."""

    status: int
    headers: Mapping[str, str]
    json: Json | None
    text: str
