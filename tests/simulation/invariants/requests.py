"""What must hold when a request begins, and when a provider has taken it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from outreach.ledger.common import workspace_of
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.states import CampaignStatus, DispatchState
from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.intents import is_forbidden
from tests.simulation.invariants.ledger import Broken, Ledger, Subject, named, subject_of
from tests.simulation.invariants.numbers import NumberRates
from tests.simulation.invariants.outside_records import OutsideRecords, Reached
from tests.simulation.invariants.reference_rules import campaign_is_open, most_in_a_minute, person_is_awake


class RequestChecks:
    """Checks requests and what comes of them at the providers.

    Args:
        ledger: What has been written.
        records: What really happened.

    Attributes:
        retries: How often an operator had which step of a subject tried again.
        numbers: The rates of sending numbers.
    """

    def __init__(self, ledger: Ledger, records: OutsideRecords) -> None:
        self._ledger = ledger
        self._records = records
        self._starts: dict[str, list[datetime]] = {}
        self._last_starts: dict[str, datetime] = {}
        self.retries: Counter[tuple[Subject, int]] = Counter()
        self.numbers = NumberRates()

    def at_start(
        self, tx: Transaction, dispatch_id: str, not_after: datetime | None, now: datetime, really: datetime
    ) -> None:
        """Check a request that begins now: its intent, its time, every stop once more, hours and paces.

        Raises:
            Broken: It should not have begun.
        """
        dispatch = self._ledger.dispatches.get(dispatch_id)
        if dispatch is None:
            raise Broken(f"The request of {dispatch_id} begins without an intent in the ledger.")
        if dispatch_id in self._records.begun:
            raise Broken(
                f"The request of {dispatch_id} begins at {now}, and began at {self._records.begun[dispatch_id]}."
            )
        if now > dispatch.valid_until:
            raise Broken(f"The request of {dispatch_id} begins at {now}, after its valid_until {dispatch.valid_until}.")
        if now < dispatch.slot_at:
            raise Broken(f"The request of {dispatch_id} begins at {now}, before its slot {dispatch.slot_at}.")
        if dispatch.state is not DispatchState.DISPATCHING:
            raise Broken(f"The request of {dispatch_id} begins while it is {dispatch.state}.")
        workspace = workspace_of(tx, dispatch.workspace_id)
        # What is committed in the turn of the event loop in which a request begins may come after its last check.
        if workspace.status != "active" and workspace.updated_at != now:
            raise Broken(f"The request of {dispatch_id} begins while the workspace is {workspace.status}.")
        if is_forbidden(tx, self._ledger, dispatch):
            raise Broken(f"The request of {dispatch_id} begins; its number is on the register.")
        if dispatch.channel == "sms":
            key, rate = self.numbers.key(dispatch.from_number), self.numbers.rate(dispatch.from_number)
            self._check_pace(key, rate, really)
            self._check_spacing(key, rate, really)
        if dispatch.campaign_id is None:
            return
        campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id)
        if campaign is None or (campaign.status is not CampaignStatus.ACTIVE and campaign.updated_at != now):
            raise Broken(f"The request of {dispatch_id} begins while its campaign is {campaign and campaign.status}.")
        if not campaign_is_open(campaign, now):
            raise Broken(f"The request of {dispatch_id} begins at {now}, outside the hours of its campaign.")
        # A rule that comes between an intent and its request is no stop: it decides about the next intent.
        ruled = workspace.contact_hours and dispatch_id in self._ledger.under_hours
        if ruled and not person_is_awake(dispatch.to, now):
            raise Broken(f"The request of {dispatch_id} begins at {now}, outside its contact's hours.")
        if campaign.channel == "sms":
            self._check_pace(campaign.id, campaign.rate_per_minute, really)
        self._check_not_after(dispatch, campaign, not_after)

    def at_reach(self, entry: Reached) -> None:
        """Check that nobody is reached more often than was meant, at the moment that a provider takes a request.

        Raises:
            Broken: Its contact is reached once too often.
        """
        dispatch = self._ledger.dispatches.get(entry.dispatch_id)
        if dispatch is None:
            raise Broken(f"The provider took {entry.dispatch_id}, and the ledger does not know it.")
        if entry.to != dispatch.to:
            raise Broken(f"Dispatch {dispatch.id} is for another number than was asked for.")
        subject = subject_of(dispatch)
        entries = [
            other
            for one in self._ledger.dispatched(subject)
            if one.step == dispatch.step
            for other in self._records.entries(one.id)
        ]
        allowed = (
            1 + self.retries[subject, dispatch.step] + sum(self._came_to_nothing(dispatch, one) for one in entries)
        )
        if len(entries) > allowed:
            raise Broken(
                f"{named(subject)} is reached {len(entries)} times in step {dispatch.step}; {allowed} were meant."
            )

    def _came_to_nothing(self, dispatch: Dispatch, entry: Reached) -> bool:
        # What a provider denies to have taken may be sent again, until it reports on it. A single message or call is
        # not tried again otherwise, whatever came of it.
        return entry.denied or (entry.reported and dispatch.campaign_id is not None)

    def _check_not_after(self, dispatch: Dispatch, campaign: Campaign, not_after: datetime | None) -> None:
        """Check that the provider is told until when the contact may be reached, and nothing later."""
        expires = campaign.scheduled_expires_at
        # As they were when its intent was committed: the same time bounds it as found them open.
        under_hours = dispatch.id in self._ledger.under_hours
        bounded = expires is not None or under_hours or campaign.business_hours is not None
        if not_after is None:
            if expires is not None or under_hours:
                raise Broken(f"The request of {dispatch.id} does not say until when its contact may be reached.")
            return
        last = not_after - timedelta(microseconds=1)
        reported_rightly = (
            bounded
            and not_after >= dispatch.valid_until
            and (expires is None or not_after <= expires)
            and campaign_is_open(campaign, last)
            and (not under_hours or person_is_awake(dispatch.to, last))
        )
        if not reported_rightly:
            raise Broken(f"The request of {dispatch.id} says that its contact may be reached until {not_after}.")

    def _check_spacing(self, key: str, rate: int | None, now: datetime) -> None:
        """Check that a sending number, whose rate nobody changes, has kept its spacing since the request before."""
        before = self._last_starts.get(key)
        self._last_starts[key] = now
        if rate and before is not None and now - before < timedelta(seconds=60) / rate:
            raise Broken(f"A request of {key} began at {now}, and the one before at {before}.")

    def _check_pace(self, key: str, rate: int | None, now: datetime) -> None:
        starts = self._starts.setdefault(key, [])
        starts.append(now)
        if rate is not None and most_in_a_minute(starts[-rate - 1 :]) > rate:
            raise Broken(f"More than {rate} requests of {key} began in the minute before {now}.")
