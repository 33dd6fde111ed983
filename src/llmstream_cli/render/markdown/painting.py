"""Whether standard output can be painted on, and how."""

from collections.abc import Mapping
from dataclasses import dataclass

from llmstream_cli.render.console import ColorMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Painting:
    """``reflows``: a line wider than a narrowed window is broken, not cut, so it takes more rows."""

    color: bool
    reflows: bool


def painting_on(
    env: Mapping[str, str], color: ColorMode, encoding: str | None, *, windows: bool
) -> Painting | None:
    """How to paint on the terminal that `env` describes; None where only plain text is right."""
    term = env.get("TERM", "")
    # The old Windows console needs to be asked for escape sequences; Windows Terminal does not.
    understands = "WT_SESSION" in env if windows else term not in ("", "dumb")
    unicode = (encoding or "").lower().replace("-", "") == "utf8"
    if not understands or not unicode or env.get("CI"):
        return None
    colored = color == "always" or (color == "auto" and not env.get("NO_COLOR"))
    return Painting(color=colored, reflows=_reflows(term, env))


def _reflows(term: str, env: Mapping[str, str]) -> bool:
    if "TMUX" in env:
        return True
    return not ("XTERM_VERSION" in env or term == "linux" or term.startswith("screen"))
