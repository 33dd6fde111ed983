"""Each warning: when it is given, when not, and its exact words."""

import pytest

from llmstream_cli.errors import StreamBrokenError
from llmstream_cli.events import (
    EndStatus,
    FinishReason,
    KeepAlive,
    ReasoningDelta,
    RefusalDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    UnknownFrame,
    Usage,
    UsageReport,
)
from llmstream_cli.notices import kept, notices, quoted
from llmstream_cli.outcome import Outcome
from llmstream_cli.stops import LocalStop
from tests.support.outcomes import HELLO, STOPPED, URL, finish, make_outcome, replayed

CUT = finish(FinishReason.LENGTH, "length")
THOUGHT = ReasoningDelta(text="Let me think.")
RESET = StreamError(kind="connection_reset", message="the connection was reset in the middle of the answer")
CLOSED = StreamError(
    kind="connection_closed", message="the connection was closed in the middle of the answer"
)


def used(tokens: int) -> UsageReport:
    return UsageReport(usage=Usage(completion_tokens=tokens))


def said(outcome: Outcome) -> dict[str, str]:
    """Code -> message."""
    found = notices(outcome)
    by_code = {notice.code: notice.message for notice in found}
    assert len(by_code) == len(found)
    return by_code


def test_a_good_answer_needs_no_warning() -> None:
    assert said(make_outcome(HELLO, STOPPED, used(3), usage_asked=True)) == {}


# incomplete


@pytest.mark.parametrize(
    ("error", "how"),
    [(None, "the stream ended"), (CLOSED, "the connection closed"), (RESET, "the connection was reset")],
)
def test_incomplete_says_how_and_how_far(error: StreamError | None, how: str) -> None:
    events = [TextDelta(text="x" * 100)] * 12 + [TextDelta(text="word")]
    outcome = make_outcome(*events, status=EndStatus.INCOMPLETE, marker_seen=False, error=error)
    assert said(outcome) == {
        "incomplete": f"Incomplete: {how} after 13 events without a finish reason or [DONE]. "
        "1,204 characters kept."
    }


def test_incomplete_of_a_shape_without_a_marker() -> None:
    outcome = make_outcome(HELLO, status=EndStatus.INCOMPLETE, marker_seen=None, terminal_marker=None)
    assert said(outcome)["incomplete"] == (
        "Incomplete: the stream ended after 1 event without a finish reason. 12 characters kept."
    )


def test_a_marker_without_a_finish_reason_is_not_called_missing() -> None:
    outcome = make_outcome(HELLO, status=EndStatus.INCOMPLETE, marker_seen=True)
    assert said(outcome)["incomplete"] == (
        "Incomplete: [DONE] came after 1 event, but no finish reason before it. 12 characters kept."
    )


def test_an_empty_stream() -> None:
    outcome = make_outcome(status=EndStatus.INCOMPLETE, marker_seen=False)
    assert said(outcome) == {
        "incomplete": "Incomplete: the stream ended without a single event. No text came."
    }
    outcome = make_outcome(KeepAlive(), KeepAlive(), status=EndStatus.INCOMPLETE, error=CLOSED)
    assert said(outcome)["incomplete"] == (
        "Incomplete: the connection closed without a single event (only 2 keep-alives). No text came."
    )


def test_a_body_that_is_no_stream_is_told_in_its_own_words() -> None:
    error = StreamError(
        kind="unreadable_stream", message="the body is not the expected stream (text/html): 502"
    )
    outcome = make_outcome(status=EndStatus.INCOMPLETE, error=error)
    assert said(outcome)["incomplete"] == f"Incomplete: {error.message}. No text came."
    error = StreamError(kind="event_too_large", message="one event is larger than the limit of 9 bytes")
    outcome = make_outcome(HELLO, status=EndStatus.INCOMPLETE, error=error)
    assert said(outcome)["incomplete"] == (
        "Incomplete: one event is larger than the limit of 9 bytes, after 1 event. 12 characters kept."
    )


def test_broken_off_inside_a_tool_call() -> None:
    call = ToolCallDelta(call=0, id="c1", name="get_weather", arguments='{"city": "Os')
    outcome = make_outcome(call, status=EndStatus.INCOMPLETE, marker_seen=False)
    assert said(outcome)["incomplete"] == (
        "Incomplete: the stream ended after 1 event without a finish reason or [DONE]. "
        "It broke off inside the tool call get_weather. No text came."
    )


def test_a_connection_that_closes_before_the_stream() -> None:
    failure = StreamBrokenError("the server closed the connection without answering", url=URL)
    assert said(make_outcome(status=EndStatus.INCOMPLETE, error=CLOSED, failure=failure)) == {
        "incomplete": "Incomplete: the connection closed without a single event. No text came."
    }


@pytest.mark.parametrize("status", [EndStatus.ERROR, EndStatus.TIMEOUT, EndStatus.CANCELLED])
def test_other_bad_endings_are_no_warning(status: EndStatus) -> None:
    assert said(make_outcome(HELLO, status=status, marker_seen=False, usage_asked=True)) == {}


