"""A campaign while it runs: the reason why it waits, and its progress minute by minute."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs


@attrs.frozen(kw_only=True)
class CampaignNow:
    """The activity of a campaign at a moment, or the reason why it waits.

    Attributes:
        at: The moment.
        rule: The rule that binds: the status of a campaign that is not active; a code of `campaigns.blockers`; a rule
            of forecasts (`BindingRule`): with `pace`, `sender_rate` and `batch_concurrency` it sends or calls; or
            `outcome`, where only requests without a final outcome are left.
        since: Since when it binds, where that is recorded.
        until: When it next stops binding, if that is known: for a part of the contacts, where each has a time of its
            own.
        contacts: How many contacts it concerns; at most 100,000 are counted.
        message: The same in one sentence, by the clocks of the campaign or of the contacts.
    """

    campaign_id: str
    at: datetime
    rule: str
    since: datetime | None
    until: datetime | None
    contacts: int
    message: str


@attrs.frozen(kw_only=True)
class ProgressPoint:
    """The requests of a campaign that were made in one step of time, and what is known of them now.

    Attributes:
        at: The beginning of the step.
        requests: Requests to the provider, by the time of their commit; the sum of the others, without `delivered` and
            `undelivered`.
        accepted: Accepted by the provider; of messages those that were delivered and undelivered, too.
        delivered: Messages reported as delivered.
        undelivered: Messages reported as failed or canceled after their acceptance.
        refused: Refused by the provider.
        uncertain: Whether they were accepted is not known.
        not_sent: Reached no provider: deferred, withdrawn, or not connected.
        in_flight: On their way to the provider now.
    """

    at: datetime
    requests: int = 0
    accepted: int = 0
    delivered: int = 0
    undelivered: int = 0
    refused: int = 0
    uncertain: int = 0
    not_sent: int = 0
    in_flight: int = 0


@attrs.frozen(kw_only=True)
class CampaignProgress:
    """The progress of a campaign, in equal steps of time.

    Attributes:
        at: When it was read.
        step_seconds: The length of a step: 60, 600, 3,600 or 86,400; the shortest that needs at most 1,440 points.
        points: The steps with requests, oldest first; the others are left out.
    """

    campaign_id: str
    at: datetime
    step_seconds: int
    points: Sequence[ProgressPoint]
