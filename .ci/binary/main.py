"""Where the executable begins."""

from __future__ import annotations

import sys
from pathlib import Path

import later

unpacked = Path(getattr(sys, "_MEIPASS", sys.prefix))
# The one file unpacks itself, and its helper processes use what the server has unpacked.
if unpacked.name.startswith("_MEI"):
    later.install(unpacked)
    if sys.argv[1:2] != ["read-body"]:
        import one_file

        one_file.begin(unpacked)

try:
    from outreach_server.cli import main

    main(prog_name="outreach-server")
except later.NoSpaceError as error:
    sys.exit(f"Error: {error.strerror}")
