"""A strict reader of JSON configuration that collects every error with its path."""

from __future__ import annotations

import re
from typing import Final

from outreach.errors import ErrorDetail, InvalidRequest

_MAX_PROBLEMS: Final = 20
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")


class JsonReader:
    """Checks values and collects what is wrong.

    Each `read_*` returns None after noting a problem and the caller continues, so that one error names all places (the
    first twenty).
    """

    def __init__(self) -> None:
        """Start without problems."""
        self._problems: list[ErrorDetail] = []

    def note(self, path: str, message: str) -> None:
        """Add a problem."""
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(ErrorDetail(path, message))

    def finish(self) -> None:
        """Raise the collected problems, if any.

        Raises:
            InvalidRequest: There were some.
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
        """Return a JSON array of at most `most` elements."""
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
        """Return an integer within bounds; a boolean or `10.0` is not one."""
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.note(path, f"must be an integer from {least} to {most}")
        return None

    def read_text(self, value: object, path: str, *, most: int) -> str | None:
        """Return a string of at most `most` characters that every database can store."""
        if not isinstance(value, str):
            self.note(path, "must be a string")
        elif len(value) > most:
            self.note(path, f"must have at most {most} characters")
        elif _UNSTORABLE.search(value):
            self.note(path, "must not contain NUL or half of a surrogate pair")
        else:
            return value
        return None
