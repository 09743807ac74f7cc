"""Words for people that commands, console and readers of lists share, and those for a missing extra of the server."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Final


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, such as `1 row` or `2,000 rows`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def shortened(text: str, longest: int) -> str:
    """Return a text, cut to a length with an ellipsis at its end."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def duration(seconds: float) -> str:
    """Return a number of seconds in words, in its two largest units."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


CONTACTED_TWICE: Final = "Contacts of the time since the copy was made may be contacted twice."
"""The risk of resuming a campaign of a restored or moved database."""

SYMBOLS: Final = {
    **{code: 0x2400 + code for code in range(32)},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), 0x061C, 0x200B, 0x200E, 0x200F), 0xFFFD),
    **dict.fromkeys((*range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF), 0xFFFD),
}
"""The symbols that are shown in place of control and direction characters, such as `␊` for a line break."""


def visible(text: str) -> str:
    """Return the text of others in one line, with its control and direction characters as symbols."""
    return text.translate(SYMBOLS).encode("utf-8", "replace").decode()


MODULES: Final = frozenset({"click", "httptools", "httpx", "offapi", "openpyxl", "rich", "starlette", "uvicorn"})
"""The modules of the extra `server` without which something of the server cannot be imported."""

CONSOLE_MODULES: Final = frozenset({"cryptography", "jinja2", "python_multipart", "segno"})
"""The modules of the extra `console`."""


@contextmanager
def server_extra(purpose: str) -> Iterator[None]:
    """Import parts of the server inside.

    Args:
        purpose: The part that needs them, as the subject of a sentence.

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
