"""Flatten a conversation into a text prompt, for completion endpoints of servers without a template. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llmstream_cli.events import Json
from llmstream_cli.request import Message

_SLOT = "{content}"
_TURNS = ("system", "user", "assistant")
_REQUIRED = (*_TURNS, "open")
_OPTIONAL = ("prefix", "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How each turn is written.

    ``system``, ``user``, ``assistant``: one turn, with ``{content}`` where its text goes. ``open``: what
    stands before the answer that is asked for. ``prefix``: what stands before everything (examples, for one).
    ``stop``: the stop strings without which the model would go on and write the next turns too.
    """

    system: str
    user: str
    assistant: str
    open: str
    prefix: str = ""
    stop: tuple[str, ...] = ()

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Json]) -> "Template":
        """A template as it stands in a profile; raises ValueError that names the wrong key."""
        for key in mapping:
            if key not in _REQUIRED + _OPTIONAL:
                raise ValueError(f"{key}: not a key of a template ({', '.join(_REQUIRED + _OPTIONAL)})")
        texts = {key: _read_text(mapping, key) for key in _REQUIRED}
        return cls(**texts, prefix=_read_text({"prefix": "", **mapping}, "prefix"), stop=_read_stops(mapping))

    def flatten(self, messages: Sequence[Message]) -> str:
        """The prompt that ends where the answer is to begin.

        A last message of the assistant is an answer to be continued: its text follows ``open`` as it is.
        A tool's result is written as a user's turn.
        """
        past, continued = messages, ""
        if messages and messages[-1].role == "assistant":
            past, continued = messages[:-1], messages[-1].content
        return "".join([self.prefix, *map(self._turn, past), self.open, continued])

    def _turn(self, message: Message) -> str:
        match message.role:
            case "system":
                return self.system.replace(_SLOT, message.content)
            case "assistant":
                return self._answer(message.content)
            case "user" | "tool":
                return self.user.replace(_SLOT, message.content)

    def _answer(self, content: str) -> str:
        """Models begin an answer with the space that the template has already."""
        before = self.assistant.partition(_SLOT)[0]
        return self.assistant.replace(_SLOT, content.lstrip() if before[-1:].isspace() else content)


# No text of a begin-of-sequence token: the servers add the token themselves.
TEMPLATES: Mapping[str, Template] = {
    "none": Template(system="{content}\n\n", user=_SLOT, assistant=_SLOT, open=""),
    "plain": Template(
        system="{content}\n\n",
        user="User: {content}\n",
        assistant="Assistant: {content}\n",
        open="Assistant:",
        stop=("\nUser:",),
    ),
    "chatml": Template(
        system="<|im_start|>system\n{content}<|im_end|>\n",
        user="<|im_start|>user\n{content}<|im_end|>\n",
        assistant="<|im_start|>assistant\n{content}<|im_end|>\n",
        open="<|im_start|>assistant\n",
        stop=("<|im_end|>",),
    ),
    "llama3": Template(
        system="<|start_header_id|>system<|end_header_id|>\n\n{content}<|eot_id|>",
        user="<|start_header_id|>user<|end_header_id|>\n\n{content}<|eot_id|>",
        assistant="<|start_header_id|>assistant<|end_header_id|>\n\n{content}<|eot_id|>",
        open="<|start_header_id|>assistant<|end_header_id|>\n\n",
        stop=("<|eot_id|>",),
    ),
}
"""The built-in templates. ``none`` sends a question as it is: the model continues the text."""


def get_template(name: str) -> Template:
    """The built-in template called `name`; ValueError for an unknown one."""
    try:
        return TEMPLATES[name]
    except KeyError:
        raise ValueError(f"no template is called {name!r} (there are {', '.join(TEMPLATES)})") from None


def _read_text(mapping: Mapping[str, Json], key: str) -> str:
    value = mapping.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key}: a text is needed" if key in mapping else f"{key}: missing in the template")
    if key in _TURNS and _SLOT not in value:
        raise ValueError(f"{key}: {_SLOT} is missing, the place of the turn's text")
    return value


def _read_stops(mapping: Mapping[str, Json]) -> tuple[str, ...]:
    stops = mapping.get("stop", [])
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop for stop in stops):
        raise ValueError("stop: a list of texts is needed, none of them empty")
    return tuple(stops)
