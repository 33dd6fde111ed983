"""The exit code of every ending."""

import pytest

from llmstream_cli.errors import (
    ConnectError,
    ExitCode,
    HttpStatusError,
    ServerTimeoutError,
    StreamBrokenError,
    TimeoutKind,
    TransportError,
)
from llmstream_cli.events import EndStatus, FinishReason, StreamStart
from tests.support.outcomes import HELLO, STOPPED, URL, finish, make_outcome

FAILURES = [
    (HttpStatusError("404 Not Found", url=URL, status=404), ExitCode.HTTP_CLIENT),
    (HttpStatusError("503 Service Unavailable", url=URL, status=503), ExitCode.HTTP_SERVER),
    (ConnectError("refused", url=URL), ExitCode.CONNECT),
    (ServerTimeoutError("no answer", url=URL, which=TimeoutKind.FIRST_TOKEN), ExitCode.TIMEOUT),
    (StreamBrokenError("closed", url=URL), ExitCode.INCOMPLETE),
]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (EndStatus.COMPLETE, 0),
        (EndStatus.INCOMPLETE, 8),
        (EndStatus.ERROR, 9),
        (EndStatus.TIMEOUT, 7),
        (EndStatus.CANCELLED, 130),
    ],
)
def test_every_status_has_its_code(status: EndStatus, code: int) -> None:
    outcome = make_outcome(HELLO, STOPPED, status=status)
    assert outcome.status is status
    assert outcome.exit_code() == outcome.exit_code(fail_on_truncation=True) == code


@pytest.mark.parametrize("reason", FinishReason)
def test_truncation_fails_only_if_asked(reason: FinishReason) -> None:
    outcome = make_outcome(HELLO, finish(reason))
    cut = reason in (FinishReason.LENGTH, FinishReason.CONTEXT)
    assert outcome.exit_code() is ExitCode.OK
    assert outcome.exit_code(fail_on_truncation=True) is (ExitCode.TRUNCATED if cut else ExitCode.OK)


def test_a_cut_choice_among_several_counts() -> None:
    outcome = make_outcome(STOPPED, finish(FinishReason.LENGTH, choice=1))
    assert outcome.exit_code(fail_on_truncation=True) is ExitCode.TRUNCATED


@pytest.mark.parametrize(("failure", "code"), FAILURES, ids=lambda value: type(value).__name__)
def test_a_failure_before_the_stream_has_its_own_code(failure: TransportError, code: ExitCode) -> None:
    outcome = make_outcome(status=EndStatus.ERROR, failure=failure)
    assert outcome.exit_code() is code


def test_a_reader_that_is_gone_wins_over_all() -> None:
    for failure, _ in FAILURES:
        outcome = make_outcome(status=EndStatus.CANCELLED, failure=failure, reader_gone=True)
        assert outcome.exit_code(fail_on_truncation=True) == 141


def test_the_servers_word_for_the_model_wins() -> None:
    assert make_outcome(model="asked").model == "asked"
    assert make_outcome(StreamStart(model="gemma-3-270m"), model="asked").model == "gemma-3-270m"
    assert make_outcome(model=None).model is None
