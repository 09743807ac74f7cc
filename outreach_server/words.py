"""Words for people that the commands and the readers of lists share, and those for a missing extra of the server."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Final


def amount(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 row` or `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def visible(text: str) -> str:
    """Return a text in one line, with its control characters made visible."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _symbol(c) for c in text)


def _symbol(character: str) -> str:
    return "\N{SYMBOL FOR NEWLINE}" if character == "\n" else "\N{SYMBOL FOR ESCAPE}"


MODULES: Final = frozenset({"click", "httptools", "httpx", "offapi", "openpyxl", "rich", "starlette", "uvicorn"})
"""The modules of the extra `server` without which something of the server cannot be imported."""

CONSOLE_MODULES: Final = frozenset({"cryptography", "jinja2", "python_multipart", "segno"})
"""The modules of the extra `console`."""


@contextmanager
def server_extra(purpose: str) -> Iterator[None]:
    """Import parts of the server inside.

    Args:
        purpose: What needs them, as the subject of a sentence.

    Raises:
        ImportError: A library of the extra is not installed. The message has the command that installs it.
    """
    with _extra("server", MODULES, purpose):
        yield


@contextmanager
def console_extra(purpose: str) -> Iterator[None]:
    """Import parts of the console inside; args and errors are those of `server_extra`."""
    with _extra("console", CONSOLE_MODULES, purpose), server_extra(purpose):
        yield


@contextmanager
def _extra(name: str, modules: Set[str], purpose: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in modules:
            raise
        raise ImportError(f"{purpose} needs {error.name}: pip install 'outreach[{name}]'", name=error.name) from error
