"""What Twilio's error codes mean, in words for people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PAGE: Final = "https://www.twilio.com/docs/api/errors/{code}"

_REGISTER_10DLC: Final = (
    "Register the brand and campaign for A2P 10DLC in the Twilio Console and put this number into it, or send from a "
    "verified toll-free number."
)
_TOP_UP: Final = (
    "Open the Twilio Console: top the account up or answer what Twilio asks there, then resume the campaigns."
)
_UNREACHABLE: Final = "Try again later; while retry is on, that happens by itself. If it stays so, the number is wrong."

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "10001": "The account is not active: suspended, mostly for want of funds.",
        "20003": "Twilio does not accept the Account SID and Auth Token (or API key).",
        "20005": "The account is not active: suspended or closed.",
        "20404": "Twilio knows no account of this SID.",
        "20429": "Too many requests at the same time for this account.",
        "21211": "The contact's number is no phone number.",
        "21212": "The sending number is no phone number.",
        "21265": "The contact's number is a short code, which takes no messages from other numbers.",
        "21266": "The contact's number is the sending number itself.",
        "21408": "The account may not send to the country of this number.",
        "21602": "The message has no text.",
        "21603": "The message names no sending number.",
        "21604": "The message names no number to send to.",
        "21606": "The sending number is not this account's, or cannot send messages.",
        "21608": "The account is a trial, which sends to numbers that are verified in the Console alone.",
        "21610": "The contact has written STOP to this sending number.",
        "21611": "The queue of the sending number is full: more than it can send in hours.",
        "21612": "Twilio has no way from this sending number to that number.",
        "21614": "The contact's number takes no text messages: most often a landline.",
        "21617": "The text is longer than 1,600 characters.",
        "21619": "The message has neither text nor media.",
        "21624": "The time that Twilio was given to send it in is out of bounds.",
        "21635": "The contact's number is a landline.",
        "21660": "The sending number is not this account's.",
        "21703": "The Messaging Service has no numbers.",
        "21705": "There is no such Messaging Service in this account.",
        "21730": "Twilio is under maintenance.",
        "30001": "The message waited longer in Twilio's queue than it may.",
        "30002": "The account was suspended while the message was in the queue.",
        "30003": "The phone is off, without a network, or does not take messages.",
        "30004": "The network, or the contact by its network, blocks messages of this kind or sender.",
        "30005": "The network does not know the number: it is not in use any more, or never was.",
        "30006": "The number is a landline, or its network takes no text messages.",
        "30007": "A network took the message for spam, or it breaks that network's rules.",
        "30008": "The network did not deliver it and does not say why.",
        "30034": "The sending number is not registered for A2P 10DLC, which US networks ask for.",
        "90007": "The time that Twilio was given to send it in is out of bounds.",
        "90010": "The account is not active: suspended or closed.",
    }
)

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "10001": _TOP_UP,
        "20003": "Copy the Account SID and Auth Token from the Twilio Console and connect the account again.",
        "20005": _TOP_UP,
        "20404": "Check the Account SID, and the region, of the connected account.",
        "21265": "Leave the number out.",
        "21408": "Turn the country on in the Console under Messaging, Settings, Geo permissions.",
        "21602": "Give the campaign a text.",
        "21608": "Verify the number in the Console, or upgrade the account.",
        "21610": "Do not contact it again: it is on the unsubscribe register now. Only the contact's START ends that.",
        "21611": "Lower the rate of the campaigns that share this number, or spread them over several numbers.",
        "21612": "Send from a number of the contact's country, or one that may send abroad.",
        "21617": "Shorten the text or the values that it is filled with.",
        "21635": "Ask the contact for a mobile number, or call it instead.",
        "30001": "Lower the rate, or send from a number with more throughput.",
        "30002": _TOP_UP,
        "30003": _UNREACHABLE,
        "30005": "Ask the contact for another number.",
        "30006": "Ask the contact for a mobile number, or call it instead.",
        "30007": "Change the text: no shortened links, say who writes, keep to what the registered campaign promises.",
        "30008": _UNREACHABLE,
        "30034": _REGISTER_10DLC,
        "90010": _TOP_UP,
    }
)
"""Where there is more to say than by the failure class."""
