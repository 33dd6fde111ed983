"""What a setting is: its description, a value of it, and where the value came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from llmstream_cli.kinds import Kind


class Layer(IntEnum):
    """Where a value may come from; a higher layer wins."""

    DEFAULT = 0
    CONFIG = 1
    BUILTIN = 2
    PROFILE = 3
    ENV = 4
    FLAG = 5


@dataclass(frozen=True, slots=True)
class Origin:
    """For people, e.g. ``flag --model``, ``env LLMSTREAM_MODEL``, ``profile work (config.toml)``."""

    layer: Layer
    text: str

    def __str__(self) -> str:
        return self.text

    def below(self, higher: "Origin") -> "Origin":
        """Of a value merged from this layer and a higher one."""
        return Origin(higher.layer, self.text if self == higher else f"{self.text} + {higher.text}")


DEFAULT = Origin(Layer.DEFAULT, "default")


@dataclass(frozen=True, slots=True)
class Setting:
    value: Any
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One setting. ``flags``: its spelling on the command line, none = only in profiles.

    ``shorthands``: flags that stand for one value. ``profile``: may stand in profiles and at the top of the
    configuration. ``env``: has a ``LLMSTREAM_*`` variable. ``counted``: a flag whose value is how often it
    stands there. ``into``: the setting that this one is another spelling of.
    """

    name: str
    kind: Kind
    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    default: Any = None
    shorthands: Mapping[str, str] = field(default_factory=dict)
    profile: bool = True
    env: bool = True
    counted: bool = False
    into: str | None = None

    @property
    def flag(self) -> str:
        """The long name, for messages."""
        return next(flag for flag in self.flags if flag.startswith("--")).partition("/")[0]

    @property
    def variable(self) -> str | None:
        """The environment variable: LLMSTREAM_ and the option's name in capitals."""
        if not (self.env and self.flags):
            return None
        return "LLMSTREAM_" + self.flag.removeprefix("--").replace("-", "_").upper()
