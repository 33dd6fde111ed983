"""The program's outermost frame: ``llmstream`` and ``python -m llmstream_cli``."""

import gc
import os
import sys
from typing import NoReturn

from llmstream_cli import __version__


def main() -> None:
    """Run the command line and leave with its exit code; nothing but a bug shows a traceback."""
    # Collecting garbage among modules that live for ever is a fifth of the start-up.
    gc.set_threshold(100_000, 50, 100)
    if sys.argv[1:] in (["-V"], ["--version"]):
        # Not worth loading the command line for.
        print(f"llmstream {__version__}")
        _leave(0)
    from llmstream_cli.cli.app import run

    _leave(run(sys.argv[1:]))


def _leave(code: int) -> NoReturn:
    """Leave without tearing the interpreter down piece by piece, once everything is written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            # The reader is gone; what could not be written is lost, and saying so has no reader either.
            pass
    os._exit(code)


if __name__ == "__main__":
    main()
