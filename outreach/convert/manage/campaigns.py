"""Campaigns as a console reads and changes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from outreach.convert.campaigns import business_hours_rule, holidays_rule, sending_number
from outreach.convert.field_rules import Integer, OneOf, OrNull, Text, boolean, timestamp, uuid
from outreach.convert.json_responses import write_campaign
from outreach.convert.manage.bodies import read_object
from outreach.convert.manage.documents import Document, document_of
from outreach.convert.request_converter import make_request_converter
from outreach.errors import ErrorDetail
from outreach.models.base import CARRIERS
from outreach.models.campaign import Campaign, CampaignUpdate
from outreach.models.status import CampaignBlocker
from outreach.policy.explanations import PAUSE_REASONS

UPDATE_NAMES: Final[Mapping[str, str]] = {
    "body": "message_body",
    "carrier": "sms_carrier",
    "from_number": "sms_from_number",
    "rate_per_minute": "sms_rate_per_minute",
    "flow_id": "sms_flow_id",
    "business_hours": "business_hours_config",
    "holidays": "holidays_config",
}
"""The JSON names of the fields of `CampaignUpdate` that have another one there."""


@attrs.frozen(kw_only=True)
class CampaignStart:
    """How to start a campaign.

    Attributes:
        allow_unknown_placeholders: Start although the text has placeholders without a value.
    """

    allow_unknown_placeholders: bool = False


_read_start: Final = make_request_converter(
    CampaignStart, {"allow_unknown_placeholders": boolean}, closed="the start of a campaign"
)


def read_campaign_update(data: Any, *, this_year: int, carriers: Sequence[str] = ()) -> CampaignUpdate:
    """Return the update of a body of PATCH /manage/campaigns/{id}.

    Args:
        data: The parsed JSON, see `parse_json`.
        this_year: The first year of a country's holidays.
        carriers: Carriers that are accepted beside those of the interface.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_update_reader(this_year, tuple(carriers)), data)


def read_campaign_start(data: Any) -> bool:
    """Return whether a body of POST /manage/campaigns/{id}/start allows placeholders without a value.

    Raises:
        InvalidRequest: A field is unknown or of another type; the details name each place.
    """
    return read_object(_read_start, data).allow_unknown_placeholders


def in_update_names(details: Iterable[ErrorDetail]) -> list[ErrorDetail]:
    """Return details of errors about a campaign with the JSON names of its fields."""
    return [attrs.evolve(one, path=_renamed(one.path)) for one in details]


def write_managed_campaign(
    campaign: Campaign, *, now: datetime, blockers: Sequence[CampaignBlocker] = ()
) -> dict[str, Any]:
    """Return a campaign with what a console shows beside the interface's fields."""
    return {
        **write_campaign(campaign, now=now),
        "pause_reason": campaign.pause_reason,
        "pause_why": PAUSE_REASONS.get(campaign.pause_reason or ""),
        "open_recipients": campaign.counters.open,
        "blockers": [_blocker(one) for one in blockers],
    }


def _blocker(one: CampaignBlocker) -> Document:
    return document_of(one)


def _renamed(path: str) -> str:
    head, dot, rest = path.partition(".")
    return UPDATE_NAMES.get(head, head) + dot + rest


@functools.lru_cache(maxsize=4)
def _update_reader(this_year: int, carriers: tuple[str, ...]) -> Callable[[Any], CampaignUpdate]:
    return make_request_converter(
        CampaignUpdate,
        {
            "name": Text(minimum=1, maximum=100),
            "description": OrNull(Text(maximum=500)),
            "body": OrNull(Text(maximum=1600)),
            "carrier": OrNull(OneOf((*CARRIERS, *carriers))),
            "from_number": OrNull(sending_number),
            "rate_per_minute": Integer(1, 600),
            "flow_id": OrNull(uuid),
            "agent_id": OrNull(uuid),
            "scheduled_start_at": OrNull(timestamp),
            "scheduled_expires_at": OrNull(timestamp),
            "business_hours": OrNull(business_hours_rule),
            "holidays": OrNull(functools.partial(holidays_rule, this_year=this_year)),
        },
        renamed=UPDATE_NAMES,
        closed="a campaign's update",
    )
