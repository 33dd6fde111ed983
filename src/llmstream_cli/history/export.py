"""A conversation as a document. Pure."""

import json

from llmstream_cli.history.dialogue import Dialogue, Said


def as_markdown(dialogue: Dialogue, title: str) -> str:
    """For people: a heading for each message, and a line where an answer was cut."""
    parts = [f"# {title}"]
    if dialogue.system:
        parts.append(f"## System\n\n{dialogue.system}")
    parts += [_section(said) for said in dialogue.said]
    return "\n\n".join(parts) + "\n"


def as_json(dialogue: Dialogue, title: str) -> str:
    """For programs: ``{"schema": "llmstream.conversation/1", "name", "system", "messages": [...]}``."""
    document = {
        "schema": "llmstream.conversation/1",
        "name": title,
        "system": dialogue.system,
        "messages": [
            {
                "role": said.role,
                "text": said.text,
                "cut": said.cut,
                "model": said.model,
                "profile": said.profile,
            }
            for said in dialogue.said
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _section(said: Said) -> str:
    if said.role == "user":
        return f"## You\n\n{said.text}"
    who = f" ({said.model})" if said.model else ""
    cut = f"\n\n*Cut off here: {said.cut.words}.*" if said.cut else ""
    return f"## Answer{who}\n\n{said.text}{cut}"
