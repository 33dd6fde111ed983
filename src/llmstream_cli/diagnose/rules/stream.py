"""What is wrong with the stream or the answer as a whole, stop strings or not."""

from llmstream_cli.diagnose.evidence import Evidence
from llmstream_cli.diagnose.findings import Signs, likely, proved, rule
from llmstream_cli.events import FinishReason
from llmstream_cli.shapes import shape_for_path

_BURST = 0.2
"""A stream that arrives in a smaller share of the time that it took to generate was held up."""
_SHORTEST_DECODE_S = 0.5
_MANY = 10
"""Fewer tokens may be one character, which comes at once."""
_LONG_PREFILL_S = 5.0


@rule(
    says="Something between here and the server holds the stream back and passes it on in one go.",
    told_by="the server's own time for generating against the time from the first byte to the last",
)
def buffered(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    timing = evidence.outcome.timing
    if evidence.body.get("stream") is not True or not timing.decode_s or timing.decode_s < _SHORTEST_DECODE_S:
        return None
    if timing.first_byte_s is None or timing.total_s is None or (evidence.completion_tokens or 0) < _MANY:
        return None
    took_s = timing.total_s - timing.first_byte_s
    if took_s > timing.decode_s * _BURST:
        return None
    return proved(
        f"generated in {timing.decode_s:.2f} s by the server's clock, arrived within {took_s:.2f} s",
        advice="Turn buffering off in the proxy (nginx: proxy_buffering off), and compression of streams.",
    )


@rule(
    says="The context window is full: prompt and answer together reach its size.",
    told_by="the token counts against the context that the server says it has",
)
def context_full(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    usage, size = evidence.turn.usage, evidence.probed.context_tokens
    if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None or not size:
        return None
    if evidence.reason not in (FinishReason.LENGTH, FinishReason.CONTEXT):
        return None
    used = usage.prompt_tokens + usage.completion_tokens
    if used < size - 1:
        return None
    counts = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
    return proved(
        f"{counts} in a context of {size:,}",
        advice="Shorten the prompt, or give the server a larger context (Ollama: -o options.num_ctx=N).",
    )


@rule(
    says="The answer was read as another API's than the endpoint's, so nothing of it was understood.",
    told_by="the endpoint's own shape is another one, and no text, reasoning or tool call came out",
)
def wrong_shape(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    first, used = evidence.turn.first, evidence.outcome.asked.shape
    spoken = shape_for_path(evidence.path, evidence.body)
    if spoken is None or spoken == used or evidence.complete:
        return None
    if first.text or first.reasoning or first.tool_calls or evidence.outcome.failure is not None:
        return None
    return likely(f"{evidence.path} speaks {spoken}; read as {used}", advice=f"--shape {spoken}")


@rule(
    says="The connection was kept alive, and nothing of an answer came.",
    told_by="keep-alives, and no text before the end",
)
def only_keep_alives(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    turn = evidence.turn
    if not turn.keep_alives or evidence.complete or evidence.generated:
        return None
    return proved(
        f"{turn.keep_alives} keep-alives, no text",
        advice="The server waits for a slot or reads the prompt: --first-token-timeout waits longer.",
    )


@rule(
    says="Most of the wait was for reading the prompt, not for generating.",
    told_by="the server's own times",
)
def slow_prefill(evidence: Evidence, stop: str) -> Signs | None:  # noqa: ARG001
    prefill_s, decode_s = evidence.turn.timings.prefill_s, evidence.turn.timings.decode_s
    if prefill_s is None or decode_s is None or prefill_s < max(_LONG_PREFILL_S, decode_s):
        return None
    return proved(
        f"{prefill_s:.1f} s for the prompt, {decode_s:.1f} s for the answer",
        advice="Shorten the prompt, or keep its beginning the same so that the server's cache helps.",
    )
