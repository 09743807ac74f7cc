"""What the server needs beyond the engine: the extra `server`, and the words for a part of it that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MODULES: Final = frozenset({"click", "httptools", "httpx", "offapi", "openpyxl", "rich", "starlette", "uvicorn"})
"""The modules of the extra without which something of the server cannot be imported."""


@contextmanager
def server_extra(purpose: str) -> Iterator[None]:
    """Import parts of the server inside.

    Args:
        purpose: What needs them, as the subject of a sentence.

    Raises:
        ImportError: A library of the extra is not installed. The message has the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in MODULES:
            raise
        raise ImportError(f"{purpose} needs {error.name}: pip install 'outreach[server]'", name=error.name) from error
