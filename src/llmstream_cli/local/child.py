"""The child process that is the llama.cpp server: ``python -m llmstream_cli.local.child``.

The first line of standard input is a JSON object, the attributes to set on xllamacpp's ``CommonParams``. When
the model is loaded, one line goes to standard output: the base URL. llama.cpp logs to standard error. The end
of standard input ends the process: however the parent dies, the system closes its end of the pipe, so that no
server outlives the command that started it.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

LOG_WRITTEN_S = 0.5


def main() -> None:
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # The native code may print; nothing but the base URL may reach the parent's pipe.
    os.dup2(2, 1)
    settings = json.loads(sys.stdin.readline())
    threading.Thread(target=_exit_with_parent, daemon=True).start()

    from xllamacpp import CommonParams, Server

    try:
        server = Server(_configure(CommonParams(), settings))
    except RuntimeError as error:
        # llama.cpp logs from a thread that it does not wait for at exit: the reason would be lost.
        time.sleep(LOG_WRITTEN_S)
        sys.exit(str(error))
    print(server.listening_address, file=report, flush=True)
    threading.Event().wait()


def _exit_with_parent() -> None:
    # Loading holds the interpreter lock: a parent that dies meanwhile is noticed when it is done.
    sys.stdin.read()
    # Threads of native code are busy with a server that nobody wants: there is nothing to save.
    os._exit(0)


def _configure(params: Any, settings: Mapping[str, Any]) -> Any:
    """Set the attributes; a dot leads into a nested object (``model.path``), a list stands for a set."""
    for name, value in settings.items():
        *path, last = name.split(".")
        owner = params
        for step in path:
            owner = getattr(owner, step)
        setattr(owner, last, set(value) if isinstance(getattr(owner, last), set) else value)
    return params


if __name__ == "__main__":
    main()
