"""What is measured, and how figures become ratios.

The clients take turns, so that a busy machine is busy for all of them.  A ratio compares two runs of the same
round; its median, least and greatest are reported.
"""

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.clients import (
    BARE,
    CLIENTS,
    OURS,
    PYTHON,
    ClientFailed,
    Run,
    Stamps,
    environment,
    ours_command,
    run,
)
from bench.server import TEXT_BYTES

LATENCY_DELAY_S: Final = 0.02  # 50 events a second, a fast model on one machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How often and how much; ``speed`` and ``memory`` are the events of a small and of a large run."""

    start_rounds: int
    latency_rounds: int
    latency_events: int
    speed_rounds: int
    speed: tuple[int, int]
    memory: tuple[int, int]
    command_rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A limit for llmstream's ratio to the baseline or, with ``of_ratio=False``, for its own figure."""

    limit: float
    at_least: bool = False
    of_ratio: bool = True

    def met(self, figure: float) -> bool:
        return figure >= self.limit if self.at_least else figure <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}{'x' if self.of_ratio else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One thing measured: a figure for each client and round, rounds in the same order for every client."""

    name: str
    unit: str
    baseline: str | None = None
    goal: Goal
    samples: dict[str, list[float]] = field(default_factory=dict)

    def add(self, client: str, figure: float) -> None:
        self.samples.setdefault(client, []).append(figure)

    def ratios(self, client: str) -> list[float]:
        """The client's figure over the baseline's, round by round; none where nothing is the baseline."""
        if self.baseline is None:
            return []
        return [a / b for a, b in zip(self.samples[client], self.samples[self.baseline], strict=True)]

    @property
    def judged(self) -> float:
        """The figure that the goal speaks of."""
        return statistics.median(self.ratios(OURS) if self.goal.of_ratio else self.samples[OURS])

    @property
    def ok(self) -> bool:
        return self.goal.met(self.judged)


class Bench:
    """The measurements, each a method that returns its metrics.  ``root_url``: the stream source."""

    def __init__(self, root_url: str, home: Path, plan: Plan) -> None:
        self._root_url = root_url
        self._env = environment(home)
        self._plan = plan

    def stream(self, client: str, n: int, *, delay_s: float = 0, stamps: Stamps | None = None) -> Run:
        """Let a client read ``n`` events; raises `ClientFailed` also where part of the answer is missing."""
        base_url = f"{self._root_url}/p/n={n},delay={delay_s},stamp={int(stamps is not None)}/v1"
        argv = CLIENTS[client](base_url)
        if stamps is None:
            ran = run(argv, self._env)
            whole = ran.output_bytes >= n * TEXT_BYTES
        else:
            ran = run(argv, self._env, stamps.take)
            whole = len(stamps.pairs) == n
        if not whole:
            raise ClientFailed(f"{client} did not print the whole answer of {n} events")
        return ran

    def start(self) -> list[Metric]:
        """From just before the spawn to the server having read the request."""
        metric = Metric(name="exec to request", unit="ms", baseline=BARE, goal=Goal(limit=1.35))
        for client in turns(list(CLIENTS), self._plan.start_rounds):
            stamps = Stamps()
            ran = self.stream(client, 1, stamps=stamps)
            metric.add(client, (stamps.pairs[0][0] - ran.spawn_ns) / 1e6)
        return [metric]

    def latency(self) -> list[Metric]:
        """From the server's send to the text being readable in the client's output."""
        p50 = Metric(name="latency added, p50", unit="ms", baseline=BARE, goal=Goal(limit=1.25))
        p99 = Metric(name="latency added, p99", unit="ms", baseline=BARE, goal=Goal(limit=1.25))
        for client in turns(list(CLIENTS), self._plan.latency_rounds):
            stamps = Stamps()
            self.stream(client, self._plan.latency_events, delay_s=LATENCY_DELAY_S, stamps=stamps)
            # The first stamp tells when the request was read, not when an event was sent.
            added = [(read_ns - sent_ns) / 1e6 for sent_ns, read_ns in stamps.pairs[1:]]
            cuts = statistics.quantiles(added, n=100, method="inclusive")
            p50.add(client, cuts[49])
            p99.add(client, cuts[98])
        return [p50, p99]

    def speed(self) -> list[Metric]:
        """Events a second from first output to last; CPU as the slope from one length to another."""
        rate = Metric(name="full speed", unit="events/s", baseline=BARE, goal=Goal(limit=0.9, at_least=True))
        cpu = Metric(name="CPU an event", unit="us", baseline=BARE, goal=Goal(limit=1.11))
        small, large = self._plan.speed
        for client in turns(list(CLIENTS), self._plan.speed_rounds):
            short, long = self.stream(client, small), self.stream(client, large)
            rate.add(client, large / long.output_s)
            cpu.add(client, (long.cpu_s - short.cpu_s) / (large - small) * 1e6)
        return [rate, cpu]

    def memory(self) -> list[Metric]:
        """Peak resident size at two lengths; it may grow by the text, kept once and joined once."""
        small, large = self._plan.memory
        limit = Goal(limit=45, of_ratio=False)
        low = Metric(name=f"peak at {small:,} events", unit="MB", baseline=BARE, goal=limit)
        high = Metric(name=f"peak at {large:,} events", unit="MB", baseline=BARE, goal=limit)
        growth = Metric(
            name=f"growth an event (text: {TEXT_BYTES})",
            unit="bytes",
            goal=Goal(limit=2 * TEXT_BYTES, of_ratio=False),
        )
        for client in CLIENTS:
            peaks = [self.stream(client, n).peak_mb for n in (small, large)]
            low.add(client, peaks[0])
            high.add(client, peaks[1])
            growth.add(client, (peaks[1] - peaks[0]) * 1024 * 1024 / (large - small))
        return [low, high, growth]

    def command(self) -> list[Metric]:
        """``--version`` and ``--help`` against an interpreter that does nothing."""
        found = []
        for option, limit in (("--version", 6.0), ("--help", 8.0)):
            wall = Metric(name=f"{option}, wall", unit="ms", baseline=PYTHON, goal=Goal(limit=limit))
            cpu = Metric(name=f"{option}, CPU", unit="ms", baseline=PYTHON, goal=Goal(limit=limit))
            argv = {PYTHON: [sys.executable, "-c", "pass"], OURS: [*ours_command(), option]}
            for client in turns(list(argv), self._plan.command_rounds):
                ran = run(argv[client], self._env)
                wall.add(client, ran.wall_s * 1e3)
                cpu.add(client, ran.cpu_s * 1e3)
            found += [wall, cpu]
        return found


def turns(clients: list[str], rounds: int) -> Iterator[str]:
    """Every client once a round, each round led by another one, so that none always follows the same."""
    for i in range(rounds):
        lead = i % len(clients)
        yield from clients[lead:] + clients[:lead]


@contextmanager
def source() -> Iterator[str]:
    """The stream source, in a process of its own; gives its root URL."""
    argv = [sys.executable, str(Path(__file__).with_name("server.py"))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        # Leaving closes its standard input, at which it stops.


def measure(plan: Plan) -> Iterator[Metric]:
    """Run the whole plan, metric by metric; raises `ClientFailed`."""
    with tempfile.TemporaryDirectory() as home, source() as root_url:
        bench = Bench(root_url, Path(home), plan)
        for part in (bench.start, bench.latency, bench.speed, bench.memory, bench.command):
            yield from part()
