"""API keys: where they come from, and that they are shown nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llmstream_cli.documents import read_document, subtable, write_document
from llmstream_cli.errors import ConfigError, MissingKeyError
from llmstream_cli.files import readable_by_others
from llmstream_cli.profiles import ProfileStore
from llmstream_cli.settings import Settings
from llmstream_cli.specs import Layer
from llmstream_cli.urls import origin as url_origin

KEY_VARIABLE = "LLMSTREAM_API_KEY"
COMMAND_TIMEOUT_S = 60.0

PROVIDER_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "https://api.openai.com": ("OPENAI_API_KEY",),
    "https://api.anthropic.com": ("ANTHROPIC_API_KEY",),
    "https://generativelanguage.googleapis.com": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "https://api.groq.com": ("GROQ_API_KEY",),
    "https://api.mistral.ai": ("MISTRAL_API_KEY",),
    "https://api.deepseek.com": ("DEEPSEEK_API_KEY",),
    "https://openrouter.ai": ("OPENROUTER_API_KEY",),
    "https://api.together.xyz": ("TOGETHER_API_KEY",),
    "https://api.together.ai": ("TOGETHER_API_KEY",),
    "https://api.x.ai": ("XAI_API_KEY",),
    "https://api.perplexity.ai": ("PERPLEXITY_API_KEY",),
    "https://api.cerebras.ai": ("CEREBRAS_API_KEY",),
    "https://api.cohere.com": ("CO_API_KEY",),
    "https://api.fireworks.ai": ("FIREWORKS_API_KEY",),
    "https://integrate.api.nvidia.com": ("NVIDIA_API_KEY",),
    "https://router.huggingface.co": ("HF_TOKEN",),
    "https://api-inference.huggingface.co": ("HF_TOKEN",),
    "https://ollama.com": ("OLLAMA_API_KEY",),
}
"""A provider's own host -> the variables that its own client reads: the last fallback, for no other host."""


class Secret:
    """A text that shows itself in no repr, message or traceback."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "***"


@dataclass(frozen=True, slots=True)
class Key:
    """``origin``: where it came from, for people."""

    secret: Secret
    origin: str


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    origin: str


@dataclass(frozen=True, slots=True)
class _Command:
    words: tuple[str, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class _Kept:
    profile: str
    file: Path

    @property
    def origin(self) -> str:
        return f"profile {self.profile} ({self.file.name})"


_Source = _Variable | _Command | _Kept


def resolve_key(settings: Settings, env: Mapping[str, str], store: ProfileStore) -> Key | None:
    """The key to send, or None where no source is named.

    MissingKeyError if the variable that a flag or profile names is not set; ConfigError if a command fails or
    the key cannot stand in an HTTP header. Neither shows the key or what the command printed.
    """
    source = _source(settings, env, store)
    match source:
        case None:
            return None
        case _Variable():
            text = env.get(source.name, "").strip()
            if not text:
                raise _missing(source)
        case _Command():
            text = _run(source.words)
        case _Kept():
            text = read_keys(source.file)[source.profile]
    check_key(text, source.origin)
    return Key(Secret(text), source.origin)


def describe_key(settings: Settings, env: Mapping[str, str], store: ProfileStore) -> str:
    """Where the key would come from, without running a command: one line for ``profiles show``."""
    source = _source(settings, env, store)
    match source:
        case None:
            return "none"
        case _Variable():
            state = "set" if env.get(source.name, "").strip() else "not set"
            return f"${source.name}, {state} ({source.origin})"
        case _Command():
            return f"output of {source.words[0]} ({source.origin})"
        case _Kept():
            return f"*** ({source.origin})"


def _source(settings: Settings, env: Mapping[str, str], store: ProfileStore) -> _Source | None:
    named = _named(settings, store)
    if named is not None and _layer(settings) is Layer.FLAG:
        return named
    if env.get(KEY_VARIABLE, "").strip():
        return _Variable(KEY_VARIABLE, f"env {KEY_VARIABLE}")
    if named is not None and _layer(settings) is Layer.ENV:
        return named
    if settings.profile and settings.profile in read_keys(store.keys_file) and _at_home(settings, store):
        return _Kept(settings.profile, store.keys_file)
    return named or _provider(settings, env)


def _layer(settings: Settings) -> Layer:
    """The highest layer that says something about the key."""
    return max(settings.origins[name].layer for name in ("api_key_env", "api_key_cmd"))


def _named(settings: Settings, store: ProfileStore) -> _Source | None:
    """What flags, environment or profile name; of one layer's two, the variable.

    A built-in profile's is a provider's own variable, for that provider's host only.
    """
    by_variable, by_command = settings.origins["api_key_env"], settings.origins["api_key_cmd"]
    if settings.api_key_env and by_variable.layer >= by_command.layer:
        if by_variable.layer is Layer.BUILTIN and not _at_home(settings, store):
            return None
        return _Variable(settings.api_key_env, str(by_variable))
    return _Command(settings.api_key_cmd, str(by_command)) if settings.api_key_cmd else None


def _at_home(settings: Settings, store: ProfileStore) -> bool:
    """The profile's own server is asked, not another one that a flag or a variable put in its place."""
    own = store.get(settings.profile).settings.get("base_url") if settings.profile else None
    if own is None or settings.base_url is None:
        return False
    return url_origin(settings.base_url) == url_origin(own.value)


