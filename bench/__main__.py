"""Measure llmstream against curl and against a plain httpx script on one local stream: ratios, in one run."""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Final

from bench.clients import OURS, ClientFailed
from bench.run import Metric, Plan, measure

FULL: Final = Plan(
    start_rounds=15,
    latency_rounds=5,
    latency_events=100,
    speed_rounds=5,
    speed=(20_000, 100_000),
    memory=(10_000, 1_000_000),
    command_rounds=11,
)
QUICK: Final = Plan(
    start_rounds=4,
    latency_rounds=2,
    latency_events=25,
    speed_rounds=2,
    speed=(2_000, 15_000),
    memory=(5_000, 60_000),
    command_rounds=3,
)


def spread(figures: list[float]) -> str:
    """``median (least..greatest)`` to three digits."""
    middle, low, high = statistics.median(figures), min(figures), max(figures)
    return f"{digits(middle)} ({digits(low)}..{digits(high)})"


def digits(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.3g}"


def table(metric: Metric) -> str:
    """A metric for people."""
    rounds = len(metric.samples[OURS])
    lines = [f"{metric.name} [{metric.unit}], {rounds} round{'s' if rounds > 1 else ''}"]
    for client, figures in metric.samples.items():
        ratios = metric.ratios(client)
        ratio = f"ratio {spread(ratios)}" if ratios and client != metric.baseline else ""
        verdict = f"  goal {metric.goal}: {'ok' if metric.ok else 'MISS'}" if client == OURS else ""
        lines.append(f"  {client:15} {spread(figures):34} {ratio:30}{verdict}".rstrip())
    return "\n".join(lines)


def as_json(metric: Metric) -> dict[str, object]:
    """A metric for programs, with every sample."""
    return {
        "name": metric.name,
        "unit": metric.unit,
        "baseline": metric.baseline,
        "samples": metric.samples,
        "ratios": {client: metric.ratios(client) for client in metric.samples},
        "goal": str(metric.goal),
        "judged": metric.judged,
        "ok": metric.ok,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and events: under 20 seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample here")
    options = parser.parse_args()
    metrics = []
    try:
        for metric in measure(QUICK if options.quick else FULL):
            print(table(metric), flush=True)
            metrics.append(metric)
    except ClientFailed as error:
        sys.exit(str(error))
    if options.json:
        options.json.write_text(json.dumps([as_json(metric) for metric in metrics], indent=1) + "\n")


if __name__ == "__main__":
    main()
