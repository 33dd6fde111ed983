"""Rates and gaps from times that are passed in."""

import pytest

from llmstream_cli.timing import Timeline


def streamed(*arrivals: tuple[float, int]) -> Timeline:
    timeline = Timeline()
    for at_s, characters in arrivals:
        timeline.output(at_s, characters)
    return timeline


def test_moments_and_gaps() -> None:
    timeline = Timeline()
    timeline.headers(0.1)
    timeline.read(0.2)
    timeline.read(0.3)
    for at_s in (0.5, 0.7, 1.5, 1.6):
        timeline.output(at_s, 4)
    timeline.end(2.0)
    timing = timeline.snapshot(load_s=1.0, prefill_s=0.4)
    assert (timing.headers_s, timing.first_byte_s, timing.ttft_s) == (0.1, 0.2, 0.5)
    assert (timing.last_output_s, timing.total_s) == (1.6, 2.0)
    assert timing.max_gap_s == pytest.approx(0.8)
    assert (timing.load_s, timing.prefill_s, timing.decode_s) == (1.0, 0.4, None)


def test_nothing_happened_is_none_and_not_zero() -> None:
    timing = Timeline().snapshot(completion_tokens=5)
    assert timing.ttft_s is None
    assert timing.max_gap_s is None
    assert timing.tokens_per_s is None


def test_the_servers_own_decode_time_wins() -> None:
    assert streamed((1.0, 10), (2.0, 10)).rate(50, decode_s=2.0) == 25


def test_the_first_arrival_is_not_part_of_the_rate() -> None:
    # Five equal pieces of two tokens: eight tokens were decoded in the four seconds after the first.
    timeline = streamed(*[(float(at), 8) for at in range(1, 6)])
    assert timeline.rate(10, decode_s=None) == pytest.approx(8 / 4)


def test_a_bundled_first_arrival_gives_no_absurd_rate() -> None:
    rate = streamed((0.5, 28), (0.52, 3)).rate(60, decode_s=None)
    assert rate is None
    bundled = streamed((0.5, 280), (1.5, 30)).rate(60, decode_s=None)
    assert bundled == pytest.approx(60 * 30 / 310)


def test_several_outputs_of_the_first_read_count_as_first() -> None:
    timeline = streamed((1.0, 5), (1.0, 5), (2.0, 10))
    assert timeline.rate(20, decode_s=None) == pytest.approx(10)


@pytest.mark.parametrize("tokens", [None, 0])
def test_no_rate_without_a_count(tokens: int | None) -> None:
    assert streamed((1.0, 5), (2.0, 5)).rate(tokens, decode_s=1.0) is None


def test_no_rate_from_outputs_without_text() -> None:
    assert streamed((1.0, 0), (2.0, 0)).rate(5, decode_s=None) is None
