"""Where a database is, in words: whoever stands in the wrong directory must see it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

_SQLITE: Final = "sqlite:///"


@attrs.frozen(kw_only=True)
class DatabasePlace:
    """Where a database is.

    Attributes:
        path: The absolute path of its file; its URL where it is none.
        new: Whether there is nothing yet.
    """

    path: str
    new: bool


def place_of(url: str) -> DatabasePlace:
    """Return where a database is, before it is opened."""
    if not url.startswith(_SQLITE):
        return DatabasePlace(path=url, new=False)
    path = Path(url.removeprefix(_SQLITE)).absolute()
    return DatabasePlace(path=str(path), new=not path.exists())
