"""Who is this server, which models has it, how does it write a prompt? Over the transport.

``GET /v1/models`` is asked first: its headers and its ``owned_by`` settle most cases in one request. Only
what they leave open is probed further, and nothing here generates, loads or changes anything.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from llmstream_cli.errors import HttpStatusError, TransportError
from llmstream_cli.events import Json
from llmstream_cli.fields import as_object, as_text
from llmstream_cli.identity import recognise
from llmstream_cli.listing import ModelInfo, entries, read_models
from llmstream_cli.request import Message
from llmstream_cli.shapes.base import read_error_body
from llmstream_cli.transport import Answer, Target, ask_json
from llmstream_cli.urls import join_url, redact_url

PROBE_LIMIT_S = 5.0
LOCAL_PROBE_LIMIT_S = 1.0
LOCAL_PORTS = (8080, 8000, 11434, 3000, 30000, 1234)
"""llama.cpp, vLLM and llama-cpp-python, Ollama, TGI, SGLang, LM Studio."""

UNKNOWN = "unknown"
COMPATIBLE = "openai-compatible"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """``kind``: a key of `KINDS`. ``detail``: what stands in the way ("needs an API key"), if anything does.

    ``version`` is filled in by `with_version` only; it costs a request of its own.
    """

    kind: str
    shape: str
    models: tuple[ModelInfo, ...] = ()
    version: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class _Kind:
    """``version_path``: where an object with ``version_key`` is to be had."""

    shape: str
    version_path: str | None = None
    version_key: str = "version"


KINDS = {
    "llama.cpp": _Kind("openai-chat", "/props", "build_info"),
    "vllm": _Kind("openai-chat", "/version"),
    # The native endpoint tells the times of loading and prefill, and the errors in the middle of a stream
    # that Ollama's OpenAI endpoint loses.
    "ollama": _Kind("ollama-chat", "/api/version"),
    # Only the chat endpoint applies the model's own chat template.
    "tgi": _Kind("openai-chat", "/info"),
    "sglang": _Kind("openai-chat", "/server_info"),
    "lmstudio": _Kind("openai-chat"),
    "llama-cpp-python": _Kind("openai-chat"),
    COMPATIBLE: _Kind("openai-chat"),
    UNKNOWN: _Kind("openai-chat"),
}

_OWNERS = {
    "llamacpp": "llama.cpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "library": "ollama",
    "me": "llama-cpp-python",
    "organization_owner": "lmstudio",
}
"""``owned_by`` of a listed model -> kind."""


def identify(target: Target, *, timeout_s: float = PROBE_LIMIT_S) -> ServerInfo | None:
    """What answers at `target`, in as few requests as possible, `timeout_s` for each.

    None if nothing answers at all: the cause is left to the request that follows, which has the user's own
    time-outs and retries.
    """
    try:
        listing = ask_json(target, "GET", "/v1/models", timeout_s=timeout_s)
    except TransportError:
        return None
    kind = _kind_of(listing) or _probe(target, listing, timeout_s)
    if kind is None:
        kind = COMPATIBLE if _is_listing(listing) else UNKNOWN
    return ServerInfo(
        kind=kind,
        shape=KINDS[kind].shape,
        models=read_models(listing.json),
        detail=_obstacle(listing.status),
    )


def with_version(target: Target, info: ServerInfo, *, timeout_s: float = PROBE_LIMIT_S) -> ServerInfo:
    """`info` with the version, where the server tells it."""
    kind = KINDS[info.kind]
    if kind.version_path is None:
        return info
    answer = _ask(target, kind.version_path, timeout_s)
    version = as_text(as_object(answer.json).get(kind.version_key)) if answer else None
    return replace(info, version=version)


def list_models(target: Target, kind: str) -> tuple[ModelInfo, ...]:
    """The models on offer. Raises TransportError, for an error status too."""
    path = "/api/tags" if kind == "ollama" else "/v1/models"
    answer = ask_json(target, "GET", path, timeout_s=PROBE_LIMIT_S)
    if answer.status >= 300:
        raise _status_error(target, path, answer)
    return read_models(answer.json)


def scan_local_ports(ports: Sequence[int] = LOCAL_PORTS) -> list[tuple[str, ServerInfo]]:
    """Base URL and identity of whatever speaks HTTP at the well-known ports of this machine, all at once."""
    from concurrent.futures import ThreadPoolExecutor

    urls = [f"http://127.0.0.1:{port}" for port in ports]
    with ThreadPoolExecutor(max_workers=len(urls)) as pool:
        return [(url, info) for url, info in zip(urls, pool.map(_look, urls), strict=True) if info]


def apply_template(target: Target, kind: str, messages: Sequence[Message]) -> str | None:
    """The prompt as the server's own chat template writes it; None if the server does not do that."""
    body = {"messages": [{"role": message.role, "content": message.content} for message in messages]}
    match kind:
        case "llama.cpp":
            return _rendered(target, "/apply-template", body, "prompt")
        case "tgi":
            return _rendered(target, "/chat_tokenize", body, "templated_text")
        case _:
            return None


