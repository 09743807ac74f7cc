"""Campaigns made from earlier ones, and messages to try a campaign with."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, get_args

import attrs

from outreach.models.audience import LeaveOut
from outreach.models.campaign import CampaignCreated, FollowUpCreated, FollowUpExclusion, NewFollowUp
from outreach.models.fields import sized
from outreach.models.message import NewTestMessage
from outreach.serialization.campaigns import LEAVE_OUT
from outreach.serialization.documents import document_of, to_json
from outreach.serialization.field_rules import make_request_converter, read_object
from outreach.serialization.manage.campaigns import in_update_names, write_managed_campaign


@attrs.frozen(kw_only=True)
class CampaignClone:
    """How to clone a campaign.

    Attributes:
        name: The new name; None for the earlier one with "(copy)".
        leave_out: Whom to leave out; None for nobody.
    """

    name: str | None = sized(1, 100, default=None)
    leave_out: LeaveOut | None = None


_read_clone: Final = make_request_converter(CampaignClone, LEAVE_OUT, closed="a clone")
_read_follow_up: Final = make_request_converter(
    NewFollowUp, LEAVE_OUT, renamed={"body": "message_body"}, closed="a follow-up"
)
_read_test: Final = make_request_converter(NewTestMessage, closed="a test message")


def read_campaign_clone(data: Any) -> CampaignClone:
    """Return how to clone, by a body of POST /manage/campaigns/{id}/clone.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_clone, data)


def read_new_follow_up(data: Any) -> NewFollowUp:
    """Return how to follow up, by a body of POST /manage/campaigns/{id}/follow-up.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_follow_up, data)


def read_new_test_message(data: Any) -> NewTestMessage:
    """Return the message of a body of POST /manage/campaigns/{id}/test-messages.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_test, data)


def write_campaign_copy(created: CampaignCreated, *, now: datetime) -> dict[str, Any]:
    """Return a campaign that was made from another one, with what was left out and what it lacks."""
    return {
        **write_managed_campaign(created.campaign, now=now),
        "sms_opted_out_excluded": created.opted_out_excluded,
        "missing": to_json(in_update_names(created.missing)),
        "unknown_placeholders": list(created.unknown_placeholders),
        "audience": None if created.audience is None else document_of(created.audience),
    }


def write_follow_up(found: FollowUpCreated, *, now: datetime) -> dict[str, Any]:
    """Return a follow-up, with how many contacts had the results and whom it leaves out."""
    return {
        **write_campaign_copy(found.created, now=now),
        "selected": found.selected,
        "left_out": {cause: found.left_out.get(cause, 0) for cause in get_args(FollowUpExclusion)},
    }
