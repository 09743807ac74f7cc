"""The error of a list that cannot be read."""

from __future__ import annotations

from outreach import InvalidRequest


class UnreadableList(InvalidRequest):
    """A file is no list of contacts, or nothing says which of its columns is the phone number."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
