"""E-mail addresses: one form of each, by which a user is found."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ADDRESS: Final = re.compile(r"[^\s@\x00-\x1f\x7f]+@[^\s@\x00-\x1f\x7f]+")
_LONGEST: Final = 254


def fold_email(text: str) -> str | None:
    """Return an address in its one form: without blanks around it, and in lower case; None if it is no address."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text.strip()).casefold())
    return folded if _ADDRESS.fullmatch(folded) and len(folded) <= _LONGEST and folded.isprintable() else None
