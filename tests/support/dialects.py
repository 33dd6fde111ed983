"""Streams of ``/v1/chat/completions`` as each host and server writes them, with what each of them says.

None of these hosts can be asked from a test: the bytes are built by hand from the documents of each API and
the streams that public SDKs keep as samples, with every field that stands in them there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llmstream_cli.events import EndStatus, FinishReason

Counts = tuple[int | None, int | None, int | None, int | None, int | None]
"""Prompt, completion, reasoning, cached, total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One answer. ``finish``: the reason and the server's word; ``error``: kind, message, code."""

    body: bytes
    content_type: str = "text/event-stream"
    text: str = ""
    reasoning: str | None = None
    calls: tuple[tuple[str | None, str, Any], ...] = ()
    finish: tuple[FinishReason, str] | None = None
    usage: Counts | None = None
    error: tuple[str, str, str | int | None] | None = None
    status: EndStatus = EndStatus.COMPLETE


def events(*lines: str) -> bytes:
    """Each line is JSON, a marker, or a whole comment or named event."""
    return "".join(f"{line}\n\n" if line[0] in ":e" else f"data: {line}\n\n" for line in lines).encode()


DONE = "[DONE]"
STOP = (FinishReason.STOP, "stop")
LENGTH = (FinishReason.LENGTH, "length")
CALLS = (FinishReason.TOOL_CALLS, "tool_calls")


def _openrouter() -> Iterator[tuple[str, Dialect]]:
    def head(choice: str, more: str = "") -> str:
        return (
            '{"id":"gen-17","provider":"DeepInfra","model":"z-ai/glm-4.6","object":"chat.completion.chunk",'
            f'"created":1764493200,"choices":[{choice}]{more}}}'
        )

    def delta(fields: str, finish: str = "null", native: str = "null") -> str:
        return (
            f'{{"index":0,"delta":{{"role":"assistant",{fields}}},"finish_reason":{finish},'
            f'"native_finish_reason":{native},"logprobs":null}}'
        )

    usage = (
        ',"usage":{"prompt_tokens":14,"completion_tokens":9,"total_tokens":23,"cost":0.0000154,'
        '"is_byok":false,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},'
        '"cost_details":{"upstream_inference_cost":null},"completion_tokens_details":{"reasoning_tokens":5}}'
    )
    detail = '{"type":"reasoning.text","text":"Hm","signature":null,"format":"unknown","index":0}'
    waiting = ": OPENROUTER PROCESSING"
    yield (
        "end",
        Dialect(
            body=events(
                waiting,
                waiting,
                head(delta(f'"content":"","reasoning":"Hm","reasoning_details":[{detail}]')),
                head(delta('"content":"Grüezi"')),
                head(delta('"content":"","reasoning":null', '"stop"', '"stop"')),
                head("", usage),
                DONE,
            ),
            text="Grüezi",
            reasoning="Hm",
            finish=STOP,
            usage=(14, 9, 5, 0, 23),
        ),
    )
    yield (
        "cap, reasoning in details only",
        Dialect(
            body=events(
                head(delta(f'"content":null,"reasoning_details":[{detail}]')),
                head(
                    delta(
                        '"content":"","reasoning_details":[{"type":"reasoning.summary","summary":"m."},'
                        '{"type":"reasoning.encrypted","data":"eA=="}]',
                    )
                ),
                head(delta('"content":"One"', '"length"', '"MAX_TOKENS"')),
                DONE,
            ),
            text="One",
            reasoning="Hmm.",
            finish=LENGTH,
        ),
    )
    yield (
        "error",
        Dialect(
            body=events(
                head(delta('"content":"Par"')),
                head(
                    '{"index":0,"delta":{"content":""},"finish_reason":"error","native_finish_reason":"error"}',
                    ',"error":{"code":502,"message":"Provider disconnected",'
                    '"metadata":{"error_type":"provider_unavailable","provider_code":"upstream_closed"}}',
                ),
                DONE,
            ),
            text="Par",
            finish=(FinishReason.OTHER, "error"),
            error=("provider_unavailable", "Provider disconnected", 502),
            status=EndStatus.ERROR,
        ),
    )


