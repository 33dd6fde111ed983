"""One JSON array as a stream: every element at once, whatever its layout, however it is cut."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmstream_cli.events import Json
from llmstream_cli.framing import Frame, FramingFault, Unit, make_framer
from llmstream_cli.framing.json_array import JsonArrayFramer

PROPERTY = settings(deadline=None, derandomize=True, database=None, max_examples=200)
PRETTY = b'[{\n  "a": [\n    1,\n    {"b": "]}\\""}\n  ]\n}\n,\r\n{\n  "c": {}\n}\n]\n'
SCALARS = st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\[]{},é🙂', max_size=6)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def frame(*pieces: bytes, limit_bytes: int = 1_000_000) -> list[Unit]:
    framer = make_framer("json-array", limit_bytes)
    units = [unit for piece in pieces for unit in framer.feed(piece)]
    return units + framer.close()


def everywhere(body: bytes) -> list[Unit]:
    """The units of `body`, the same for every cut in two and for reads of one byte."""
    whole = frame(body)
    assert frame(*(body[at : at + 1] for at in range(len(body)))) == whole
    for at in range(len(body)):
        assert frame(body[:at], body[at:]) == whole, at
    return whole


def test_elements_over_many_lines() -> None:
    first, second = PRETTY.index(b"{"), PRETTY.index(b'{\n  "c"')
    assert everywhere(PRETTY) == [
        Frame("[", 0),
        Frame('{\n  "a": [\n    1,\n    {"b": "]}\\""}\n  ]\n}', first),
        Frame('{\n  "c": {}\n}', second),
        Frame("]", PRETTY.rindex(b"]")),
    ]


def test_an_element_is_delivered_with_its_last_byte() -> None:
    framer = make_framer("json-array")
    assert framer.feed(b'[{"a": 1') == [Frame("[", 0)]
    assert framer.feed(b"}") == [Frame('{"a": 1}', 1)]
    assert framer.feed(b"\n,\n") == []
    assert framer.feed(b'{"b": 2}]') == [Frame('{"b": 2}', 12), Frame("]", 20)]
    assert framer.close() == []


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"", []),
        (b" \n", []),
        (b"[]", ["[", "]"]),
        (b"\xef\xbb\xbf [\n]", ["[", "]"]),
        (b'[1, null,"x, y", [2, 3] , true]', ["[", "1", "null", '"x, y"', "[2, 3]", "true", "]"]),
        (b"[[1],[]]", ["[", "[1]", "[]", "]"]),
        # Not closed, or broken off inside an element.
        (b'[{"a": 1}', ["[", '{"a": 1}']),
        (b'[{"a": 1},', ["[", '{"a": 1}']),
        (b'[{"a": 1}, {"b": "}', ["[", '{"a": 1}', '{"b": "}']),
        # Without a comma between, and with more after the end.
        (b'[{"a": 1}\n{"b": 2}]', ["[", '{"a": 1}', '{"b": 2}', "]"]),
        (b'[{"a": 1}] {"b": 2}', ["[", '{"a": 1}', "]"]),
        # No array.
        (b'{"error": {"code": 1}}\n', ['{"error": {"code": 1}}']),
        (b'{"a": 1}\n{"b": 2}', ['{"a": 1}', '{"b": 2}']),
        (b'{"a": 1}[2]', ['{"a": 1}', "[2]"]),
        (b"Bad Gateway\n", ["Bad Gateway"]),
        (b"oh } no ]", ["oh } no ]"]),
        (b"[}]", ["[", "}", "]"]),
    ],
)
def test_bodies(body: bytes, data: list[str]) -> None:
    units = everywhere(body)
    assert [unit.data for unit in units if isinstance(unit, Frame)] == data
    assert all(isinstance(unit, Frame) for unit in units)


@PROPERTY
@given(st.lists(VALUES, min_size=1, max_size=4), st.sampled_from([None, 2]), st.integers(1, 9))
def test_any_array_comes_apart_into_its_elements(values: list[Json], indent: int | None, size: int) -> None:
    body = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    whole = frame(body)
    assert frame(*(body[at : at + size] for at in range(0, len(body), size))) == whole
    frames = [unit for unit in whole if isinstance(unit, Frame)]
    assert [json.loads(unit.data) for unit in frames[1:-1]] == values
    for unit in frames:
        assert body[unit.offset :].startswith(unit.data.encode())


@PROPERTY
@given(st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b",", b'"', b"\\", b" ", b"x", b"\xf0\x9f"])))
def test_cuts_never_matter(pieces: list[bytes]) -> None:
    everywhere(b"".join(pieces))


def test_an_element_larger_than_the_limit_is_one_fault_and_the_end() -> None:
    body = b'[{"a": 1}, {"b": "' + b"x" * 200 + b'"}, {"c": 2}]'
    units = frame(body, limit_bytes=100)
    assert units[:2] == [Frame("[", 0), Frame('{"a": 1}', 1)]
    (fault,) = units[2:]
    assert isinstance(fault, FramingFault)
    assert (fault.kind, fault.offset) == ("event_too_large", 11)
    pieces = frame(*(body[at : at + 1] for at in range(len(body))), limit_bytes=100)
    assert pieces == units


def test_many_small_elements_are_no_large_one() -> None:
    units = frame(b"[" + b'{"a": 1},' * 100 + b"{}]", limit_bytes=20)
    assert len(units) == 103


class CountedPieces(list[bytes]):
    """Counts how often what was kept is joined: once an element, whatever the number of reads."""

    joins = 0

    def clear(self) -> None:
        self.joins += 1
        super().clear()


def test_an_element_in_tiny_reads_is_joined_once() -> None:
    framer = JsonArrayFramer()
    framer.feed(b"[")
    pieces = framer._pieces = CountedPieces()
    for piece in (b'{"text": "', *[b'a\\"'] * 10_000, b'"'):
        assert framer.feed(piece) == []
    # Once for the white space before it.
    assert pieces.joins == 1
    assert framer.feed(b"}") == [Frame('{"text": "' + 'a\\"' * 10_000 + '"}', 1)]
    assert pieces.joins == 2
