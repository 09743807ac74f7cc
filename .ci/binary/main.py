"""Where the executable begins."""

from __future__ import annotations

import sys
from pathlib import Path

from outreach_server.cli import main

unpacked = Path(getattr(sys, "_MEIPASS", sys.prefix))
# The one file unpacks itself, and its helper processes use what the server has unpacked.
if unpacked.name.startswith("_MEI") and sys.argv[1:2] != ["read-body"]:
    import one_file

    one_file.begin(unpacked)

main(prog_name="outreach-server")