# truncated, context_exhausted, budget_spent_on_reasoning


@pytest.mark.parametrize(
    ("cap", "tokens", "message"),
    [
        (128, 128, "Cut off at 128 tokens (the cap set by -n). The answer is not complete: raise -n."),
        (128, None, "Cut off at 128 tokens (the cap set by -n). The answer is not complete: raise -n."),
        (
            2000,
            1100,
            "Cut off at 1,100 tokens, before the cap of 2,000 set by -n: by the server's own token limit or "
            "context window. The answer is not complete: raise it, or shorten the prompt.",
        ),
        (
            None,
            16,
            "Cut off at 16 tokens by the server's token limit or context window. The answer is not complete: "
            "ask for more with -n, or shorten the prompt.",
        ),
        (
            None,
            None,
            "Cut off by the server's token limit or context window. The answer is not complete: "
            "ask for more with -n, or shorten the prompt.",
        ),
    ],
)
def test_truncated_says_by_what(cap: int | None, tokens: int | None, message: str) -> None:
    usage = [] if tokens is None else [used(tokens)]
    assert said(make_outcome(HELLO, CUT, *usage, max_tokens=cap)) == {"truncated": message}


def test_any_of_several_choices_may_be_the_cut_one() -> None:
    outcome = make_outcome(
        HELLO, STOPPED, TextDelta(text="a", choice=1), finish(CUT.reason, choice=1), used(9)
    )
    # The count is for both together and says nothing about one.
    assert said(outcome)["truncated"].startswith("Cut off by the server's token limit")


def test_context_exhausted() -> None:
    assert said(make_outcome(HELLO, finish(FinishReason.CONTEXT), max_tokens=9)) == {
        "context_exhausted": "Cut off: the context window is full. The answer is not complete: shorten the "
        "conversation, or start the server with a larger context."
    }


def test_budget_spent_on_reasoning() -> None:
    found = said(make_outcome(THOUGHT, CUT, max_tokens=4))
    assert list(found) == ["truncated", "budget_spent_on_reasoning"]
    assert found["budget_spent_on_reasoning"] == (
        "All tokens up to the limit were spent on reasoning: there is no answer. Raise -n, or turn reasoning "
        "off at the server."
    )
    assert list(said(make_outcome(THOUGHT, HELLO, CUT))) == ["truncated"]
    assert list(said(make_outcome(THOUGHT, ToolCallDelta(call=0, name="f", arguments="{}"), CUT))) == [
        "truncated"
    ]


# stop_enforced_locally, stop_ignored


def test_stop_enforced_locally_only_if_the_server_went_on() -> None:
    stop = finish(FinishReason.STOP_SEQUENCE, stop_sequence="\nUser:")
    went_on = LocalStop(stop="\nUser:", server_went_on=True)
    assert said(make_outcome(HELLO, stop, local_stop=went_on, stop=("\nUser:",), marker_seen=False)) == {
        "stop_enforced_locally": 'The server did not stop at "\\nUser:": the answer was cut there by '
        "llmstream, and the rest thrown away."
    }
    stopped = LocalStop(stop="\nUser:", server_went_on=False)
    assert said(make_outcome(HELLO, stop, local_stop=stopped, stop=("\nUser:",), marker_seen=False)) == {}


def test_stop_ignored() -> None:
    outcome = make_outcome(TextDelta(text="one END two"), STOPPED, stop=("END", "", "three"))
    assert said(outcome) == {
        "stop_ignored": 'The server went on after the stop sequence "END"; --enforce-stop cuts the '
        "answer there."
    }


@pytest.mark.parametrize("text", ["one END", "END", "one EN", "one"])
def test_a_stop_string_left_at_the_end_of_the_text_was_not_ignored(text: str) -> None:
    assert said(make_outcome(TextDelta(text=text), STOPPED, stop=("END",))) == {}


def test_one_stop_may_be_ignored_and_another_obeyed() -> None:
    stop = finish(FinishReason.STOP_SEQUENCE, stop_sequence="nine")
    outcome = make_outcome(TextDelta(text="one two three"), stop, stop=("two", "nine"))
    assert list(said(outcome)) == ["stop_ignored"]


# empty_answer, control_tokens


def test_empty_answer() -> None:
    assert said(make_outcome(STOPPED)) == {
        "empty_answer": "The answer is empty: the server finished without any text. Check the chat template "
        "and the stop sequences."
    }
    assert said(make_outcome(THOUGHT, STOPPED)) == {
        "empty_answer": "The answer is empty: the model reasoned and then said nothing."
    }
    stop = finish(FinishReason.STOP_SEQUENCE, stop_sequence="\n")
    assert said(make_outcome(stop)) == {
        "empty_answer": 'The answer is empty: the stop sequence "\\n" came before any text.'
    }
    assert said(make_outcome(CUT))["empty_answer"] == (
        "The answer is empty: the limit was reached before any text came."
    )


