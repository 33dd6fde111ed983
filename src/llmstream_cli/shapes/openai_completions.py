"""``POST /v1/completions``: a text prompt in, its continuation out."""

from collections.abc import Mapping

from llmstream_cli.events import Event, Json
from llmstream_cli.framing import Frame
from llmstream_cli.request import HttpRequest, Request
from llmstream_cli.shapes.base import FrameDecoder, Shape, text_events
from llmstream_cli.shapes.llamacpp_wire import read_stop_type
from llmstream_cli.shapes.openai_body import build_body
from llmstream_cli.shapes.openai_wire import COMPLETENESS, MARKER, REASONS, OpenAIDecoder
from llmstream_cli.shapes.prompts import count_prompts


class OpenAICompletions(Shape):
    name = "openai-completions"
    path = "/v1/completions"
    takes = "prompt"
    terminal_marker = MARKER
    stop_field = "stop"
    max_tokens_field = "max_tokens"
    speakers = "llama.cpp, vLLM, SGLang, TGI, Ollama, LM Studio, llama-cpp-python; OpenAI (legacy)"
    completeness = COMPLETENESS
    finish_reasons = REASONS
    usage_field = "usage"

    def build(self, request: Request) -> HttpRequest:
        # llama.cpp b11549 passes over response_format here (not in chat) and reads json_schema instead.
        content = {"prompt": request.prompt, "json_schema": request.schema}
        return HttpRequest(path=self.path, body=build_body(request, content))

    def decoder(self, body: Mapping[str, Json]) -> FrameDecoder:
        return _CompletionsDecoder(body, prompts=count_prompts(body.get("prompt")))


class _CompletionsDecoder(OpenAIDecoder):
    def output(self, choice: Mapping[str, Json], index: int) -> list[Event]:
        return text_events(choice.get("text"), index)

    def _chunk(self, chunk: Mapping[str, Json], frame: Frame) -> list[Event]:
        if "choices" not in chunk and isinstance(chunk.get("content"), str):
            chunk = _from_native(chunk)
        return super()._chunk(chunk, frame)


def _from_native(chunk: Mapping[str, Json]) -> dict[str, Json]:
    """llama.cpp of 2024 answers this endpoint in its native form. Capture: llama.cpp-2024/cmpl_stream."""
    choice = {"index": chunk.get("index"), "text": chunk["content"]}
    if not chunk.get("stop"):
        return {"choices": [choice]}
    stop_type = read_stop_type(chunk) or "none"
    return {
        "model": chunk.get("model"),
        "choices": [{**choice, "finish_reason": stop_type}],
        "usage": {
            "prompt_tokens": chunk.get("tokens_evaluated"),
            "completion_tokens": chunk.get("tokens_predicted"),
        },
        "timings": chunk.get("timings"),
        "__verbose": {**chunk, "stop_type": stop_type},
    }


SHAPE = OpenAICompletions()
