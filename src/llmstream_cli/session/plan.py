"""Everything about one request, decided."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from llmstream_cli.request import HttpRequest, Request
from llmstream_cli.shapes.base import Shape

if TYPE_CHECKING:
    from llmstream_cli.transport import Target, Timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to send, where, and how patiently."""

    target: "Target"
    timeouts: "Timeouts"
    shape: Shape
    request: Request
    path: str | None = None
    profile: str | None = None
    retries: int = 2
    enforce_stop: bool = True
    think_tags: bool = True

    def http_request(self) -> HttpRequest:
        built = self.shape.build(self.request)
        if not self.path:
            return built
        # What a shape says in the query string (Gemini's form of stream) stays.
        _, mark, query = built.path.partition("?")
        joint = "&" if mark and "?" in self.path else mark
        return replace(built, path=f"{self.path}{joint}{query}")
