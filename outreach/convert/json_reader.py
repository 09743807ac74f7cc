"""Strict reading of JSON configuration objects: every place that is wrong is collected, with its path."""

from __future__ import annotations

import re
from typing import Final

from outreach.errors import ErrorDetail, InvalidRequest

_MAX_PROBLEMS: Final = 20
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")


class JsonReader:
    """Check values and remember what was wrong.

    Each `read_*` returns None after it has noted a problem; the caller goes on, so that one answer names all
    the places (the first twenty: a hostile document must not make a huge answer).
    """

    def __init__(self) -> None:
        """Start with nothing noted."""
        self._problems: list[ErrorDetail] = []

    def note(self, path: str, message: str) -> None:
        """Remember that a place is wrong."""
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(ErrorDetail(path, message))

    def finish(self) -> None:
        """Raise what was noted, if anything.

        Raises:
            InvalidRequest: A place was wrong.
        """
        if self._problems:
            raise InvalidRequest(details=self._problems)

    def read_object(self, value: object, path: str) -> dict[str, object] | None:
        """Return a JSON object."""
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return value
        self.note(path, "must be an object")
        return None

    def read_array(self, value: object, path: str, *, most: int) -> list[object] | None:
        """Return a JSON array of at most so many elements."""
        if not isinstance(value, list):
            self.note(path, "must be an array")
        elif len(value) > most:
            self.note(path, f"must have at most {most} elements, has {len(value)}")
        else:
            return value
        return None

    def read_boolean(self, value: object, path: str) -> bool | None:
        """Return true or false."""
        if isinstance(value, bool):
            return value
        self.note(path, "must be true or false")
        return None

    def read_integer(self, value: object, path: str, *, least: int, most: int) -> int | None:
        """Return an integer within bounds; a boolean is none, and nor is `10.0`."""
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.note(path, f"must be an integer from {least} to {most}")
        return None

    def read_text(self, value: object, path: str, *, most: int) -> str | None:
        """Return a string of at most so many characters that every database can store."""
        if not isinstance(value, str):
            self.note(path, "must be a string")
        elif len(value) > most:
            self.note(path, f"must have at most {most} characters")
        elif _UNSTORABLE.search(value):
            self.note(path, "must not contain NUL or half of a surrogate pair")
        else:
            return value
        return None
