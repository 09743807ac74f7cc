"""Numbers in addresses of pages, and numbers that are typed to confirm something."""

from __future__ import annotations

import re
from typing import Final

from outreach_server.console import words
from outreach_server.console.context import Visit, not_found

_E164: Final = re.compile(r"\+[0-9]{5,15}")
_IN_PATH: Final = re.compile(r"[0-9]{5,15}")


def phone_url(visit: Visit, page: str, phone: str | None) -> str:
    """Return the address of a number's page; empty for what is no number, such as an erased person's hash."""
    return visit.url(page, phone=words.phone_path(phone)) if phone and _E164.fullmatch(phone) else ""


def phone_of(visit: Visit) -> str:
    """Return the number in the path, with its plus.

    Raises:
        HTTPException: It is no number.
    """
    found: str = visit.request.path_params["phone"]
    if not _IN_PATH.fullmatch(found):
        raise not_found()
    return f"+{found}"


def is_typed(typed: str, phone: str) -> bool:
    """Return whether a number was typed, however it is spaced."""
    return "".join(one for one in typed if one.isdigit()) == words.phone_path(phone)
