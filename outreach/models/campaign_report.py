"""The results of a campaign: the report of all, and the export of each contact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal

import attrs

from outreach.models.base import Channel
from outreach.models.call import Call
from outreach.models.campaign import Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.prices import Cost, ProviderCost
from outreach.models.reports import ProviderFailure
from outreach.models.states import CampaignStatus, RecipientStatus

ExportFormat = Literal["csv", "jsonl", "xlsx"]


@attrs.frozen(kw_only=True)
class ResultCount:
    """The contacts with one result.

    Attributes:
        reason: Why; None if there is nothing to say.
        meaning: The same in words; None if it has no words.
        contacts: How many.
    """

    status: RecipientStatus
    reason: str | None
    meaning: str | None
    contacts: int


@attrs.frozen(kw_only=True)
class FailureCount:
    """The requests that failed, or were not finished, for one cause of a provider.

    Attributes:
        requests: How many; one contact may have several.
    """

    failure: ProviderFailure
    requests: int


@attrs.frozen(kw_only=True)
class MessageFigures:
    """The messages of an SMS campaign. Each request is counted once, retries and every step of a flow included.

    Attributes:
        requests: Requests to the carrier.
        accepted: Accepted by the carrier: the sum of the next three.
        delivered: Reported as delivered.
        undelivered: Accepted, and reported as failed or canceled later.
        unreported: Accepted, without a final report.
        refused: Refused by the carrier.
        uncertain: Whether they were accepted is not known.
        not_sent: Reached no carrier: deferred, withdrawn, or not connected.
        in_flight: On their way to the carrier now.
        segments: Segments of the accepted messages.
    """

    requests: int = 0
    accepted: int = 0
    delivered: int = 0
    undelivered: int = 0
    unreported: int = 0
    refused: int = 0
    uncertain: int = 0
    not_sent: int = 0
    in_flight: int = 0
    segments: int = 0


@attrs.frozen(kw_only=True)
class SenderFigures:
    """The messages that came from one number of a sender pool, as `MessageFigures` counts them.

    Attributes:
        opt_outs: Contacts who opted out, and whose last message before that came from it.
    """

    from_number: str
    requests: int
    accepted: int
    delivered: int
    undelivered: int
    refused: int
    opt_outs: int = 0


@attrs.frozen(kw_only=True)
class CallFigures:
    """The calls of a calling campaign, retries and second calls included.

    Attributes:
        calls: Call records.
        answered: Calls that were answered, by a person or a machine.
        open: Calls that have not ended.
        outcomes: Calls by outcome; `unknown` for ended ones without an outcome.
        milliseconds: The time between answer and end, in whole milliseconds of each call, over all ended calls.
        begun_minutes: The minutes that each of these calls has begun, which prices are for.
        provider_costs: The providers' charges, by currency; empty where they report none. `CampaignReport.cost` is
            by the workspace's own prices.
    """

    calls: int = 0
    answered: int = 0
    open: int = 0
    outcomes: Mapping[str, int] = attrs.field(factory=dict)
    milliseconds: int = 0
    begun_minutes: int | None = None
    provider_costs: Sequence[ProviderCost] = ()

    @property
    def seconds(self) -> int:
        """`milliseconds` to the nearest second, half a second up."""
        return (self.milliseconds + 500) // 1000

    @property
    def minutes(self) -> float:
        """`milliseconds` in minutes, to a tenth."""
        return round(self.milliseconds / 60_000, 1)


@attrs.frozen(kw_only=True)
class TimeBucket:
    """The counts of one stretch of time, `since` included and `until` not.

    Attributes:
        requests: Requests to the provider, by the time of their commit.
        replies: Messages from contacts.
        opt_outs: Contacts who opted out.
    """

    since: datetime
    until: datetime
    requests: int
    replies: int
    opt_outs: int


@attrs.frozen(kw_only=True)
class CampaignReport:
    """The results of a campaign, as of `at`: every figure comes from one snapshot of the ledger.

    A reply or opt-out belongs to the campaign whose request to the number was the last one before it, until 30 days
    after that campaign's end.

    Attributes:
        at: When it was made; for an erased campaign the time of the erasure, whose figures it keeps.
        erased_at: When the campaign's contacts were erased; None if they are there.
        contacts: Contacts loaded.
        contacted: Contacts to whom at least one request was sent.
        successful: SMS: accepted and not failed. Calls: answered and marked positive.
        failed: Contacts in state failed.
        still_open: Contacts that have not ended.
        results: The contacts by result, the most frequent first.
        messages: None for a calling campaign.
        calls: None for an SMS campaign.
        senders: Its messages by number; empty without a sender pool.
        failures: Failed requests by the provider's cause, the most frequent first, at most a thousand.
        replies: Messages from its contacts.
        repliers: Contacts who wrote.
        opt_outs: Contacts who opted out by a message, in a call or at their provider, and have not opted in since.
        timezone: The IANA zone of the buckets: that of the business hours, else UTC.
        over_time: The time from the first request to the last event in equal steps, at most 120; empty before the first
            request.
        cost: Of the segments of accepted messages, or the begun minutes of answered calls, by the workspace's prices;
            None without prices.
    """

    campaign_id: str
    workspace_id: str
    name: str
    channel: Channel
    status: CampaignStatus
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    at: datetime
    erased_at: datetime | None = None
    contacts: int
    contacted: int
    successful: int
    failed: int
    still_open: int
    results: Sequence[ResultCount]
    messages: MessageFigures | None
    calls: CallFigures | None
    failures: Sequence[FailureCount]
    replies: int
    repliers: int
    opt_outs: int
    timezone: str
    over_time: Sequence[TimeBucket]
    cost: Cost | None = None
    senders: Sequence[SenderFigures] = ()


@attrs.frozen(kw_only=True)
class ExportedReply:
    """A message from a contact."""

    received_at: datetime
    body: str


@attrs.frozen(kw_only=True)
class ExportedContact:
    """A contact of a campaign with its requests, calls and replies.

    Attributes:
        meaning: Its status and reason in words; None if they have no words.
        failure: The provider's failure of the last request, if it failed; else None.
        dispatches: Its requests, oldest first.
        calls: Its call records, oldest first; empty in an SMS campaign.
        transcripts: The talk in them, by their ids, as far as it is known.
        replies: Its replies, oldest first; a message belongs to the campaign that sent the last request before it.
        opted_out_at: When it opted out after a request of this campaign; None if it did not.
    """

    recipient: Recipient
    meaning: str | None
    failure: ProviderFailure | None
    dispatches: Sequence[Dispatch]
    calls: Sequence[Call]
    replies: Sequence[ExportedReply]
    opted_out_at: datetime | None
    transcripts: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def cost(self) -> tuple[Decimal, str] | None:
        """The providers' charges for its calls, and the currency; None if they report none or have several."""
        currencies = {one.cost_currency for one in self.calls if one.cost is not None}
        currency = currencies.pop() if len(currencies) == 1 else None
        if currency is None:
            return None
        return sum((one.cost for one in self.calls if one.cost is not None), Decimal()), currency

    @property
    def texts(self) -> Sequence[str]:
        """The messages that a carrier accepted, in order, each once."""
        accepted = (one.body for one in self.dispatches if one.state == "accepted" and one.body is not None)
        return tuple(dict.fromkeys(accepted))

    @property
    def segments(self) -> int:
        """The segments of all messages that a carrier accepted."""
        return sum(one.segments or 0 for one in self.dispatches if one.state == "accepted")
