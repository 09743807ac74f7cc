"""The archives of a database that an upgrade has left behind, or that are not where they were."""

from __future__ import annotations

from collections.abc import Sequence

from outreach import ConfigError
from outreach.errors import StorageError
from outreach.integrations.archives import ListedArchive, list_archives


def unreadable_archives(url: str) -> Sequence[ListedArchive]:
    """Return the archives of a database that cannot be read."""
    try:
        return [one for one in list_archives(url) if one.problem is not None]
    except (ConfigError, StorageError):
        # PostgreSQL has none, nor has an archive.
        return []
