"""From settings and a question to a `Plan`: which server, which shape, which prompt, which key."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from llmstream_cli.builtin_profiles import LLAMACPP_TELLING_OPTIONS, PROFILES
from llmstream_cli.errors import ConfigError, UsageError
from llmstream_cli.events import Json
from llmstream_cli.notices import quoted
from llmstream_cli.request import Message, Request, Sampling, merge
from llmstream_cli.session import Plan
from llmstream_cli.shapes import SHAPES, Shape, get_shape
from llmstream_cli.urls import origin

if TYPE_CHECKING:
    from llmstream_cli.keys import Key
    from llmstream_cli.servers import ServerInfo
    from llmstream_cli.settings import Settings
    from llmstream_cli.transport import Target

ASKING_SHAPE = "openai-chat"
"""The shape whose headers are sent while it is not known yet which one the server speaks."""
DEFAULT_TEMPLATE = "plain"
_OWN_TEMPLATE_KINDS = {"llamacpp": "llama.cpp", "tgi": "tgi"}
"""Completion shapes whose server can flatten a conversation by itself."""
_NEEDS_NO_MODEL = frozenset({"llama.cpp", "llama-cpp-python", "tgi"})

Explain = Callable[[str], None]
"""Gets one line for each decision, for ``-v``."""


def make_target(settings: "Settings", key: "Key | None") -> "Target":
    """Where to send to, with the key and the headers of the shape.

    With the shape ``auto`` those of the first question, who the server is; `make_plan` puts that right.
    """
    from llmstream_cli.transport import Target

    if settings.base_url is None:
        raise ConfigError("There is no base URL.", hint="Give --base-url, or a profile that has one.")
    secrets = (key.secret.reveal(),) if key is not None else ()
    shape = get_shape(settings.shape if settings.shape in SHAPES else ASKING_SHAPE)
    return Target(base_url=settings.base_url, headers=_headers(settings, shape, secrets), secrets=secrets)


def _headers(settings: "Settings", shape: Shape, secrets: tuple[str, ...]) -> dict[str, str]:
    """The shape's own headers and the key, unless the user's say otherwise."""
    given = {name.lower() for name in settings.headers}
    headers = {name: value for name, value in shape.headers.items() if name.lower() not in given}
    auth = settings.auth or shape.auth
    for key in secrets:
        if auth == "bearer" and "authorization" not in given:
            headers["Authorization"] = f"Bearer {key}"
        elif auth != "bearer" and not given & {"authorization", auth}:
            headers[auth] = key
    return {**headers, **settings.headers}


def make_plan(
    settings: "Settings",
    target: "Target",
    messages: tuple[Message, ...],
    *,
    explain: Explain,
    warn: Explain | None = None,
) -> Plan:
    """Decide everything about one request. May ask the server who it is and for its chat template.

    `warn` gets what is not done as asked; without it, `explain` does.
    """
    from llmstream_cli.transport import Timeouts

    shape, server = choose_shape(settings, target, explain)
    if settings.shape == "auto":
        target = replace(target, headers=_headers(settings, shape, target.secrets))
    sampling = Sampling(
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        seed=settings.seed,
        stop=settings.stop,
    )
    for stop in sampling.stop:
        explain(f"stop sequence {quoted(stop)} ({settings.stop_origin}){_stop_hint(stop)}")
    for line in _not_taken(settings, shape):
        (warn or explain)(line)
    prompt: str | None = None
    if shape.needs_prompt(messages):
        prompt, template_stops = flatten(settings, shape, target, messages, explain)
        missing = tuple(stop for stop in template_stops if stop not in sampling.stop)
        sampling = replace(sampling, stop=sampling.stop + missing)
    request = Request(
        messages=messages,
        prompt=prompt,
        model=settings.model or _only_model(settings, shape, server, target, explain),
        sampling=sampling,
        stream=not settings.no_stream,
        cap_field=shape.cap_field_at.get(origin(target.base_url)),
        options=_options(settings, shape, server),
        schema=_schema(settings),
    )
    return Plan(
        target=target,
        timeouts=Timeouts(
            connect_s=settings.connect_timeout,
            first_token_s=settings.first_token_timeout,
            idle_s=settings.idle_timeout,
            total_s=settings.timeout,
        ),
        shape=shape,
        request=request,
        path=settings.path,
        profile=settings.profile,
        retries=settings.retries,
        enforce_stop=settings.enforce_stop,
        think_tags=settings.think_tags,
    )


def choose_shape(
    settings: "Settings", target: "Target", explain: Explain
) -> "tuple[Shape, ServerInfo | None]":
    """The shape that is set, or with ``auto`` the one that the server itself suggests (and who it is)."""
    name = settings.shape
    info = None
    if name == "auto" and (hosted := _hosted_shape(target.base_url)):
        name = hosted
        explain(f"a hosted API, known by its address; shape {name}")
    elif name == "auto":
        from llmstream_cli.servers import identify

        info = identify(target)
        name = info.shape if info is not None else "openai-chat"
        known = f"{info.kind} {info.version or ''}".strip() if info is not None else "unknown"
        explain(f"server: {known}; shape {name}")
    return configured_shape(name, settings.stream), info


def _hosted_shape(base_url: str) -> str | None:
    """The shape of the built-in profile for that host. A hosted API is not asked who it is."""
    here = origin(base_url)
    return next(
        (
            table["shape"]
            for table in PROFILES.values()
            if table.get("base_url", "").startswith("https:") and origin(table["base_url"]) == here
        ),
        None,
    )


def configured_shape(name: str, stream: Mapping[str, Json]) -> Shape:
    """The shape called `name`, as the profile's table `stream` describes it where there is one."""
    if name not in SHAPES:
        raise ConfigError(f"There is no shape called {name!r}.", hint=f"Shapes: {', '.join(SHAPES)}")
    shape = get_shape(name)
    try:
        return shape.configured(stream) if stream else shape
    except ValueError as error:
        raise ConfigError(f"The table `stream` {error}.") from None


