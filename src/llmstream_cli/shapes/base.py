"""What every shape provides, and what all of them share."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from llmstream_cli.events import (
    Event,
    Finish,
    FinishReason,
    Json,
    KeepAlive,
    ReasoningDelta,
    RefusalDelta,
    StreamError,
    StreamStart,
    TextDelta,
    ToolCallDelta,
    UnknownFrame,
)
from llmstream_cli.fields import as_int, as_list, as_object, as_text
from llmstream_cli.framing import Frame, FramingName
from llmstream_cli.request import HttpRequest, Message, Request

DEFAULT_ERROR_KIND = "server_error"


class FrameDecoder(ABC):
    """Decodes the frames of one answer; holds what must be remembered between frames.

    ``marker_seen``: None where the shape has no terminal marker. ``done``: nothing after this is wanted.
    ``error``: the failure that the server reported; it ends the stream. ``finished``: the choices that have
    their finish reason.
    """

    marker_seen: bool | None = None

    def __init__(self, choices: int = 1) -> None:
        self.choices = choices
        self.finished: set[int] = set()
        self.done = False
        self.error: StreamError | None = None
        self._start = StreamStart()

    @abstractmethod
    def decode(self, frame: Frame) -> list[Event]:
        """The events of one frame. Never raises for anything that a server can send."""

    @property
    def complete(self) -> bool:
        """The server said that every choice asked for is finished."""
        return self.error is None and len(self.finished) >= self.choices and self.unfinished is None

    @property
    def unfinished(self) -> StreamError | None:
        """Why the answer is not complete although its finish reason came; None where nothing is missing."""
        return None

    @property
    def settled(self) -> bool:
        """As `complete`, and no more of the answer can follow."""
        return self.complete

    def finish(
        self,
        reason: FinishReason,
        raw_reason: str | None,
        *,
        choice: int = 0,
        stop_sequence: str | None = None,
        stop_token: int | None = None,
    ) -> Finish:
        self.finished.add(choice)
        return Finish(
            reason=reason,
            raw_reason=raw_reason,
            choice=choice,
            stop_sequence=stop_sequence,
            stop_token=stop_token,
        )

    def start(self, *, response_id: Json = None, model: Json = None, fingerprint: Json = None) -> list[Event]:
        """A `StreamStart` if anything new is known of the answer's identity, else nothing."""
        before = self._start
        if before.response_id and before.model and (before.fingerprint or not fingerprint):
            return []
        known = StreamStart(
            response_id=before.response_id or as_text(response_id),
            model=before.model or as_text(model),
            fingerprint=before.fingerprint or as_text(fingerprint),
        )
        if known == before:
            return []
        self._start = known
        return [known]

    def end_of_body(self, *, clean: bool) -> list[Event]:  # noqa: ARG002
        """The events that only the end of the body brings, where nothing ended the stream before it.

        `clean`: the transport saw the whole body. To nearly every shape that proves nothing.
        """
        return []

    def fail(self, error: StreamError) -> list[Event]:
        """The server reported a failure: the answer ends here, whatever follows."""
        self.error = self.error or error
        self.done = True
        return []


