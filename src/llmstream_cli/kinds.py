"""Kinds of settings: how a value is written on a command line or in the environment, and in TOML. Pure.

A reader returns the value, or raises ValueError with a phrase that follows the name and the text: "is not a
whole number".
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from llmstream_cli.events import Json
from llmstream_cli.urls import normalise_base_url

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TRUTHS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


class Kind(ABC):
    """``many``: may be given several times, see `combine`. ``merges``: a higher layer adds to a lower one
    and does not replace it. ``private``: the text may hold a secret and is not shown in messages."""

    many: ClassVar[bool] = False
    merges: ClassVar[bool] = False
    private: ClassVar[bool] = False

    @abstractmethod
    def from_text(self, text: str) -> Any: ...

    @abstractmethod
    def from_toml(self, value: Json) -> Any: ...

    def to_toml(self, value: Any) -> Json:
        return value

    def combine(self, first: Any, then: Any) -> Any:
        """Two values of one layer, or of two layers if it ``merges``."""
        raise NotImplementedError

    def settled(self, value: Any) -> Any:
        """What is in force once all layers are combined."""
        return value

    def words(self) -> tuple[str, ...]:
        """All the values there are, where they can be listed."""
        return ()


class Text(Kind):
    """An empty text is None: it takes a lower layer's away."""

    def from_text(self, text: str) -> str | None:
        return clean_text(text) or None

    def from_toml(self, value: Json) -> str | None:
        if not isinstance(value, str):
            raise ValueError("is not a text in quotes")
        return self.from_text(value)

    def to_toml(self, value: str | None) -> str:
        return value or ""


class VariableName(Text):
    """People put the key itself here, so what stands here is never shown."""

    private = True

    def from_text(self, text: str) -> str:
        if not _VARIABLE.fullmatch(text):
            raise ValueError("is not the name of an environment variable (the name, not the key itself)")
        return text


class Url(Text):
    private = True

    def from_text(self, text: str) -> str:
        try:
            return normalise_base_url(text)
        except ValueError as error:
            raise ValueError(f"is not usable: {error}") from None


class EndpointPath(Text):
    def from_text(self, text: str) -> str:
        if not text.startswith("/"):
            raise ValueError('is not a path: it begins with "/", e.g. /v1/chat/completions')
        return text


class FilePath(Kind):
    def from_text(self, text: str) -> Path:
        return Path(text)

    def from_toml(self, value: Json) -> Path:
        if not isinstance(value, str):
            raise ValueError("is not a path in quotes")
        return Path(value)


class YesNo(Kind):
    def from_text(self, text: str) -> bool:
        try:
            return _TRUTHS[text.strip().lower()]
        except KeyError:
            raise ValueError("is neither yes nor no (1, true, on; 0, false, off)") from None

    def from_toml(self, value: Json) -> bool:
        if not isinstance(value, bool):
            raise ValueError("is neither true nor false")
        return value


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    minimum: int | None = None

    def from_text(self, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError("is not a whole number") from None
        return self.from_toml(number)

    def from_toml(self, value: Json) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("is not a whole number")
        if self.minimum is not None and value < self.minimum:
            raise ValueError(f"is less than {self.minimum}")
        return value


@dataclass(frozen=True, slots=True)
class Number(Kind):
    maximum: float = math.inf

    def from_text(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise ValueError("is not a number") from None
        return self.from_toml(number)

    def from_toml(self, value: Json) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError("is not a number")
        if not 0 <= value <= self.maximum:
            raise ValueError("is negative" if value < 0 else f"is more than {self.maximum:g}")
        return float(value)


class Seconds(Kind):
    """A time-out; 0 is "no limit", which is None inside the program."""

    _NUMBER = Number()

    def from_text(self, text: str) -> float | None:
        return self._NUMBER.from_text(text) or None

    def from_toml(self, value: Json) -> float | None:
        return self._NUMBER.from_toml(value) or None

    def to_toml(self, value: float | None) -> float:
        return value or 0.0


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """``choices`` is a function, so that a list from a registry costs nothing until it is needed."""

    choices: Callable[[], tuple[str, ...]]

    def words(self) -> tuple[str, ...]:
        return self.choices()

    def from_text(self, text: str) -> str:
        return self.from_toml(text)

    def from_toml(self, value: Json) -> str:
        if isinstance(value, str) and value in self.words():
            return value
        raise ValueError(f"is not one of {', '.join(self.words())}{suggest(str(value), self.words())}")


class TemplateSource(Text):
    """The name of a prompt template, or a table that spells one out; checked here, kept as written."""

    def from_text(self, text: str) -> str:
        from llmstream_cli.templates import get_template

        try:
            get_template(text)
        except ValueError as error:
            raise ValueError(f"is not usable: {error}") from None
        return text

    def from_toml(self, value: Json) -> Any:
        if isinstance(value, str):
            return self.from_text(value)
        if not isinstance(value, dict):
            raise ValueError("is neither the name of a template nor a table")
        from llmstream_cli.templates import Template

        try:
            Template.from_mapping(value)
        except ValueError as error:
            raise ValueError(f"is not usable: {error}") from None
        return value

    def to_toml(self, value: Any) -> Json:
        return value


def clean_text(text: str) -> str:
    """`text` without the lone surrogates that an argument in no valid UTF-8 has; JSON cannot carry them."""
    return _SURROGATE.sub("\ufffd", text)


def suggest(word: str, known: tuple[str, ...]) -> str:
    """`` (did you mean X?)``, or nothing if no known word is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1, cutoff=0.65)
    return f" (did you mean {near[0]}?)" if near else ""
