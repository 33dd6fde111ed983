"""The body of a request, with places for what is asked: ``{"question": "{prompt}", "model": "{model}"}``.

A text that is nothing but a placeholder becomes the value itself (a list, a number); one without a value
takes its field out of the body. Inside a longer text it becomes text.
"""

import re
from collections.abc import Iterator, Mapping

from llmstream_cli.events import Json
from llmstream_cli.fields import as_object, compact
from llmstream_cli.request import Request

PLACES = (
    "prompt",
    "messages",
    "system",
    "model",
    "max_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "schema",
    "stream",
)
_PLACE = re.compile(r"\{([a-z_]+)\}")


def check_template(template: Json) -> None:
    """ValueError for a placeholder that does not exist."""
    unknown = sorted({name for _, text in _texts(template) for name in _PLACE.findall(text)} - {*PLACES})
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACES)
        raise ValueError(f"has the unknown placeholder {{{unknown[0]}}}; there are {known}")


def fill_template(template: Mapping[str, Json], request: Request) -> dict[str, Json]:
    """The body that `template` makes of `request`."""
    filled: dict[str, Json] = _fill(template, _values(request, template))
    return filled


def find_place(template: Json, name: str) -> str | None:
    """The dotted path of the field that is nothing but the placeholder `name`, or None."""
    return next((path for path, text in _texts(template) if text == f"{{{name}}}"), None)


def _values(request: Request, template: Json) -> dict[str, Json]:
    """What each placeholder stands for.

    The system text goes to its own place, else into the messages, else before the prompt.
    """
    used = {name for _, text in _texts(template) for name in _PLACE.findall(text)}
    system = "\n\n".join(message.content for message in request.messages if message.role == "system")
    prompt = request.prompt
    if prompt is None:
        prompt = next((item.content for item in reversed(request.messages) if item.role == "user"), "")
        if system and not used & {"system", "messages"}:
            prompt = f"{system}\n\n{prompt}"
    sampling = request.sampling
    return {
        "prompt": prompt,
        "messages": [
            {"role": message.role, "content": message.content}
            for message in request.messages
            if message.role != "system" or "system" not in used
        ],
        "system": system or None,
        "model": request.model,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
        "schema": request.schema,
        "stream": request.stream,
    }


def _fill(template: Json, values: Mapping[str, Json]) -> Json:
    if isinstance(template, str):
        whole = _PLACE.fullmatch(template)
        return values[whole[1]] if whole else _PLACE.sub(lambda found: _text(values[found[1]]), template)
    if isinstance(template, Mapping):
        filled = ((key, item, _fill(item, values)) for key, item in template.items())
        return {key: value for key, item, value in filled if value is not None or item is None}
    if isinstance(template, list):
        return [_fill(item, values) for item in template]
    return template


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact(value)


def _texts(template: Json, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in `template` with its dotted path."""
    if isinstance(template, str):
        yield path, template
        return
    items = dict(enumerate(template)) if isinstance(template, list) else as_object(template)
    for key, item in items.items():
        yield from _texts(item, f"{path}.{key}" if path else str(key))
