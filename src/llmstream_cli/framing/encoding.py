"""Content encodings of an HTTP body, undone as the bytes come (RFC 9110, 8.4). Pure.

The client asks for ``identity``; some gateways compress all the same.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

PIECE_BYTES = 64 * 1024
"""Largest piece of output: a few bytes of a decompression bomb become a gigabyte only if someone keeps it."""

_GZIP, _ZLIB, _RAW_DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_SHOWN_BYTES = 8


class EncodingError(Exception):
    """The body is not what its Content-Encoding says, or that encoding is not known here."""


class ContentDecoder(Protocol):
    """Incremental: any cut of the same bytes gives the same output."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The output that `data` completes, in bounded pieces; raises EncodingError."""
        ...

    def close(self) -> bytes:
        """The rest of the output. A body that was cut short is no error here: the frames will tell."""
        ...


def make_content_decoder(content_encoding: str) -> ContentDecoder:
    """The decoder for a Content-Encoding header; one that is unknown fails at the first byte of the body."""
    names = [name for part in content_encoding.split(",") if (name := part.strip().lower())]
    match [name for name in names if name != "identity"]:
        case []:
            return _Identity()
        case ["gzip" | "x-gzip"]:
            return _Zlib(content_encoding, lambda _: _GZIP, header_bytes=1)
        case ["deflate"]:
            return _Zlib(content_encoding, _deflate_window, header_bytes=2)
        case _:
            return _Unknown(content_encoding)


class _Identity:
    def feed(self, data: bytes) -> Iterator[bytes]:
        if data:
            yield data

    def close(self) -> bytes:
        return b""


class _Unknown:
    def __init__(self, declared: str) -> None:
        self._declared = declared

    def feed(self, data: bytes) -> Iterator[bytes]:
        shown = data[:_SHOWN_BYTES].hex(" ")
        raise EncodingError(
            f"the body is encoded as {self._declared!r}, which was not asked for and cannot be read here "
            f"(first bytes: {shown})"
        )

    def close(self) -> bytes:
        return b""


class _Zlib:
    """gzip (any number of members) and deflate (with the zlib header, or raw as some servers send it)."""

    def __init__(self, declared: str, choose_window: Callable[[bytes], int], *, header_bytes: int) -> None:
        self._declared = declared
        self._choose_window = choose_window
        self._header_bytes = header_bytes
        self._first = b""
        self._held = b""
        self._inflate: zlib._Decompress | None = None
        self._ended = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if len(self._first) < _SHOWN_BYTES:
            self._first += data[: _SHOWN_BYTES - len(self._first)]
        data = self._held + data
        if self._inflate is None and len(data) < self._header_bytes:
            self._held = data
            return
        self._held = b""
        yield from self._decompress(data)

    def close(self) -> bytes:
        return b"" if self._inflate is None else self._inflate.flush()

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate is None:
                # Members of gzip may follow each other; anything else after the end is padding.
                if self._ended and data[:1] != _GZIP_MAGIC[:1]:
                    return
                self._inflate = zlib.decompressobj(self._choose_window(data))
            while piece := self._piece(self._inflate, data):
                yield piece
                data = self._inflate.unconsumed_tail
                if len(piece) < PIECE_BYTES:
                    break
            if not self._inflate.eof:
                return
            data = self._inflate.unused_data
            self._inflate, self._ended = None, True

    def _piece(self, inflate: "zlib._Decompress", data: bytes) -> bytes:
        try:
            return inflate.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            raise EncodingError(
                f"the body is not {self._declared} although its Content-Encoding says so "
                f"(first bytes: {self._first.hex(' ')}; {error})"
            ) from None


def _deflate_window(head: bytes) -> int:
    """RFC 1950 header, or the raw RFC 1951 data that old servers send."""
    has_header = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
    return _ZLIB if has_header else _RAW_DEFLATE
