"""What servers tell of their tokens, templates and models when asked. Over the transport.

Nothing here generates, loads or changes anything. A probe that fails is a line in the list, never an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llmstream_cli.diagnose import Probe, Probed, Tokens
from llmstream_cli.diagnose.rules.tokens import MARKER
from llmstream_cli.errors import TransportError
from llmstream_cli.events import Json
from llmstream_cli.fields import as_int, as_list, as_object, as_text, look_up, objects
from llmstream_cli.stops import decode_escapes
from llmstream_cli.transport import Target, ask_json

PROBE_LIMIT_S = 5.0
_MOST_TEXTS = 8
"""So many stop strings and markers are tokenized at most."""


@dataclass(slots=True)
class _Asker:
    """Asks, and keeps a list of what was asked."""

    target: Target
    log: list[Probe] = field(default_factory=list)

    def ask(self, method: str, path: str, body: Mapping[str, Json] | None = None) -> Json:
        """The decoded answer; None where there is none."""
        try:
            answer = ask_json(self.target, method, path, body, timeout_s=PROBE_LIMIT_S)
        except TransportError as error:
            self.log.append(Probe(request=f"{method} {path}", ok=False, said=error.message))
            return None
        ok = answer.status == 200 and answer.json is not None
        said = "" if ok else f"HTTP status {answer.status}"
        self.log.append(Probe(request=f"{method} {path}", ok=ok, said=said))
        return answer.json if ok else None


def gather(
    target: Target,
    kind: str | None,
    *,
    body: Mapping[str, Json],
    texts: Sequence[str],
    ids: Sequence[int] = (),
) -> tuple[Probed, tuple[Probe, ...]]:
    """What the server says of `texts`, of the request `body` and of the generated `ids`; what was asked."""
    asker = _Asker(target)
    texts = [text for text in dict.fromkeys(texts) if text][:_MOST_TEXTS]
    match kind:
        case "llama.cpp":
            found = _llama_cpp(asker, body, texts, ids)
        case "vllm":
            found = _vllm(asker, body, texts)
        case "ollama":
            found = _ollama(asker, body)
        case "tgi":
            found = _tgi(asker, texts)
        case _:
            found = Probed()
    return found, tuple(asker.log)


def _llama_cpp(asker: _Asker, body: Mapping[str, Json], texts: Sequence[str], ids: Sequence[int]) -> Probed:
    properties = as_object(asker.ask("GET", "/props"))
    prompt = as_text(body.get("prompt"))
    if body.get("messages"):
        rendered = asker.ask("POST", "/apply-template", {"messages": body["messages"]})
        prompt = as_text(as_object(rendered).get("prompt"))
    return Probed(
        tokens={text: tokens for text in texts if (tokens := _llama_cpp_tokens(asker, text))},
        prompt=prompt,
        eos=as_text(properties.get("eos_token")),
        detokenized=_detokenized(asker, ids),
        context_tokens=as_int(look_up(properties, "default_generation_settings.n_ctx")),
    )


def _detokenized(asker: _Asker, ids: Sequence[int]) -> str | None:
    if not ids:
        return None
    return as_text(as_object(asker.ask("POST", "/detokenize", {"tokens": list(ids)})).get("content"))


def _llama_cpp_tokens(asker: _Asker, text: str) -> Tokens | None:
    """A control token is one token only where such tokens are looked for in the text."""
    ids = _ids(as_object(asker.ask("POST", "/tokenize", {"content": text, "parse_special": True})))
    if not ids:
        return None
    plain = ids
    if len(ids) == 1:
        plain = _ids(as_object(asker.ask("POST", "/tokenize", {"content": text, "parse_special": False})))
    return Tokens(ids=ids, special=len(plain) > 1 == len(ids))


def _vllm(asker: _Asker, body: Mapping[str, Json], texts: Sequence[str]) -> Probed:
    tokens = {}
    for text in texts:
        asked = {"model": body.get("model"), "prompt": text, "add_special_tokens": False}
        ids = _ids(as_object(asker.ask("POST", "/tokenize", asked)))
        if ids:
            tokens[text] = Tokens(ids=ids, special=len(ids) == 1 and bool(MARKER.fullmatch(text)))
    models = as_object(asker.ask("GET", "/v1/models"))
    return Probed(tokens=tokens, context_tokens=as_int(look_up(models, "data.0.max_model_len")))


def _ollama(asker: _Asker, body: Mapping[str, Json]) -> Probed:
    shown = as_object(asker.ask("POST", "/api/show", {"model": body.get("model")}))
    running = as_object(asker.ask("GET", "/api/ps"))
    context = next(
        (
            as_int(model.get("context_length"))
            for model in objects(running.get("models"))
            if body.get("model") in (model.get("name"), model.get("model"))
        ),
        None,
    )
    return Probed(
        model_stops=modelfile_stops(as_text(shown.get("parameters")) or ""),
        model_format=as_text(look_up(shown, "details.format")),
        context_tokens=context,
    )


def modelfile_stops(parameters: str) -> tuple[str, ...]:
    """The stop strings in Ollama's list of parameters: one a line, the value quoted as in Go."""
    found = []
    for line in parameters.splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "stop":
            found.append(
                decode_escapes(value.strip().removeprefix('"').removesuffix('"').replace('\\"', '"'))
            )
    return tuple(found)


def _tgi(asker: _Asker, texts: Sequence[str]) -> Probed:
    info = as_object(asker.ask("GET", "/info"))
    tokens = {}
    for text in texts:
        ids = tuple(
            number
            for entry in objects(asker.ask("POST", "/tokenize", {"inputs": text}))
            if (number := as_int(entry.get("id"))) is not None
        )
        if ids:
            tokens[text] = Tokens(ids=ids)
    return Probed(
        tokens=tokens,
        max_stops=as_int(info.get("max_stop_sequences")),
        context_tokens=as_int(info.get("max_total_tokens")),
    )


def _ids(answer: Mapping[str, Json]) -> tuple[int, ...]:
    return tuple(number for number in map(as_int, as_list(answer.get("tokens"))) if number is not None)
