"""How long recipients wait: no shorter than the rule that makes them wait says, and only where it does."""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs

from outreach.ledger.common import call_settings_of, settings_of
from outreach.models.campaign import Campaign, Recipient
from outreach.models.states import CallStatus, DispatchState, RecipientStatus
from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.endings import receipt_wait_is_over
from tests.simulation.invariants.intents import NOT_SPOKEN_TO
from tests.simulation.invariants.ledger import Broken, Ledger, named

_S = RecipientStatus


class DelayChecks:
    """Checks for what, and until when, a recipient begins to wait.

    Args:
        ledger: What has been written, this wait included.
        bounds: The bounds that hold.
    """

    def __init__(self, ledger: Ledger, bounds: Bounds) -> None:
        self._ledger = ledger
        self._bounds = bounds
        self._set_back = False
        self._last_set_back = timedelta()

    def after_step(self, step: timedelta) -> None:
        """Take in that the wall clock was set: back, and what is waited for may lie farther ahead than any wait."""
        if step < timedelta():
            self._set_back, self._last_set_back = True, -step

    def check(self, tx: Transaction, before: Recipient, after: Recipient, now: datetime) -> None:
        """Check a recipient that waits now for something that it did not wait for before.

        Raises:
            Broken: It would go on too early, or may not go on at all.
        """
        campaign = tx.campaigns.get(self._ledger.workspace_id, after.campaign_id)
        if campaign is None or (before.status, before.reason, before.due_at) == (
            after.status,
            after.reason,
            after.due_at,
        ):
            return
        if not self._is_long_enough(tx, campaign, before, after, now):
            raise Broken(
                f"{named(('recipient', after.campaign_id, after.position))} was {before.status} ({before.reason}, "
                f"leg {before.leg}) and is {after.status} ({after.reason}, leg {after.leg}, attempt {after.attempts}) "
                f"until {after.due_at} at {now}."
            )

    def _is_long_enough(
        self, tx: Transaction, campaign: Campaign, before: Recipient, after: Recipient, now: datetime
    ) -> bool:
        waits = after.due_at - now if after.due_at is not None else timedelta()
        if self._set_back and _is_retimed(before, after):
            return True
        if self._rang_out(campaign, before, now) and not self._has_second_call(tx, campaign, after):
            return False
        if before.reason == "double_dial" and after.status is not _S.DISPATCHING and not campaign.is_terminal:
            # Dropped: because it is late, or because something else keeps its contact from being called now.
            # It may have been decided, and not yet committed, when the clock was set back.
            latest = now + self._last_set_back
            late = before.due_at is not None and latest > before.due_at + self._bounds.second_leg_within
            if not late and not self._is_kept_from(tx, campaign, after):
                return False
        match after.status, after.reason:
            case _S.WAITING, "retry":
                settings = settings_of(tx, campaign.workspace_id)
                may = settings.retry_enabled and after.attempts < settings.retry_max_attempts
                return (
                    may
                    and not receipt_wait_is_over(before, now)
                    and waits >= timedelta(minutes=settings.retry_delay_minutes)
                )
            case _S.WAITING, str(reason) if reason.startswith("retry_"):
                calls = call_settings_of(tx, campaign.workspace_id)
                return after.attempts < calls.retry_max_attempts and waits >= timedelta(
                    minutes=calls.retry_delay_minutes
                )
            case _S.WAITING, "flow_wait":
                flow = tx.flows.get(campaign.workspace_id, campaign.flow_id or "")
                step = flow.steps[after.step - 1] if flow is not None else None
                return step is not None and waits >= timedelta(minutes=step.wait_minutes or 0)
            case _S.WAITING, "double_dial":
                return after.leg == 2 and bool(campaign.double_dial)
            case _S.IN_PROGRESS, "awaiting_receipt":
                return waits >= self._bounds.receipt_wait
            case _:
                return after.leg == 1 or after.status is not _S.WAITING

    def _rang_out(self, campaign: Campaign, before: Recipient, now: datetime) -> bool:
        """Return whether a recipient's first call of a double dial has just come to no answer, and this is news."""
        if not campaign.double_dial or before.status is not _S.IN_PROGRESS or before.leg != 1 or campaign.is_terminal:
            return False
        dispatches = list(self._ledger.dispatched(("recipient", before.campaign_id, before.position)))
        accepted = [one for one in dispatches if one.state is DispatchState.ACCEPTED]
        call = self._ledger.calls.get(accepted[-1].call_id or "") if accepted else None
        if call is None or call.status is not CallStatus.NO_ANSWER or call.outcome not in NOT_SPOKEN_TO:
            return False
        return call.ended_at is None or now - call.ended_at <= self._bounds.rang_out_within

    def _has_second_call(self, tx: Transaction, campaign: Campaign, after: Recipient) -> bool:
        return after.reason == "double_dial" or self._is_kept_from(tx, campaign, after)

    def _is_kept_from(self, tx: Transaction, campaign: Campaign, after: Recipient) -> bool:
        workspace = tx.workspaces.get(campaign.workspace_id)
        ruled = workspace is not None and (workspace.contact_hours or workspace.frequency_cap is not None)
        return ruled or bool(tx.register.stopped(campaign.workspace_id, campaign.channel, {after.phone or ""}))


def _is_retimed(before: Recipient, after: Recipient) -> bool:
    """Return whether only the time of a wait has changed, to an earlier one, as where the clock was set back."""
    if before.due_at is None or after.due_at is None or attrs.evolve(after, due_at=before.due_at) != before:
        return False
    return after.due_at < before.due_at
