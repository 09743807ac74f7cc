"""Reading the body of a new campaign: parsed, checked and its contacts made ready to be written.

All of this is plain computing. A small body is read where the request is handled, a larger one in a thread, and
a large one in a process of its own (`outreach_server.helper`), so that other requests do not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from outreach import (
    InvalidRequest,
    NewCallCampaign,
    NewRecipient,
    NewSmsCampaign,
    PreparedRecipient,
    SmsCampaignsDisabled,
    parse_json,
    prepare,
    read_call_campaign,
    read_sms_campaign,
)

CHUNK: Final = 500
"""Contacts made ready at a time."""


@attrs.frozen(kw_only=True)
class Reading:
    """How a body is to be read.

    Attributes:
        channel_from_body: Whether `channel` selects the kind of campaign; otherwise it is SMS.
        sms_campaigns_enabled: Whether the workspace may have SMS campaigns.
        default_region: Where local phone numbers belong.
        this_year: The first year for which a country's holidays are filled in.
    """

    channel_from_body: bool
    sms_campaigns_enabled: bool
    default_region: str | None
    this_year: int


@attrs.frozen(kw_only=True)
class ReadCampaign:
    """A campaign that was asked for, and its contacts."""

    campaign: NewSmsCampaign | NewCallCampaign
    recipients: Sequence[NewRecipient]
    default_region: str | None

    def chunks(self) -> Iterator[list[PreparedRecipient]]:
        """Make the contacts ready, some at a time.

        Raises:
            InvalidRequest: A contact cannot be written.
        """
        for start in range(0, len(self.recipients), CHUNK):
            part = self.recipients[start : start + CHUNK]
            yield [
                prepare(recipient, self.default_region, path=f"recipients[{start + index}]")
                for index, recipient in enumerate(part)
            ]


def read_campaign(raw: bytes, reading: Reading) -> ReadCampaign:
    """Return the campaign that a body asks for.

    Raises:
        InvalidRequest: The body breaks a rule; the details name each place.
        SmsCampaignsDisabled: It asks for an SMS campaign, which the workspace may not have.
    """
    data = parse_json(raw)
    if reading.channel_from_body and _channel(data) == "call":
        campaign, recipients = read_call_campaign(data, this_year=reading.this_year)
        return ReadCampaign(campaign=campaign, recipients=recipients, default_region=reading.default_region)
    if not reading.sms_campaigns_enabled:
        raise SmsCampaignsDisabled(
            "SMS campaigns are not enabled for this workspace. An organization owner can turn them on."
        )
    sms_campaign, recipients = read_sms_campaign(data, this_year=reading.this_year)
    return ReadCampaign(campaign=sms_campaign, recipients=recipients, default_region=reading.default_region)


def _channel(data: Any) -> str:
    if type(data) is not dict:
        raise InvalidRequest.at("", "The body must be a JSON object.")
    channel = data.get("channel", "call")
    if type(channel) is not str or channel not in {"call", "sms"}:
        raise InvalidRequest.at("channel", "must be one of call, sms")
    return channel
