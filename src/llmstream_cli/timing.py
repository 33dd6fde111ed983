"""When things happened in one turn. The times are passed in; this module knows no clock."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds since the request was sent; None = did not happen.

    ``max_gap_s``: the longest silence between two events that carry output.
    """

    headers_s: float | None = None
    first_byte_s: float | None = None
    ttft_s: float | None = None
    last_output_s: float | None = None
    total_s: float | None = None
    max_gap_s: float | None = None
    tokens_per_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    load_s: float | None = None


class Timeline:
    """Collects the moments of one turn."""

    SHORTEST_RATE_S = 0.05
    """Below this the answer came in one burst and a rate would be noise."""

    def __init__(self) -> None:
        self.headers_s: float | None = None
        self.first_byte_s: float | None = None
        self.first_output_s: float | None = None
        self.last_output_s: float | None = None
        self.end_s: float | None = None
        self.max_gap_s: float | None = None
        self._first_characters = 0
        self._characters = 0

    def headers(self, at_s: float) -> None:
        self.headers_s = at_s

    def read(self, at_s: float) -> None:
        if self.first_byte_s is None:
            self.first_byte_s = at_s

    def output(self, at_s: float, characters: int) -> None:
        """`characters` of generated text (or reasoning, or arguments) came at `at_s`."""
        self._characters += characters
        if self.last_output_s is None:
            self.first_output_s = at_s
        elif self.max_gap_s is None or at_s - self.last_output_s > self.max_gap_s:
            self.max_gap_s = at_s - self.last_output_s
        self.last_output_s = at_s
        if at_s == self.first_output_s:
            self._first_characters += characters

    def end(self, at_s: float) -> None:
        self.end_s = at_s

    def rate(self, completion_tokens: int | None, decode_s: float | None) -> float | None:
        """Tokens per second of decoding, without the wait for the first token.

        From the server's own decode time where it tells. Else from the arrival times: what came with the
        first read was not decoded in between, so its share (by characters) is left out; a server that
        bundles tokens then gives no absurd rate.
        """
        if not completion_tokens:
            return None
        if decode_s:
            return completion_tokens / decode_s
        if self.first_output_s is None or self.last_output_s is None or not self._characters:
            return None
        elapsed = self.last_output_s - self.first_output_s
        if elapsed < self.SHORTEST_RATE_S:
            return None
        later_share = (self._characters - self._first_characters) / self._characters
        return completion_tokens * later_share / elapsed

    def snapshot(
        self,
        *,
        completion_tokens: int | None = None,
        load_s: float | None = None,
        prefill_s: float | None = None,
        decode_s: float | None = None,
    ) -> Timing:
        return Timing(
            headers_s=self.headers_s,
            first_byte_s=self.first_byte_s,
            ttft_s=self.first_output_s,
            last_output_s=self.last_output_s,
            total_s=self.end_s,
            max_gap_s=self.max_gap_s,
            tokens_per_s=self.rate(completion_tokens, decode_s),
            prefill_s=prefill_s,
            decode_s=decode_s,
            load_s=load_s,
        )
