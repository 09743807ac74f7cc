"""The services of an engine, for tests that look at all of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from outreach.engine_services import EngineServices

SERVICES = [
    name for name, one in vars(EngineServices).items() if isinstance(one, cached_property) and not name.startswith("_")
]
"""Their names; those of the synchronous engine are the same."""


def services_of(engine: object) -> Iterator[tuple[str, Any]]:
    """Make all services of an engine; yield them by the names that its callers use."""
    for name in SERVICES:
        yield name, getattr(engine, name)
