"""A question-answering back end as many write it: a LlamaIndex query engine behind FastAPI.

The same answer in three forms: events with JSON in them (``POST /chat``), events written by hand
(``POST /chat/plain``), and plain text (``GET /ask``).
"""

import json
from collections.abc import Iterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from llama_index.core import Document, SummaryIndex
from llama_index.core.llms import MockLLM
from pydantic import BaseModel
from sse_starlette import EventSourceResponse

DOCUMENTS = ["Reykjavík is the capital of Iceland.", "It has 140,000 inhabitants."]

# Any LLM of LlamaIndex can stand here. The mock one answers with the prompt that it was given.
llm = MockLLM()
index = SummaryIndex.from_documents([Document(text=text) for text in DOCUMENTS])
engine = index.as_query_engine(streaming=True, llm=llm)
app = FastAPI()


class Question(BaseModel):
    message: str


@app.post("/chat")
def chat(question: Question) -> EventSourceResponse:
    """An event for each token, one with the sources, one that says done; an error is an event, too."""

    def events() -> Iterator[dict[str, str]]:
        try:
            answer = engine.query(question.message)
            for token in answer.response_gen:
                yield {"event": "token", "data": json.dumps({"text": token})}
        # Whatever went wrong, the client must hear of it.
        except Exception as error:  # noqa: BLE001
            yield {"event": "error", "data": json.dumps({"message": str(error)})}
            return
        yield {"event": "sources", "data": json.dumps([node.text for node in answer.source_nodes])}
        yield {"event": "done", "data": "{}"}

    return EventSourceResponse(events())


@app.post("/chat/plain")
def chat_plain(question: Question) -> StreamingResponse:
    """The token as it is, line feeds and all, and nothing that marks the end."""
    answer = engine.query(question.message)
    return StreamingResponse(
        (f"data: {token}\n\n" for token in answer.response_gen), media_type="text/event-stream"
    )


@app.get("/ask")
def ask(q: str) -> StreamingResponse:
    """Nothing but the text."""
    return StreamingResponse(engine.query(q).response_gen, media_type="text/plain")