class Shape(ABC):
    """One server API. Holds nothing of a request or an answer."""

    name: ClassVar[str]
    framing: FramingName = "sse"
    path: str
    takes: ClassVar[Literal["messages", "prompt"]]
    terminal_marker: str | None = None
    stop_field: str | None
    """Where this endpoint reads the stop list, as a dotted path; None where it has none."""
    stop_limit: ClassVar[int | None] = None
    """How many stop strings it takes at most, where it refuses more."""
    max_tokens_field: str | None
    """Where it reads the token cap, as a dotted path; None where it has none."""
    cap_fields: ClassVar[tuple[str, ...]] = ()
    """The fields for the cap where servers differ in which one they take, ``max_tokens_field`` the first."""
    cap_field_at: ClassVar[Mapping[str, str]] = {}
    """Origin of a host -> the one of ``cap_fields`` that all its models take."""
    takes_seed: bool = True
    headers: ClassVar[Mapping[str, str]] = {}
    """Sent with every request, unless the user sets the same header."""
    auth: ClassVar[str] = "bearer"
    """How a key is sent: ``bearer``, or the name of the header that holds it."""
    needs_model: ClassVar[bool] = False
    """Whether a request without a model name is an error to every server of this shape."""

    # Facts for people; docs/shapes.md is made of them.
    also_at: ClassVar[tuple[str, ...]] = ()
    """Further paths where the same stream is spoken, or the same answer in one piece."""
    speakers: ClassVar[str] = ""
    """Who speaks it: servers and hosts by name."""
    completeness: ClassVar[str] = ""
    """What must have come for the answer to count as complete."""
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {}
    """The server's own words and what they are in the vocabulary of all; any other word is `OTHER`."""
    usage_field: ClassVar[str | None] = None
    """Where the token counts stand, as a dotted path; None where the API reports none."""

    @abstractmethod
    def build(self, request: Request) -> HttpRequest: ...

    def configured(self, table: Mapping[str, Json]) -> "Shape":  # noqa: ARG002
        """This shape as the table ``stream`` of a profile describes it.

        ValueError, a phrase that follows the table's name, for a table that makes no sense.
        """
        raise ValueError(f"has no meaning for the shape {self.name}, only for sse, ndjson and text")

    def needs_prompt(self, messages: Sequence[Message]) -> bool:  # noqa: ARG002
        """Whether `messages` must be flattened into `Request.prompt` before `build`."""
        return self.takes == "prompt"

    @abstractmethod
    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        """The decoder for the answer to the request `body`, which tells how many choices will come."""

    def read_error(self, status: int, body: bytes, content_type: str = "") -> StreamError:
        """The failure in the body of an HTTP error answer, whatever form it has."""
        return read_error_body(status, body, content_type)


def parse_frame(frame: Frame) -> Json | KeepAlive | UnknownFrame:
    """The frame's JSON. A keep-alive that a relay rewrapped as data, and an unreadable frame, are events."""
    data = frame.data
    if not data or data.startswith(":"):
        return KeepAlive(comment=data.lstrip(": "))
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return UnknownFrame(name=frame.name, data=data, readable=False)


def text_events(text: Json, choice: int = 0) -> list[Event]:
    return [TextDelta(text=text, choice=choice)] if isinstance(text, str) and text else []


def reasoning_events(text: Json, choice: int = 0) -> list[Event]:
    return [ReasoningDelta(text=text, choice=choice)] if isinstance(text, str) and text else []


def refusal_events(text: Json, choice: int = 0) -> list[Event]:
    return [RefusalDelta(text=text, choice=choice)] if isinstance(text, str) and text else []


def error_from(value: Json, *, http_status: int | None = None) -> StreamError | None:
    """The failure in a decoded body or frame, in any of the forms servers use, else None.

    ``{"error": {...}}``, ``{"error": "text"}`` with ``error_type`` or ``code`` beside it, flat
    ``{"object": "error", "message": ...}``, ``{"detail": ...}``, and a list holding one of them.
    """
    if isinstance(value, list):
        found = [error_from(item, http_status=http_status) for item in value]
        return next((error for error in found if error), None)
    body = as_object(value)
    error = body.get("error")
    if isinstance(error, dict):
        return _error_object(error, fallback=body, http_status=http_status)
    if isinstance(error, str):
        kind = as_text(body.get("error_type")) or DEFAULT_ERROR_KIND
        return StreamError(kind=kind, message=error, code=_code(body), http_status=http_status)
    if body.get("object") == "error" or body.get("type") == "error":
        return _error_object(body, fallback={}, http_status=http_status)
    if "detail" in body and http_status is not None:
        return StreamError(kind=DEFAULT_ERROR_KIND, message=_detail(body["detail"]), http_status=http_status)
    return None


def bare_error(value: Json) -> StreamError:
    """The failure in the data of an SSE event named ``error``: wrapped or bare, JSON or text."""
    found = error_from(value)
    if found:
        return found
    if isinstance(value, dict):
        return _error_object(value, fallback={}, http_status=None)
    return StreamError(kind=DEFAULT_ERROR_KIND, message=str(value))


def read_error_body(status: int, body: bytes, content_type: str) -> StreamError:
    """As `error_from`, also for bodies that are HTML, plain text or empty."""
    text = body.decode("utf-8", "replace").strip()
    try:
        found = error_from(json.loads(text), http_status=status)
    except (ValueError, RecursionError):
        found = None
    if found:
        return found
    message = html_title(text) if "html" in content_type or text[:1] == "<" else text
    return StreamError(kind="http_error", message=(message or "")[:2000], http_status=status)


