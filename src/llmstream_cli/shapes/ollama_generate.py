"""``POST /api/generate`` of Ollama: one question, or a text that is continued as it is."""

from collections.abc import Mapping, Sequence

from llmstream_cli.events import Event, Json
from llmstream_cli.request import HttpRequest, Message, Request, Role
from llmstream_cli.shapes.base import FrameDecoder, Shape, reasoning_events, text_events
from llmstream_cli.shapes.ollama_wire import COMPLETENESS, REASONS, OllamaDecoder, build_body


class OllamaGenerate(Shape):
    """Takes messages, because the server puts a question (and a system text) into the model's own template.

    A `Request.prompt` goes past that template (``raw``). A longer conversation has no place in this endpoint
    and must come flattened like that: `needs_prompt` tells.
    """

    name = "ollama-generate"
    framing = "ndjson"
    path = "/api/generate"
    takes = "messages"
    terminal_marker = '"done": true'
    stop_field = "options.stop"
    max_tokens_field = "options.num_predict"
    needs_model = True
    speakers = "Ollama"
    completeness = COMPLETENESS
    finish_reasons = REASONS
    usage_field = "prompt_eval_count, eval_count"

    def needs_prompt(self, messages: Sequence[Message]) -> bool:
        return [message.role for message in messages if message.role != "system"] != ["user"]

    def build(self, request: Request) -> HttpRequest:
        """Raises ValueError for a conversation that was not flattened."""
        if request.prompt is not None:
            content: dict[str, Json] = {"prompt": request.prompt, "raw": True}
        elif self.needs_prompt(request.messages):
            raise ValueError(f"{self.path} takes one question; a conversation needs Request.prompt")
        else:
            content = {"prompt": _join(request, "user"), "system": _join(request, "system") or None}
        return HttpRequest(path=self.path, body=build_body(request, content))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _GenerateDecoder(body)


def _join(request: Request, role: Role) -> str:
    return "\n\n".join(message.content for message in request.messages if message.role == role)


class _GenerateDecoder(OllamaDecoder):
    def output(self, line: Mapping[str, Json]) -> list[Event] | None:
        if "response" not in line and "thinking" not in line:
            return None
        return [
            *reasoning_events(line.get("thinking")),
            *text_events(line.get("response")),
            *self.tool_calls(line.get("tool_calls")),
        ]


SHAPE = OllamaGenerate()
