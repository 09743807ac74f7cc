"""The unsubscribe register."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal

import attrs

from outreach.models.base import Channel

UnsubscribeScope = Literal["all", "sms", "call"]
RegisterScope = Literal["all", "sms", "call", "held"]

HELD: Final = "held"
"""Scope of a provisional entry: somebody wrote what may be meant as an opt-out. It keeps campaigns from the number
until somebody has decided, and stops nothing else."""

UNCLEAR: Final = "unclear"
"""Source of a provisional entry."""

KEYWORD: Final = "keyword"
"""Source of an entry that somebody made by writing STOP: what a START takes back."""

CARRIER: Final = "carrier"
"""Source of an entry that a provider's refusal made: it knows of an opt-out."""

CALL: Final = "call"
"""Source of an entry that somebody made by asking, in a call, for no more."""


_STRENGTH: Final = {CARRIER: 0, KEYWORD: 1}
"""Sources whose place another one takes: one that is greater."""

_LASTING: Final = 2
"""Of every other source: the first one stays."""


@attrs.frozen(kw_only=True)
class Unsubscribe:
    """A number that must not be contacted.

    Attributes:
        phone: E.164.
        scope: Which channels it stops; `held` for one that is not decided about.
        source: What put it there: `operator` and `import`, or one of `KEYWORD`, `CARRIER` and `CALL`.
        evidence: Free text that shows why, and when; None when there is none.
        created_at: When it was put there, or stopped more than before.
    """

    workspace_id: str
    phone: str
    scope: RegisterScope
    source: str
    evidence: str | None
    created_at: datetime

    def stops(self, channel: Channel) -> bool:
        """Whether it forbids this channel."""
        return self.scope in {"all", channel}

    def merged(self, other: Unsubscribe) -> Unsubscribe:
        """Return this entry after the number was to be put on the register once more.

        What it stops can only grow, and growing counts as put there now. The first evidence stays, so that an
        operator's entry is never weakened; but for an entry of a keyword or of a carrier: whatever else stops the
        number takes its place, so that a START does not lift that. Of these two the keyword stays, whichever comes
        first: the carrier's refusal only repeats what the person wrote to it.
        """
        if HELD in {self.scope, other.scope}:
            # An opt-out takes the place of a doubt, and no doubt that of an opt-out.
            return other if self.scope == HELD else self
        scope = self.scope if other.scope == self.scope else "all"
        shown = other if _STRENGTH.get(other.source, _LASTING) > _STRENGTH.get(self.source, _LASTING) else self
        return attrs.evolve(
            self,
            scope=scope,
            source=shown.source,
            evidence=shown.evidence,
            created_at=self.created_at if scope == self.scope else other.created_at,
        )


@attrs.frozen(kw_only=True)
class RegisterImport:
    """What an import into the register did.

    Attributes:
        added: Numbers written, those that were there already included.
        rejected: (row, what it said) of each row that is no phone number; rows count from 1.
    """

    added: int
    rejected: Sequence[tuple[int, str]]