def _groq() -> Iterator[tuple[str, Dialect]]:
    def chunk(delta: str, finish: str = "null", more: str = "") -> str:
        return (
            '{"id":"chatcmpl-8d","object":"chat.completion.chunk","created":1764493200,'
            '"model":"openai/gpt-oss-20b","system_fingerprint":"fp_3d5",'
            f'"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]{more}}}'
        )

    counts = (
        '{"queue_time":0.048,"prompt_tokens":78,"prompt_time":0.003,"completion_tokens":17,'
        '"completion_time":0.017,"total_tokens":95,"total_time":0.021,'
        '"completion_tokens_details":{"reasoning_tokens":8}}'
    )
    first = chunk('{"role":"assistant","content":""}', more=',"x_groq":{"id":"req_01","seed":1834}')
    yield (
        "end",
        Dialect(
            body=events(
                first,
                chunk('{"reasoning":"Easy.","channel":"analysis"}'),
                chunk('{"content":"Hello"}'),
                chunk("{}", '"stop"', f',"x_groq":{{"id":"req_01","usage":{counts}}},"usage":{counts}'),
                DONE,
            ),
            text="Hello",
            reasoning="Easy.",
            finish=STOP,
            usage=(78, 17, 8, None, 95),
        ),
    )
    yield (
        "cap, counts in Groq's own object only",
        Dialect(
            body=events(
                first,
                chunk('{"content":"Hel"}'),
                chunk("{}", '"length"', f',"x_groq":{{"id":"req_01","usage":{counts}}},"usage":null'),
                DONE,
            ),
            text="Hel",
            finish=LENGTH,
            usage=(78, 17, 8, None, 95),
        ),
    )
    yield (
        "a whole tool call in one delta",
        Dialect(
            body=events(
                first,
                chunk(
                    '{"tool_calls":[{"id":"fc_1","type":"function","function":{"name":"weather",'
                    '"arguments":"{\\"city\\":\\"Zürich\\"}"},"index":0}]}'
                ),
                chunk("{}", '"tool_calls"'),
                DONE,
            ),
            calls=(("fc_1", "weather", {"city": "Zürich"}),),
            finish=CALLS,
        ),
    )
    yield (
        "stopped early",
        Dialect(
            body=events(
                first,
                chunk('{"content":"Hel"}'),
                chunk("{}", more=',"x_groq":{"id":"req_01","error":"over capacity"}'),
                DONE,
            ),
            text="Hel",
            error=("server_error", "over capacity", None),
            status=EndStatus.ERROR,
        ),
    )
    yield (
        "error",
        Dialect(
            body=events(
                first,
                'event: error\ndata: {"error":{"message":"Tool call validation failed",'
                '"type":"invalid_request_error","code":"tool_use_failed"}}',
            ),
            error=("invalid_request_error", "Tool call validation failed", "tool_use_failed"),
            status=EndStatus.ERROR,
        ),
    )


