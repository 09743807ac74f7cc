"""Changes: which fields are to be left as they are, and which are to be cleared."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import attrs


class Unset(Enum):
    """The type of `UNSET`, which has no other value."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        """Return its name."""
        return "UNSET"

    def __bool__(self) -> bool:
        """Return that there is nothing."""
        return False


UNSET: Final = Unset.UNSET
"""Leave a field of a change as it is; None clears it, where it can be empty."""


def given(change: object) -> dict[str, Any]:
    """Return the fields of a change that are to be changed, by name."""
    kind: type[Any] = type(change)
    return {field.name: value for field in attrs.fields(kind) if (value := getattr(change, field.name)) is not UNSET}
