"""The benchmark runs from end to end. What it measures is not asserted: the machine may be busy."""

import math

from bench.clients import OURS
from bench.run import Plan, measure

TINY = Plan(
    start_rounds=1,
    latency_rounds=1,
    latency_events=3,
    speed_rounds=1,
    speed=(10, 2_000),
    memory=(10, 1_000),
    command_rounds=1,
)


def test_every_metric_compares_every_client_by_finite_ratios() -> None:
    metrics = list(measure(TINY))
    assert [metric.name for metric in metrics] == [
        "exec to request",
        "latency added, p50",
        "latency added, p99",
        "full speed",
        "CPU an event",
        "peak at 10 events",
        "peak at 1,000 events",
        "growth an event (text: 5)",
        "--version, wall",
        "--version, CPU",
        "--help, wall",
        "--help, CPU",
    ]
    for metric in metrics:
        assert OURS in metric.samples
        assert metric.baseline is None or metric.baseline in metric.samples
        assert all(math.isfinite(ratio) for client in metric.samples for ratio in metric.ratios(client))
        assert math.isfinite(metric.judged)
