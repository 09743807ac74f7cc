"""Numbers that providers report as unreachable, and the campaigns that leave them out."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from outreach.models.base import Channel
from outreach.models.dispatch import FAILURE_CLASSES, Dispatch
from outreach.models.unreachable import UnreachableNumber
from outreach.models.workspace import Workspace
from outreach.rules.phones import is_erased
from outreach.storage.unit_of_work import Transaction


def note(tx: Transaction, dispatch: Dispatch, *, reason: str | None, error_code: str | None, now: datetime) -> None:
    """Keep the number of a failed dispatch, if a failure of this class lasts.

    It is kept whatever the workspace's setting is, so that a setting that is turned on later knows of it.
    """
    traits = FAILURE_CLASSES.get(reason or "")
    if traits is None or not traits.lasts or is_erased(dispatch.to):
        return
    tx.unreachable_numbers.put(
        UnreachableNumber(
            workspace_id=dispatch.workspace_id,
            phone=dispatch.to,
            channel=dispatch.channel,
            provider=dispatch.provider,
            error_code=error_code,
            reported_at=now,
        )
    )


def left_out(tx: Transaction, workspace: Workspace, channel: Channel, phones: Collection[str]) -> frozenset[str]:
    """Return those of some numbers (at most 1,000) that the campaigns of a workspace leave out as unreachable."""
    return tx.unreachable_numbers.among(workspace.id, channel, phones) if workspace.skip_unreachable else frozenset()
