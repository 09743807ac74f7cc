"""Which passwords are refused: short ones, the e-mail address, and those that everybody tries first."""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib import resources
from typing import Final

from outreach.models.user import MAX_PASSWORD, MIN_PASSWORD

_FILE: Final = "common_passwords.txt"


def password_problem(password: str, email: str) -> str | None:
    """Return what is wrong with a new password, without quoting it; None if it may be used.

    Args:
        password: The password.
        email: The user's, folded.
    """
    length = len(unicodedata.normalize("NFC", password))
    if not MIN_PASSWORD <= length <= MAX_PASSWORD:
        return f"must have {MIN_PASSWORD} to {MAX_PASSWORD} characters, has {length}"
    if any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in password):
        return "must not contain control characters"
    folded = password.casefold().strip()
    if folded in {email, email.partition("@")[0]}:
        return "must not be the e-mail address"
    if len(set(folded)) < 4 or _core(folded) in _common():
        return "is one of those that are tried first: choose another one"
    return None


def _core(folded: str) -> str:
    """Return a password without blanks, and without digits and signs at its end, which are no obstacle."""
    return "".join(folded.split()).rstrip("0123456789!?.*#$%&@_-+") or folded


@cache
def _common() -> frozenset[str]:
    text = resources.files(__package__).joinpath(_FILE).read_text("utf-8")
    lines = (line.strip() for line in text.splitlines())
    return frozenset(_core(line) for line in lines if line and not line.startswith("#"))
