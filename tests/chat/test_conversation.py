"""What goes back to the server, what is taken back, what it fills of the context."""

from pathlib import Path

import pytest

from llmstream_cli.chat.conversation import (
    ContextUse,
    Conversation,
    context_use,
    messages_to_send,
    overflow_warning,
)
from llmstream_cli.events import EndStatus, Finish, FinishReason, StreamEnd, TextDelta
from llmstream_cli.history import Cut, Said, Shelf
from llmstream_cli.outcome import Asked, Outcome
from llmstream_cli.request import Message, Sampling
from llmstream_cli.timing import Timing
from llmstream_cli.turn import TurnBuilder


def outcome(
    text: str, status: EndStatus = EndStatus.COMPLETE, reason: FinishReason = FinishReason.STOP
) -> Outcome:
    builder = TurnBuilder()
    if text:
        builder.add(TextDelta(text=text))
    if status is EndStatus.COMPLETE:
        builder.add(Finish(reason=reason))
    builder.add(StreamEnd(status=status, marker_seen=None, offset=0))
    asked = Asked(profile="p", shape="openai-chat", url="http://x", model="m", sampling=Sampling())
    return Outcome(asked=asked, turn=builder.turn(), timing=Timing())


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    return Conversation(Shelf(tmp_path).log("a"))


def texts(conversation: Conversation) -> list[str]:
    return [said.text for said in conversation.said]


def saved(conversation: Conversation, folder: Path) -> bool:
    """What the file says is what is in memory."""
    return Shelf(folder).load("a").said == conversation.said


@pytest.mark.parametrize(
    ("status", "reason", "cut"),
    [
        (EndStatus.COMPLETE, FinishReason.EOS, None),
        (EndStatus.COMPLETE, FinishReason.LENGTH, Cut.LENGTH),
        (EndStatus.COMPLETE, FinishReason.CONTEXT, Cut.CONTEXT),
        (EndStatus.INCOMPLETE, FinishReason.EOS, Cut.INCOMPLETE),
        (EndStatus.ERROR, FinishReason.EOS, Cut.ERROR),
        (EndStatus.TIMEOUT, FinishReason.EOS, Cut.TIMEOUT),
        (EndStatus.CANCELLED, FinishReason.EOS, Cut.STOPPED),
    ],
)
def test_an_answer_is_stored_with_its_ending(
    conversation: Conversation, tmp_path: Path, status: EndStatus, reason: FinishReason, cut: Cut | None
) -> None:
    conversation.ask("q")
    conversation.piece("a")
    conversation.answered(outcome("ab", status, reason))
    expected = Said(role="assistant", text="ab", cut=cut, model="m", profile="p")
    assert conversation.last_answer == expected
    assert saved(conversation, tmp_path)


def test_undo_takes_back_a_question_with_its_answer(conversation: Conversation, tmp_path: Path) -> None:
    for question in ("one", "two"):
        conversation.ask(question)
        conversation.answered(outcome("a"))
    conversation.ask("three")
    assert conversation.undo() == "three"
    assert conversation.undo() == "two"
    assert texts(conversation) == ["one", "a"]
    assert saved(conversation, tmp_path)
    assert conversation.undo() == "one"
    assert conversation.undo() is None


def test_regen_keeps_the_question(conversation: Conversation, tmp_path: Path) -> None:
    assert not conversation.take_back_answer()
    conversation.ask("one")
    conversation.answered(outcome("a"))
    assert conversation.take_back_answer()
    assert texts(conversation) == ["one"]
    assert conversation.take_back_answer()
    assert texts(conversation) == ["one"]
    assert saved(conversation, tmp_path)


def test_continue_makes_one_answer_of_two(conversation: Conversation, tmp_path: Path) -> None:
    conversation.ask("one")
    conversation.answered(outcome("a b", reason=FinishReason.LENGTH))
    before = conversation.resume()
    conversation.piece(" c")
    assert texts(conversation) == ["one", "a b c"]
    conversation.answered(outcome(" c d"), before)
    assert conversation.said[1].text == "a b c d"
    assert conversation.said[1].cut is None
    assert saved(conversation, tmp_path)


def test_clear_and_forget(conversation: Conversation, tmp_path: Path) -> None:
    for question in ("one", "two"):
        conversation.ask(question)
        conversation.answered(outcome("a"))
    conversation.forget(2)
    assert texts(conversation) == ["two", "a"]
    assert saved(conversation, tmp_path)
    conversation.clear()
    assert not conversation.said
    assert saved(conversation, tmp_path)


def said(*texts: str, cut: Cut | None = None) -> tuple[Said, ...]:
    """Questions and answers in turn; the last answer is cut."""
    roles = ("user", "assistant")
    everything = [Said(role=roles[n % 2], text=text) for n, text in enumerate(texts)]  # type: ignore[arg-type]
    if cut:
        everything[-1] = Said(role="assistant", text=texts[-1], cut=cut)
    return tuple(everything)


def test_what_is_sent() -> None:
    assert messages_to_send(said("a", "b", "c"), "s") == (
        Message(role="system", content="s"),
        Message(role="user", content="a"),
        Message(role="assistant", content="b"),
        Message(role="user", content="c"),
    )
    assert messages_to_send((), None) == ()


def test_a_cut_answer_says_so() -> None:
    cut = (*said("a", "b", cut=Cut.STOPPED), Said(role="user", text="c"))
    assert messages_to_send(cut, None)[1].content == (
        "b\n\n[This answer was cut off here: stopped by the user.]"
    )


def test_an_answer_that_is_to_be_continued_is_sent_as_it_is() -> None:
    assert messages_to_send(said("a", "b", cut=Cut.LENGTH), None, continuing=True)[-1].content == "b"


def test_questions_without_an_answer_are_one_message() -> None:
    twice = (Said(role="user", text="a"), Said(role="user", text="b"))
    assert messages_to_send(twice, "s")[1:] == (Message(role="user", content="a\n\nb"),)


def test_context_is_what_the_server_counted_and_an_estimate_of_the_rest() -> None:
    messages = messages_to_send(said("a" * 40, "b" * 40, "c" * 41), None)
    assert context_use(messages, (2, 500), 1000) == ContextUse(tokens=511, estimated=True, limit=1000)
    assert context_use(messages, (3, 500), 1000) == ContextUse(tokens=500, estimated=False, limit=1000)
    assert context_use(messages, None, None) == ContextUse(tokens=31, estimated=True, limit=None)
    assert context_use(messages[:1], (3, 500), None).tokens == 10


def test_context_in_words() -> None:
    assert ContextUse(tokens=1500, estimated=True, limit=2000).words() == "~1,500 of 2,000 tokens (75 %)"
    assert "not known" in ContextUse(tokens=1, estimated=False, limit=None).words()
    assert not ContextUse(tokens=9999, estimated=False, limit=None).overflows
    assert ContextUse(tokens=10, estimated=False, limit=10).overflows


def test_what_to_drop_is_said() -> None:
    use = ContextUse(tokens=120, estimated=True, limit=100)
    warning = overflow_warning(use, said("a" * 40, "b" * 60, "c" * 300))
    assert "~120 of 100 tokens" in warning
    assert "/drop 2 forgets the oldest 2 messages" in warning
    assert "/drop" not in overflow_warning(use, said("a" * 480))
