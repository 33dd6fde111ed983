"""``POST /v1/chat/completions``, as OpenAI defined it and as everybody else serves it."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from llmstream_cli.events import Event, Json
from llmstream_cli.fields import as_int, as_object, as_text, compact, objects
from llmstream_cli.request import HttpRequest, Request
from llmstream_cli.shapes.base import (
    FrameDecoder,
    Shape,
    ToolCallMerger,
    reasoning_events,
    refusal_events,
    text_events,
)
from llmstream_cli.shapes.openai_body import build_body
from llmstream_cli.shapes.openai_wire import COMPLETENESS, MARKER, REASONS, OpenAIDecoder

_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")


class OpenAIChat(Shape):
    name = "openai-chat"
    path = "/v1/chat/completions"
    takes = "messages"
    terminal_marker = MARKER
    stop_field = "stop"
    max_tokens_field = "max_tokens"
    cap_fields = ("max_tokens", "max_completion_tokens")
    # Its reasoning models refuse the older name, all take the newer one.
    cap_field_at = MappingProxyType({"https://api.openai.com": "max_completion_tokens"})
    speakers = (
        "OpenAI and compatible hosts (OpenRouter, Groq, DeepSeek, Mistral, Azure, xAI, Together ...); "
        "llama.cpp, vLLM, SGLang, TGI, Ollama, LM Studio, llama-cpp-python"
    )
    completeness = COMPLETENESS
    finish_reasons = REASONS
    usage_field = "usage"

    def build(self, request: Request) -> HttpRequest:
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        return HttpRequest(path=self.path, body=build_body(request, {"messages": messages}))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _ChatDecoder(body)


class _ChatDecoder(OpenAIDecoder):
    def __init__(self, body: Mapping[str, Json]) -> None:
        super().__init__(body)
        self._calls = ToolCallMerger()

    def output(self, choice: Mapping[str, Json], index: int) -> list[Event]:
        events: list[Event] = []
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta, index, events)
        if "message" in choice and not events and index not in self._answered:
            self._whole(as_object(choice["message"]), index, events)
        return events

    def _whole(self, message: Mapping[str, Json], index: int, events: list[Event]) -> None:
        """The answer of a server that does not stream; some also end a stream with all that was said."""
        if index in self._reasoned:
            message = {key: message[key] for key in message if key not in _REASONING_KEYS}
        self._delta(message, index, events)

    def _delta(self, delta: Mapping[str, Json], index: int, events: list[Event]) -> None:
        # llama.cpp, SGLang, LM Studio; vLLM, Ollama, LM Studio; a few gateways. Some send one text twice.
        reasoning = delta.get("reasoning_content") or delta.get("reasoning") or delta.get("thinking")
        if reasoning:
            events += reasoning_events(reasoning, index)
        elif details := delta.get("reasoning_details"):
            # OpenRouter, mostly beside `reasoning`.
            for detail in objects(details):
                events += reasoning_events(detail.get("text") or detail.get("summary"), index)
        content = delta.get("content")
        if isinstance(content, list):
            events += _part_events(content, index)
        elif content:
            events += text_events(content, index)
        if refusal := delta.get("refusal"):
            events += refusal_events(refusal, index)
        if calls := delta.get("tool_calls"):
            # TGI has sent one object instead of a list.
            for call in objects([calls] if isinstance(calls, dict) else calls):
                self._call(call, as_int(call.get("index")), index, events)
        elif function := delta.get("function_call"):
            # The older form; llama-cpp-python sends every fragment in both.
            self._call({"function": function}, 0, index, events)

    def _call(self, call: Mapping[str, Json], number: int | None, index: int, events: list[Event]) -> None:
        function = as_object(call.get("function"))
        arguments = function.get("arguments")
        fragment = self._calls.fragment(
            choice=index,
            index=number,
            call_id=as_text(call.get("id")),
            name=as_text(function.get("name")),
            arguments=compact(arguments) if isinstance(arguments, dict) else as_text(arguments) or "",
        )
        if fragment:
            events.append(fragment)


def _part_events(parts: list[Json], index: int) -> Iterator[Event]:
    """Mistral's content in parts: ``{type: text, text}`` and ``{type: thinking, thinking: [text parts]}``."""
    for part in objects(parts):
        thinking = part.get("thinking")
        if isinstance(thinking, list):
            thinking = "".join(as_text(piece.get("text")) or "" for piece in objects(thinking))
        yield from reasoning_events(thinking, index)
        yield from text_events(part.get("text"), index)


SHAPE = OpenAIChat()
