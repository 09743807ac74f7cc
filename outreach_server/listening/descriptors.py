"""How many connections this process can have, since files and the database need descriptors too."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

MAX_CONNECTIONS: Final = 1000
"""More than one process with one database can serve; others wait in the kernel's queue."""

KEPT_BACK: Final = 500
"""Descriptors for the engine: 100 connections to each of four providers, the database, helpers, the log."""


def connections_for(descriptors: int) -> int:
    """Return how many connections fit into a number of descriptors: half of them if they are few."""
    return min(MAX_CONNECTIONS, descriptors - min(KEPT_BACK, descriptors // 2))


def max_connections() -> int:
    """Raise this process's descriptor limit as far as allowed; return how many connections fit."""
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return MAX_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + KEPT_BACK
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else connections_for(soft)
