"""The reads of a recording: cut anew, and given out at the pace at which they came."""

from collections.abc import Iterable, Iterator
from time import monotonic, sleep

Read = tuple[float, bytes]
"""Seconds since the request was sent, and what came then."""


def recut(reads: Iterable[Read], size: int) -> Iterator[Read]:
    """The same bytes in reads of `size` bytes, whatever the borders were; each comes with its last byte."""
    held = b""
    for at_s, data in reads:
        held += data
        whole = len(held) - len(held) % size
        for start in range(0, whole, size):
            yield at_s, held[start : start + size]
        held = held[whole:]
        last_s = at_s
    if held:
        yield last_s, held


def paced(reads: Iterable[Read], speed: float) -> Iterator[Read]:
    """The reads, none earlier than it came at `speed` times the pace of the recording; 0 = at once."""
    began_s = monotonic()
    for at_s, data in reads:
        if speed:
            sleep(max(0.0, began_s + at_s / speed - monotonic()))
        yield at_s, data
