"""The embedded server of the ``local`` extra: a real llama.cpp and a real small model, in a child process.

``child``    the child's entry: runs llama.cpp until its standard input ends
``process``  starts the child, waits until it serves, takes it down
``model``    the model's file, put together from its packages once and kept in the cache folder
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CONTEXT_TOKENS = 2048


@contextmanager
def start_local_server(on_wait: Callable[[float], None]) -> Iterator[str]:
    """Run llama.cpp with the bundled model for the length of the block; gives its base URL.

    `on_wait` is called with the seconds waited so far: once as soon as the child runs (a good moment to
    import what the request will need), then about ten times a second until the server is ready.
    ConfigError if the extra is not installed, the model cannot be unpacked, or the server does not start.
    """
    from llmstream_cli.local.model import require_extra, unpacked_model
    from llmstream_cli.local.process import ServerOptions, run_server
    from llmstream_cli.local_profile import LOCAL_MODEL

    began_s = time.monotonic()

    def waiting() -> None:
        on_wait(time.monotonic() - began_s)

    require_extra()
    options = ServerOptions(model=unpacked_model(waiting), name=LOCAL_MODEL, context_tokens=CONTEXT_TOKENS)
    with run_server(options, waiting) as server:
        yield server.base_url
