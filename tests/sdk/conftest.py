"""Comparisons with the providers' own libraries: collected where these are installed (`make contract`), else not."""

from __future__ import annotations

import importlib.util
from typing import Final

LIBRARIES: Final = {
    "test_elevenlabs.py": ("elevenlabs",),
    "test_retell.py": ("retell",),
    "test_telnyx.py": ("telnyx", "nacl"),
    "test_twilio.py": ("twilio",),
    "test_vapi.py": ("vapi",),
    "test_vonage.py": ("vonage", "vonage_jwt"),
}
"""What the tests of each file compare with."""

collect_ignore = [
    name for name, libraries in LIBRARIES.items() if not all(importlib.util.find_spec(library) for library in libraries)
]