def html_title(text: str) -> str:
    """The title of an HTML page, for a one-line message; an empty string where there is none."""
    lower = text.lower()
    start = lower.find("<title")
    opened = lower.find(">", start)
    end = lower.find("</title", opened)
    return " ".join(text[opened + 1 : end].split()) if -1 < start < opened < end else ""


def _error_object(
    error: Mapping[str, Json], *, fallback: Mapping[str, Json], http_status: int | None
) -> StreamError:
    # "status" is Google's word: RESOURCE_EXHAUSTED ...
    kind = as_text(error.get("type")) or as_text(error.get("status")) or as_text(fallback.get("error_type"))
    # OpenRouter's and Anthropic's finer words.
    kind = kind or as_text(as_object(error.get("metadata")).get("error_type"))
    code = _code(error)
    if code is None:
        code = as_text(as_object(error.get("details")).get("error_code"))
    status = as_int(error.get("http_status_code")) or http_status
    message = as_text(error.get("message")) or as_text(fallback.get("message"))
    # Mistral puts FastAPI's list into the message.
    detail = as_object(error.get("message")).get("detail")
    message = message or (_detail(detail) if detail else json.dumps(dict(error)))
    return StreamError(
        # In a flat object, "error" is what the object is, not what went wrong.
        kind=DEFAULT_ERROR_KIND if kind in (None, "error") else kind,
        message=message,
        code=code,
        http_status=status,
    )


def _code(error: Mapping[str, Json]) -> str | int | None:
    code = error.get("code")
    return code if isinstance(code, str | int) else None


def _detail(detail: Json) -> str:
    """FastAPI's ``detail``: a string, or a list of ``{loc, msg}``."""
    if isinstance(detail, str):
        return detail
    lines = [
        f"{'.'.join(str(part) for part in as_list(item.get('loc')))}: {item.get('msg')}"
        for item in as_list(detail)
        if isinstance(item, dict)
    ]
    return "; ".join(lines) or json.dumps(detail)


class ToolCallMerger:
    """Gives every fragment of a tool call its call number, and drops what servers repeat.

    Fragments are told apart by ``index``, else by ``id``, else each is a call of its own (Ollama sends
    whole calls). An ``index`` that comes again with a name and another id is a new call (some gateways
    number every call 0). A name equal to the one already known is a repeat; a different one, before any
    arguments, is the next piece.
    """

    def __init__(self) -> None:
        self._by_key: dict[tuple[int, str | int], int] = {}
        self._calls: dict[int, list[_CallSoFar]] = {}

    def fragment(
        self,
        *,
        choice: int,
        index: int | None,
        call_id: str | None,
        name: str | None,
        arguments: str,
    ) -> ToolCallDelta | None:
        """The event for one fragment; None if it says nothing new."""
        number = self._number(choice, index, call_id, name)
        call = self._calls[choice][number]
        new_name = name if name and name != call.name and not call.has_arguments else ""
        new_id = call_id if call_id and call.id is None else None
        if not (new_name or new_id or arguments):
            return None
        call.name += new_name
        call.id = call.id or new_id
        call.has_arguments = call.has_arguments or bool(arguments)
        return ToolCallDelta(call=number, id=new_id, name=new_name, arguments=arguments, choice=choice)

    def _number(self, choice: int, index: int | None, call_id: str | None, name: str | None) -> int:
        calls = self._calls.setdefault(choice, [])
        identity = index if index is not None else call_id
        if identity is None:
            # A fragment with neither number nor id continues the last call unless a name opens a new one.
            return self._new(calls) if name or not calls else len(calls) - 1
        known = self._by_key.get((choice, identity))
        if known is not None and name and call_id and calls[known].id not in (None, call_id):
            known = None
        if known is None:
            known = self._by_key[(choice, identity)] = self._new(calls)
        return known

    @staticmethod
    def _new(calls: "list[_CallSoFar]") -> int:
        calls.append(_CallSoFar())
        return len(calls) - 1


@dataclass(slots=True)
class _CallSoFar:
    id: str | None = None
    name: str = ""
    has_arguments: bool = False
