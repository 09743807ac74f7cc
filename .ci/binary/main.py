"""Where the executable begins."""

from __future__ import annotations

import sys
from pathlib import Path

unpacked = Path(getattr(sys, "_MEIPASS", sys.prefix))
# The one file unpacks itself, and its helper processes use what the server has unpacked.
if unpacked.name.startswith("_MEI"):
    import later

    later.install(unpacked)
    if sys.argv[1:2] != ["read-body"]:
        import one_file

        one_file.begin(unpacked)

from outreach_server.cli import main  # noqa: E402 - what it imports may have to be unpacked first

main(prog_name="outreach-server")
