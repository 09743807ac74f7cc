"""The unsubscribe register."""

from __future__ import annotations

import re
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

IMPORT: Final = "import"
"""Source of an entry made by the import of a list."""

_CLAIMS: Final = re.compile(r"(import [^:]*): ")
"""How the evidence of an import's entry begins: what says that the person opted out, the import first."""

_ALSO: Final = ", also "
_MAX_CLAIMS: Final = 6
_MAX_SOURCE: Final = 20
_OTHERS: Final = "others"
_NOT_A_WORD: Final = re.compile(r"[\W_]+")

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
        it. Of these two the keyword wins, because the carrier's refusal only repeats it. The evidence of an import
        names what else says the same, so that taking the import back leaves the entry.
        """
        if other.scope == HELD:
            return _confirmed(self, other)
        if self.scope == HELD:
            # An opt-out replaces a held entry, never the other way round.
            return _confirmed(other, self)
        scope = self.scope if other.scope == self.scope else "all"
        shown = other if _STRENGTH.get(other.source, _LASTING) > _STRENGTH.get(self.source, _LASTING) else self
        return attrs.evolve(
            self,
            scope=scope,
            source=shown.source,
            evidence=_confirmed(shown, self if shown is other else other).evidence,
            created_at=self.created_at if scope == self.scope else other.created_at,
        )


def import_evidence(import_id: str, row: int, file_name: str | None) -> str:
    """Return the evidence of a number that an import adds."""
    return f"import {import_id}: {f'{file_name}, ' if file_name else ''}row {row}"


def claims_of(entry: Unsubscribe) -> tuple[str, ...]:
    """Return what says that a person opted out, by the evidence of an import: `import ID`, or a source and its date."""
    found = _CLAIMS.match(entry.evidence or "") if entry.source == IMPORT else None
    return () if found is None else tuple(found[1].split(_ALSO))


def is_of_import(entry: Unsubscribe, import_id: str) -> bool:
    """Return whether an import is among the claims of an entry."""
    return f"import {import_id}" in claims_of(entry)


def without_import(entry: Unsubscribe, import_id: str) -> Unsubscribe | None:
    """Return an entry of an import as it is without it; None if nothing else says that the person opted out."""
    left = [claim for claim in claims_of(entry) if claim != f"import {import_id}"]
    if not left:
        return None
    if not all(claim.startswith("import ") for claim in left):
        return entry
    return attrs.evolve(entry, evidence=f"{_ALSO.join(left)}: also in import {import_id}, which was taken back")


def _confirmed(entry: Unsubscribe, by: Unsubscribe) -> Unsubscribe:
    """Return an import's entry with another entry for the same number among its claims."""
    claims, others = claims_of(entry), claims_of(by)
    if others:
        claim = kind = others[0]
    else:
        kind = _NOT_A_WORD.sub(" ", by.source[:_MAX_SOURCE]).strip() if by.source != IMPORT else "another import"
        claim = f"{kind} {by.created_at:%Y-%m-%d}"
    if not claims or claims[-1] == _OTHERS or any(known == kind or known.startswith(f"{kind} ") for known in claims):
        return entry
    more = claim if len(claims) < _MAX_CLAIMS else _OTHERS
    rest = (entry.evidence or "").partition(": ")[2]
    return attrs.evolve(entry, evidence=f"{_ALSO.join((*claims, more))}: {rest}")


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
        id: Names the import in the evidence of its entries, and to `undo_import`.
        added: Numbers written, those already registered included.
        known: Those of them that were registered already, or came before in the list.
        rejected: (row, content) of each invalid row and of the workspace's own numbers.
    """

    id: str
    added: int
    known: int
    rejected: Sequence[tuple[int, str]]


@attrs.frozen(kw_only=True)
class UnsubscribeUndo:
    """The result of taking an import back.

    Attributes:
        removed: Numbers taken off the register.
        kept: Numbers of the import that stay, because something else says too that their person opted out.
    """

    removed: int
    kept: int
