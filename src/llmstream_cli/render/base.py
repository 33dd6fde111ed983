"""What a renderer is."""

from typing import Protocol

from llmstream_cli.events import Event
from llmstream_cli.outcome import Outcome


class Renderer(Protocol):
    """Gets every read and every event as it comes, then the outcome. May raise BrokenPipeError."""

    def raw(self, data: bytes) -> None: ...

    def event(self, event: Event) -> None: ...

    def finish(self, outcome: Outcome) -> None: ...