def _deepseek() -> Iterator[tuple[str, Dialect]]:
    def chunk(delta: str, finish: str = "null", more: str = "") -> str:
        return (
            '{"id":"930c60df","object":"chat.completion.chunk","created":1764493200,'
            '"model":"deepseek-reasoner","system_fingerprint":"fp_eaab8d114b_prod0820_fp8_kvcache",'
            f'"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]{more}}}'
        )

    counts = (
        ',"usage":{"prompt_tokens":18,"completion_tokens":219,"total_tokens":237,'
        '"completion_tokens_details":{"reasoning_tokens":205},'
        '"prompt_cache_hit_tokens":12,"prompt_cache_miss_tokens":6}'
    )
    begun = (
        chunk('{"role":"assistant","content":null,"reasoning_content":""}'),
        chunk('{"content":null,"reasoning_content":"Count: r"}'),
        chunk('{"content":null,"reasoning_content":"r."}'),
        chunk('{"content":"Three","reasoning_content":null}'),
    )
    ended = chunk('{"content":"","reasoning_content":null}', '"stop"', counts)
    whole = Dialect(
        body=events(": keep-alive", ": keep-alive", *begun, ended, DONE),
        text="Three",
        reasoning="Count: rr.",
        finish=STOP,
        usage=(18, 219, 205, 12, 237),
    )
    yield "end", whole
    yield (
        "cap",
        Dialect(
            body=events(*begun[:2], chunk('{"content":"","reasoning_content":null}', '"length"'), DONE),
            reasoning="Count: r",
            finish=LENGTH,
        ),
    )
    yield (
        "interrupted",
        Dialect(
            body=events(*begun, chunk('{"content":""}', '"insufficient_system_resource"'), DONE),
            text="Three",
            reasoning="Count: rr.",
            finish=(FinishReason.OTHER, "insufficient_system_resource"),
            error=(
                "server_error",
                'the answer ended with finish reason "insufficient_system_resource"',
                None,
            ),
            status=EndStatus.ERROR,
        ),
    )
    yield (
        "in one piece, behind empty lines",
        Dialect(
            body=b"\n\n\n\n"
            b'{"id":"930c60df","object":"chat.completion","created":1764493200,"model":"deepseek-chat",'
            b'"choices":[{"index":0,"message":{"role":"assistant","content":"Three"},"logprobs":null,'
            b'"finish_reason":"stop"}],"usage":{"prompt_tokens":18,"completion_tokens":2,"total_tokens":20}}',
            content_type="application/json",
            text="Three",
            finish=STOP,
            usage=(18, 2, None, None, 20),
        ),
    )


def _mistral() -> Iterator[tuple[str, Dialect]]:
    def chunk(delta: str, finish: str = "null", more: str = "") -> str:
        return (
            '{"id":"53ff663126294946a6b7a4747b70597e","object":"chat.completion.chunk",'
            '"created":1764493200,"model":"magistral-medium-2509",'
            f'"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]{more}}}'
        )

    counts = ',"usage":{"prompt_tokens":10,"total_tokens":25,"completion_tokens":15}'
    thinking = '{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}],"closed":true}]}'
    role = chunk('{"role":"assistant","content":""}')
    yield (
        "end, content in parts",
        Dialect(
            body=events(
                role,
                chunk(thinking),
                chunk('{"content":[{"type":"text","text":"Bon"}]}'),
                chunk('{"content":"jour"}'),
                chunk('{"content":""}', '"stop"', counts),
                DONE,
            ),
            text="Bonjour",
            reasoning="Hm.",
            finish=STOP,
            usage=(10, 15, None, None, 25),
        ),
    )
    yield (
        "the model's own limit",
        Dialect(
            body=events(role, chunk('{"content":"Bon"}', '"model_length"', counts), DONE),
            text="Bon",
            finish=(FinishReason.CONTEXT, "model_length"),
            usage=(10, 15, None, None, 25),
        ),
    )
    yield (
        "tool calls without index",
        Dialect(
            body=events(
                role,
                chunk(
                    '{"content":"","tool_calls":[{"id":"gSIMJiOkT","function":{"name":"weather",'
                    '"arguments":"{\\"city\\": \\"Paris\\"}"}},{"id":"lDVpwBaXo","function":'
                    '{"name":"now","arguments":"{}"}}]}',
                    '"tool_calls"',
                    counts,
                ),
                DONE,
            ),
            calls=(("gSIMJiOkT", "weather", {"city": "Paris"}), ("lDVpwBaXo", "now", {})),
            finish=CALLS,
            usage=(10, 15, None, None, 25),
        ),
    )
    yield (
        "tool call in fragments, later ones with an empty name",
        Dialect(
            body=events(
                chunk(
                    '{"role":"assistant","tool_calls":[{"index":0,"id":"c1","function":{"name":"weather",'
                    '"arguments":""}}]}'
                ),
                chunk(
                    '{"tool_calls":[{"index":0,"id":"c1","function":{"name":"","arguments":"{\\"city\\":"}}]}'
                ),
                chunk(
                    '{"tool_calls":[{"index":0,"id":"c1","function":{"name":"","arguments":" \\"Bonn\\"}"}}]}'
                ),
                chunk('{"content":""}', '"tool_calls"'),
                DONE,
            ),
            calls=(("c1", "weather", {"city": "Bonn"}),),
            finish=CALLS,
        ),
    )
    yield (
        "error",
        Dialect(
            body=events(
                role,
                '{"object":"error","message":"Service tier capacity exceeded for this model.",'
                '"type":"service_tier_capacity_exceeded","param":null,"code":"3505"}',
            ),
            error=(
                "service_tier_capacity_exceeded",
                "Service tier capacity exceeded for this model.",
                "3505",
            ),
            status=EndStatus.ERROR,
        ),
    )


