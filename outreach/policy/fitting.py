"""Whether what a contact would be sent can be sent at all: that it is not empty and within the cap of segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import attrs

from outreach.policy.rendering import compose, render
from outreach.policy.segments import count_segments

Misfit = Literal["over_segment_cap", "empty_message"]

_FEWEST_UNITS: Final = 70
"""What one segment holds in the encoding that holds least."""


@attrs.frozen(kw_only=True)
class Texts:
    """What a campaign sends, and what it may take.

    Attributes:
        templates: Its messages, in their order.
        footer: What stands under each; None for nothing.
        most_segments: The cap of the settings.
    """

    templates: Sequence[str]
    footer: str | None
    most_segments: int

    def misfit(self, values: Mapping[str, str]) -> Misfit | None:
        """Return why a contact with these values will fail, at the first message that does not fit; None if all do."""
        for template in self.templates:
            text = compose(template, values, self.footer)
            if not text:
                return "empty_message"
            if is_over(text, self.most_segments):
                return "over_segment_cap"
        return None

    def suits_nobody(self) -> bool:
        """Return whether a message is over the cap whatever stands in its placeholders: values make it longer only."""
        return any(
            is_over(f"{bare}\n{self.footer}" if self.footer else bare, self.most_segments)
            for bare in (render(template.replace("|", " "), {}) for template in self.templates)
            if bare.strip()
        )


def is_over(text: str, most_segments: int) -> bool:
    """Return whether a text takes more segments than it may."""
    if 2 * len(text) <= _FEWEST_UNITS:
        return False
    return count_segments(text).segments > most_segments
