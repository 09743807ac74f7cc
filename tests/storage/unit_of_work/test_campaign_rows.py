"""Campaigns made from rows again and again."""

from __future__ import annotations

from typing import Any

import attrs

from outreach.models.campaign import Campaign, Counters
from outreach.models.settings import BusinessHours, TimeWindow
from outreach.storage.unit_of_work.kinds import CAMPAIGNS, NO_CAMPAIGN
from outreach.testing.builders import make_campaign


def _again(campaign: Campaign) -> Campaign:
    row: tuple[Any, ...] = tuple(CAMPAIGNS.row(CAMPAIGNS.key_of(campaign), campaign))
    return CAMPAIGNS.model(row, NO_CAMPAIGN)


def test_a_campaign_has_the_counters_and_the_fields_of_its_row() -> None:
    """Whatever was made of an earlier row of it."""
    campaign = make_campaign(variable_names=("city",))
    counted = attrs.evolve(campaign, counters=Counters(total=3, open=2, pending=1))
    renamed = attrs.evolve(counted, name="Another name", revision=campaign.revision + 1)
    for row in (campaign, campaign, counted, renamed, renamed, campaign):
        assert _again(row) == row


def test_a_caller_that_changes_hours_changes_those_of_nobody_else() -> None:
    """What is read belongs to its caller."""
    schedule = {"monday": (TimeWindow(start_minute=540, end_minute=1020),)}
    campaign = make_campaign(business_hours=BusinessHours(timezone="UTC", schedule=schedule))
    first = _again(campaign)
    assert first.business_hours is not None
    first.business_hours.schedule["sunday"] = ()  # type: ignore[index]
    assert _again(campaign) == campaign
