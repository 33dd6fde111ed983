"""Who the server is and what models it has: asked in the background, while the person types."""

import threading
from typing import TYPE_CHECKING

from llmstream_cli.errors import TransportError

if TYPE_CHECKING:
    from llmstream_cli.listing import ModelInfo
    from llmstream_cli.transport import Target

WAIT_S = 2.0


class ServerFacts:
    """Nothing is known until `settled`; what the server does not tell stays unknown."""

    def __init__(self, target: "Target") -> None:
        self.kind: str | None = None
        self.models: tuple[ModelInfo, ...] = ()
        self._done = threading.Event()
        threading.Thread(target=self._look, args=(target,), name="server-facts", daemon=True).start()

    def wait(self) -> None:
        """Give the server a moment to answer."""
        self._done.wait(WAIT_S)

    def context_tokens(self, model: str | None) -> int | None:
        """The context of `model`, or of the only one there is."""
        named = [info for info in self.models if info.id == model]
        found = named or (self.models if len(self.models) == 1 else ())
        return found[0].context_tokens if found else None

    def _look(self, target: "Target") -> None:
        from llmstream_cli.servers import identify, list_models

        try:
            info = identify(target)
            if info is not None:
                self.kind = info.kind
                self.models = info.models or list_models(target, info.kind)
        except TransportError:
            # Not even a list of models: the request that follows will tell why.
            pass
        finally:
            self._done.set()