def _look(base_url: str) -> ServerInfo | None:
    target = Target(base_url=base_url)
    info = identify(target, timeout_s=LOCAL_PROBE_LIMIT_S)
    return info and with_version(target, info, timeout_s=LOCAL_PROBE_LIMIT_S)


def _ask(target: Target, path: str, timeout_s: float) -> Answer | None:
    """A successful answer, or None."""
    try:
        answer = ask_json(target, "GET", path, timeout_s=timeout_s)
    except TransportError:
        return None
    return answer if answer.status == 200 else None


def _kind_of(listing: Answer) -> str | None:
    """The kind that the answer to ``/v1/models`` gives away by itself."""
    kind = recognise(listing.headers.items(), None).kind
    if kind is not None:
        return kind
    owners = (as_text(model.get("owned_by")) for model in entries(listing.json))
    return next((_OWNERS[owner] for owner in owners if owner in _OWNERS), None)


def _probe(target: Target, listing: Answer, timeout_s: float) -> str | None:
    for path, kind_of in _probes(listing):
        answer = _ask(target, path, timeout_s)
        kind = kind_of(answer) if answer else None
        if kind is not None:
            return kind
    return None


def _probes(listing: Answer) -> Iterator[tuple[str, Callable[[Answer], str | None]]]:
    """What is still worth asking. A list of models of other owners leaves little open."""
    is_listing = _is_listing(listing)
    yield "/", _kind_of_banner
    if not is_listing or any(model.get("owned_by") == model["id"] for model in entries(listing.json)):
        yield "/info", lambda answer: "tgi" if "max_total_tokens" in as_object(answer.json) else None
    if not is_listing:
        # vLLM guards only the paths under /v1 with its key.
        yield "/version", lambda answer: "vllm" if "version" in as_object(answer.json) else None
        yield "/api/v0/models", lambda answer: "lmstudio" if _is_listing(answer) else None


def _kind_of_banner(answer: Answer) -> str | None:
    if answer.text.strip() == "Ollama is running":
        return "ollama"
    return "sglang" if "SGLang is running" in answer.text[:100] else None


def _is_listing(answer: Answer) -> bool:
    # Ollama without a model sends "data": null; some gateways send the bare list.
    return answer.status == 200 and (isinstance(answer.json, list) or "data" in as_object(answer.json))


def _obstacle(status: int) -> str | None:
    match status:
        case 401 | 403:
            return "needs an API key"
        case 503:
            return "is still loading"
        case _:
            return None


def _rendered(target: Target, path: str, body: dict[str, Json], field: str) -> str | None:
    try:
        answer = ask_json(target, "POST", path, body, timeout_s=PROBE_LIMIT_S)
    except TransportError:
        return None
    return as_text(as_object(answer.json).get(field)) if answer.status == 200 else None


def _status_error(target: Target, path: str, answer: Answer) -> HttpStatusError:
    url = redact_url(join_url(target.base_url, path))
    body = answer.text.encode()
    content_type = answer.headers.get("content-type", "")
    found = read_error_body(answer.status, body, content_type)
    return HttpStatusError(
        f"{answer.status} from GET {url}: {found.message}".removesuffix(": "),
        url=url,
        status=answer.status,
        body=body,
        content_type=content_type,
        headers=tuple(answer.headers.items()),
        hint=_obstacle(answer.status),
    )
