"""The last look before requests: whether anything forbids what was committed (design, section 5, rule 4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.models.dispatch import Dispatch
from outreach.models.states import CampaignStatus, DispatchState, WorkspaceStatus
from outreach.operations import account_holds
from outreach.operations.register import UNCLEAR_REPLY, is_held, obstacle
from outreach.working_set import Transaction


def obstacles(tx: Transaction, intents: Sequence[tuple[Dispatch, int | None]], now: datetime) -> Sequence[str | None]:
    """Return why each of some committed intents must not be sent after all; None where nothing stands against it.

    Args:
        tx: The transaction.
        intents: Each with the number of stops at its commit, as far as it is known: without another one since nothing
            needs to be looked at.
        now: When.
    """
    stops = tx.stops.number()
    doubtful = [dispatch for dispatch, known in intents if known != stops]
    load_for_start(tx, doubtful)
    return [
        None if known == stops else may_start(tx, dispatch) or account_holds.obstacle(tx, dispatch, now)
        for dispatch, known in intents
    ]


def load_for_start(tx: Transaction, dispatches: Sequence[Dispatch]) -> None:
    """Read what `may_start` looks at for many dispatches, all at once."""
    tx.dispatches.load((dispatch.workspace_id, dispatch.id) for dispatch in dispatches)
    tx.register.load((dispatch.workspace_id, dispatch.to) for dispatch in dispatches)


def may_start(tx: Transaction, dispatch: Dispatch) -> str | None:
    """Return why a committed intent must not be sent after all; None when nothing stands against it.

    Read immediately before the request, so that a stop that has committed since the intent is heard.
    """
    workspace = tx.workspaces.get(dispatch.workspace_id)
    if workspace is None or workspace.status is not WorkspaceStatus.ACTIVE:
        return "workspace_unavailable"
    message = tx.messages.get(dispatch.workspace_id, dispatch.message_id) if dispatch.message_id else None
    purpose = message.purpose if message is not None else "message"
    forbidden = obstacle(tx, dispatch.workspace_id, dispatch.channel, dispatch.to, purpose)
    if forbidden is not None:
        return forbidden
    if dispatch.campaign_id is not None:
        if is_held(tx, dispatch.workspace_id, dispatch.to):
            return UNCLEAR_REPLY
        campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id)
        if campaign is None or campaign.status is not CampaignStatus.ACTIVE:
            return "campaign_stopped"
    current = tx.dispatches.get(dispatch.workspace_id, dispatch.id)
    if current is None or current.state is not DispatchState.DISPATCHING:
        return "settled_elsewhere"
    return None
