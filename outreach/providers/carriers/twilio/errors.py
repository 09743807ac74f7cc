"""Classification of Twilio's error codes: https://www.twilio.com/docs/api/errors, each code a page.

Not compared with a page: 20008, 20404, 21212, 21266, 21267, 21408, 21602, 21603, 21604, 21608, 21616, 21617, 21618,
21619, 21659, 21660, 21661, 21703, 21705, 30004, 30005, 30008, 30017, 30018, 30019, 30023, 30027, 30033, 30034, 30035,
30037.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach.models.dispatch import FailureClass
from outreach.providers.carriers.base import LimitReset

FAILURES: Final[Mapping[str, FailureClass]] = MappingProxyType(
    {
        # In the response to a request.
        "10001": "provider_funds",  # account not active: suspended, mostly for lack of funds
        "14107": "rate_limited",  # too many between the same two numbers
        "20003": "provider_auth",
        "20005": "provider_funds",  # account not active
        "20008": "provider_auth",  # test credentials
        "20404": "provider_auth",  # unknown account in the URL
        "20429": "rate_limited",
        "21211": "invalid_number",
        "21212": "bad_sender",
        "21265": "invalid_number",  # a short code
        "21266": "bad_sender",  # the contact itself: another sender reaches it
        "21267": "bad_sender",  # a trial account with an alphanumeric sender
        "21268": "invalid_number",  # a premium rate number
        "21408": "bad_sender",  # the account may not send to this region
        "21601": "bad_sender",
        "21602": "bad_body",  # empty
        "21603": "bad_sender",  # missing
        "21604": "rejected",  # the request names nobody, which says nothing about a number
        "21606": "bad_sender",
        "21608": "rejected",  # a trial account, to a number that it has not verified
        "21610": "opted_out",
        "21611": "rate_limited",  # the sender's queue is full
        "21612": "bad_sender",  # this sender cannot reach this number
        "21614": "invalid_number",  # cannot receive messages
        "21616": "bad_sender",  # it stands for several numbers
        "21617": "bad_body",  # longer than 1600 characters
        "21618": "bad_body",
        "21619": "bad_body",  # neither text nor media
        "21624": "rejected",  # validity period
        "21635": "invalid_number",  # a landline
        "21657": "bad_sender",  # an alphanumeric sender that the country does not allow
        "21659": "bad_sender",  # not a Twilio number, or a short code of another country
        "21660": "bad_sender",  # not of this account
        "21661": "bad_sender",  # it cannot send messages
        "21703": "bad_sender",  # the messaging service has no numbers
        "21705": "bad_sender",  # no such messaging service
        "21730": "temporary",  # maintenance
        "63038": "rate_limited",  # the account's daily limit
        "90007": "rejected",  # validity period
        "90010": "provider_funds",  # account not active
        # Later, in a status callback.
        "30001": "rate_limited",  # queue overflow
        "30002": "provider_funds",  # account suspended while the message was queued
        "30003": "unreachable",
        "30004": "filtered",  # blocked by the network or its customer
        "30005": "invalid_number",  # unknown handset
        "30006": "invalid_number",  # landline
        "30007": "filtered",
        "30008": "unreachable",  # the carrier does not say why
        "30017": "unreachable",  # congestion in the network
        "30018": "bad_sender",  # the network requires a registered sender
        "30019": "bad_body",  # larger than the network takes
        "30022": "rate_limited",  # the rate of the 10DLC campaign
        "30023": "rate_limited",  # the day's messages of the 10DLC brand
        "30024": "bad_sender",  # not provisioned at the network
        "30027": "rate_limited",  # T-Mobile's daily limit
        "30032": "bad_sender",  # a toll-free number that is not verified
        "30033": "bad_sender",  # the 10DLC campaign is suspended
        "30034": "filtered",  # a number without a 10DLC registration
        "30035": "bad_sender",  # a 10DLC number that is still being set up
        "30036": "unreachable",  # expired in the queue
        "30037": "provider_auth",  # the account may not send
        "30042": "bad_sender",  # a blocked alphanumeric sender
        "30410": "provider_error",  # may have been sent: Twilio does not retry it either
        "30450": "unreachable",  # blocked for half an hour, against fraud
    }
)
"""Failure class by code; other codes go by the HTTP status."""

SENDER_LIMITS: Final = frozenset({"14107", "21611"})
"""Codes of limits that do not throttle the account: one number got too many from another, or the queue of one sending
number is full."""

LIMIT_RESETS: Final[Mapping[str, LimitReset]] = MappingProxyType(
    {
        "30022": "minute",
        "30023": "pacific_midnight",
        "30027": "pacific_midnight",
        "63038": "hour",
    }
)
"""When the limits end that throttle the account, by their codes."""
