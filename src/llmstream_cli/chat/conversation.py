"""One conversation: what was said, what of it goes back to the server, what it fills of the context."""

from collections.abc import Sequence
from dataclasses import dataclass

from llmstream_cli.history import ConversationLog, Dialogue, Said, cut_of
from llmstream_cli.outcome import Outcome
from llmstream_cli.request import Message

CONTINUE = "Continue exactly where your last answer was cut off. Repeat nothing of it."
"""Asked where the server cannot take up an answer by itself."""
_CHARACTERS_PER_TOKEN = 4
"""A rough mean of languages written in Latin letters; only ever shown with a ``~``."""


class Conversation:
    """Every change is a record: applied here, and written to the log if there is one."""

    def __init__(self, log: ConversationLog, dialogue: Dialogue | None = None) -> None:
        self.log = log
        self._dialogue = dialogue or Dialogue()

    @property
    def dialogue(self) -> Dialogue:
        return self._dialogue

    @property
    def said(self) -> tuple[Said, ...]:
        return self._dialogue.said

    @property
    def last_answer(self) -> Said | None:
        return next((said for said in reversed(self.said) if said.role == "assistant"), None)

    @property
    def last_question(self) -> Said | None:
        return next((said for said in reversed(self.said) if said.role == "user"), None)

    def ask(self, text: str) -> None:
        self._record("user", text=text)

    def piece(self, text: str) -> None:
        """A part of the answer that streams."""
        self._dialogue.apply({"type": "piece", "text": text})
        self.log.piece(text)

    def answered(self, outcome: Outcome, before: str = "") -> None:
        """The answer is over. `before`: the text that it went on from, see `resume`."""
        choice = outcome.turn.first
        self._record(
            "answer",
            text=before + (choice.text or choice.refusal or ""),
            cut=cut_of(outcome),
            model=outcome.model,
            profile=outcome.asked.profile,
        )

    def resume(self) -> str:
        """Take up the last answer again; gives its text so far."""
        before = self.said[-1].text
        self._record("resume")
        return before

    def take_back_answer(self) -> bool:
        """Forget the answer at the end; the question before it stands. False if nothing was asked."""
        if self.said and self.said[-1].role == "assistant":
            self._record("drop", count=1)
        return bool(self.said)

    def undo(self) -> str | None:
        """Take back the last question and what was answered; gives the question."""
        question = self.last_question
        if question is None:
            return None
        after = next(n for n, said in enumerate(reversed(self.said), 1) if said.role == "user")
        self._record("drop", count=after)
        return question.text

    def clear(self) -> None:
        if self.said:
            self._record("drop", count=len(self.said))

    def forget(self, count: int) -> None:
        """Take out the oldest `count` messages."""
        self._record("forget", count=count)

    def set_system(self, text: str | None) -> None:
        """So that the conversation keeps its system prompt when it is taken up again."""
        self._record("system", text=text)

    def _record(self, kind: str, **fields: object) -> None:
        record = {"type": kind, **{name: value for name, value in fields.items() if value is not None}}
        self._dialogue.apply(record)
        self.log.write(record)


def messages_to_send(
    said: Sequence[Said], system: str | None, *, continuing: bool = False
) -> tuple[Message, ...]:
    """What the server gets. A cut answer says so, but for the last one if it is to be continued.

    Questions that got no answer are joined with the one after them: many chat templates refuse two messages
    of the same role in a row.
    """
    messages = [Message(role="system", content=system)] if system else []
    for index, one in enumerate(said):
        last = index == len(said) - 1
        text = one.text if continuing and last else _marked(one)
        if messages and messages[-1].role == one.role:
            text = f"{messages.pop().content}\n\n{text}"
        messages.append(Message(role=one.role, content=text))
    return tuple(messages)


def _marked(said: Said) -> str:
    return f"{said.text}\n\n[This answer was cut off here: {said.cut.words}.]" if said.cut else said.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUse:
    """Tokens of the conversation so far. ``estimated``: counted here, not by the server."""

    tokens: int
    estimated: bool
    limit: int | None

    @property
    def overflows(self) -> bool:
        return self.limit is not None and self.tokens >= self.limit

    def words(self) -> str:
        about = "~" if self.estimated else ""
        if self.limit is None:
            return f"{about}{self.tokens:,} tokens; the size of the model's context is not known"
        share = 100 * self.tokens // self.limit
        return f"{about}{self.tokens:,} of {self.limit:,} tokens ({share} %)"


def context_use(
    messages: Sequence[Message], counted: tuple[int, int] | None, limit: int | None
) -> ContextUse:
    """What `messages` take. `counted`: how many of them the server has counted, and their tokens."""
    known, tokens = counted or (0, 0)
    if known > len(messages):
        known, tokens = 0, 0
    rest = sum(len(message.content) for message in messages[known:])
    estimate = -(-rest // _CHARACTERS_PER_TOKEN)
    return ContextUse(tokens=tokens + estimate, estimated=bool(estimate), limit=limit)


def overflow_warning(use: ContextUse, said: Sequence[Said]) -> str:
    """What is too much, and what can go."""
    excess = use.tokens - (use.limit or 0)
    oldest, freed = 0, 0
    while freed <= excess and oldest < len(said) - 1:
        freed += -(-len(said[oldest].text) // _CHARACTERS_PER_TOKEN)
        oldest += 1
    drop = f"/drop {oldest} forgets the oldest {oldest} messages; " if oldest and freed > excess else ""
    return (
        f"This conversation takes {use.words()}: the server will refuse it or drop its beginning. "
        f"{drop}/undo takes the last question back, /new starts afresh."
    )
