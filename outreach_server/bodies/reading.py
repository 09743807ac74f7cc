"""Reads the body of a new campaign, or of an audience: parsed, checked, and with prepared contacts.

This only computes. A small body is read on the event loop, a larger one in a thread, and a large one in its own process
(`outreach_server.bodies.parser_process`), so that other requests do not wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs

from outreach import InvalidRequest, NewCallCampaign, NewRecipient, NewSmsCampaign
from outreach.http import parse_json, read_audience, read_call_campaign, read_sms_campaign
from outreach.models import LeaveOut, PreparedRecipient
from outreach.server_support import prepare_recipient, read_simple_body, require_object, require_sms

CHUNK: Final = 2_500
"""Contacts in a chunk."""

Head = NewSmsCampaign | NewCallCampaign | LeaveOut | None
"""The part of a body beside its contacts: the campaign, or the contacts that a list without one leaves out."""


@attrs.frozen(kw_only=True)
class ParseOptions:
    """How to read a body.

    Attributes:
        channel_from_body: Whether `channel` selects the kind of campaign; otherwise it is SMS.
        sms_campaigns_enabled: Whether the workspace may have SMS campaigns.
        default_region: The region of local phone numbers.
        this_year: The first year of a country's holidays.
        carriers: Carriers that are accepted besides those of the interface.
        is_audience: Whether it has contacts without a new campaign.
    """

    channel_from_body: bool
    sms_campaigns_enabled: bool
    default_region: str | None
    this_year: int
    carriers: Sequence[str] = ()
    is_audience: bool = False


@attrs.frozen(kw_only=True)
class ParsedBody:
    """A campaign to create, or an audience, and its contacts.

    Attributes:
        head: All but the contacts.
        chunks: The contacts, prepared in chunks during the one iteration.
    """

    head: Head
    chunks: Iterator[list[PreparedRecipient]]


def read_contacts(raw: bytes, reading: ParseOptions) -> ParsedBody:
    """Return a body's contacts and what they are for.

    Raises:
        InvalidRequest: The body breaks a rule; the details name each place.
        SmsCampaignsDisabled: The workspace does not have SMS campaigns enabled.
    """
    plain = read_simple_body(raw)
    if plain is not None:
        # The slow reader below reports everything that is wrong.
        with suppress(InvalidRequest):
            head, _ = _read_campaign_body(plain.head, reading)
            return ParsedBody(head=head, chunks=plain.chunks(reading.default_region, size=CHUNK))
    head, recipients = _read_campaign_body(parse_json(raw), reading)
    return ParsedBody(head=head, chunks=_prepared(recipients, reading.default_region))


def _read_campaign_body(data: Any, reading: ParseOptions) -> tuple[Head, Sequence[NewRecipient]]:
    if reading.is_audience:
        return read_audience(data)
    if reading.channel_from_body and _channel(data) == "call":
        return read_call_campaign(data, this_year=reading.this_year)
    require_sms(reading.sms_campaigns_enabled)
    return read_sms_campaign(data, this_year=reading.this_year, carriers=reading.carriers)


def _prepared(recipients: Sequence[NewRecipient], default_region: str | None) -> Iterator[list[PreparedRecipient]]:
    for start in range(0, len(recipients), CHUNK):
        yield [
            prepare_recipient(recipient, default_region, path=f"recipients[{start + index}]")
            for index, recipient in enumerate(recipients[start : start + CHUNK])
        ]


def _channel(data: Any) -> str:
    require_object(data)
    channel = data.get("channel", "call")
    if type(channel) is not str or channel not in {"call", "sms"}:
        raise InvalidRequest.at("channel", "must be one of call, sms")
    return channel
