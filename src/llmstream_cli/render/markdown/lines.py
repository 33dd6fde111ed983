"""Lines of styled text: broken at a width, prefixed, and written with escape sequences."""

from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from rich.text import Text

_CONSOLE = Console(file=StringIO(), force_terminal=True, color_system="standard", legacy_windows=False)
"""What Rich wants for its computations; nothing is printed on it."""


def wrap(text: Text, width: int) -> list[Text]:
    """`text` broken between words into lines of at most `width` cells; longer words are cut."""
    lines = list(text.wrap(_CONSOLE, max(width, 2), overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines or [Text()]


def prefixed(lines: Iterable[Text], first: Text, rest: Text) -> list[Text]:
    """`lines` after `first`, then after `rest`; no trailing blanks."""
    found: list[Text] = []
    for line in lines:
        joined = Text.assemble(rest if found else first, line)
        if not line.plain:
            joined.rstrip()
        found.append(joined)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """Writes text with escape sequences: styles always, colours only where they are wanted."""

    color: bool

    def write(self, text: Text) -> str:
        return "".join(
            self._styled(segment.text, segment.style) if segment.style else segment.text
            for segment in text.render(_CONSOLE)
        )

    def _styled(self, text: str, style: Style) -> str:
        link = style.link
        # Rich gives each link a random id.
        style = style.update_link(None) if link else style
        shown = (style if self.color else style.without_color).render(
            text, color_system=ColorSystem.STANDARD, legacy_windows=False
        )
        return f"\x1b]8;;{link}\x1b\\{shown}\x1b]8;;\x1b\\" if link else shown
