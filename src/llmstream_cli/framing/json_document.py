"""One JSON document: the answer to a request that was not streamed, or a server that does not stream."""

from llmstream_cli.framing.base import Frame, FramingFault, Unit
from llmstream_cli.framing.lines import DEFAULT_LIMIT_BYTES


class JsonDocumentFramer:
    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[Unit]:
        if self._size > self._limit:
            return []
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._limit:
            self._pieces.clear()
            return [FramingFault.oversized(0, self._limit)]
        return []

    def close(self) -> list[Unit]:
        text = b"".join(self._pieces).decode("utf-8-sig", "replace")
        return [Frame(text, whole=True)] if text.strip() else []
