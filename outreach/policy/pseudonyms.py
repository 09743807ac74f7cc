"""What stands for the number of an erased person."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final

PREFIX: Final = "#"
"""The first character, which no number has."""

_LENGTH: Final = 40


def register_hash(salt: str, phone: str) -> str:
    """Return the name of a number on the register: the same for the same number, and only with the workspace's salt.

    Whoever has the database and tries all numbers finds it out; without the salt nobody does.
    """
    return PREFIX + hmac.new(salt.encode(), phone.encode(), sha256).hexdigest()[:_LENGTH]


def is_pseudonym(phone: str | None) -> bool:
    """Return whether this stands for the number of an erased person."""
    return phone is not None and phone.startswith(PREFIX)