def _provider(settings: Settings, env: Mapping[str, str]) -> _Source | None:
    variables = PROVIDER_VARIABLES.get(url_origin(settings.base_url), ()) if settings.base_url else ()
    for name in variables:
        if env.get(name, "").strip():
            return _Variable(name, f"env {name}")
    return None


def _missing(source: _Variable) -> MissingKeyError:
    return MissingKeyError(
        f"The environment variable {source.name} is not set; it should hold the API key ({source.origin}).",
        hint=f"export {source.name}=..., or --api-key-cmd CMD, e.g. --api-key-cmd 'pass show llm'.",
    )


def _run(words: tuple[str, ...]) -> str:
    """The first line that the program prints. It may ask its user: stdin and stderr are the terminal's."""
    import subprocess

    program = words[0]
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, timeout=COMMAND_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"The API key command {program} did not end within {COMMAND_TIMEOUT_S:g} seconds."
        ) from None
    except OSError as error:
        raise ConfigError(f"The API key command {program} cannot be run: {error.strerror}") from None
    if done.returncode:
        raise ConfigError(f"The API key command {program} failed with exit status {done.returncode}.")
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    if not lines:
        raise ConfigError(f"The API key command {program} printed nothing.")
    return lines[0].strip()


def check_key(text: str, origin: str) -> None:
    """ConfigError if `text` cannot be sent in an HTTP header."""
    if not text:
        raise ConfigError(f"The API key is empty ({origin}).")
    if any(character < " " or character == "\x7f" for character in text):
        raise ConfigError(f"The API key holds a line break or another control character ({origin}).")
    if any(character > "\xff" for character in text):
        raise ConfigError(f"The API key holds a character that HTTP headers cannot carry ({origin}).")


def read_keys(keys_file: Path) -> dict[str, str]:
    """Profile -> key of the private file; empty if there is none. ConfigError if it is damaged."""
    document = read_document(keys_file)
    if document.text and readable_by_others(keys_file):
        raise ConfigError(
            f"{keys_file} can be read by other users of this machine.", hint=f"chmod 600 {keys_file}"
        )
    keys = subtable(document, "keys")
    for profile, key in keys.items():
        if not isinstance(key, str):
            raise document.error(
                f"the key of {profile} is not a text in quotes", table=("keys",), key=profile
            )
    return keys


def keep_key(keys_file: Path, profile: str, key: str | None) -> None:
    """Write the key of `profile` into the private file; None takes it out."""
    keys = {name: text for name, text in read_keys(keys_file).items() if name != profile}
    if key is not None:
        check_key(key, f"profile {profile}")
        keys[profile] = key
    heading = "API keys, written by `llmstream profiles set NAME api_key`. Private: do not share."
    write_document(keys_file, {"keys": keys}, heading)
