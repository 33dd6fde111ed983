"""All that is known of one answer when it is diagnosed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from llmstream_cli.diagnose.endpoints import stop_field
from llmstream_cli.events import EndStatus, Finish, FinishReason, Json
from llmstream_cli.fields import as_int, as_list, as_object, as_text, objects
from llmstream_cli.identity import ServerIdentity
from llmstream_cli.outcome import Outcome
from llmstream_cli.turn import Turn


class Trial(StrEnum):
    """What the black-box probe found out about an endpoint and stop strings."""

    HONOURED = "honoured"
    KEPT = "kept"
    IGNORED = "ignored"
    UNSTABLE = "unstable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question to the server, asked for the diagnosis; ``said``: the problem, or what was found."""

    request: str
    ok: bool
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """How the server tokenizes a text. ``special``: it is a token that has a meaning, not a word."""

    ids: tuple[int, ...]
    special: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What the server said when asked; None or empty = not asked, or no answer.

    ``prompt``: as the server's chat template writes it. ``detokenized``: all that was generated,
    control tokens and all. ``model_stops``: those of Ollama's Modelfile.
    ``trials``: the black-box probe, by the field that the stop string was sent in.
    """

    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    prompt: str | None = None
    eos: str | None = None
    detokenized: str | None = None
    model_stops: tuple[str, ...] = ()
    model_format: str | None = None
    max_stops: int | None = None
    context_tokens: int | None = None
    trials: Mapping[str, Trial] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """``body`` as sent to ``path``; ``stops`` that the user wants to act; nothing was cut on the client."""

    outcome: Outcome
    path: str
    body: Mapping[str, Json]
    stops: tuple[str, ...]
    server: ServerIdentity
    shape_field: str | None
    prompt_text: str = ""
    probed: Probed = field(default_factory=Probed)

    @property
    def turn(self) -> Turn:
        return self.outcome.turn

    @property
    def text(self) -> str:
        return self.turn.first.text

    @property
    def reasoning(self) -> str:
        return self.turn.first.reasoning or ""

    @property
    def generated(self) -> str:
        """Reasoning and text: servers look for stop strings in both."""
        return self.reasoning + self.text

    @property
    def finish(self) -> Finish | None:
        return self.turn.first.finish

    @property
    def reason(self) -> FinishReason | None:
        return self.finish.reason if self.finish else None

    @property
    def matched(self) -> str | None:
        """The stop string that the server names; llama.cpp names it even where a tool call ended."""
        if self.finish is not None and self.finish.stop_sequence is not None:
            return self.finish.stop_sequence
        return as_text(self.turn.detail.get("stopping_word"))

    @property
    def complete(self) -> bool:
        return self.outcome.status is EndStatus.COMPLETE

    @property
    def field(self) -> str | None:
        """Where this endpoint reads the stop list; None where it reads none."""
        return stop_field(self.outcome.asked.shape, self.server.kind, self.path, self.shape_field)

    @property
    def effective_stops(self) -> tuple[str, ...] | None:
        """The stop strings in the settings that the server says it used; None where it does not say."""
        settings = as_object(self.turn.detail.get("generation_settings"))
        if "stop" not in settings:
            return None
        return tuple(stop for stop in as_list(settings["stop"]) if isinstance(stop, str))

    @property
    def generated_ids(self) -> tuple[int, ...]:
        """The ids of the generated tokens, where log probabilities tell them (llama.cpp)."""
        entries: list[Json] = []
        for item in self.turn.first.logprobs:
            entries += as_list(item) or as_list(as_object(item).get("content"))
        return tuple(number for entry in objects(entries) if (number := as_int(entry.get("id"))) is not None)

    @property
    def hidden_tokens(self) -> int:
        """How many tokens were generated that no text and no log probability shows; 0 if that is not known.

        The end of the sequence is one that never shows. Parts of a character do not show either, so only
        plain ASCII tells.
        """
        used, shown = self.completion_tokens, len(self.generated_ids)
        if used is None or not shown or not self.text.isascii():
            return 0
        return max(0, used - shown - (self.reason is FinishReason.EOS))

    @property
    def completion_tokens(self) -> int | None:
        return self.turn.usage.completion_tokens if self.turn.usage else None

    def echoed(self, stop: str) -> bool:
        """The server's own settings list `stop`."""
        return stop in (self.effective_stops or ())

    def went_past(self, stop: str) -> bool:
        """Text came after `stop`; an empty one is passed by any text."""
        return bool(stop and stop in self.text.removesuffix(stop))
