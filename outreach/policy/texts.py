"""Which texts can be stored everywhere (design, section 3, row "text")."""

from __future__ import annotations


def text_problem(text: str) -> str | None:
    """Return why a text cannot be stored everywhere; None when it can."""
    if "\x00" in text:
        return "must not contain NUL (U+0000)"
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return "must not contain lone surrogates"
    return None
