"""Lines of JSON from an application's own back end."""

from llmstream_cli.shapes.generic import REASONS, GenericShape


class Ndjson(GenericShape):
    name = "ndjson"
    framing = "ndjson"
    default_data = "json"
    finish_reasons = REASONS


SHAPE = Ndjson()
