"""The place of a database, printed so that a wrong directory is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from outreach.database import shown_url

_SQLITE: Final = "sqlite:///"


@attrs.frozen(kw_only=True)
class DatabasePlace:
    """The place of a database.

    Attributes:
        path: The absolute path of its file; its URL, without user and password, if it is not a file.
        new: Whether it does not exist yet.
    """

    path: str
    new: bool


def place_of(url: str) -> DatabasePlace:
    """Return the place of a database, before it is opened."""
    if not url.startswith(_SQLITE):
        return DatabasePlace(path=shown_url(url), new=False)
    path = Path(url.removeprefix(_SQLITE)).absolute()
    return DatabasePlace(path=str(path), new=not path.exists())
