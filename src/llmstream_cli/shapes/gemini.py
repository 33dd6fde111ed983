"""``:streamGenerateContent`` of the Gemini API and of Vertex AI, as events and as one JSON array.

Sources: the Gemini API reference (``v1``, ``v1beta``); ``google-genai`` 3.6 ``types.py``, ``errors.py``,
``_api_client.py``; streams recorded by the Vercel AI SDK (``packages/google/src/__fixtures__``).
"""

from collections.abc import Mapping
from urllib.parse import quote

from llmstream_cli.errors import UsageError
from llmstream_cli.events import (
    Event,
    FinishReason,
    Json,
    KeepAlive,
    StreamError,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.fields import as_int, as_object, as_text, compact, objects
from llmstream_cli.framing import Frame
from llmstream_cli.request import HttpRequest, Message, Request, merge, without_none
from llmstream_cli.shapes.base import (
    FrameDecoder,
    Shape,
    bare_error,
    error_from,
    parse_frame,
    reasoning_events,
    refusal_events,
    text_events,
)
from llmstream_cli.shapes.gemini_calls import FunctionCalls

_FILTERS = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "LANGUAGE",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "ESCALATION",
    "PUP_LIMITED_DISABLED",
)
_FAILURES = (
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
)
_PAUSE = "CONTINUATION"
_UNEXPLAINED = ("OTHER", "NO_IMAGE", "IMAGE_OTHER", "FINISH_REASON_UNSPECIFIED", _PAUSE)
_REASONS = {
    "STOP": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    **dict.fromkeys(_FILTERS, FinishReason.CONTENT_FILTER),
    **dict.fromkeys((*_FAILURES, *_UNEXPLAINED), FinishReason.OTHER),
}
_FIELDS = ("candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId")
_ABOUT_A_PART = frozenset({"thought", "thoughtSignature", "videoMetadata", "mediaResolution"})


class Gemini(Shape):
    name = "gemini"
    framing = "json-array"
    path = "/v1beta/models/{model}:streamGenerateContent?alt=sse"
    takes = "messages"
    stop_field = "generationConfig.stopSequences"
    stop_limit = 5
    max_tokens_field = "generationConfig.maxOutputTokens"
    auth = "x-goog-api-key"
    needs_model = True
    also_at = ("/v1beta/models/{model}:generateContent", "/v1beta/models/{model}:streamGenerateContent")
    speakers = "Google (Gemini API, Vertex AI)"
    completeness = "a `finishReason` for every candidate, or `promptFeedback.blockReason`; an array is closed"
    finish_reasons = _REASONS
    usage_field = "usageMetadata"

    def build(self, request: Request) -> HttpRequest:
        """Streaming or not, and the model, are a matter of the path. Raises UsageError without a model."""
        if not request.model:
            raise UsageError("The gemini API has the model's name in its path: choose one with -m.")
        body = {
            "contents": [_content(message) for message in request.messages if message.role != "system"],
            "systemInstruction": _system(request),
            "generationConfig": _generation_config(request) or None,
        }
        model = request.model if "/" in request.model else f"models/{request.model}"
        method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
        return HttpRequest(
            path=f"/v1beta/{quote(model, safe='/@.-_~')}:{method}",
            body=merge(without_none(body), request.options),
        )

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _ContentDecoder(body)


def _content(message: Message) -> Json:
    role = "model" if message.role == "assistant" else "user"
    return {"role": role, "parts": [{"text": message.content}]}


def _system(request: Request) -> Json:
    texts = [message.content for message in request.messages if message.role == "system"]
    return {"parts": [{"text": text} for text in texts]} if texts else None


def _generation_config(request: Request) -> dict[str, Json]:
    """``responseJsonSchema``: ``responseSchema`` knows only a part of JSON Schema and refuses the rest."""
    sampling = request.sampling
    return without_none(
        {
            "maxOutputTokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "topP": sampling.top_p,
            "seed": sampling.seed,
            "stopSequences": list(sampling.stop[: Gemini.stop_limit]) or None,
            "responseMimeType": "application/json" if request.schema is not None else None,
            "responseJsonSchema": request.schema,
        }
    )


