"""Bytes to frames: the event stream, lines of JSON, one document; cut anywhere, and in linear time."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmstream_cli.framing import Comment, Frame, FramingFault, FramingName, Unit, make_framer
from llmstream_cli.framing.lines import LineSplitter

PROPERTY = settings(deadline=None, derandomize=True, database=None, max_examples=200)
LINE_ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


def frame(name: FramingName, *pieces: bytes, limit_bytes: int = 1_000_000) -> list[Unit]:
    framer = make_framer(name, limit_bytes)
    units = [unit for piece in pieces for unit in framer.feed(piece)]
    return units + framer.close()


def sse(*pieces: bytes) -> list[Unit]:
    return frame("sse", *pieces)


def one_by_one(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_sse_ends_lines_at_lf_cr_and_crlf(end: bytes) -> None:
    body = b"data: a" + end + end + b"data: b" + end + b"data: c" + end + end
    first, second = Frame("a", 0), Frame("b\nc", 7 + 2 * len(end))
    assert sse(body) == sse(*one_by_one(body)) == [first, second]


def test_sse_delivers_an_event_at_the_cr_and_not_again_at_its_lf() -> None:
    framer = make_framer("sse")
    assert framer.feed(b"data: a\r\n\r") == [Frame("a", 0)]
    assert framer.feed(b"\ndata: b\r\n\r\n") == [Frame("b", 11)]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c"])
def test_only_cr_and_lf_end_a_line(separator: str) -> None:
    body = f"data: a{separator}b\n\n".encode()
    assert sse(body) == sse(*one_by_one(body)) == [Frame(f"a{separator}b", 0)]
    assert frame("ndjson", f'"a{separator}b"\n'.encode()) == [Frame(f'"a{separator}b"', 0)]


def test_sse_strips_one_space_and_one_byte_order_mark() -> None:
    body = b"\xef\xbb\xbfdata:  a\xef\xbb\xbf\n\ndata:b\n\n"
    assert sse(body) == sse(*one_by_one(body)) == [Frame(" a\ufeff", 0), Frame("b", 16)]


def test_sse_fields() -> None:
    body = b": ping\nevent: error\nid: 7\nretry: 10\nunknown: x\ndata\ndata: y\n\n"
    assert sse(body) == [Comment("ping"), Frame("\ny", 7, "error")]


def test_sse_tells_of_an_event_without_data_and_forgets_its_name() -> None:
    body = b"event: ping\n\nevent:\n\nid: 7\n\ndata: a\n\nevent: end\r\n\r\n"
    assert sse(body) == sse(*one_by_one(body)) == [Frame("", 0, "ping"), Frame("a", 28), Frame("", 37, "end")]


@pytest.mark.parametrize("tail", [b"event: end", b"event: end\n"])
def test_sse_does_not_take_a_cut_event_for_one_without_data(tail: bytes) -> None:
    assert sse(b"data: a\n\n" + tail) == [Frame("a", 0)]


def test_sse_error_field_of_old_llama_cpp_is_a_frame_named_error() -> None:
    assert sse(b'error: {"code":400}\n\n') == [Frame('{"code":400}', 0, "error")]


@pytest.mark.parametrize(
    ("body", "frames"),
    [
        (b'{"a": 1}\n{"b": 2}\n', [Frame('{"a": 1}', 0), Frame('{"b": 2}', 9)]),
        (
            b'data: 1\n\n{\n  "a": {\n    "b": 2\n  }\n}\ndata: 3\n\n',
            [Frame("1", 0), Frame('{\n  "a": {\n    "b": 2\n  }\n}', 9), Frame("3", 37)],
        ),
        (b'[{\n  "a": 1\n}\n]\n\ndata: 2', [Frame('[{\n  "a": 1\n}\n]', 0), Frame("2", 17, cut=True)]),
        (b'data: 1\n{"a": 1}\ndata: 2\n\n', [Frame("1", 0), Frame('{"a": 1}', 8), Frame("2", 17)]),
        # Broken off, or followed by something else.
        (b'{\n  "a": 1', [Frame('{\n  "a": 1', 0, cut=True)]),
        (b'{\n  "a": 1\n\ndata: 2\n\n', [Frame('{\n  "a": 1', 0), Frame("2", 12)]),
        (b'{\n  "a": 1\ndata: 2\n\n', [Frame('{\n  "a": 1', 0), Frame("2", 11)]),
        (b'0:"a"\nd:{"b": 1}\n', [Frame('0:"a"', 0), Frame('d:{"b": 1}', 6)]),
        (b"x: 1\nx:1\nxy:[1]\n}\n", []),
    ],
)
def test_sse_json_outside_of_any_field_is_a_frame(body: bytes, frames: list[Unit]) -> None:
    assert sse(body) == sse(*one_by_one(body)) == frames


def test_sse_json_on_one_line_does_not_wait_for_the_next() -> None:
    assert make_framer("sse").feed(b'{"a": 1}\n') == [Frame('{"a": 1}', 0)]


def test_sse_json_without_end_is_one_oversized_event() -> None:
    framer = make_framer("sse", 100)
    units = [unit for _ in range(100) for unit in framer.feed(b'{\n  "a": 1\n')]
    assert [type(unit) for unit in units] == [FramingFault]


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r"])
def test_an_unterminated_last_event_is_delivered_as_cut(tail: bytes) -> None:
    assert sse(b"data: a\n\ndata: b" + tail) == [Frame("a", 0), Frame("b", 9, cut=True)]


def test_ndjson_passes_over_blank_lines_and_keeps_an_unterminated_tail() -> None:
    assert frame("ndjson", b'\xef\xbb\xbf{"a":1}\r\n\n  \n{"b', b'":2}') == [
        Frame('{"a":1}', 0),
        Frame('{"b":2}', 16),
    ]


def test_one_document_is_one_frame_and_nothing_is_none() -> None:
    assert frame("json", b'{"a":', b"\n 1}") == [Frame('{"a":\n 1}', whole=True)]
    assert frame("json", b" ", b"\n") == frame("json") == []


@pytest.mark.parametrize("name", ["", "event: token\n"])
def test_line_feeds_in_handwritten_events_are_kept(name: str) -> None:
    texts = ["a", "\n", "b\n", "\n\n", " c\n\nd\n", "e\n\n\n\nf", "- g: h", "\n"]
    body = "".join(f"{name}data: {text}\n\n" for text in texts) + "event: end\ndata\n\n"
    for pieces in ([body.encode()], one_by_one(body.encode())):
        *frames, end = frame("sse-text", *pieces)
        assert "".join(unit.data for unit in frames if isinstance(unit, Frame)) == "".join(texts)
        assert {unit.name for unit in frames if isinstance(unit, Frame)} == {"token" if name else None}
        assert end == Frame("", len(body) - 17, "end")


def test_a_handwritten_stream_is_still_an_event_stream() -> None:
    body = b"\xef\xbb\xbf: ping\nid: 7\nretry: 10\n\nstray\nevent: end\n\n"
    assert frame("sse-text", body) == [Comment("ping"), Frame("", 33, "end")]


def test_text_comes_at_once_and_characters_whole() -> None:
    framer = make_framer("text")
    assert framer.feed(b"\xef\xbb\xbf a\n") == [Frame(" a\n", 0)]
    assert framer.feed(b"\xf0\x9f") == []
    assert framer.feed(b"\x98\x80\xff") == [Frame("\U0001f600\ufffd", 8)]
    assert framer.close() == []


def test_text_that_ends_inside_a_character_was_cut() -> None:
    units = frame("text", "déjà".encode()[:-1])
    assert units == [Frame("déj", 0), FramingFault("cut_character", "the text ends inside a character", 5)]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert sse(b"data: \xf0\x9f\x99\n\n") == [Frame("\ufffd", 0)]


@pytest.mark.parametrize("name", ["sse", "ndjson", "json"])
def test_an_oversized_frame_is_one_fault_and_the_end(name: FramingName) -> None:
    framer = make_framer(name, 100)
    assert framer.feed(b'data: {"a":1}') == []
    (fault,) = framer.feed(b"x" * 200)
    assert isinstance(fault, FramingFault)
    assert fault.kind == "event_too_large"
    assert "100 bytes" in fault.message
    assert framer.feed(b"\n\ndata: more\n\n") == []


def test_many_lines_without_a_blank_one_are_one_oversized_event() -> None:
    framer = make_framer("sse", 10_000)
    units = [unit for _ in range(100) for unit in framer.feed(b"data: " + b"z" * 1000 + b"\n")]
    assert [type(unit) for unit in units] == [FramingFault]


def test_comments_are_not_kept() -> None:
    framer = make_framer("sse", 100)
    units = [unit for _ in range(100) for unit in framer.feed(b": still here\n\n")]
    assert units == [Comment("still here")] * 100


@PROPERTY
@given(
    st.lists(
        st.sampled_from(
            [b"data: ", b"event: x", b":c", b"\n", b"\r", b"\r\n", b"\xf0\x9f", b"{}", b"{", b"0:["]
        )
    )
)
def test_cuts_never_matter(pieces: list[bytes]) -> None:
    body = b"".join(pieces)
    for name in ("sse", "sse-text", "ndjson", "json", "json-array"):
        assert frame(name, *pieces) == frame(name, body) == frame(name, *one_by_one(body))


@PROPERTY
@given(st.lists(st.tuples(st.binary().filter(lambda line: not set(line) & set(b"\r\n")), LINE_ENDS)))
def test_lines_and_offsets_add_up_to_the_bytes(lines: list[tuple[bytes, bytes]]) -> None:
    body = b"".join(line + end for line, end in lines)
    splitter = LineSplitter()
    found = [item for at in range(len(body)) for item in splitter.feed(body[at : at + 1])]
    for offset, line in [*found, *splitter.close()]:
        assert body[offset : offset + len(line)] == line
    assert b"".join(line for _, line in found) == body.translate(None, b"\r\n")


class CountedPieces(list[bytes]):
    """Counts how often the splitter joins what it has kept: once a line, whatever the number of reads."""

    joins = 0

    def clear(self) -> None:
        self.joins += 1
        super().clear()


def test_a_long_line_in_tiny_reads_is_joined_once() -> None:
    splitter = LineSplitter()
    pieces = splitter._pieces = CountedPieces()
    for _ in range(10_000):
        assert list(splitter.feed(b"y")) == []
    assert pieces.joins == 0
    assert list(splitter.feed(b"\n")) == [(0, b"y" * 10_000)]
    assert pieces.joins == 1


def test_an_oversized_line_names_where_it_began() -> None:
    splitter = LineSplitter(limit_bytes=10)
    assert list(splitter.feed(b"short\n")) == [(0, b"short")]
    assert list(splitter.feed(b"fits\nmuch too long\nnext\n")) == [(6, b"fits")]
    assert splitter.oversized_at == 11
    assert list(splitter.feed(b"more\n")) == []
