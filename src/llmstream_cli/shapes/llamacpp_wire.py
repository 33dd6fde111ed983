"""llama.cpp's own fields, which come on its native endpoint and inside its OpenAI answers alike.

Sources: llama.cpp ``tools/server/server-task.cpp``; the recordings under ``tests/captures/llama.cpp`` (build
11549) and ``tests/captures/llama.cpp-2024`` (August 2024).
"""

from collections.abc import Mapping

from llmstream_cli.events import Json, PrefillProgress, ServerTimings
from llmstream_cli.fields import as_int, as_object, as_text, seconds

_OLD_FLAGS = {"stopped_eos": "eos", "stopped_word": "word", "stopped_limit": "limit"}


def read_stop_type(native: Mapping[str, Json]) -> str | None:
    """``eos``, ``word``, ``limit`` or ``none``; builds before December 2024 say it with three flags."""
    told = as_text(native.get("stop_type"))
    return told or next((word for flag, word in _OLD_FLAGS.items() if native.get(flag) is True), None)


def context_full(native: Mapping[str, Json], *, cap: int | None = None) -> bool:
    """Whether a ``limit`` was that of the context and not the cap on tokens (`cap`: the one asked for).

    ``truncated`` alone does not tell: it is also set where the prompt was cut, or old tokens were shifted out
    of the context, and generation then went on to its cap.
    Captures: llama.cpp/ctx_shift_native_stream, llama.cpp-2024/native_long_prompt_stream.
    """
    settings = as_object(native.get("generation_settings"))
    known = (cap, as_int(settings.get("n_predict")), as_int(settings.get("max_tokens")))
    lowest = min((number for number in known if number and number > 0), default=None)
    reached_cap = lowest is not None and lowest <= (as_int(native.get("tokens_predicted")) or 0)
    return native.get("truncated") is True and not reached_cap


def read_timings(value: Mapping[str, Json]) -> ServerTimings:
    """llama.cpp counts in milliseconds, and its decoding time begins with the first token: one has none."""
    one_token = as_int(value.get("predicted_n")) in (0, 1)
    return ServerTimings(
        prefill_s=seconds(value.get("prompt_ms"), per_second=1000),
        decode_s=None if one_token else seconds(value.get("predicted_ms"), per_second=1000),
    )


def read_progress(value: Mapping[str, Json]) -> PrefillProgress:
    return PrefillProgress(
        processed_tokens=as_int(value.get("processed")),
        total_tokens=as_int(value.get("total")),
        cached_tokens=as_int(value.get("cache")),
    )
