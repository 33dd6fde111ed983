"""Content encodings: the same output at every cut, bounded memory, and errors that name what is wrong."""

import gzip
import tracemalloc
import zlib

import pytest

from llmstream_cli.decode import StreamDecoder
from llmstream_cli.events import EndStatus, StreamEnd, TextDelta
from llmstream_cli.framing.encoding import PIECE_BYTES, EncodingError, make_content_decoder
from llmstream_cli.shapes import get_shape

TEXT = (
    'data: {"choices":[{"delta":{"content":"zipped ✓"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'.encode()
)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def decoded(encoding: str, *reads: bytes) -> bytes:
    decoder = make_content_decoder(encoding)
    return b"".join(piece for read in reads for piece in decoder.feed(read)) + decoder.close()


ENCODED = [
    ("", TEXT),
    ("identity", TEXT),
    ("gzip", gzip.compress(TEXT)),
    (" GZIP , identity", gzip.compress(TEXT)),
    ("x-gzip", gzip.compress(TEXT[:20]) + gzip.compress(TEXT[20:])),
    ("gzip", gzip.compress(TEXT) + b"\0\0\0\0"),
    ("deflate", zlib.compress(TEXT)),
    ("deflate", raw_deflate(TEXT)),
]


@pytest.mark.parametrize(("encoding", "body"), ENCODED)
def test_same_output_at_every_cut(encoding: str, body: bytes) -> None:
    assert decoded(encoding, body) == TEXT
    assert decoded(encoding, *(body[at : at + 1] for at in range(len(body)))) == TEXT
    assert all(decoded(encoding, body[:at], body[at:]) == TEXT for at in range(len(body)))


@pytest.mark.parametrize(("encoding", "body"), ENCODED)
def test_a_cut_body_gives_a_prefix(encoding: str, body: bytes) -> None:
    assert all(TEXT.startswith(decoded(encoding, body[:at])) for at in range(len(body)))


def test_text_comes_out_at_each_flush() -> None:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    decoder = make_content_decoder("gzip")
    first = packer.compress(b"zip") + packer.flush(zlib.Z_SYNC_FLUSH)
    assert b"".join(decoder.feed(first)) == b"zip"
    assert b"".join(decoder.feed(packer.compress(b"ped") + packer.flush())) == b"ped"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "compress"])
def test_unknown_encoding_is_named_with_the_first_bytes(encoding: str) -> None:
    decoder = make_content_decoder(encoding)
    with pytest.raises(EncodingError, match=rf"'{encoding}'.*first bytes: 0b 02 80"):
        list(decoder.feed(b"\x0b\x02\x80"))
    assert decoder.close() == b""


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_plain_bytes_in_an_encoded_body(encoding: str) -> None:
    decoder = make_content_decoder(encoding)
    with pytest.raises(
        EncodingError, match=rf"not {encoding} although .*first bytes: 64 61 74 61 3a 20 7b 22"
    ):
        list(decoder.feed(TEXT))


def test_a_bomb_comes_in_bounded_pieces() -> None:
    bomb = gzip.compress(bytes(64 * 1024 * 1024))
    tracemalloc.start()
    try:
        pieces = [len(piece) for piece in make_content_decoder("gzip").feed(bomb)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(pieces) == 64 * 1024 * 1024
    assert max(pieces) <= PIECE_BYTES
    assert peak < 1024 * 1024


def stream_decoder(encoding: str) -> StreamDecoder:
    shape = get_shape("openai-chat")
    return StreamDecoder(
        shape.decoder({}), "sse", content_type="text/event-stream", content_encoding=encoding
    )


@pytest.mark.parametrize(("encoding", "body"), ENCODED)
def test_an_encoded_stream_is_decoded(encoding: str, body: bytes) -> None:
    decoder = stream_decoder(encoding)
    events = [event for at in range(0, len(body), 7) for event in decoder.feed(body[at : at + 7])]
    end = decoder.close()[-1]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["zipped ✓"]
    assert isinstance(end, StreamEnd)
    assert (end.status, end.marker_seen) == (EndStatus.COMPLETE, True)


def test_a_wrong_encoding_ends_the_stream_incomplete() -> None:
    decoder = stream_decoder("gzip")
    assert decoder.feed(b": ready\n\n") == []
    assert decoder.ended
    assert decoder.feed(TEXT) == []
    (end,) = decoder.close()
    assert isinstance(end, StreamEnd)
    assert end.status is EndStatus.INCOMPLETE
    assert end.error is not None
    assert end.error.kind == "bad_content_encoding"
    assert "3a 20 72 65" in end.error.message