def _azure() -> Iterator[tuple[str, Dialect]]:
    safe = '{"hate":{"filtered":false,"severity":"safe"},"violence":{"filtered":false,"severity":"safe"}}'
    first = (
        '{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":'
        f'[{{"prompt_index":0,"content_filter_results":{safe}}}]}}'
    )

    def chunk(delta: str, finish: str = "null", filters: str = safe) -> str:
        return (
            f'{{"choices":[{{"content_filter_results":{filters},"delta":{delta},"finish_reason":{finish},'
            '"index":0,"logprobs":null}],"created":1764493200,"id":"chatcmpl-Ch","model":"gpt-4o-2024-11-20",'
            '"object":"chat.completion.chunk","obfuscation":"aBc","system_fingerprint":"fp_b54","usage":null}'
        )

    def late(finish: str, filters: str) -> str:
        return (
            f'{{"choices":[{{"content_filter_offsets":{{"check_offset":44,"start_offset":44,"end_offset":198}},'
            f'"content_filter_results":{filters},"finish_reason":{finish},"index":0}}],"created":0,"id":"",'
            '"model":"","object":""}'
        )

    role = chunk('{"content":"","refusal":null,"role":"assistant"}', filters="{}")
    counts = (
        '{"choices":[],"created":1764493200,"id":"chatcmpl-Ch","model":"gpt-4o-2024-11-20",'
        '"object":"chat.completion.chunk","usage":{"completion_tokens":3,"completion_tokens_details":'
        '{"accepted_prediction_tokens":0,"reasoning_tokens":0},"prompt_tokens":9,"prompt_tokens_details":'
        '{"cached_tokens":0},"total_tokens":12}}'
    )
    yield (
        "end",
        Dialect(
            body=events(
                first,
                role,
                chunk('{"content":"Hi"}'),
                late("null", safe),
                chunk("{}", '"stop"', "{}"),
                late("null", safe),
                counts,
                DONE,
            ),
            text="Hi",
            finish=STOP,
            usage=(9, 3, 0, 0, 12),
        ),
    )
    yield (
        "cap",
        Dialect(
            body=events(first, role, chunk('{"content":"Hi"}'), chunk("{}", '"length"'), DONE),
            text="Hi",
            finish=LENGTH,
        ),
    )
    filtered = '{"violence":{"filtered":true,"severity":"medium"}}'
    yield (
        "filtered after it was shown",
        Dialect(
            body=events(
                first,
                role,
                chunk('{"content":"Take a"}'),
                chunk("{}", '"stop"'),
                late('"content_filter"', filtered),
                DONE,
            ),
            text="Take a",
            finish=(FinishReason.CONTENT_FILTER, "content_filter"),
        ),
    )
    yield (
        "another maker's model: roles of null, reasoning counted at the top",
        Dialect(
            body=events(
                chunk('{"content":null,"reasoning_content":"Hm","role":null,"tool_calls":null}'),
                chunk('{"content":"Yes","reasoning_content":null,"role":null,"tool_calls":null}', '"stop"'),
                '{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"reasoning_tokens":5,'
                '"total_tokens":16,"prompt_tokens_details":null}}',
                DONE,
            ),
            text="Yes",
            reasoning="Hm",
            finish=STOP,
            usage=(9, 7, 5, None, 16),
        ),
    )
    yield (
        "error",
        Dialect(
            body=events(
                first,
                '{"error":{"message":"The server had an error processing your request.",'
                '"type":"server_error","param":null,"code":"InternalServerError"}}',
            ),
            error=(
                "server_error",
                "The server had an error processing your request.",
                "InternalServerError",
            ),
            status=EndStatus.ERROR,
        ),
    )


