"""``POST /api/chat`` of Ollama: messages in, lines of JSON out."""

from collections.abc import Mapping

from llmstream_cli.events import Event, Json
from llmstream_cli.request import HttpRequest, Request
from llmstream_cli.shapes.base import FrameDecoder, Shape, reasoning_events, text_events
from llmstream_cli.shapes.ollama_wire import COMPLETENESS, REASONS, OllamaDecoder, build_body


class OllamaChat(Shape):
    name = "ollama-chat"
    framing = "ndjson"
    path = "/api/chat"
    takes = "messages"
    terminal_marker = '"done": true'
    stop_field = "options.stop"
    max_tokens_field = "options.num_predict"
    needs_model = True
    speakers = "Ollama"
    completeness = COMPLETENESS
    finish_reasons = REASONS
    usage_field = "prompt_eval_count, eval_count"

    def build(self, request: Request) -> HttpRequest:
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        return HttpRequest(path=self.path, body=build_body(request, {"messages": messages}))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _ChatDecoder(body)


class _ChatDecoder(OllamaDecoder):
    def output(self, line: Mapping[str, Json]) -> list[Event] | None:
        message = line.get("message")
        if not isinstance(message, dict):
            return None
        return [
            *reasoning_events(message.get("thinking")),
            *text_events(message.get("content")),
            *self.tool_calls(message.get("tool_calls")),
        ]


SHAPE = OllamaChat()
