"""Who the server is and what models it has: asked in the background, while the person types."""

import threading
from typing import TYPE_CHECKING

from llmstream_cli.errors import TransportError

if TYPE_CHECKING:
    from llmstream_cli.listing import ModelInfo
    from llmstream_cli.transport import Target

WAIT_S = 2.0


class ServerFacts:
    """Nothing is known until `look` has been called and has its answer."""

    def __init__(self, target: "Target") -> None:
        self.kind: str | None = None
        self.models: tuple[ModelInfo, ...] = ()
        self._target = target
        self._thread: threading.Thread | None = None

    def look(self) -> None:
        """Ask in the background, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="server-facts", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Give the server a moment to answer."""
        self.look()
        if self._thread is not None:
            self._thread.join(WAIT_S)

    def context_tokens(self, model: str | None) -> int | None:
        """The context of `model`, or of the only one there is."""
        named = [info for info in self.models if info.id == model]
        found = named or (self.models if len(self.models) == 1 else ())
        return found[0].context_tokens if found else None

    def _look(self) -> None:
        from llmstream_cli.servers import identify, list_models

        try:
            info = identify(self._target)
            if info is not None:
                self.kind = info.kind
                self.models = info.models or list_models(self._target, info.kind)
        except TransportError:
            # Not even a list of models: the request that follows will tell why.
            pass
