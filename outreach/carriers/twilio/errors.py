"""What Twilio's error codes mean: https://www.twilio.com/docs/api/errors, each code a page."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach.models.dispatch import FailureClass

FAILURES: Final[Mapping[str, FailureClass]] = MappingProxyType(
    {
        # Said at once, in the answer to a request.
        "10001": "provider_funds",  # account not active: suspended, mostly for want of funds
        "20003": "provider_auth",
        "20005": "provider_funds",  # account not active
        "20404": "provider_auth",  # the account in the address is not known
        "20429": "rate_limited",
        "21211": "invalid_number",
        "21212": "bad_sender",
        "21265": "invalid_number",  # a short code
        "21266": "invalid_number",  # the sender itself
        "21408": "bad_sender",  # the account may not send to this region
        "21602": "bad_body",  # empty
        "21603": "bad_sender",  # none
        "21604": "invalid_number",  # none
        "21606": "bad_sender",
        "21608": "rejected",  # a trial account, to a number that it has not verified
        "21610": "opted_out",
        "21611": "rate_limited",  # the sender's queue is full
        "21612": "bad_sender",  # this sender cannot reach this number
        "21614": "invalid_number",  # no number that takes messages
        "21617": "bad_body",  # longer than 1600 characters
        "21619": "bad_body",  # neither text nor media
        "21624": "rejected",  # validity period
        "21635": "invalid_number",  # a landline
        "21660": "bad_sender",  # not of this account
        "21703": "bad_sender",  # the messaging service has no numbers
        "21705": "bad_sender",  # no such messaging service
        "21730": "temporary",  # maintenance
        "90007": "rejected",  # validity period
        "90010": "provider_funds",  # account not active
        # Said later, in a status callback.
        "30001": "rate_limited",  # queue overflow
        "30002": "provider_funds",  # account suspended while the message was queued
        "30003": "unreachable",
        "30004": "filtered",  # blocked by the network or its customer
        "30005": "invalid_number",  # unknown handset
        "30006": "invalid_number",  # landline
        "30007": "filtered",
        "30008": "unreachable",  # the carrier does not say why
        "30034": "filtered",  # a number without a 10DLC registration
    }
)
"""Failure class by code; what is not here goes by the status of the answer."""

SENDER_LIMITS: Final = frozenset({"21611"})
"""Codes for limits that are not the account's: the queue of one sending number is full."""
