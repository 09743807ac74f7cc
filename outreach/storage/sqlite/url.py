"""A storage from its URL."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from outreach.clock import Clock
from outreach.errors import ConfigError
from outreach.storage.sqlite.storage import SqliteStorage

_PREFIX: Final = "sqlite:///"
_FORMS: Final = "Write sqlite:///relative.db, or sqlite:////absolute/path.db with four slashes."


def for_url(
    url: str, *, clock: Clock, host: str | None = None, create: bool = True, migrate: bool = True
) -> SqliteStorage:
    """Return the storage that a URL names, not opened yet.

    What follows the third slash is the path, character by character: nothing is decoded, no option is known.

    Raises:
        ConfigError: The URL names no file that could be a database; the message says what would.
    """
    return SqliteStorage(path_of(url), clock=clock, host=host, create=create, migrate=migrate)


def path_of(url: str) -> Path:
    """Return the file that a URL names.

    Raises:
        ConfigError: It names none that could be a database; the message says what would.
    """
    if not url.startswith("sqlite:"):
        raise ConfigError(f"{url!r} is no URL of a SQLite database. {_FORMS}")
    text = url.removeprefix(_PREFIX)
    if text == url or not text:
        raise ConfigError(f"{url!r} names no file. {_FORMS}")
    if text == ":memory:":
        raise ConfigError("A SQLite database in memory cannot be shared by several connections: use memory:// instead.")
    if "?" in text or "#" in text or "\0" in text:
        raise ConfigError(f"{url!r} has more than a path, and no options are known. {_FORMS}")
    path = Path(text)
    if path.is_dir():
        raise ConfigError(f"{url!r} names a directory. Name a file in it: {url.rstrip('/')}/outreach.db")
    if not path.parent.is_dir():
        raise ConfigError(f"The directory {str(path.parent.absolute())!r} of {url!r} is not there. Create it first.")
    return path
