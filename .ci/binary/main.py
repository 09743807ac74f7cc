"""Where the executable begins."""

from __future__ import annotations

import os
import sys

from outreach_server.__main__ import run

# The file that a user knows, and not the place that it was unpacked to.
sys.executable = os.environ.pop("OUTREACH_ONE_FILE", sys.executable)

run()
