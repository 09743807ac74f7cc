"""Run the command line in a process of its own: `outreach-server`, or `python -m outreach_server`."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress


def run() -> None:
    """Run the command line, and end the process as soon as the command has ended.

    Python would delete every module and object first, which takes longer than many a command.
    """
    status = 1

    def end() -> None:
        # Where something cannot be written any more, Python ends as usual and says so.
        with suppress(OSError, ValueError):
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
            os._exit(status)

    # What is registered first is called last: after Python has waited for threads, and after what others register.
    atexit.register(end)

    from outreach_server.cli import main

    try:
        main(prog_name="outreach-server")
    except SystemExit as ended:
        if isinstance(ended.code, int):
            status = ended.code
        raise


if __name__ == "__main__":
    run()