def _xai() -> Iterator[tuple[str, Dialect]]:
    def chunk(choices: str, more: str = "") -> str:
        return (
            '{"id":"c0161816-edce-96aa-2bf6-2a98d7d6ed47","object":"chat.completion.chunk",'
            f'"created":1764493200,"model":"grok-4-0709","choices":[{choices}]{more},'
            '"system_fingerprint":"fp_156"}'
        )

    def delta(fields: str, finish: str = "") -> str:
        return f'{{"index":0,"delta":{{{fields},"role":"assistant"}}{finish}}}'

    counts = (
        ',"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":303,'
        '"prompt_tokens_details":{"text_tokens":12,"audio_tokens":0,"image_tokens":0,"cached_tokens":2},'
        '"completion_tokens_details":{"reasoning_tokens":290,"audio_tokens":0},"num_sources_used":0,'
        '"cost_in_usd_ticks":4385000}'
    )
    yield (
        "end; reasoning is no part of its completion tokens",
        Dialect(
            body=events(
                chunk(delta('"reasoning_content":"Well"')),
                chunk(delta('"content":"Yes"')),
                chunk(delta('"content":""', ',"finish_reason":"stop"')),
                chunk("", counts),
                DONE,
            ),
            text="Yes",
            reasoning="Well",
            finish=STOP,
            usage=(12, 291, 290, 2, 303),
        ),
    )
    yield (
        "cap",
        Dialect(
            body=events(
                chunk(delta('"content":"Ye"')), chunk(delta('"content":""', ',"finish_reason":"length"'))
            ),
            text="Ye",
            finish=LENGTH,
        ),
    )
    quota = '{"code":"The caller does not have permission","error":"No credits left."}'
    no_credits = ("server_error", "No credits left.", "The caller does not have permission")
    yield (
        "error",
        Dialect(
            body=events(chunk(delta('"content":"Ye"')), quota),
            text="Ye",
            error=no_credits,
            status=EndStatus.ERROR,
        ),
    )
    yield (
        "error in place of a stream, with status 200",
        Dialect(
            body=quota.encode(), content_type="application/json", error=no_credits, status=EndStatus.ERROR
        ),
    )


def _together() -> Iterator[tuple[str, Dialect]]:
    def chunk(choice: str, usage: str = "null") -> str:
        return (
            '{"id":"oJm7-4Yz4kd-9a0c","object":"chat.completion.chunk","created":1764493200,'
            f'"choices":[{{{choice}}}],"model":"Qwen/Qwen3-Next-80B","warnings":[],"usage":{usage}}}'
        )

    def delta(content: str, finish: str = "null", token: int = 9707) -> str:
        return (
            f'"index":0,"role":"assistant","text":{content},"logprobs":null,"finish_reason":{finish},"seed":null,'
            f'"delta":{{"token_id":{token},"role":"assistant","content":{content},"tool_calls":null}}'
        )

    counts = '{"prompt_tokens":21,"completion_tokens":3,"total_tokens":24,"cached_tokens":0}'
    yield (
        "end",
        Dialect(
            body=events(
                chunk(delta('"Hel"')), chunk(delta('"lo"')), chunk(delta('""', '"eos"'), counts), DONE
            ),
            text="Hello",
            finish=(FinishReason.EOS, "eos"),
            usage=(21, 3, None, None, 24),
        ),
    )
    yield (
        "cap",
        Dialect(
            body=events(chunk(delta('"Hel"', '"length"'), counts), DONE),
            text="Hel",
            finish=LENGTH,
            usage=(21, 3, None, None, 24),
        ),
    )
    yield (
        "error",
        Dialect(
            body=events(
                chunk(delta('"Hel"')),
                '{"error":{"message":"The engine stopped.","type":"server_error","param":null,"code":null}}',
                DONE,
            ),
            text="Hel",
            error=("server_error", "The engine stopped.", None),
            status=EndStatus.ERROR,
        ),
    )


