"""What a text may be meant to say, and does not."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class TextWarning:
    """A part of a text that may be meant as a placeholder and is none, or whose characters are damaged.

    Attributes:
        written: The part.
        meant: What is probably meant; None if it is not known.
        message: What happens to it, and what to write.
    """

    written: str
    meant: str | None
    message: str