def flatten(
    settings: "Settings", shape: Shape, target: "Target", messages: tuple[Message, ...], explain: Explain
) -> tuple[str, tuple[str, ...]]:
    """The conversation as one text, and the stop strings that its template needs.

    The profile's template wins; else the server's own; else the built-in `DEFAULT_TEMPLATE`.
    """
    from llmstream_cli.templates import Template, get_template

    chosen = settings.template
    if chosen is None:
        from llmstream_cli.servers import apply_template, identify

        kind = _OWN_TEMPLATE_KINDS.get(shape.name)
        if kind is None:
            info = identify(target)
            kind = info.kind if info is not None else ""
        rendered = apply_template(target, kind, messages)
        if rendered is not None:
            explain(f"prompt flattened by the server's own template:\n{rendered}")
            return rendered, ()
        chosen = DEFAULT_TEMPLATE
    try:
        template = get_template(chosen) if isinstance(chosen, str) else Template.from_mapping(chosen)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"The template cannot be used: {error}") from error
    prompt = template.flatten(messages)
    name = chosen if isinstance(chosen, str) else "of the profile"
    explain(f"prompt flattened by the template {name}:\n{prompt}")
    return prompt, template.stop


def _options(settings: "Settings", shape: Shape, server: "ServerInfo | None") -> Mapping[str, Json]:
    """The user's body fields, over those that make a server known to take them tell more."""
    if server is not None and server.kind == "llama.cpp" and shape.name.startswith("openai-"):
        return merge(LLAMACPP_TELLING_OPTIONS, settings.options)
    return settings.options


def _not_taken(settings: "Settings", shape: Shape) -> Iterator[str]:
    """What the API has no place for, and what becomes of it."""
    fate = (
        "the answer is cut here, by llmstream"
        if settings.enforce_stop
        else "with --no-enforce-stop nothing stops there"
    )
    if settings.stop and shape.stop_field is None:
        yield f"{shape.name} has no stop parameter: {fate}."
    if shape.stop_limit is not None and len(settings.stop) > shape.stop_limit:
        unsent = ", ".join(map(quoted, settings.stop[shape.stop_limit :]))
        yield f"{shape.name} takes {shape.stop_limit} stop sequences, {unsent} is not sent: {fate}."
    if settings.max_tokens is not None and shape.max_tokens_field is None:
        yield f"{shape.name} has no token cap: -n {settings.max_tokens} is not sent (-o KEY=VALUE sends it)."
    if settings.seed is not None and not shape.takes_seed:
        yield f"{shape.name} has no seed parameter: --seed is not sent (-o seed={settings.seed} sends it)."


def _stop_hint(stop: str) -> str:
    ends_in_space = stop != stop.rstrip(" ") and bool(stop.strip())
    return ": it ends in a space, which models rarely generate before a line break" if ends_in_space else ""


def _only_model(
    settings: "Settings", shape: Shape, server: "ServerInfo | None", target: "Target", explain: Explain
) -> str | None:
    """Servers that want a model name get the only one they offer; with several, the user must choose."""
    known_to_need = server is not None and server.kind not in _NEEDS_NO_MODEL
    if settings.managed or not (shape.needs_model or known_to_need):
        return None
    from llmstream_cli.servers import identify, list_models

    server = server or identify(target)
    if server is None:
        return None
    names = [model.id for model in server.models or list_models(target, server.kind)]
    if len(names) > 1:
        raise UsageError(
            f"The server offers {len(names)} models: choose one with -m.",
            hint=", ".join(names[:12]) + (" ..." if len(names) > 12 else ""),
        )
    if names:
        explain(f"model: {names[0]} (the only one)")
    return names[0] if names else None


def _schema(settings: "Settings") -> Mapping[str, Json] | None:
    if settings.schema is None:
        return None
    try:
        value = json.loads(settings.schema.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot use the schema {settings.schema}: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"the schema {settings.schema} is not a JSON object")
    return value
