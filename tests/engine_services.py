"""The services of an engine, for tests that look at all of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any


def services_of(engine: object) -> Iterator[tuple[str, Any]]:
    """Make all services of an engine; yield them by the names that its callers use."""
    for kind in type(engine).__mro__:
        for name, member in vars(kind).items():
            if isinstance(member, cached_property) and not name.startswith("_"):
                yield name, getattr(engine, name)
