"""Reasoning between tags in the text: told apart, at once, and never lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    ReasoningDelta,
    StreamEnd,
    TextDelta,
    ToolCallDelta,
)
from llmstream_cli.notices import notices
from llmstream_cli.outcome import Outcome
from llmstream_cli.render.machine import turn_object
from llmstream_cli.session.pipeline import start
from llmstream_cli.shapes import get_shape
from llmstream_cli.thinking import TagFault, ThinkSplitter, names_a_tag
from tests.support.captures import fold, one_by_one
from tests.support.corpus import Case, body_of, cases, own_reads
from tests.support.outcomes import SilentRenderer, make_asked, replayed

STOP = Finish(reason=FinishReason.STOP, raw_reason="stop")
LENGTH = Finish(reason=FinishReason.LENGTH, raw_reason="length")
COMPLETE = StreamEnd(status=EndStatus.COMPLETE, marker_seen=True, offset=0)
CUT = StreamEnd(status=EndStatus.INCOMPLETE, marker_seen=False, offset=0)
TAG_CASES = ["closing-think-tag-only", "think-tag-split-and-unclosed-for-a-while", "think-never-closed"]


def text(*pieces: str, choice: int = 0) -> list[Event]:
    return [TextDelta(text=piece, choice=choice) for piece in pieces]


def said(events: list[Event], finish: Finish = STOP, end: StreamEnd = COMPLETE) -> tuple[str, str | None]:
    """Text and reasoning of the turn."""
    splitter = ThinkSplitter()
    first = fold(splitter.filter([*events, finish, end])).first
    return splitter.separated(0, first.text, first.reasoning)


class TestTags:
    @pytest.mark.parametrize(
        ("whole", "answer", "reasoning"),
        [
            ("<think>plan</think>answer", "answer", "plan"),
            ("\n <think>\nplan\n</think>\n\nanswer\n", "answer\n", "plan\n"),
            ("<think>\n\n</think>\n\nHello", "Hello", None),
            ("<think>a < b </thin k></think>x </think> y", "x </think> y", "a < b </thin k>"),
            ("  no tags <think>a</think>", "  no tags <think>a</think>", None),
            ("<thinking>a</thinking>b", "<thinking>a</thinking>b", None),
            ("<thi", "<thi", None),
            (" \n", " \n", None),
            ("let me see. </think>\n\nParis", "Paris", "let me see. "),
            ("hm\n</think>", "", "hm\n"),
            ("The tag `</think>` ends it.", "The tag `</think>` ends it.", None),
            ("As in\n<think>\na\n</think>\nb", "As in\n<think>\na\n</think>\nb", None),
            ("a</think>\nb</think>\nc", "a</think>\nb</think>\nc", None),
        ],
    )
    def test_text_and_reasoning_however_it_is_cut(
        self, whole: str, answer: str, reasoning: str | None
    ) -> None:
        for at in range(len(whole)):
            assert said(text(whole[:at], whole[at:])) == (answer, reasoning), at
        assert said(text(*whole)) == (answer, reasoning)

    def test_nothing_is_held_back_for_longer_than_it_may_be_a_tag(self) -> None:
        splitter = ThinkSplitter()
        assert splitter.filter(text("<th")) == []
        assert splitter.filter(text("ink>pl")) == [ReasoningDelta(text="pl")]
        assert splitter.filter(text("an </thi")) == [ReasoningDelta(text="an ")]
        assert splitter.filter(text("s")) == [ReasoningDelta(text="</this")]
        assert splitter.filter(text("</think>\n")) == []
        assert splitter.filter(text("\nyes", " <think>")) == text("yes", " <think>")

    def test_text_without_tags_passes_as_it_came(self) -> None:
        events = [*text("Hello", " world"), STOP, COMPLETE]
        assert ThinkSplitter().filter(list(events)) == events

    def test_choices_are_kept_apart(self) -> None:
        events = ThinkSplitter().filter([*text("<think>a"), *text("b", choice=1), *text("</think>c")])
        assert events == [ReasoningDelta(text="a"), *text("b", choice=1), *text("c")]

    def test_a_server_that_tells_reasoning_apart_is_believed(self) -> None:
        legacy = [ReasoningDelta(text="hm"), *text("<think>hm</think>yes")]
        assert said(legacy) == ("<think>hm</think>yes", "hm")
        assert said([*text("\n"), ReasoningDelta(text="hm"), *text("x </think>\ny")]) == (
            "\nx </think>\ny",
            "hm",
        )

    def test_a_tool_call_passes(self) -> None:
        call = ToolCallDelta(call=0, name="f", arguments="{}")
        assert ThinkSplitter().filter([*text("<think>a</think>\n"), call]) == [
            ReasoningDelta(text="a"),
            call,
        ]

    @given(st.lists(st.text("<>/think ab\n", max_size=9), max_size=9))
    def test_no_letter_is_lost(self, pieces: list[str]) -> None:
        splitter = ThinkSplitter()
        first = fold(splitter.filter([*text(*filter(None, pieces)), LENGTH, COMPLETE])).first
        whole = "".join(pieces)
        tagged = whole.lstrip().startswith("<think>")
        assert (first.reasoning is None) or tagged
        kept = (first.reasoning or "") + first.text
        if tagged:
            whole = whole.replace("<think>", "", 1).replace("</think>", "", 1)
            assert "".join(kept.split()) == "".join(whole.split())
        else:
            assert kept == whole


class TestUnclosed:
    UNCLOSED = text("<think>\n", "The answer", " is 4.</th")

    def test_an_answer_that_ends_by_itself_is_not_lost(self) -> None:
        splitter = ThinkSplitter()
        *events, given_back, end = splitter.filter([*self.UNCLOSED, STOP, COMPLETE])
        assert [event for event in events if isinstance(event, TextDelta)] == []
        assert (given_back, end) == (TextDelta(text="The answer is 4.</th"), COMPLETE)
        assert splitter.fault is TagFault.UNCLOSED
        assert said(self.UNCLOSED) == ("The answer is 4.</th", None)

    def test_reasoning_that_the_cap_or_the_network_cut_is_reasoning(self) -> None:
        assert said(self.UNCLOSED, finish=LENGTH) == ("", "The answer is 4.</th")
        assert said(self.UNCLOSED, end=CUT) == ("", "The answer is 4.</th")

    def test_nothing_but_the_tag(self) -> None:
        assert said(text("<think>")) == ("", None)


def run(case: Case, reads: list[bytes], *, think_tags: bool = True, stops: tuple[str, ...] = ()) -> Outcome:
    pipeline = start(
        get_shape("openai-chat"),
        {"stream": True},
        SilentRenderer(),
        stops=stops,
        think_tags=think_tags,
        content_type="text/event-stream",
        content_encoding="",
    )
    for data in reads:
        pipeline.read(0.0, data)
    return pipeline.outcome(make_asked(), pipeline.close(0.0), (), None)


@pytest.mark.parametrize("name", TAG_CASES)
class TestCorpus:
    def test_off_the_text_is_raw(self, name: str) -> None:
        case = cases()[name]
        turn = run(case, one_by_one(body_of(case)), think_tags=False).turn
        assert (turn.first.text, turn.first.reasoning) == (case["repro"]["expect"]["raw_text"], None)

    def test_on_it_is_told_apart(self, name: str) -> None:
        case = cases()[name]
        wanted = case["repro"]["expect"]["if_think_parsing"]
        for reads in (list(own_reads(case, body_of(case))), one_by_one(body_of(case))):
            outcome = run(case, reads)
            first = outcome.turn.first
            if isinstance(wanted, dict):
                assert {"text": first.text, "reasoning": first.reasoning} == wanted
            else:
                assert (first.text, first.reasoning) == ("The answer is 4.", None)
            assert outcome.status is EndStatus.COMPLETE


def test_what_the_tags_hold_is_what_llama_cpp_takes_for_reasoning() -> None:
    """Two recordings of one answer: with the server's own parser, and with its text as the model wrote it."""
    tagged, parsed = (
        replayed(f"llama.cpp/{name}") for name in ("chat_reasoning_none_stream", "chat_reasoning_stream")
    )
    assert tagged.turn.first.text == parsed.turn.first.text == "It is two."
    assert tagged.turn.first.reasoning == parsed.turn.first.reasoning == "Short. 1+1=2.\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [("closing-think-tag-only", "without opening it"), ("think-never-closed", "never closed it")],
)
def test_a_missing_tag_is_told(name: str, words: str) -> None:
    case = cases()[name]
    outcome = run(case, [body_of(case)])
    (notice,) = [notice for notice in notices(outcome) if notice.code == "think_tags"]
    assert words in notice.message
    said: dict[str, Any] = turn_object(outcome)
    assert [warning["code"] for warning in said["warnings"]] == ["think_tags"]


def test_stop_strings_act_in_the_answer_and_not_in_the_reasoning() -> None:
    case = cases()["think-tag-split-and-unclosed-for-a-while"]
    first = run(case, [body_of(case)], stops=("n b", " <")).turn.first
    assert (first.text, first.reasoning) == ("ans", "plan b")
    assert first.finish is not None
    assert first.finish.stop_sequence == " <"


def test_a_stop_string_that_holds_a_tag_leaves_the_text_as_it_is() -> None:
    case = cases()["think-tag-split-and-unclosed-for-a-while"]
    first = run(case, [body_of(case)], stops=("</think>",)).turn.first
    assert (first.text, first.reasoning) == ("<think>plan b", None)
    assert names_a_tag(["x", "\n</think>"])
    assert not names_a_tag(["think"])
