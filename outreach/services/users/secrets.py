"""Tokens of links and sessions, and recovery codes: random, and stored as digests alone."""

from __future__ import annotations

import hashlib
import secrets
from base64 import b32encode
from typing import Final

_TOKEN_BYTES: Final = 32
_CODE_BYTES: Final = 10
_CODE_GROUP: Final = 4
_LONGEST: Final = 128

CODES: Final = 10
"""Recovery codes that are made together."""


def new_token() -> str:
    """Return a token of 32 random bytes, in URL-safe base 64."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def digest_of(token: object) -> str:
    """Return the digest of a token; that of what cannot be one belongs to nobody."""
    text = token if isinstance(token, str) and len(token) <= _LONGEST else ""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def new_code() -> str:
    """Return a recovery code of 80 random bits, such as `ABCD-EFGH-IJKL-MNOP`."""
    text = b32encode(secrets.token_bytes(_CODE_BYTES)).decode()
    return "-".join(text[start : start + _CODE_GROUP] for start in range(0, len(text), _CODE_GROUP))


def code_digest(user_id: str, code: str) -> str:
    """Return the digest of a user's recovery code; case, blanks and dashes do not count."""
    typed = "".join(letter for letter in code.upper() if letter.isalnum())
    return hashlib.sha256(f"{user_id}:{typed}".encode("utf-8", "backslashreplace")).hexdigest()
