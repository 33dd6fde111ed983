"""Everything that the loop and the slash commands look at and change."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from llmstream_cli.chat.conversation import Conversation
from llmstream_cli.chat.server_facts import ServerFacts
from llmstream_cli.errors import LlmstreamError
from llmstream_cli.events import Usage
from llmstream_cli.history import Shelf
from llmstream_cli.keys import resolve_key
from llmstream_cli.outcome import Outcome
from llmstream_cli.planning import make_target
from llmstream_cli.profiles import ProfileStore
from llmstream_cli.render import Output
from llmstream_cli.render.console import Style
from llmstream_cli.render.sanitize import harmless
from llmstream_cli.session import Plan
from llmstream_cli.settings import Flags, Settings, resolve

if TYPE_CHECKING:
    from llmstream_cli.transport import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What the command line lends to the chat.

    ``serve``: runs the server that a profile wants run, and gives the settings its address.
    ``read_file``: a text file, UsageError for what is none. ``curl``: a request as a command.
    ``show``: settings and their origins as lines, without secrets.
    """

    serve: Callable[[Settings, Output], AbstractContextManager[Settings]]
    read_file: Callable[[str], str]
    curl: Callable[[Plan], str]
    show: Callable[[Settings], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAnswer:
    """The answer before this prompt, for ``/why``, ``/raw`` and ``/usage``."""

    plan: Plan
    outcome: Outcome
    raw: bytes


@dataclass(slots=True)
class Spent:
    """Tokens of this chat, as far as the servers told."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unknown: int = 0

    def add(self, usage: Usage | None) -> None:
        self.answers += 1
        self.prompt_tokens += (usage.prompt_tokens or 0) if usage else 0
        self.completion_tokens += (usage.completion_tokens or 0) if usage else 0
        self.unknown += usage is None or usage.completion_tokens is None


@dataclass(slots=True, kw_only=True)
class Chat:
    """``given``: the flags as they were typed and as ``/set`` changed them; settings follow from them.

    ``attached``: files that go before the next message. ``draft``: what the next prompt begins with.
    ``counted``: how many messages of the last request and answer the server counted, and their tokens.
    """

    store: ProfileStore
    tools: Tools
    shelf: Shelf
    conversation: Conversation
    given: dict[str, str | tuple[str, ...] | bool | int]
    new_output: Callable[[], Output]
    output: Output
    attached: list[str] = field(default_factory=list)
    draft: str = ""
    leaving: bool = False
    last: LastAnswer | None = None
    counted: tuple[int, int] | None = None
    spent: Spent = field(default_factory=Spent)
    _running: ExitStack = field(default_factory=ExitStack)
    _managed: dict[str, str] = field(default_factory=dict)
    _backend: "tuple[Settings, Target, ServerFacts] | None" = None

    def settings(self) -> Settings:
        """What is in force now. LlmstreamError for a setting that makes no sense."""
        return resolve(Flags(given=self.given), os.environ, self.store)

    def change(self, given: Mapping[str, str | tuple[str, ...] | bool | int]) -> None:
        """Other flags from now on; the old ones stay if these make no sense."""
        before, self.given = self.given, dict(given)
        try:
            self.settings()
        except LlmstreamError:
            self.given = before
            raise
        self._backend = None

    def backend(self) -> "tuple[Settings, Target, ServerFacts]":
        """The settings with a server that runs, where to send to, and who that is. Kept until `change`."""
        if self._backend is None:
            settings = self._served(self.settings())
            target = make_target(settings, resolve_key(settings, os.environ, self.store))
            self._backend = settings, target, ServerFacts(target)
        return self._backend

    def _served(self, settings: Settings) -> Settings:
        """A server of our own runs from its first question to the end of the chat."""
        if settings.managed is None:
            return settings
        if settings.managed not in self._managed:
            served = self._running.enter_context(self.tools.serve(settings, self.new_output()))
            self._managed[settings.managed] = served.base_url or ""
        return replace(settings, base_url=self._managed[settings.managed])

    def facts(self) -> ServerFacts | None:
        """Who the server is, if it has been asked already."""
        return self._backend[2] if self._backend else None

    @contextmanager
    def open(self) -> Iterator["Chat"]:
        """Take the servers down and close the file afterwards."""
        try:
            with self._running:
                yield self
        finally:
            self.conversation.log.close()

    def say(self, text: str, style: Style = "plain") -> None:
        """A line for the person, on stderr."""
        self.output.stderr.line(harmless(text), style)

    def complain(self, error: LlmstreamError) -> None:
        self.say(f"✗ {error.message}", "error")
        if error.hint:
            self.say(f"  {error.hint}")
