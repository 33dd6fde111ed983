"""A renderer for answers that somebody else reads."""

from llmstream_cli.events import Event
from llmstream_cli.outcome import Outcome


class SilentRenderer:
    def raw(self, data: bytes) -> None:
        pass

    def event(self, event: Event) -> None:
        pass

    def finish(self, outcome: Outcome) -> None:
        pass
