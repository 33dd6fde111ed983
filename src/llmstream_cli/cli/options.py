"""The flags of every command that asks a server, made from the table of settings."""

import inspect
import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from llmstream_cli.errors import UsageError
from llmstream_cli.kinds import YesNo
from llmstream_cli.settings import Flags
from llmstream_cli.spec_table import SPECS
from llmstream_cli.specs import Spec

__all__ = ["Flags", "StrictCommand", "takes_flags", "takes_profile_flags"]

_OPTION_LIKE = re.compile(r"--?[A-Za-z]\S*")


class StrictCommand(TyperCommand):
    """A command whose options do not swallow the option after them.

    ``--stop --verbose`` would make ``--verbose`` the stop string; ``--stop=--verbose`` still does.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            valued = filter(_takes_value, self.get_params(ctx))
            check_values(args, {flag for parameter in valued for flag in parameter.opts})
        return super().parse_args(ctx, args)


def check_values(args: Iterable[str], valued: set[str]) -> None:
    """UsageError if a flag in `valued` is followed by no value, or by what looks like another flag."""
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            return
        flag = _flag_awaiting_value(arg, valued)
        if flag is None:
            continue
        value = next(rest, None)
        if value is None:
            raise UsageError(f"{flag} needs a value.")
        if _OPTION_LIKE.fullmatch(value):
            joined = f"{flag}={value}" if flag.startswith("--") else f"{flag}{value}"
            raise UsageError(f"{flag} needs a value, not the option {value}.", hint=f"If meant: {joined}")


def _flag_awaiting_value(arg: str, valued: set[str]) -> str | None:
    """The flag in `arg` that takes the next argument as its value: ``--stop``, ``-n``, the n of ``-vn``."""
    if arg.startswith("--") or not arg.startswith("-"):
        return arg if arg in valued else None
    for at, letter in enumerate(arg[1:], 1):
        if f"-{letter}" in valued:
            return f"-{letter}" if at == len(arg) - 1 else None
    return None


def _takes_value(parameter: Any) -> bool:
    if parameter.param_type_name == "argument":
        return False
    return not (parameter.is_flag or parameter.count)


def takes_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command with a parameter ``flags: Flags`` all the options of the table."""
    return _with_options(command, [spec for spec in SPECS.values() if spec.flags])


def takes_profile_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `takes_flags`, with the options that a profile can hold."""
    return _with_options(command, [spec for spec in SPECS.values() if spec.flags and spec.profile])


def _with_options(command: Callable[..., Any], specs: list[Spec]) -> Callable[..., Any]:
    """`command` with a signature for Typer: its own parameters, then one for each flag."""
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "flags"]
    options = [parameter for spec in specs for parameter in _parameters(spec)]

    @wraps(command)
    def with_flags(**values: Any) -> Any:
        typed = {option.name: values.pop(option.name) for option in options}
        return command(**values, flags=_collect(specs, typed))

    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *options)]
    with_flags.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_flags


def _parameters(spec: Spec) -> list[inspect.Parameter]:
    option = typer.Option(
        *spec.flags,
        help=spec.help,
        metavar=spec.metavar,
        count=spec.counted,
        show_default=False,
        autocompletion=lambda: list(spec.kind.words()),
    )
    parameters = [_parameter(spec.name, _type(spec), option, 0 if spec.counted else None)]
    for flag, value in spec.shorthands.items():
        shorthand = typer.Option(flag, help=f"Short for {spec.flag} {value}.", show_default=False)
        parameters.append(_parameter(f"{spec.name}_{value}", bool, shorthand, False))
    return parameters


def _parameter(name: str, kind: Any, option: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def _type(spec: Spec) -> Any:
    """What Typer is to make of it. Values stay texts: one place reads flags, variables and files alike."""
    if spec.counted:
        return int
    if isinstance(spec.kind, YesNo):
        return bool | None
    return list[str] | None if spec.kind.many else str | None


def _collect(specs: list[Spec], typed: dict[str, Any]) -> Flags:
    """Only what was typed, a shorthand under the name of its setting. UsageError where the two disagree."""
    given: dict[str, Any] = {}
    for spec in specs:
        value = typed[spec.name]
        for flag, meaning in spec.shorthands.items():
            if not typed[f"{spec.name}_{meaning}"]:
                continue
            if value not in (None, meaning):
                raise UsageError(f"{flag} and {spec.flag} {value} contradict each other.")
            value = meaning
        if value is None or value == [] or (spec.counted and not value):
            continue
        given[spec.name] = tuple(value) if isinstance(value, list) else value
    return Flags(given=given)
