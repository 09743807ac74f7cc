"""Why a list of what was sent could not be read to its end."""

from __future__ import annotations

from outreach.protocols.sent_list import SentListFailed


def unreadable() -> SentListFailed:
    """Return the error of a page that did not come, or cannot be read."""
    return SentListFailed("a page of its list did not come, or is unreadable")


def smaller(size: int) -> int:
    """Return another size of the page that did not come: it may have been larger than an answer may be.

    Raises:
        SentListFailed: Its size was one.
    """
    if size == 1:
        raise unreadable()
    return max(size // 8, 1)


def too_long(pages: int) -> SentListFailed:
    """Return the error of a list with more pages than are read."""
    return SentListFailed(f"its list has more than {pages} pages")
