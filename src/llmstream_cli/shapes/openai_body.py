"""What the requests to ``/v1/chat/completions`` and ``/v1/completions`` have in common."""

from collections.abc import Mapping

from llmstream_cli.events import Json
from llmstream_cli.request import Request, merge, without_none


def build_body(request: Request, content: Mapping[str, Json]) -> dict[str, Json]:
    """The JSON body: `content` (messages or prompt), the request's settings, then its own options over all.

    ``max_tokens``, not the newer ``max_completion_tokens``, unless the request says so: every self-hosted
    server reads it, and Ollama reads nothing else.
    """
    sampling = request.sampling
    body = {
        "model": request.model,
        **content,
        "stream": request.stream,
        "stream_options": {"include_usage": True} if request.stream and request.usage else None,
        request.cap_field or "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
        "response_format": _response_format(request.schema),
    }
    return merge(without_none(body), request.options)


def _response_format(schema: Mapping[str, Json] | None) -> Json:
    if schema is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