def _perplexity() -> Iterator[tuple[str, Dialect]]:
    def chunk(
        said: str, delta: str, tokens: int, finish: str = "null", kind: str = "chat.completion.chunk"
    ) -> str:
        return (
            '{"id":"e5f9","model":"sonar","created":1764493200,"usage":{"prompt_tokens":7,'
            f'"completion_tokens":{tokens},"total_tokens":{7 + tokens},"search_context_size":"low"}},'
            f'"citations":["https://example.org/a"],"search_results":[],"object":"{kind}","choices":[{{"index":0,'
            f'"finish_reason":{finish},"message":{{"role":"assistant","content":"{said}"}},'
            f'"delta":{{"role":"assistant","content":"{delta}"}}}}]}}'
        )

    yield (
        "end; the counts grow, the text is repeated",
        Dialect(
            body=events(
                chunk("Bern", "Bern", 1),
                chunk("Bern [1]", " [1]", 4),
                chunk("Bern [1].", ".", 5),
                chunk("Bern [1].", "", 5, '"stop"', "chat.completion.done"),
            ),
            text="Bern [1].",
            finish=STOP,
            usage=(7, 5, None, None, 12),
        ),
    )
    yield (
        "cap",
        Dialect(
            body=events(chunk("Bern", "Bern", 1, '"length"', "chat.completion.done"), DONE),
            text="Bern",
            finish=LENGTH,
            usage=(7, 1, None, None, 8),
        ),
    )
    yield (
        "error",
        Dialect(
            body=events(
                chunk("Bern", "Bern", 1),
                '{"error":{"message":"Internal error","type":"internal_error","code":500}}',
            ),
            text="Bern",
            usage=(7, 1, None, None, 8),
            error=("internal_error", "Internal error", 500),
            status=EndStatus.ERROR,
        ),
    )


def _ollama() -> Iterator[tuple[str, Dialect]]:
    def chunk(delta: str, finish: str = "null") -> str:
        return (
            '{"id":"chatcmpl-415","object":"chat.completion.chunk","created":1764493200,"model":"qwen3:8b",'
            '"system_fingerprint":"fp_ollama",'
            f'"choices":[{{"index":0,"delta":{{"role":"assistant",{delta}}},"finish_reason":{finish}}}]}}'
        )

    counts = (
        '{"id":"chatcmpl-415","object":"chat.completion.chunk","created":1764493200,"model":"qwen3:8b",'
        '"system_fingerprint":"fp_ollama","choices":[],'
        '"usage":{"prompt_tokens":31,"completion_tokens":5,"total_tokens":36}}'
    )
    yield (
        "end",
        Dialect(
            body=events(
                chunk('"content":"","reasoning":"Okay"'),
                chunk('"content":"Hi"'),
                chunk('"content":""', '"stop"'),
                counts,
                DONE,
            ),
            text="Hi",
            reasoning="Okay",
            finish=STOP,
            usage=(31, 5, None, None, 36),
        ),
    )
    yield (
        "cap",
        Dialect(
            body=events(chunk('"content":"H"'), chunk('"content":""', '"length"'), DONE),
            text="H",
            finish=LENGTH,
        ),
    )
    yield (
        "an error that the server lost on its way: a chunk that says nothing, no marker",
        Dialect(
            body=events(
                chunk('"content":"H"'), chunk('"content":""').replace('"model":"qwen3:8b"', '"model":""')
            ),
            text="H",
            status=EndStatus.INCOMPLETE,
        ),
    )
    yield (
        "given up by the server without a word",
        Dialect(body=events(chunk('"content":"H"')), text="H", status=EndStatus.INCOMPLETE),
    )


