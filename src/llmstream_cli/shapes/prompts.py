"""The forms that a prompt has in the completion endpoints of OpenAI and llama.cpp."""

from llmstream_cli.events import Json
from llmstream_cli.fields import as_int, as_list


def count_prompts(prompt: Json) -> int:
    """How many prompts: a list of strings or of token lists holds several, a list with token ids is one."""
    items = as_list(prompt)
    return 1 if not items or any(as_int(item) is not None for item in items) else len(items)
