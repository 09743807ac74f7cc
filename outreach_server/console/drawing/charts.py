"""Small charts: bars of a share."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from markupsafe import Markup, escape

from outreach_server.console.words import Tone


@attrs.frozen(kw_only=True)
class Piece:
    """A piece of a bar: how much of the whole, and what it is."""

    value: int
    tone: Tone | str
    words: str


def progress(pieces: Sequence[Piece], *, total: int, label: str) -> Markup:
    """Return a bar whose pieces stand beside each other; the label says the same in words."""
    drawn, x = [], 0.0
    for piece in pieces:
        width = 100 * piece.value / total if total else 0.0
        if width:
            drawn.append(f'<rect class="{escape(piece.tone)}" x="{x:.2f}" width="{width:.2f}" height="4"/>')
        x += width
    return Markup(  # noqa: S704 - every value is escaped or a number
        '<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><rect class="track" width="100" height="4"/>{"".join(drawn)}</svg>'
    )
