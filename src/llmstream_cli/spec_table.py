"""The table of settings: one entry each drives flags, environment, profiles, help and ``show --origin``."""

from collections.abc import Mapping

from llmstream_cli.kinds import (
    Choice,
    EndpointPath,
    FilePath,
    Number,
    Seconds,
    TemplateSource,
    Text,
    Url,
    VariableName,
    Whole,
    YesNo,
)
from llmstream_cli.list_kinds import Command, Headers, Options, RawStops, Stops, Stream, Texts
from llmstream_cli.specs import Spec


def _shapes() -> tuple[str, ...]:
    from llmstream_cli.shapes import SHAPES

    return ("auto", *SHAPES)


def _auths() -> tuple[str, ...]:
    return ("bearer", "x-api-key", "x-goog-api-key", "api-key")


def _reasoning() -> tuple[str, ...]:
    return ("show", "hide", "only")


def _formats() -> tuple[str, ...]:
    return ("text", "markdown", "json", "jsonl", "raw")


def _edit_keys() -> tuple[str, ...]:
    return ("emacs", "vi")


def _colors() -> tuple[str, ...]:
    return ("auto", "always", "never")


_SERVER = (
    Spec(
        name="profile",
        kind=Text(),
        flags=("-p", "--profile"),
        metavar="NAME",
        profile=False,
        help="Backend profile, e.g. ollama, local; `llmstream profiles` lists them.",
    ),
    Spec(
        name="base_url",
        kind=Url(),
        flags=("--base-url", "--url"),
        metavar="URL",
        help="Server, e.g. localhost:8080 or https://host/v1. Without -p the server is identified by itself.",
    ),
    Spec(
        name="shape",
        kind=Choice(_shapes),
        flags=("--shape",),
        metavar="NAME",
        default="auto",
        help="Server API, e.g. openai-chat, ollama-chat, llamacpp; auto asks the server. [default: auto]",
    ),
    Spec(
        name="model",
        kind=Text(),
        flags=("-m", "--model"),
        metavar="NAME",
        help="Model, e.g. llama3.2; `llmstream models` lists what the server offers.",
    ),
    Spec(
        name="path",
        kind=EndpointPath(),
        help="Path of the endpoint where it is not the usual one, e.g. /openai/chat",
    ),
    Spec(
        name="stream",
        kind=Stream(),
        default={},
        help="Table that describes an application's own back end, for the shapes sse, ndjson and text",
    ),
)

_PROMPT = (
    Spec(
        name="system",
        kind=Text(),
        flags=("-s", "--system"),
        metavar="TEXT",
        help="System prompt, e.g. 'Answer in one sentence.'",
    ),
    Spec(
        name="files",
        kind=Texts(),
        flags=("-f", "--file"),
        metavar="PATH",
        default=(),
        profile=False,
        env=False,
        help="Text file to put before the prompt; - is stdin. Repeatable.",
    ),
    Spec(
        name="template",
        kind=TemplateSource(),
        help="Prompt template for completion servers: plain, chatml, llama3, or a table",
    ),
)

_SAMPLING = (
    Spec(
        name="max_tokens",
        kind=Whole(1),
        flags=("-n", "--max-tokens"),
        metavar="N",
        help="Cap on the tokens of the answer. [default: the server's]",
    ),
    Spec(
        name="temperature",
        kind=Number(),
        flags=("--temperature", "--temp"),
        metavar="X",
        help="Sampling temperature, 0 = greedy. [default: the server's]",
    ),
    Spec(
        name="top_p",
        kind=Number(1),
        flags=("--top-p",),
        metavar="X",
        help="Nucleus sampling, 0 to 1. [default: the server's]",
    ),
    Spec(name="seed", kind=Whole(), flags=("--seed",), metavar="N", help="Seed for repeatable sampling."),
    Spec(
        name="stop",
        kind=Stops(),
        flags=("--stop",),
        metavar="S",
        default=(),
        help=r"Stop string; \n \t \r \\ \uXXXX \xXX are decoded. Repeatable; --stop '' drops the profile's.",
    ),
    Spec(
        name="stop_raw",
        kind=RawStops(),
        flags=("--stop-raw",),
        metavar="S",
        profile=False,
        env=False,
        into="stop",
        help="Stop string taken literally, backslashes too. Repeatable.",
    ),
    Spec(
        name="enforce_stop",
        kind=YesNo(),
        flags=("--enforce-stop/--no-enforce-stop",),
        default=True,
        help="Cut at a stop string here if the server does not. [default: enforce]",
    ),
    Spec(
        name="options",
        kind=Options(),
        flags=("-o", "--option"),
        metavar="KEY=VALUE",
        default={},
        help="Any field of the request body, e.g. -o top_k=40 -o options.num_ctx=8192. Repeatable.",
    ),
)

