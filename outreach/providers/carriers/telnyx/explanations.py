"""Explanations of Telnyx's error codes for people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PAGE: Final = "https://developers.telnyx.com/docs/messaging/messages/error-codes"

_PROFILE: Final = "Look at the messaging profile of the sending number in the Telnyx portal."
_TOP_UP: Final = (
    "Open the Telnyx portal: top the account up or answer what Telnyx asks there, then resume the campaigns."
)
_DAILY: Final = (
    "Campaigns go on by themselves after midnight in Los Angeles. Spread the sending over more days, or ask for a "
    "higher limit of the 10DLC campaign."
)

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "10001": "The number is not active.",
        "10002": "The number is no phone number.",
        "10007": "Telnyx had an internal error: whether it accepted the message is unknown.",
        "10008": "The request timed out at Telnyx: whether it accepted the message is unknown.",
        "10009": "Telnyx does not accept the API key.",
        "10010": "The API key may not do this.",
        "10011": "Too many requests for this account.",
        "10016": "The number is not written as +, country code and digits.",
        "20002": "The API key was revoked.",
        "20006": "The key has expired.",
        "20012": "The account is inactive, mostly for want of funds.",
        "20013": "The account is blocked.",
        "20014": "The account is not verified.",
        "20015": "The account lacks a feature that this needs.",
        "20016": "The account is not of the level that this needs.",
        "20017": "The account may not do this yet.",
        "20100": "The account has no credit left.",
        "40001": "The number is a landline, or no network leads to it.",
        "40002": "A spam filter blocked the message, for a time.",
        "40003": "A spam filter has blocked the sending number for good.",
        "40004": "The contact's network refused the message without saying why.",
        "40005": "The message expired on its way to the contact.",
        "40006": "The contact's network does not answer.",
        "40008": "The contact's network did not take the message.",
        "40009": "The contact's network does not take this text.",
        "40010": "The sending number is not registered for 10DLC, which US networks ask for.",
        "40011": "A network on the way takes no more for now.",
        "40012": "The contact's network does not accept the number.",
        "40013": "The contact's network does not accept the sending number.",
        "40014": "The message expired in Telnyx's queue.",
        "40015": "Telnyx's own spam filter blocked the message.",
        "40016": "T-Mobile's daily limit of the 10DLC brand is used up.",
        "40017": "AT&T's spam filter blocked the message.",
        "40018": "AT&T takes no more of this 10DLC campaign at such a rate.",
        "40100": "The sending number is not enabled for messaging.",
        "40150": "The sending number is not in the messaging registry of toll-free numbers.",
        "40151": "The messaging of the sending number is with another provider.",
        "40300": "The contact has written STOP to a number of this messaging profile.",
        "40301": "This number takes no message of this type.",
        "40302": "The message is too large.",
        "40304": "The content of the message cannot go together.",
        "40305": "The sending number is not this account's, or not on the messaging profile.",
        "40306": "The messaging profile has no alphanumeric sender.",
        "40308": "The sending number cannot send this kind of message.",
        "40309": "The messaging profile may not send to the country of this number.",
        "40310": "The contact's number is no phone number.",
        "40311": "The messaging profile's secret is wrong.",
        "40312": "The messaging profile is switched off.",
        "40313": "The messaging profile's secret is missing.",
        "40314": "Messaging is switched off for this account.",
        "40315": "Telnyx takes the sending number for unhealthy: too much of what it sends is not delivered.",
        "40316": "The message has no content.",
        "40317": "The media of the message cannot be sent.",
        "40318": "Telnyx's queue of this sender is full.",
        "40319": "Telnyx has no way from this sending number to that number.",
        "40320": "The sending number cannot be used for a time.",
        "40321": "The messaging profile has no number that could send this.",
        "40322": "Telnyx blocked the message for what it says.",
        "40328": "The text has too many segments.",
        "40329": "The toll-free sending number is not verified.",
    }
)

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "10007": "Wait: it is looked up. You can also decide about it yourself.",
        "10008": "Wait: it is looked up. You can also decide about it yourself.",
        "10009": "Make an API key in the Telnyx portal and connect the account again with it.",
        "10016": "Write the number like +14155550102, or set the default region of the workspace.",
        "20012": _TOP_UP,
        "20013": _TOP_UP,
        "20014": "Finish the verification of the account in the Telnyx portal, then resume the campaigns.",
        "20100": _TOP_UP,
        "40001": "Ask the contact for a mobile number, or call it instead.",
        "40003": "Send from another number and change the text: the same text gets that one blocked too.",
        "40010": "Register brand and campaign for 10DLC in the Telnyx portal and put this number into the campaign.",
        "40016": _DAILY,
        "40018": "Lower the rate, or ask for a higher limit of the 10DLC campaign.",
        "40300": "Do not contact it again: it is on the unsubscribe register now. Only the contact's START ends that.",
        "40305": "Put the number on the messaging profile in the Telnyx portal, or send from another one.",
        "40309": "Add the country to the allowed destinations of the messaging profile.",
        "40311": _PROFILE,
        "40312": _PROFILE,
        "40313": _PROFILE,
        "40314": "Ask Telnyx's support to turn messaging on for the account, then resume the campaigns.",
        "40315": "Clean the list of contacts and change the text; send from another number meanwhile.",
        "40320": "Try again later, or send from another number.",
        "40329": "Have the toll-free number verified in the Telnyx portal, or send from another one.",
    }
)
"""More precise advice than that of the failure class, by code."""
