"""``POST /v1/completions``: a text prompt in, its continuation out."""

from collections.abc import Mapping

from llmstream_cli.events import Event, Json
from llmstream_cli.request import HttpRequest, Request
from llmstream_cli.shapes.base import FrameDecoder, Shape, text_events
from llmstream_cli.shapes.openai_wire import MARKER, OpenAIDecoder, build_body, prompt_count


class OpenAICompletions(Shape):
    name = "openai-completions"
    path = "/v1/completions"
    takes = "prompt"
    terminal_marker = MARKER
    stop_field = "stop"
    max_tokens_field = "max_tokens"

    def build(self, request: Request) -> HttpRequest:
        return HttpRequest(path=self.path, body=build_body(request, {"prompt": request.prompt}))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _CompletionsDecoder(body, prompts=prompt_count(body.get("prompt")))


class _CompletionsDecoder(OpenAIDecoder):
    def output(self, choice: Mapping[str, Json], index: int) -> list[Event]:
        return text_events(choice.get("text"), index)


SHAPE = OpenAICompletions()