class _ContentDecoder(FrameDecoder):
    """Every frame is a whole response with the next parts. There is no terminal marker but an array's ``]``.

    A finish reason beside output may be early (old models repeat STOP in every frame): it stands if nothing
    more comes, and is taken back by more output.
    """

    def __init__(self, body: Mapping[str, Json]) -> None:
        config = as_object(body.get("generationConfig"))
        super().__init__(max(1, as_int(config.get("candidateCount")) or 1))
        self._calls: dict[int, FunctionCalls] = {}
        self._early: set[int] = set()
        self._paused = False
        self._usage: Usage | None = None

    @property
    def unfinished(self) -> StreamError | None:
        if self._paused:
            message = f"the server has only paused ({_PAUSE}), and wants to be asked to go on"
            return StreamError(kind=_PAUSE, message=message)
        if self.finished and self.marker_seen is False:
            return StreamError(kind="array_not_closed", message="the JSON array was not closed")
        return None

    @property
    def settled(self) -> bool:
        return self.complete and not self._early

    def decode(self, frame: Frame) -> list[Event]:
        if frame.data == "[":
            self.marker_seen = False
            return []
        if frame.data == "]":
            self.marker_seen = self.done = True
            return []
        if frame.data.startswith("[DONE]"):
            # Gateways that speak OpenAI's API too.
            self.done = True
            return []
        value = parse_frame(frame)
        if frame.name == "error":
            return self.fail(bare_error(frame.data if isinstance(value, KeepAlive | UnknownFrame) else value))
        if isinstance(value, KeepAlive | UnknownFrame):
            return [value]
        chunks = list(objects(value)) if isinstance(value, list) else [as_object(value)]
        events = [event for chunk in chunks for event in self._chunk(chunk)]
        known = any(key in chunk for chunk in chunks for key in _FIELDS)
        return events if known or self.error else [UnknownFrame(name=frame.name, data=frame.data)]

    def _chunk(self, chunk: Mapping[str, Json]) -> list[Event]:
        if "error" in chunk and (error := error_from(chunk)):
            return self.fail(error)
        events = self.start(response_id=chunk.get("responseId"), model=chunk.get("modelVersion"))
        for candidate in objects(chunk.get("candidates")):
            self._candidate(candidate, events)
        self._block(as_object(chunk.get("promptFeedback")), events)
        usage = read_usage(as_object(chunk.get("usageMetadata")))
        if usage is not None and usage != self._usage:
            self._usage = usage
            events.append(UsageReport(usage=usage))
        return events

    def _candidate(self, candidate: Mapping[str, Json], events: list[Event]) -> None:
        index = as_int(candidate.get("index")) or 0
        before = len(events)
        for part in objects(as_object(candidate.get("content")).get("parts")):
            events += self._part(part, index)
        has_output = len(events) > before
        if has_output:
            self.finished.discard(index)
        if raw := as_text(candidate.get("finishReason")):
            self._finish(raw, as_text(candidate.get("finishMessage")), index, events)
            (self._early.add if has_output else self._early.discard)(index)

    def _part(self, part: Mapping[str, Json], index: int) -> list[Event]:
        if "functionCall" in part:
            calls = self._calls.setdefault(index, FunctionCalls(index))
            return calls.read(as_object(part["functionCall"]))
        if "text" in part:
            read = reasoning_events if part.get("thought") is True else text_events
            return read(part["text"], index)
        kind = next((key for key in part if key not in _ABOUT_A_PART), None)
        return [UnknownFrame(name=kind, data=compact(part))] if kind else []

    def _finish(self, raw: str, message: str | None, index: int, events: list[Event]) -> None:
        calls = self._calls.get(index)
        if calls is not None:
            # The empty call that ends a call in pieces is missing where its last argument is a list.
            events += calls.end()
        reason = _REASONS.get(raw, FinishReason.OTHER)
        if reason is FinishReason.STOP and calls is not None and calls.count:
            reason = FinishReason.TOOL_CALLS
        if reason is FinishReason.CONTENT_FILTER:
            events += refusal_events(message, index)
        events.append(self.finish(reason, raw, choice=index))
        self._paused = self._paused or raw == _PAUSE
        if raw in _FAILURES:
            self.fail(StreamError(kind=raw, message=message or f"the answer ended with {raw}"))

    def _block(self, feedback: Mapping[str, Json], events: list[Event]) -> None:
        """The prompt was refused: there will be no candidates."""
        raw = as_text(feedback.get("blockReason"))
        if raw is None:
            return
        events += refusal_events(feedback.get("blockReasonMessage"))
        for choice in range(self.choices):
            events.append(self.finish(FinishReason.CONTENT_FILTER, raw, choice=choice))


def read_usage(counts: Mapping[str, Json]) -> Usage | None:
    """The counts so far; None where there are none.

    ``candidatesTokenCount`` leaves the thoughts out, every other API counts them in: here they are added.
    """
    answer, thoughts = as_int(counts.get("candidatesTokenCount")), as_int(counts.get("thoughtsTokenCount"))
    usage = Usage(
        prompt_tokens=as_int(counts.get("promptTokenCount")),
        completion_tokens=None if answer is thoughts is None else (answer or 0) + (thoughts or 0),
        reasoning_tokens=thoughts,
        cached_tokens=as_int(counts.get("cachedContentTokenCount")),
        total_tokens=as_int(counts.get("totalTokenCount")),
        raw=counts,
    )
    return usage if usage != Usage(raw=counts) else None


SHAPE = Gemini()
