"""Parts that pages of several kinds show."""

from __future__ import annotations

import attrs
from markupsafe import Markup


@attrs.frozen(kw_only=True)
class Tab:
    """A page to choose beside the present one.

    Attributes:
        count: How much is there, in words; empty to say nothing of it.
    """

    word: str
    url: str
    current: bool
    count: str = ""


@attrs.frozen(kw_only=True)
class ShareView:
    """A part of a whole.

    Attributes:
        why: More about it; empty if there is nothing to say.
        bar: The part as a drawing.
    """

    name: str
    value: int
    share: str
    bar: Markup
    why: str = ""
