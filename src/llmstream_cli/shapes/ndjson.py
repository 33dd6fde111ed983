"""Lines of JSON from an application's own back end."""

from llmstream_cli.shapes.generic import GenericShape


class Ndjson(GenericShape):
    name = "ndjson"
    framing = "ndjson"
    default_data = "json"
    speakers = "back ends that stream lines of JSON: FastAPI generators, LlamaIndex workflows"


SHAPE = Ndjson()
