"""Where the executable begins."""

from __future__ import annotations

import os
import sys

from outreach_server.cli import main

# The file that a user knows, and not the place that it was unpacked to.
sys.executable = os.environ.pop("OUTREACH_ONE_FILE", sys.executable)

main(prog_name="outreach-server")
