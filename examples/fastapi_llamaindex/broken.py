"""The same back end with an LLM that fails in the middle of its answer."""

from typing import Any

import app as backend
from llama_index.core.llms import CompletionResponseGen, MockLLM

app = backend.app


class BrokenLLM(MockLLM):
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        yield from list(super().stream_complete(prompt, formatted, **kwargs))[:7]
        raise RuntimeError("the model ran out of memory")


backend.engine = backend.index.as_query_engine(streaming=True, llm=BrokenLLM())
