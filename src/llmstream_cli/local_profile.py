"""What gemma-3-270m needs to answer questions. Pure data for the built-in ``local`` profile.

It is a base model: it continues text and knows no chat markers. Two worked examples in plain text make it
answer, and its answer ends where it begins to write the next question. The answers stand on lines of their
own because a space after ``Assistant:`` would be either the first character of every answer or, moved into
the prompt, a token that the model hardly ever saw there (it then answers with rows of zeros). The examples
were chosen by the share of twenty simple questions that come out right (17), and by how clearly the first
token wins over the second.
"""

from types import MappingProxyType

LOCAL_MODEL = "gemma-3-270m"

LOCAL_TEMPLATE = MappingProxyType(
    {
        "prefix": (
            "The assistant answers questions correctly, in short sentences.\n\n"
            "User: What is a piano?\n"
            "Assistant:\nA piano is a musical instrument with black and white keys.\n"
            "User: What is the capital of France?\n"
            "Assistant:\nThe capital of France is Paris.\n"
        ),
        "system": "System: {content}\n",
        "user": "User: {content}\n",
        "assistant": "Assistant:\n{content}\n",
        "open": "Assistant:\n",
        "stop": ["\nUser:"],
    }
)
"""The parts of a flattened conversation: `prefix`, one part a message, `open`. The server adds BOS itself."""

LOCAL_DEFAULTS = MappingProxyType({"temperature": 0.0, "max_tokens": 256})
