"""When campaigns change their status by themselves: at their time, and for their error budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.ledger.common import provider_of
from outreach.models.dispatch import Dispatch
from outreach.models.states import CampaignStatus, DispatchState, WorkspaceStatus
from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.intents import ACCOUNT_TROUBLE
from tests.simulation.invariants.ledger import Broken, Ledger
from tests.simulation.writes import Writes

_TROUBLE: Final = ACCOUNT_TROUBLE | {"bad_sender", "rejected"}
_OURS: Final = frozenset({"worker_lost", "interrupted"})
_D = DispatchState
_INCONCLUSIVE: Final = frozenset({_D.DISPATCHING, _D.WITHDRAWN, _D.DEFERRED, _D.NOT_SENT})


class CampaignStatusChecks:
    """Checks the statuses of campaigns.

    Args:
        ledger: What has been written.
        bounds: The bounds that hold.
    """

    def __init__(self, ledger: Ledger, bounds: Bounds) -> None:
        self._ledger = ledger
        self._bounds = bounds
        self._known: dict[str, CampaignStatus] = {}
        self._active_since: dict[str, datetime] = {}
        self._blamed: set[str] = set()
        self._ahead: set[str] = set()
        self._unjudged: set[str] = set()

    def check(self, tx: Transaction, workspace_id: str, writes: Writes, now: datetime) -> None:
        """Check the moves of one commit, and what its refusals and receipts must have led to.

        Raises:
            Broken: A campaign has moved without cause, or has not although there was one.
        """
        for campaign_id in sorted(self._ahead):
            campaign = tx.campaigns.get(workspace_id, campaign_id)
            if campaign is not None and campaign.updated_at <= now:
                self._active_since[campaign_id] = campaign.updated_at
                self._ahead.discard(campaign_id)
        for campaign_id, status, reason in writes.statuses:
            before = self._known.get(campaign_id)
            self._known[campaign_id] = status
            if before is status:
                continue
            if status is CampaignStatus.PAUSED and reason == "error_budget":
                self._check_spent(campaign_id, now)
            elif status is CampaignStatus.ACTIVE:
                self._active_since[campaign_id] = now
                if before is CampaignStatus.SCHEDULED:
                    self._check_start(tx, workspace_id, campaign_id, now)
        for dispatch in writes.dispatches.values():
            if dispatch.reason in ACCOUNT_TROUBLE and self._is_news(dispatch, now):
                self._check_account(tx, workspace_id, dispatch)

    def after_step(self, tx: Transaction, workspace_id: str, now: datetime, step: timedelta) -> None:
        """Take in that the wall clock was set: what lies ahead of now has begun when the engine says so (`check`)."""
        known = {key: tx.campaigns.get(workspace_id, key) for key in self._active_since}
        if step < timedelta():
            self._unjudged |= self._active_since.keys()
        self._ahead |= {key for key, one in known.items() if one is not None and one.updated_at > now}

    def troubles(self, campaign_id: str, *, must_count: bool) -> Sequence[bool]:
        """Return which of the last twenty requests that tell something were in trouble, newest first.

        Args:
            campaign_id: Whose requests.
            must_count: None of a campaign that has run while the clock was set back: the times of its requests do not
                tell their order.
        """
        since = self._active_since.get(campaign_id) if campaign_id not in self._ahead else None
        if must_count and campaign_id in self._unjudged:
            return ()
        return [] if since is None else _troubles(reversed(self._since(campaign_id, since)))

    def _since(self, campaign_id: str, since: datetime) -> Sequence[Dispatch]:
        known = [self._ledger.dispatches[one] for one in self._ledger.of_campaign.get(campaign_id, [])]
        return [dispatch for dispatch in known if dispatch.created_at >= since]

    def _is_news(self, dispatch: Dispatch, now: datetime) -> bool:
        """Return whether a request has got its reason just now: by its answer, or by the one receipt that says so."""
        if dispatch.state is not _D.ACCEPTED:
            return dispatch.settled_at == now
        known = dispatch.id in self._blamed
        self._blamed.add(dispatch.id)
        return not known

    def _check_spent(self, campaign_id: str, now: datetime) -> None:
        if not is_spent(self.troubles(campaign_id, must_count=False)) and not self._is_spent_by_times(campaign_id, now):
            raise Broken(f"Campaign {campaign_id} was paused; its requests were not in trouble enough.")

    def _is_spent_by_times(self, campaign_id: str, now: datetime) -> bool:
        # After the clock was set back an engine knows its requests' order by their times alone, as docs/rules.md says.
        since = self._active_since.get(campaign_id)
        if since is None or campaign_id not in self._unjudged:
            return False
        past = [dispatch for dispatch in self._since(campaign_id, since) if dispatch.created_at <= now]
        return is_spent(_troubles(sorted(past, key=lambda dispatch: dispatch.created_at, reverse=True)))

    def _check_start(self, tx: Transaction, workspace_id: str, campaign_id: str, now: datetime) -> None:
        campaign = tx.campaigns.get(workspace_id, campaign_id)
        start = campaign.scheduled_start_at if campaign is not None else None
        late = self._most_late(tx, workspace_id, campaign_id, start)
        if start is None or not start <= now <= start + late:
            raise Broken(f"Campaign {campaign_id} was started at {now}; it was scheduled for {start}.")
        workspace = tx.workspaces.get(workspace_id)
        if workspace is None or workspace.status is not WorkspaceStatus.ACTIVE:
            raise Broken(f"Campaign {campaign_id} was started; its workspace is {workspace and workspace.status}.")

    def _most_late(self, tx: Transaction, workspace_id: str, campaign_id: str, start: datetime | None) -> timedelta:
        """Return how late a campaign may start; for the run of a schedule as docs/schedules.md says."""
        run = tx.occurrences.of_run(workspace_id, campaign_id)
        schedule = tx.schedules.get(workspace_id, run.schedule_id) if run is not None and run.at == start else None
        if schedule is None:
            return self._bounds.missed_start
        return timedelta(minutes=5) if schedule.late_hours is None else timedelta(hours=schedule.late_hours)

    def _check_account(self, tx: Transaction, workspace_id: str, dispatch: Dispatch) -> None:
        for campaign_id in self._known:
            campaign = tx.campaigns.get(workspace_id, campaign_id)
            goes_on = campaign is not None and campaign.status in {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}
            if campaign is None or not goes_on or campaign.channel != dispatch.channel:
                continue
            if provider_of(tx, campaign) == dispatch.provider:
                raise Broken(f"Campaign {campaign_id} goes on after dispatch {dispatch.id} was {dispatch.reason}.")


def is_spent(troubles: Sequence[bool]) -> bool:
    """Return whether there was so much trouble that a campaign must stop (docs/rules.md#error-budget)."""
    return list(troubles[:5]) == [True] * 5 or (len(troubles) == 20 and sum(troubles) >= 10)


def _troubles(latest: Iterable[Dispatch]) -> Sequence[bool]:
    telling = (one for one in latest if one.state not in _INCONCLUSIVE and one.reason not in _OURS)
    return [_is_trouble(dispatch) for dispatch in telling][:20]


def _is_trouble(dispatch: Dispatch) -> bool:
    if dispatch.state in {DispatchState.REFUSED, DispatchState.ACCEPTED}:
        # An accepted one has a reason where its receipt reported a failure.
        return dispatch.reason in _TROUBLE
    return dispatch.state in {DispatchState.UNKNOWN, DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP}
