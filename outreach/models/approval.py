"""Approval of a campaign's start by a second person (docs/users.md#approval-of-starts)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

import attrs

ApprovalReason = Literal["contacts", "amount", "amount_unknown"]
"""Why a start needs approval:

    contacts: it has more contacts than `Workspace.approve_over_contacts`
    amount: it costs more than `Workspace.approve_over_amount`
    amount_unknown: there is such a limit, and not all of it has a price
"""


@attrs.frozen(kw_only=True)
class StartFigures:
    """The figures of a campaign that a person has approved.

    Attributes:
        contacts: All contacts of the campaign.
        contacted: Those that will be contacted.
        messages: Texts to be sent; 0 for calls.
        segments: Their segments.
        amount: The cost by the workspace's prices, in `currency`; None without prices.
        currency: ISO 4217.
        ends_at: When it would be done; None if that is not known.
    """

    contacts: int
    contacted: int
    messages: int
    segments: int
    amount: Decimal | None
    currency: str | None
    ends_at: datetime | None


@attrs.frozen(kw_only=True)
class Approval:
    """The approval of one revision of a campaign.

    Attributes:
        revision: The revision.
        approved_by: The person who has approved it, as in the audit trail.
        figures: What was approved.
    """

    revision: int
    approved_by: str
    approved_at: datetime
    figures: StartFigures


@attrs.frozen(kw_only=True)
class StartApproval:
    """Whether people can start a campaign, as far as approval goes.

    Attributes:
        revision: The campaign's present revision.
        reason: Why its start needs approval; None if it does not.
        changed_by: Who has changed it last, and so cannot approve it; None if that is not known.
        approval: The approval of what it is now; None without one.
    """

    campaign_id: str
    revision: int
    reason: ApprovalReason | None
    changed_by: str | None
    approval: Approval | None

    @property
    def is_missing(self) -> bool:
        """Whether the start waits for another person."""
        return self.reason is not None and self.approval is None


@attrs.frozen(kw_only=True)
class PricedRevision:
    """The cost of a campaign as it was at a moment.

    Attributes:
        contacts: Its contacts then.
        amount: None if not all of it has a price.
    """

    revision: int
    contacts: int
    amount: Decimal | None
