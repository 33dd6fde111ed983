"""The page of an answer that is shown as live Markdown."""

from typing import TYPE_CHECKING

from llmstream_cli.render.console import StandardOutput
from llmstream_cli.render.markdown.painting import Painting
from llmstream_cli.render.sanitize import Sanitizer

if TYPE_CHECKING:
    from llmstream_cli.render.markdown.live import LiveText


def preload() -> None:
    """Import what painting needs: a tenth of a second, well spent while a server thinks."""
    import llmstream_cli.render.markdown.live  # noqa: F401


class MarkdownPage:
    """Text as Markdown on the terminal `stdout`."""

    def __init__(self, stdout: StandardOutput, painting: Painting) -> None:
        self._stdout = stdout
        self._painting = painting
        self._sanitizer = Sanitizer()
        self._live: LiveText | None = None

    @property
    def neutralised(self) -> int:
        return self._sanitizer.neutralised

    def write(self, text: str) -> None:
        if text:
            self._text().feed(self._sanitizer.feed(text))

    def end(self) -> None:
        held = self._sanitizer.end()
        if held:
            self._text().feed(held)
        if self._live is not None:
            live, self._live = self._live, None
            live.finish()

    def make_way(self) -> None:
        if self._live is not None:
            self._live.hide()

    def _text(self) -> "LiveText":
        if self._live is None:
            from llmstream_cli.render.markdown.lines import Pen
            from llmstream_cli.render.markdown.live import LiveText
            from llmstream_cli.render.markdown.painter import Painter

            painter = Painter(self._stdout, reflows=self._painting.reflows)
            self._live = LiveText(painter, Pen(color=self._painting.color))
        return self._live
