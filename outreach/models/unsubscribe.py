"""The unsubscribe register."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal

import attrs

from outreach.models.base import Channel, sized

UnsubscribeScope = Literal["all", "sms", "call"]
RegisterScope = Literal["all", "sms", "call", "held"]

HELD: Final = "held"
"""Scope of a held number, whose message may have been an opt-out: stops campaigns until an operator decides."""

UNCLEAR: Final = "unclear"
"""Source of a held number's entry."""

KEYWORD: Final = "keyword"
"""Source of an entry made by the person's STOP, which START lifts."""

CARRIER: Final = "carrier"
"""Source of an entry made by a provider's refusal because of an opt-out."""

CALL: Final = "call"
"""Source of an entry made by a request in a call for no more calls."""


_STRENGTH: Final = {CARRIER: 0, KEYWORD: 1}
"""Sources that others replace: those with a greater rank."""

_LASTING: Final = 2
"""Rank of every other source: the first one stays."""


@attrs.frozen(kw_only=True)
class Unsubscribe:
    """A number that must not be contacted.

    Attributes:
        phone: E.164; for an erased person `#` and a hash.
        scope: The channels that it stops; `held` for one to be decided.
        source: `operator`, `import`, `KEYWORD`, `CARRIER` or `CALL`.
        evidence: Free text on why and when; None if none.
        created_at: When it was created, or extended to more channels.
    """

    workspace_id: str
    phone: str
    scope: RegisterScope
    source: str
    evidence: str | None
    created_at: datetime

    def stops(self, channel: Channel) -> bool:
        """Return whether it stops a channel."""
        return self.scope in {"all", channel}

    def merged(self, other: Unsubscribe) -> Unsubscribe:
        """Return the entry for a number that is registered again.

        The scope only grows, and growing renews `created_at`. The first source and evidence stay, so that an operator's
        entry is never weakened; but any other source replaces one of a keyword or carrier, so that START does not lift
        it. Of these two the keyword wins, because the carrier's refusal only repeats it.
        """
        if HELD in {self.scope, other.scope}:
            # An opt-out replaces a held entry, never the other way round.
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
class NewUnsubscribes:
    """Numbers to unsubscribe.

    Attributes:
        phone_numbers: In any notation.
        scope: The channels that are stopped.
        evidence: Free text on why and when; None if none.
    """

    phone_numbers: Sequence[str]
    scope: UnsubscribeScope = "all"
    evidence: str | None = sized(0, 1000, default=None)


@attrs.frozen(kw_only=True)
class RegisterSalt:
    """What the hashes of a workspace's register are made with."""

    salt: str


@attrs.frozen(kw_only=True)
class UnsubscribeImport:
    """The result of an import into the register.

    Attributes:
        added: Numbers written, those already registered included.
        rejected: (row, content) of each invalid row; rows count from 1.
    """

    added: int
    rejected: Sequence[tuple[int, str]]
