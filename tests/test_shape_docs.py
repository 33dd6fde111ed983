"""The documents about shapes say what the code does."""

import re
from typing import Any

import pytest

from llmstream_cli.decode import StreamDecoder
from llmstream_cli.errors import ConfigError
from llmstream_cli.events import EndStatus, FinishReason
from llmstream_cli.planning import configured_shape
from llmstream_cli.request import Message, Request, Sampling
from llmstream_cli.shapes import SHAPES, Shape, get_shape
from llmstream_cli.shapes.request_template import PLACES
from llmstream_cli.shapes.stream_table import DONE
from tests.support.captures import fold
from tests.support.shape_docs import DOCUMENT, document

HOW_TO = DOCUMENT.with_name("add-a-shape.md")


def test_the_tables_are_those_of_the_code() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert text == document(text), "python -m tests.support.shape_docs writes it anew"


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_says_who_speaks_it_and_what_ends_it(name: str) -> None:
    shape = get_shape(name)
    assert shape.speakers
    assert shape.completeness
    assert shape.finish_reasons or name == "text"
    assert "|" not in "".join((shape.speakers, shape.completeness, *shape.finish_reasons))


def test_all_placeholders_and_usual_marks_are_explained() -> None:
    text = DOCUMENT.read_text("utf-8")
    marks = [mark for mark in DONE if "=" not in mark]
    assert [name for name in (*(f"{{{place}}}" for place in PLACES), *marks) if f"`{name}`" not in text] == []


def example() -> Shape:
    """The shape that the instructions spell out."""
    (code,) = re.findall(r"```python\n(.*?)```", HOW_TO.read_text("utf-8"), re.DOTALL)
    module: dict[str, Any] = {"__name__": "example"}
    exec(code, module)
    shape = module["SHAPE"]
    assert isinstance(shape, Shape)
    return shape


def test_the_shape_of_the_instructions_works() -> None:
    shape = example()
    question = Message(role="user", content="Why?")
    request = Request(messages=(question,), sampling=Sampling(max_tokens=5))
    assert shape.build(request).body == {"messages": [{"role": "user", "content": "Why?"}], "limit": 5}

    def answer(body: bytes) -> tuple[str, EndStatus, FinishReason | None]:
        decoder = StreamDecoder(shape.decoder({}), shape.framing, content_type="text/event-stream")
        turn = fold(decoder.feed(body) + decoder.close())
        finish = turn.first.finish
        return turn.first.text, turn.end.status, finish.reason if finish else None

    half = b'data: {"say": "a"}\n\n'
    assert answer(half) == ("a", EndStatus.INCOMPLETE, None)
    assert answer(half + b'data: {"why": "cap"}\n\n') == ("a", EndStatus.COMPLETE, FinishReason.LENGTH)
    assert answer(half + b'data: {"error": "full"}\n\n') == ("a", EndStatus.ERROR, None)


def test_a_table_for_a_shape_that_takes_none_is_told() -> None:
    with pytest.raises(ConfigError, match="`stream` has no meaning for the shape tgi"):
        configured_shape("tgi", {"path": "/chat"})
