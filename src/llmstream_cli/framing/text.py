"""Plain text: no frames at all, so that every read gives one at once.

Where reads are cut shows in how many frames there are, never in their text joined together: a character cut
in two is held back until it is whole.
"""

import codecs

from llmstream_cli.framing.base import Frame, FramingFault, Unit


class TextFramer:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._received = 0

    def feed(self, data: bytes) -> list[Unit]:
        offset = self._received
        self._received += len(data)
        text = self._decoder.decode(data)
        return [Frame(text, offset)] if text else []

    def close(self) -> list[Unit]:
        """A body that ends inside a character was cut, even where the connection ended in good order."""
        if not self._decoder.decode(b"", final=True):
            return []
        return [FramingFault("cut_character", "the text ends inside a character", self._received)]
