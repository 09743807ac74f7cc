"""What a side is told, and how it tells."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any


def told() -> dict[str, Any]:
    """Return the arguments of this process."""
    arguments: dict[str, Any] = json.loads(sys.argv[1])
    return arguments


def tell(document: Mapping[str, Any]) -> None:
    """Print the document, whole, at once."""
    print(json.dumps(document), flush=True)
