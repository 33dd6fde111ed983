"""The event stream of an application's own back end: FastAPI, sse-starlette, LangServe, hand-written ones."""

from llmstream_cli.shapes.generic import GenericShape
from llmstream_cli.shapes.stream_table import StreamTable


class Sse(GenericShape):
    name = "sse"
    default_data = "auto"
    has_events = True
    speakers = "FastAPI, sse-starlette, LangServe, LlamaIndex back ends, hand-written ones"

    def __init__(self, table: StreamTable | None = None) -> None:
        super().__init__(table)
        self.framing = "sse-text" if self.table.data == "text" else "sse"


SHAPE = Sse()
