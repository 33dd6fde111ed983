"""The output of a response: items and the parts inside them, each told once."""

from collections.abc import Mapping
from typing import NamedTuple

from llmstream_cli.events import (
    Event,
    Json,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    UnknownFrame,
)
from llmstream_cli.fields import as_int, as_object, as_text, compact, objects

Key = int | str
"""An item of the output: its ``output_index``, or its id where a server gives no index (llama.cpp). The id
alone is no key: GitHub Copilot makes a new one for every event."""


class Text(NamedTuple):
    """How a kind of text is streamed: as which event, numbered by which field, and where the whole stands."""

    event: type[TextDelta | ReasoningDelta | RefusalDelta]
    counter: str = "content_index"
    whole: str = "text"


TEXTS = {
    "response.output_text": Text(TextDelta),
    "response.refusal": Text(RefusalDelta, whole="refusal"),
    "response.reasoning_text": Text(ReasoningDelta),
    "response.reasoning_summary_text": Text(ReasoningDelta, counter="summary_index"),
}
"""By the name of their events without ``.delta`` and ``.done``."""
ARGUMENTS = {
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}
"""The same for the arguments of a tool call, with the field that holds all of them."""
_CONTENTS = {
    "output_text": "response.output_text",
    "refusal": "response.refusal",
    "reasoning_text": "response.reasoning_text",
    "summary_text": "response.reasoning_summary_text",
}
"""The type of a part inside an item -> the event that streams it."""


class _Part(NamedTuple):
    """One run of text or of arguments: which event streams it, in which item, which of them."""

    name: str
    item: Key
    number: int = 0


class Output:
    """Everything is sent up to three times: in deltas, in ``done`` events and in the last event. A part that
    came in deltas is told by them; what only a later event holds is told from there.

    A message of the phase ``commentary`` is no answer, but what the model says on its way to it: reasoning.
    """

    def __init__(self) -> None:
        self.calls: dict[Key, int] = {}
        self._named: set[int] = set()
        self._commentary: set[Key] = set()
        self._told: set[_Part] = set()
        self._last: dict[type, _Part] = {}

    @property
    def is_empty(self) -> bool:
        return not self._told and not self.calls

    def text(self, name: str, event: Mapping[str, Json], *, is_whole: bool) -> list[Event]:
        """A piece of the text `name`, or with `is_whole` all of it."""
        form = TEXTS[name]
        part = _Part(name, _key(event), as_int(event.get(form.counter)) or 0)
        return self._tell(part, event.get(form.whole if is_whole else "delta"), is_whole=is_whole)

    def arguments(self, name: str, event: Mapping[str, Json], *, is_whole: bool) -> list[Event]:
        """A piece of a call's arguments, or with `is_whole` all of them."""
        text = event.get(ARGUMENTS[name] if is_whole else "delta")
        return self._call(_key(event), None, None, text, is_whole=is_whole)

    def item(self, event: Mapping[str, Json]) -> list[Event]:
        """An item at its opening or at its end."""
        return self._item(_key(event), as_object(event.get("item")))

    def all_items(self, items: Json) -> list[Event]:
        """The whole output, as the last event has it."""
        return [event for index, item in enumerate(objects(items)) for event in self._item(index, item)]

    def _item(self, key: Key, item: Mapping[str, Json]) -> list[Event]:
        match item.get("type"):
            case "message" | "reasoning":
                if item.get("phase") == "commentary":
                    self._commentary.add(key)
                return self._contents(key, item.get("summary")) + self._contents(key, item.get("content"))
            case "function_call" | "custom_tool_call" as kind:
                arguments = item.get("arguments" if kind == "function_call" else "input")
                call_id, name = as_text(item.get("call_id")), as_text(item.get("name"))
                return self._call(key, call_id, name, arguments, is_whole=True)
            case other:
                return [UnknownFrame(name=as_text(other), data=compact(item))]

    def _contents(self, key: Key, contents: Json) -> list[Event]:
        events: list[Event] = []
        for index, content in enumerate(objects(contents)):
            name = _CONTENTS.get(as_text(content.get("type")) or "")
            if name is not None:
                events += self._tell(_Part(name, key, index), content.get(TEXTS[name].whole), is_whole=True)
        return events

    def _tell(self, part: _Part, text: Json, *, is_whole: bool) -> list[Event]:
        if not isinstance(text, str) or not text or (is_whole and part in self._told):
            return []
        self._told.add(part)
        event = TEXTS[part.name].event
        if event is TextDelta and part.item in self._commentary:
            event = ReasoningDelta
        before, self._last[event] = self._last.get(event), part
        return [event(text=_between(before, part) + text)]

    def _call(
        self, key: Key, call_id: str | None, name: str | None, arguments: Json, *, is_whole: bool
    ) -> list[Event]:
        number = self.calls.setdefault(key, len(self.calls))
        if number in self._named:
            call_id = name = None
        elif name:
            self._named.add(number)
        part = _Part("arguments", key)
        text = compact(arguments) if isinstance(arguments, dict) else as_text(arguments) or ""
        if is_whole and part in self._told:
            text = ""
        if text:
            self._told.add(part)
        if not (call_id or name or text):
            return []
        return [ToolCallDelta(call=number, id=call_id, name=name or "", arguments=text)]


def _key(event: Mapping[str, Json]) -> Key:
    index = as_int(event.get("output_index"))
    if index is not None:
        return index
    return as_text(event.get("item_id")) or as_text(as_object(event.get("item")).get("id")) or ""


def _between(before: _Part | None, part: _Part) -> str:
    """What separates two runs of text: a line end between messages, a blank line between thoughts."""
    if before is None or before == part:
        return ""
    if part.name in ("response.output_text", "response.refusal"):
        return "" if before.item == part.item else "\n"
    return "\n\n"
