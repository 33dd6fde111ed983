"""Stop strings: escapes, the guard against a simple reference, the enforcer on events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmstream_cli.events import (
    EndStatus,
    Event,
    Finish,
    FinishReason,
    ReasoningDelta,
    StreamEnd,
    TextDelta,
)
from llmstream_cli.stops import LocalStop, Match, StopEnforcer, StopGuard, decode_escapes

PROPERTY = settings(deadline=None, derandomize=True, database=None, max_examples=400)
END = StreamEnd(status=EndStatus.COMPLETE, marker_seen=True, offset=0)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (r"\nUser:", "\nUser:"),
        (r"\t\r\\n", "\t\r\\n"),
        (r"é\x21", "é!"),
        (r"\ud83d\ude00", "😀"),
        (r"\d \q \u12 \x4", r"\d \q \u12 \x4"),
        ("plain", "plain"),
        ("trailing\\", "trailing\\"),
    ],
)
def test_escapes(typed: str, meant: str) -> None:
    assert decode_escapes(typed) == meant


def test_half_a_character_becomes_a_replacement() -> None:
    assert decode_escapes(r"\ud83d!") == "\ufffd!"


def simple(stops: list[str], text: str) -> tuple[str, str | None]:
    """What a reader with all the time in the world shows, and the stop string that ended it."""
    for end in range(1, len(text) + 1):
        complete = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if complete:
            stop = max(complete, key=len)
            return text[: end - len(stop)], stop
    return text, None


STOPS = st.lists(st.text("ab\n", max_size=5), max_size=4)
PIECES = st.lists(st.text("ab\n", max_size=6), max_size=12)


@PROPERTY
@given(STOPS, PIECES)
def test_guard_shows_what_the_simple_reader_shows(stops: list[str], pieces: list[str]) -> None:
    guard = StopGuard(stops)
    shown, stop = "", None
    for piece in pieces:
        result = guard.feed(piece)
        if isinstance(result, Match):
            shown, stop = shown + result.text, result.stop
            break
        shown += result
    else:
        shown += guard.release()
    assert (shown, stop) == simple(stops, "".join(pieces))


@PROPERTY
@given(STOPS, PIECES)
def test_guard_holds_back_exactly_what_may_become_a_stop(stops: list[str], pieces: list[str]) -> None:
    guard = StopGuard(stops)
    shown = so_far = ""
    for piece in pieces:
        result = guard.feed(piece)
        if isinstance(result, Match):
            break
        shown, so_far = shown + result, so_far + piece
        possible = [
            size
            for size in range(len(so_far) + 1)
            if not size or any(len(stop) > size and stop.startswith(so_far[-size:]) for stop in stops)
        ]
        assert so_far[len(shown) :] == so_far[len(so_far) - max(possible) :]


def test_release_empties_the_guard() -> None:
    guard = StopGuard(["END"])
    assert guard.feed("x EN") == "x "
    assert guard.release() == "EN"
    assert guard.release() == ""


def test_a_false_start_is_shown_and_the_real_one_is_cut() -> None:
    guard = StopGuard(["END"])
    assert guard.feed("alpha EN") == "alpha "
    assert guard.feed("x beta E") == "ENx beta "
    assert guard.feed("ND gamma") == Match("", "END", " gamma")


def texts(events: list[Event], choice: int = 0) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta) and event.choice == choice)


def state(enforcer: StopEnforcer) -> tuple[bool, bool]:
    return enforcer.matched, enforcer.overrun


def test_enforcer_cuts_the_text_and_renames_the_finish() -> None:
    enforcer = StopEnforcer(["END"])
    passed = enforcer.filter([TextDelta(text="one E"), TextDelta(text="ND"), ReasoningDelta(text="END")])
    assert passed == [TextDelta(text="one "), ReasoningDelta(text="END")]
    assert state(enforcer) == (True, False)
    assert enforcer.local_stop() == LocalStop(stop="END", server_went_on=False)
    passed = enforcer.filter([Finish(reason=FinishReason.STOP, raw_reason="stop"), END])
    assert passed == [
        Finish(reason=FinishReason.STOP_SEQUENCE, raw_reason="stop", stop_sequence="END"),
        END,
    ]


def test_enforcer_tells_that_the_server_went_on() -> None:
    enforcer = StopEnforcer(["END"])
    assert texts(enforcer.filter([TextDelta(text="one END"), TextDelta(text=" two")])) == "one "
    assert enforcer.overrun
    assert enforcer.local_stop() == LocalStop(stop="END", server_went_on=True)
    assert enforcer.filter([END]) == [
        Finish(reason=FinishReason.STOP_SEQUENCE, stop_sequence="END"),
        END,
    ]


@pytest.mark.parametrize(
    ("reason", "went_on"),
    [
        (FinishReason.STOP, False),
        (FinishReason.STOP_SEQUENCE, False),
        (FinishReason.LENGTH, True),
        (FinishReason.EOS, True),
    ],
)
def test_text_behind_the_stop_in_one_delta_is_proof_unless_the_server_says_stop(
    reason: FinishReason, went_on: bool
) -> None:
    enforcer = StopEnforcer(["END"])
    passed = enforcer.filter([TextDelta(text="one END two"), Finish(reason=reason)])
    assert texts(passed) == "one "
    assert enforcer.local_stop() == LocalStop(stop="END", server_went_on=went_on)


@pytest.mark.parametrize("last", [Finish(reason=FinishReason.LENGTH, raw_reason="length"), END])
def test_enforcer_releases_what_it_held_at_the_end(last: Event) -> None:
    enforcer = StopEnforcer(["END"])
    passed = enforcer.filter([TextDelta(text="one EN"), last])
    assert passed == [TextDelta(text="one "), TextDelta(text="EN"), last]
    assert not enforcer.matched
    assert enforcer.local_stop() is None


def test_enforcer_waits_for_every_choice() -> None:
    enforcer = StopEnforcer(["END"], choices=2)
    enforcer.filter([TextDelta(text="a END"), TextDelta(text="b", choice=1)])
    assert state(enforcer) == (False, False)
    passed = enforcer.filter([Finish(reason=FinishReason.STOP, choice=1)])
    assert passed == [Finish(reason=FinishReason.STOP, choice=1)]
    assert state(enforcer) == (True, False)
    enforcer.filter([TextDelta(text=" on and on")])
    assert state(enforcer) == (True, True)
    assert enforcer.local_stop(1) is None
