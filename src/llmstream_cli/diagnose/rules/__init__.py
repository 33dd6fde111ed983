"""The causes, one small rule each. A new cause is one function and one line here."""

from llmstream_cli.diagnose.findings import Rule
from llmstream_cli.diagnose.rules.effects import (
    cut_tool_call,
    default_stops,
    matched_at_once,
    matched_in_reasoning,
    tail_lost,
)
from llmstream_cli.diagnose.rules.request import (
    empty_stop,
    grammar_escapes,
    ignore_eos,
    literal_escape,
    min_tokens,
    no_stop_support,
    not_sent,
    too_many_stops,
    wrong_field,
    wrong_type,
)
from llmstream_cli.diagnose.rules.server import (
    kept_in_text,
    limit_coincided,
    model_stops_replaced,
    old_build,
    proxy_dropped,
)
from llmstream_cli.diagnose.rules.stream import (
    buffered,
    context_full,
    only_keep_alives,
    slow_prefill,
    wrong_shape,
)
from llmstream_cli.diagnose.rules.text import (
    ended_early,
    near_miss,
    never_generated,
    not_distinguishable,
    only_in_prompt,
)
from llmstream_cli.diagnose.rules.tokens import (
    marker_not_a_token,
    special_token_hidden,
    stop_too_long,
    token_end_only,
)

STOP_RULES: tuple[Rule, ...] = (
    wrong_field,
    not_sent,
    no_stop_support,
    empty_stop,
    too_many_stops,
    literal_escape,
    near_miss,
    special_token_hidden,
    grammar_escapes,
    min_tokens,
    token_end_only,
    stop_too_long,
    limit_coincided,
    old_build,
    proxy_dropped,
    kept_in_text,
    matched_in_reasoning,
    cut_tool_call,
    matched_at_once,
    tail_lost,
    never_generated,
    only_in_prompt,
    not_distinguishable,
    ended_early,
)
"""Why a stop string did what it did; of equal confidence, the first is named first."""

ANSWER_RULES: tuple[Rule, ...] = (
    wrong_type,
    marker_not_a_token,
    model_stops_replaced,
    default_stops,
    ignore_eos,
    wrong_shape,
    only_keep_alives,
    context_full,
    buffered,
    slow_prefill,
)
"""About the whole answer, asked once; their stop string is empty."""
