"""Checks that several services share."""

from __future__ import annotations

from outreach.errors import InvalidRequest


def check_name(path: str, name: str, maximum: int, *, minimum: int = 1) -> None:
    """Check a text's length in code points and its characters.

    Raises:
        InvalidRequest: It is too short or too long, or holds NUL or a lone surrogate.
    """
    problem = text_problem(name)
    if problem is None and not minimum <= len(name) <= maximum:
        problem = f"must have {minimum} to {maximum} characters, not {len(name)}"
    if problem is not None:
        raise InvalidRequest.at(path, problem)


def text_problem(text: str) -> str | None:
    """Return why a text cannot be stored everywhere; None when it can."""
    if "\x00" in text:
        return "must not contain NUL (U+0000)"
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return "must not contain lone surrogates"
    return None
