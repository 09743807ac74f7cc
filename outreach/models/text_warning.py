"""Warnings about parts of a text that are probably mistakes."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class TextWarning:
    """A part of a text that may be meant as a placeholder and is none, or whose characters are damaged.

    Attributes:
        written: The part.
        meant: The probable meaning; None if it is not known.
        message: Its effect, and what to write.
    """

    written: str
    meant: str | None
    message: str