@pytest.mark.parametrize(
    "event",
    [
        RefusalDelta(text="I cannot."),
        ToolCallDelta(call=0, name="f", arguments="{}"),
        TextDelta(text="only the second", choice=1),
    ],
)
def test_an_answer_need_not_be_text(event: TextDelta | RefusalDelta | ToolCallDelta) -> None:
    assert said(make_outcome(event, STOPPED)) == {}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hi<|im_end|>\n<|im_start|>user", "<|im_end|>, <|im_start|>"),
        ("Hi<|eot_id|>", "<|eot_id|>"),
        ("Hi<|reserved_special_token_12|>", "<|reserved_special_token_12|>"),
        ("Hi<end_of_turn>", "<end_of_turn>"),
        ("Hi</s>", "</s>"),
        ("<s> Hi", "<s>"),
        ("Hi [/INST] you", "[/INST]"),
        ("Hi<｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
        ("<|a1|><|b2|><|c3|><|d4|>", "<|a1|>, <|b2|>, <|c3|>"),
    ],
)
def test_control_tokens(text: str, shown: str) -> None:
    assert said(make_outcome(TextDelta(text=text), STOPPED)) == {
        "control_tokens": f"Control tokens stand in the text ({shown}): probably the chat template does "
        "not fit the model, or stop sequences have replaced the model's own."
    }


@pytest.mark.parametrize("text", ["was <s>5</s> 4 euros", "a || b", "[INSTALL]", "x <| y |> z", "<|>"])
def test_what_only_looks_like_a_control_token(text: str) -> None:
    assert said(make_outcome(TextDelta(text=text), STOPPED)) == {}


# no_terminal_marker, unreadable_events, usage_missing


def test_no_terminal_marker() -> None:
    assert said(make_outcome(HELLO, STOPPED, marker_seen=False)) == {
        "no_terminal_marker": "The stream ended without [DONE]. A finish reason came, so the answer counts "
        "as complete."
    }
    outcome = make_outcome(HELLO, STOPPED, marker_seen=False, terminal_marker=None)
    assert said(outcome)["no_terminal_marker"].startswith("The stream ended without its terminal marker.")
    assert said(make_outcome(HELLO, STOPPED, marker_seen=None)) == {}


def test_unreadable_events() -> None:
    unreadable = UnknownFrame(name=None, data="{oops", readable=False)
    odd, cut = (
        UnknownFrame(name="ping", data="{}"),
        UnknownFrame(name=None, data="{", readable=False, cut=True),
    )
    assert said(make_outcome(HELLO, unreadable, odd, cut, STOPPED)) == {
        "unreadable_events": "1 event could not be read (--format raw shows them): a part of the answer "
        "may be missing."
    }
    assert said(make_outcome(HELLO, unreadable, unreadable, STOPPED))["unreadable_events"].startswith(
        "2 events "
    )


def test_usage_missing_only_where_it_was_asked_for_and_could_come() -> None:
    assert said(make_outcome(HELLO, STOPPED, usage_asked=True)) == {
        "usage_missing": "The server reported no token counts."
    }
    local_stop = LocalStop(stop="x", server_went_on=False)
    assert said(make_outcome(HELLO, STOPPED, usage_asked=True, local_stop=local_stop)) == {}


# words


@pytest.mark.parametrize(
    ("text", "shown"),
    [("\nUser:", r'"\nUser:"'), ("\\n", r'"\\n"'), ("\t\r", r'"\t\r"'), ("  é ", '"  é "')],
)
def test_a_stop_string_is_shown_as_it_is_typed(text: str, shown: str) -> None:
    assert quoted(text) == shown


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], "no text came"),
        ([TextDelta(text="a")], "1 character kept"),
        ([TextDelta(text="a" * 900), TextDelta(text="b" * 150, choice=1)], "1,050 characters kept"),
        ([THOUGHT], "no answer yet, only 13 characters of reasoning"),
        ([THOUGHT, TextDelta(text="ab")], "2 characters kept"),
    ],
)
def test_what_is_kept(events: list[TextDelta], words: str) -> None:
    assert kept(make_outcome(*events, status=EndStatus.CANCELLED).turn) == words


def test_every_code_of_the_contract_is_given_by_a_real_recording_or_above() -> None:
    recorded = {
        "truncated": "vllm/chat_length_stream",
        "context_exhausted": "llama.cpp/ctx_full_native_stream",
        "incomplete": "vllm/killed_chat_stream",
        "no_terminal_marker": "llama.cpp-2024/chat_eos_stream",
        "stop_ignored": "vllm/chat_min_tokens_stop_stream",
        "control_tokens": "vllm/chat_special_shown_stream",
        "empty_answer": "llama.cpp-2024/native_empty_stream",
        "budget_spent_on_reasoning": "vllm/chat_reasoning_cut_stream",
    }
    for code, name in recorded.items():
        assert code in said(replayed(name)), name
