"""The contacts of a campaign by result, without a look at each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from outreach.models.campaign import Campaign
from outreach.models.states import OPEN_RECIPIENT_STATUSES, RecipientStatus
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables.reports import ResultRow


def results_of(tx: Transaction, campaign: Campaign) -> Sequence[ResultRow]:
    """Return the contacts of a campaign by (status, reason), no reason first.

    The counters equal a recount (docs/delivery-contract.md#rule-9). So those that wait for their first turn, and those
    that were contacted and completed without a reason, are what the counters have beyond the others, and are not read.
    """
    rows = tx.reports.results(campaign.workspace_id, campaign.id)
    counters, contacts, contacted = campaign.counters, Counter[_Result](), Counter[_Result]()
    still_open = 0
    for row in rows:
        contacts[row.status, row.reason] += row.contacts
        contacted[row.status, row.reason] += row.contacted
        still_open += row.contacts if row.status in OPEN_RECIPIENT_STATUSES else 0
    contacts[RecipientStatus.PENDING, None] += counters.open - still_open
    plain = counters.total - counters.open - (sum(row.contacts for row in rows) - still_open)
    contacts[RecipientStatus.COMPLETED, None] += plain
    contacted[RecipientStatus.COMPLETED, None] += plain
    found = [
        ResultRow(status, reason, count, contacted[status, reason])
        for (status, reason), count in contacts.items()
        if count
    ]
    return sorted(found, key=lambda one: (one.status, one.reason or ""))


_Result = tuple[RecipientStatus, str | None]
