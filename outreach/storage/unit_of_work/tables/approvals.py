"""The approvals of campaigns' starts."""

from __future__ import annotations

import json

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.models.approval import Approval, StartFigures
from outreach.serialization.columns import json_text
from outreach.serialization.documents import from_json, to_json
from outreach.storage.unit_of_work.tables.base import Table


class Approvals(Table):
    """Approvals by campaign and revision; not cached."""

    def put(self, workspace_id: str, campaign_id: str, approval: Approval) -> None:
        """Write the approval of a revision, in the place of an earlier one."""
        number = self._rows.number(workspace_id, campaign_id)
        if number is None:
            raise LookupError("There is no such campaign.")
        self._rows.execute(
            "approvals.put",
            number=number,
            revision=approval.revision,
            approved_by=approval.approved_by,
            approved_at=format_timestamp(approval.approved_at),
            figures=json_text(to_json(approval.figures)),
        )

    def get(self, workspace_id: str, campaign_id: str, revision: int) -> Approval | None:
        """Return the approval of a revision; None without one."""
        number = self._rows.number(workspace_id, campaign_id)
        rows = self._rows.query("approvals.get", number=number, revision=revision)
        for approved_by, approved_at, figures in rows:
            return Approval(
                revision=revision,
                approved_by=approved_by,
                approved_at=parse_timestamp(approved_at),
                figures=from_json(StartFigures, json.loads(figures)),
            )
        return None
