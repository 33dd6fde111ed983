"""The event stream of an application's own back end: FastAPI, sse-starlette, LangServe, hand-written ones."""

from llmstream_cli.shapes.generic import REASONS, GenericShape


class Sse(GenericShape):
    name = "sse"
    framing = "sse"
    default_data = "auto"
    finish_reasons = REASONS


SHAPE = Sse()
