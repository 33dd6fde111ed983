"""Each host's and each server's way to write ``/v1/chat/completions``, at every cut."""

import pytest

from llmstream_cli.events import EndStatus, Event
from tests.support.captures import fold
from tests.support.cuts import everywhere
from tests.support.dialects import DIALECTS, Dialect


def read(dialect: Dialect) -> list[Event]:
    return everywhere(
        dialect.body,
        shape="openai-chat",
        request={"stream": dialect.content_type == "text/event-stream"},
        kind=dialect.content_type,
    )


@pytest.mark.parametrize("name", DIALECTS)
def test_dialect(name: str) -> None:
    wanted = DIALECTS[name]
    turn = fold(read(wanted))
    first, usage, error = turn.first, turn.usage, turn.end.error
    assert (first.text, first.reasoning) == (wanted.text, wanted.reasoning)
    assert [(call.id, call.name, call.arguments) for call in first.tool_calls] == list(wanted.calls)
    assert (first.finish and (first.finish.reason, first.finish.raw_reason)) == wanted.finish
    assert wanted.usage == (
        usage
        and (
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.reasoning_tokens,
            usage.cached_tokens,
            usage.total_tokens,
        )
    )
    assert (error and (error.kind, error.message, error.code)) == wanted.error
    assert turn.end.status is wanted.status
    assert turn.unreadable == 0


def test_every_dialect_ends_naturally_at_the_cap_and_in_a_failure() -> None:
    hosts = {name.partition(":")[0] for name in DIALECTS}
    for host in hosts:
        own = [dialect for name, dialect in DIALECTS.items() if name.startswith(f"{host}:")]
        reasons = {dialect.finish[0].value for dialect in own if dialect.finish}
        assert reasons & {"stop", "eos"}, host
        assert reasons & {"length", "context"}, host
        assert any(dialect.status is not EndStatus.COMPLETE for dialect in own), host
    assert len(hosts) == 11
