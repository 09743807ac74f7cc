"""Whether the start of a campaign needs approval by a second person (docs/users.md#approval-of-starts)."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from outreach.models.approval import ApprovalReason
from outreach.models.workspace import Workspace

_PEOPLE: Final = frozenset({"user", "host"})
"""The kinds of actors that are people who are signed in to a console."""


def is_person(actor: str) -> bool:
    """Return whether an actor is a person at a console; programs and commands are not."""
    kind, colon, _ = actor.partition(":")
    return bool(colon) and kind in _PEOPLE


def approval_reason(workspace: Workspace, *, contacts: int, amount: Decimal | None) -> ApprovalReason | None:
    """Return why the start of a campaign with so many contacts needs approval; None if it does not.

    Args:
        workspace: The workspace with its limits; a limit of 0 is for every start.
        contacts: All contacts of the campaign.
        amount: What it costs; None if that is not known.
    """
    most = workspace.approve_over_contacts
    if most is not None and (most == 0 or contacts > most):
        return "contacts"
    limit = workspace.approve_over_amount
    if limit is None:
        return None
    if amount is None:
        return "amount_unknown"
    return "amount" if limit == 0 or amount > limit else None