def _llama_cpp_python() -> Iterator[tuple[str, Dialect]]:
    def chunk(delta: str, finish: str = "null") -> str:
        return (
            '{"id": "chatcmpl-7e", "model": "gemma", "created": 1764493200, '
            '"object": "chat.completion.chunk", '
            f'"choices": [{{"index": 0, "delta": {delta}, "logprobs": null, "finish_reason": {finish}}}]}}'
        )

    role = chunk('{"role": "assistant"}')
    said = chunk('{"content": "Hi"}')
    ping = ": ping - 2026-11-30 09:00:00.000000+00:00"
    yield (
        "end, with the older line ends",
        Dialect(
            body=events(role, ping, said, chunk("{}", '"stop"'), DONE).replace(b"\n", b"\r\n"),
            text="Hi",
            finish=STOP,
        ),
    )
    yield (
        "cap",
        Dialect(body=events(role, said, chunk("{}", '"length"'), DONE), text="Hi", finish=LENGTH),
    )
    yield (
        "another request came first: the marker is no proof",
        Dialect(body=events(role, said, DONE), text="Hi", status=EndStatus.INCOMPLETE),
    )
    yield (
        "error",
        Dialect(
            body=events(
                role,
                '{"error": {"message": "Requested tokens (5000) exceed context window of 2048", '
                '"type": "internal_server_error", "param": null, "code": null}}',
            ),
            error=(
                "internal_server_error",
                "Requested tokens (5000) exceed context window of 2048",
                None,
            ),
            status=EndStatus.ERROR,
        ),
    )


def _lm_studio() -> Iterator[tuple[str, Dialect]]:
    def chunk(delta: str, finish: str = "null") -> str:
        return (
            '{"id":"chatcmpl-x9","object":"chat.completion.chunk","created":1764493200,"model":"gpt-oss-20b",'
            '"system_fingerprint":"gpt-oss-20b",'
            f'"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]}}'
        )

    said = chunk('{"role":"assistant","content":"Hi"}')
    yield (
        "end",
        Dialect(
            body=events(
                chunk('{"role":"assistant","reasoning":"Greet"}'),
                said,
                chunk("{}", '"stop"'),
                '{"id":"chatcmpl-x9","object":"chat.completion.chunk","created":1764493200,"model":"gpt-oss-20b",'
                '"choices":[],"usage":{"prompt_tokens":68,"completion_tokens":4,"total_tokens":72}}',
                DONE,
            ),
            text="Hi",
            reasoning="Greet",
            finish=STOP,
            usage=(68, 4, None, None, 72),
        ),
    )
    yield "cap", Dialect(body=events(said, chunk("{}", '"length"'), DONE), text="Hi", finish=LENGTH)
    yield (
        "error",
        Dialect(
            body=events(
                said,
                'event: error\ndata: {"error":{"message":"The model has crashed without additional '
                'information."},"message":"The model has crashed without additional information."}',
            ),
            text="Hi",
            error=("server_error", "The model has crashed without additional information.", None),
            status=EndStatus.ERROR,
        ),
    )


_HOSTS = {
    "openrouter": _openrouter,
    "groq": _groq,
    "deepseek": _deepseek,
    "mistral": _mistral,
    "azure": _azure,
    "xai": _xai,
    "together": _together,
    "perplexity": _perplexity,
    "ollama": _ollama,
    "llama-cpp-python": _llama_cpp_python,
    "lm-studio": _lm_studio,
}
DIALECTS = {f"{host}: {case}": dialect for host, cases in _HOSTS.items() for case, dialect in cases()}
