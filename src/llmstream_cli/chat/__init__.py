"""The interactive chat.

``conversation``  what was said, and what of it is sent back; pure but for the log that it writes
``prompt``        the line editor, and a plain reader where there is none
``asking``        one answer: plan, stream, save
``state``         everything that the slash commands look at and change
``commands``      the table of slash commands; ``talking``, ``adjusting`` and ``telling`` do what they say
``loop``          read, ask, read again
"""

from llmstream_cli.chat.loop import chat_once, converse
from llmstream_cli.chat.state import Chat, Tools

__all__ = ["Chat", "Tools", "chat_once", "converse"]
