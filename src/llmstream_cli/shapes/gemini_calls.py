"""Gemini's function calls, whole or in pieces: arguments by JSON path, written as the text they spell."""

import json
import re
from collections.abc import Mapping

from llmstream_cli.events import Event, Json, ToolCallDelta
from llmstream_cli.fields import as_text, compact, objects

_SEGMENT = re.compile(r"""\.([^.\[]+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""")
_Path = list[str | int]


class FunctionCalls:
    """The function calls of one candidate.

    A call comes whole in one part, or in pieces (Vertex AI, ``streamFunctionCallArguments``): first its name,
    then ``partialArgs`` while ``willContinue`` is true, then an empty call.
    """

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self.count = 0
        self._writer: ArgumentsWriter | None = None

    def read(self, call: Mapping[str, Json]) -> list[Event]:
        """The events of one ``functionCall``."""
        events: list[Event] = []
        goes_on, pieces = call.get("willContinue") is True, list(objects(call.get("partialArgs")))
        if "name" in call or "args" in call:
            events += self.end()
            self.count += 1
            self._writer = ArgumentsWriter() if goes_on or pieces else None
            whole = "" if self._writer else compact(call.get("args") or {})
            events.append(self._delta(whole, id=as_text(call.get("id")), name=as_text(call.get("name"))))
        if self._writer is not None:
            events += self._arguments("".join(map(self._writer.write, pieces)))
            events += [] if goes_on else self.end()
        return events

    def end(self) -> list[Event]:
        """Close the call whose arguments are still coming, if there is one."""
        writer, self._writer = self._writer, None
        return [] if writer is None else self._arguments(writer.close())

    def _arguments(self, text: str) -> list[Event]:
        return [self._delta(text)] if text else []

    def _delta(self, arguments: str, *, id: str | None = None, name: str | None = None) -> ToolCallDelta:
        return ToolCallDelta(
            call=self.count - 1, id=id, name=name or "", arguments=arguments, choice=self._choice
        )


class ArgumentsWriter:
    """Turns ``partialArgs`` (``{jsonPath, stringValue | numberValue | boolValue | nullValue}``) into text.

    The values come in the order in which the model writes them, so that every one can be appended at once: a
    call that breaks off leaves broken JSON, and is seen to be broken.
    """

    def __init__(self) -> None:
        self._keys: _Path = []
        """Where each open container below the outermost one stands in its parent."""
        self._closing: list[str] = []
        self._filled: list[bool] = []
        self._string: _Path | None = None
        """The string that may still go on."""

    def write(self, piece: Mapping[str, Json]) -> str:
        """The text that one element of ``partialArgs`` adds."""
        where = as_text(piece.get("jsonPath")) or ""
        path = _read_path(where) or [where]
        text = piece.get("stringValue")
        if isinstance(text, str) and path == self._string:
            return _escaped(text)
        before = self._end_string() + self._go_to(path)
        if isinstance(text, str):
            self._string = path
            return f'{before}"{_escaped(text)}'
        # "nullValue" is the string NULL_VALUE or null.
        return before + compact(piece.get("numberValue", piece.get("boolValue")))

    def close(self) -> str:
        """The text that ends the arguments."""
        if not self._closing:
            return "{}"
        return self._end_string() + "".join(reversed(self._closing))

    def _end_string(self) -> str:
        ended, self._string = self._string is not None, None
        return '"' if ended else ""

    def _go_to(self, path: _Path) -> str:
        """Close and open containers, so that the value at `path` comes next."""
        parents = path[:-1]
        written = "" if self._closing else self._open("{")
        shared = 0
        while shared < min(len(self._keys), len(parents)) and self._keys[shared] == parents[shared]:
            shared += 1
        while len(self._keys) > shared:
            self._keys.pop()
            self._filled.pop()
            written += self._closing.pop()
        for parent, child in zip(parents[shared:], path[shared + 1 :], strict=True):
            self._keys.append(parent)
            written += self._member(parent) + self._open("[" if isinstance(child, int) else "{")
        return written + self._member(path[-1])

    def _open(self, bracket: str) -> str:
        self._closing.append("}" if bracket == "{" else "]")
        self._filled.append(False)
        return bracket

    def _member(self, key: str | int) -> str:
        comma = "," if self._filled[-1] else ""
        self._filled[-1] = True
        return f"{comma}{compact(str(key))}:" if self._closing[-1] == "}" else comma


def _read_path(path: str) -> _Path:
    """``$.a[0]['b c']`` as its keys and positions."""
    return [
        int(position) if position else name or quoted or double
        for name, position, quoted, double in _SEGMENT.findall(path)
    ]


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