_ACCESS = (
    Spec(
        name="headers",
        kind=Headers(),
        flags=("-H", "--header"),
        metavar="'K: V'",
        default={},
        help="Extra HTTP header, e.g. -H 'X-Title: notes'. Repeatable.",
    ),
    Spec(
        name="api_key_env",
        kind=VariableName(),
        flags=("--api-key-env",),
        metavar="NAME",
        help="Environment variable that holds the API key, e.g. WORK_API_KEY.",
    ),
    Spec(
        name="api_key_cmd",
        kind=Command(),
        flags=("--api-key-cmd",),
        metavar="CMD",
        help="Command that prints the API key, e.g. 'pass show llm/work'. No shell is involved.",
    ),
    Spec(
        name="auth",
        kind=Choice(_auths),
        help="How the key is sent where it is not the shape's own way: bearer, or the header that holds it",
    ),
)

_OUTPUT = (
    Spec(
        name="reasoning",
        kind=Choice(_reasoning),
        flags=("--reasoning",),
        metavar="show|hide|only",
        shorthands={"-R": "hide"},
        help="The model's reasoning, on stderr. [default: show on a terminal, else hide]",
    ),
    Spec(
        name="think_tags",
        kind=YesNo(),
        flags=("--think-tags/--no-think-tags",),
        default=True,
        help="Take <think>...</think> at the start of the text for reasoning. [default: think-tags]",
    ),
    Spec(
        name="format",
        kind=Choice(_formats),
        flags=("--format",),
        metavar="text|markdown|json|jsonl|raw",
        shorthands={"--json": "json"},
        help="Form of the answer on stdout. [default: markdown on a terminal, else text]",
    ),
    Spec(
        name="plain",
        kind=YesNo(),
        flags=("--plain",),
        default=False,
        help="Text as it comes: no Markdown, no colour, no moving parts.",
    ),
    Spec(
        name="color",
        kind=Choice(_colors),
        flags=("--color",),
        metavar="auto|always|never",
        default="auto",
        help="Colour; auto is only on a terminal and obeys NO_COLOR. [default: auto]",
    ),
    Spec(
        name="edit_keys",
        kind=Choice(_edit_keys),
        help="Keys of the chat's prompt: emacs or vi; without it as the editor in VISUAL or EDITOR has them",
    ),
    Spec(
        name="footer",
        kind=YesNo(),
        flags=("--footer/--no-footer",),
        help="The line on stderr that tells how the answer ended. [default: footer]",
    ),
    Spec(
        name="quiet", kind=YesNo(), flags=("-q", "--quiet"), default=False, help="Only the answer and errors."
    ),
    Spec(
        name="verbose",
        kind=Whole(0),
        flags=("-v", "--verbose"),
        default=0,
        counted=True,
        help="Say what is sent and received; -vv says more.",
    ),
)

_NETWORK = (
    Spec(
        name="connect_timeout",
        kind=Seconds(),
        flags=("--connect-timeout",),
        metavar="S",
        default=10.0,
        help="Seconds to wait for the connection, 0 = no limit. [default: 10]",
    ),
    Spec(
        name="first_token_timeout",
        kind=Seconds(),
        flags=("--first-token-timeout",),
        metavar="S",
        default=900.0,
        help="Seconds to wait for the first output, 0 = no limit. [default: 900]",
    ),
    Spec(
        name="idle_timeout",
        kind=Seconds(),
        flags=("--idle-timeout",),
        metavar="S",
        default=180.0,
        help="Seconds without an event (keep-alives do not count), 0 = no limit. [default: 180]",
    ),
    Spec(
        name="timeout",
        kind=Seconds(),
        flags=("--timeout",),
        metavar="S",
        help="Seconds for everything together. [default: no limit]",
    ),
    Spec(
        name="retries",
        kind=Whole(0),
        flags=("--retries",),
        metavar="N",
        default=2,
        help="Tries after the first, only before the first byte of the answer. [default: 2]",
    ),
)

_RUN = (
    Spec(
        name="record",
        kind=FilePath(),
        flags=("--record",),
        metavar="FILE",
        profile=False,
        env=False,
        help="Write the exchange to FILE, for `llmstream replay`; keys are masked.",
    ),
    Spec(
        name="no_stream",
        kind=YesNo(),
        flags=("--no-stream",),
        default=False,
        help="Ask for the answer in one piece.",
    ),
    Spec(
        name="fail_on_truncation",
        kind=YesNo(),
        flags=("--fail-on-truncation",),
        default=False,
        help="Exit with 10 if the token cap cut the answer.",
    ),
    Spec(
        name="schema",
        kind=FilePath(),
        flags=("--schema",),
        metavar="FILE",
        profile=False,
        env=False,
        help="JSON schema that the answer has to follow.",
    ),
    Spec(
        name="curl",
        kind=YesNo(),
        flags=("--curl",),
        default=False,
        profile=False,
        env=False,
        help="Print the equivalent curl command, key masked, and stop.",
    ),
)

SPECS: Mapping[str, Spec] = {
    spec.name: spec for spec in (*_SERVER, *_PROMPT, *_SAMPLING, *_ACCESS, *_OUTPUT, *_NETWORK, *_RUN)
}
"""Name -> spec, in the order of the help."""
