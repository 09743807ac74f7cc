"""A flow as a drawing: its steps from above to below, with the contacts at each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup, escape

from outreach import FlowStep
from outreach_server.console import words

_HEIGHT: Final = 44
_GAP: Final = 22
_LETTER: Final = 6.6
"""The width of most letters, in the units of the drawing."""

_WIDTHS: Final = (("large", 720), ("small", 320))


def drawn(steps: Sequence[FlowStep], contacts: Sequence[int]) -> Markup:
    """Return a flow for wide and for narrow pages.

    Args:
        steps: Its steps.
        contacts: How many contacts are at each.
    """
    label = "; ".join(
        f"step {place}: {_words(step)}, {words.plural(count, 'contact')}"
        for place, (step, count) in enumerate(zip(steps, contacts, strict=True), 1)
    )
    return Markup("").join(_drawing(steps, contacts, label, name, width) for name, width in _WIDTHS)


def _drawing(steps: Sequence[FlowStep], contacts: Sequence[int], label: str, name: str, width: int) -> Markup:
    height = len(steps) * (_HEIGHT + _GAP) + 24
    most = max([*contacts, 1])
    parts: list[Markup] = []
    for place, (step, count) in enumerate(zip(steps, contacts, strict=True)):
        top = place * (_HEIGHT + _GAP) + 1
        share = (width - 2) * count / most
        figure = words.plural(count, "contact")
        room = int((width - 40 - len(figure) * _LETTER) / _LETTER)
        parts.append(
            Markup(  # noqa: S704 - every value is escaped or a number, with a word of ours in the figure
                f'<rect class="shut" x="1" y="{top}" width="{width - 2}" height="{_HEIGHT}" rx="8"/>'
                f'<rect class="area" x="1" y="{top}" width="{share:.1f}" height="{_HEIGHT}" rx="8"/>'
                f'<text x="14" y="{top + 27}">{escape(_cut(f"{place + 1}. {_words(step)}", room))}</text>'
                f'<text x="{width - 14}" y="{top + 27}" text-anchor="end">{figure}</text>'
                f'<path class="axis" fill="none" d="M24 {top + _HEIGHT}v{_GAP}m-4 -6l4 6l4 -6"/>'
            )
        )
    end = Markup('<text x="14" y="{}">End</text>').format(height - 8)
    opened = Markup(  # noqa: S704 - every value is escaped or a number
        f'<svg class="curve {name}" role="img" viewBox="0 0 {width} {height}" aria-label="{escape(label)}">'
    )
    return opened + Markup("").join(parts) + end + Markup("</svg>")


def _words(step: FlowStep) -> str:
    match step.kind:
        case "send":
            return f"Send: {words.visible(' '.join((step.body or '').split()))}"
        case "wait":
            return f"Wait {re.sub(' 0 (s|min|h)$', '', words.duration((step.wait_minutes or 0) * 60))}"
    return "End for those who have replied"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: max(1, length - 1)].rstrip()}…"
