"""The events of a stretch of the decision trail."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.convert.events import event_from_entry
from outreach.models.events import Event
from outreach.working_set import Transaction


def events_between(tx: Transaction, workspace_id: str | None, after: int, until: int) -> Sequence[Event | None]:
    """Return the events of a workspace, or all, numbered above `after` and up to `until`; None for other entries."""
    entries = tx.trail.between(workspace_id, after, until)
    external_ids = tx.recipients.external_ids(
        {
            (entry.workspace_id, entry.campaign_id, entry.position)
            for entry in entries
            if entry.campaign_id is not None and entry.position is not None
        }
    )
    return [
        event_from_entry(
            entry,
            None
            if entry.campaign_id is None or entry.position is None
            else external_ids.get((entry.campaign_id, entry.position)),
        )
        for entry in entries
    ]
