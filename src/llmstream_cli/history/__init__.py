"""Conversations: what was said (`dialogue`), saved as it happens (`store`), written out (`export`)."""

from llmstream_cli.history.dialogue import Cut, Dialogue, Said, cut_of
from llmstream_cli.history.export import as_json, as_markdown
from llmstream_cli.history.store import ConversationLog, Shelf, Summary

__all__ = [
    "ConversationLog",
    "Cut",
    "Dialogue",
    "Said",
    "Shelf",
    "Summary",
    "as_json",
    "as_markdown",
    "cut_of",
]
