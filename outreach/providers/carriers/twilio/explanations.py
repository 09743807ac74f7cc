"""Explanations of Twilio's error codes for people."""

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
_DAILY: Final = (
    "Campaigns go on by themselves after midnight in Los Angeles. Spread the sending over more days, or register for a "
    "higher limit."
)
_UNREACHABLE: Final = "Try again later; while retry is on, that happens by itself. If it stays so, the number is wrong."

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "10001": "The account is not active: suspended, mostly for want of funds.",
        "14107": "Too many messages within a short time between the same two numbers.",
        "20003": "Twilio does not accept the Account SID and Auth Token (or API key).",
        "20005": "The account is not active: suspended or closed.",
        "20008": "These are Twilio's test credentials, which send nothing.",
        "20404": "Twilio knows no account of this SID.",
        "20429": "Too many requests at the same time for this account.",
        "21211": "The contact's number is no phone number.",
        "21212": "The sending number is no phone number.",
        "21265": "The contact's number is a short code, which takes no messages from other numbers.",
        "21266": "The contact's number is the sending number itself.",
        "21267": "The account is a trial, which sends from numbers alone, and not under a name.",
        "21268": "The contact's number is one of a premium rate or information service.",
        "21408": "The account may not send to the country of this number.",
        "21601": "The sending number is not this account's, or cannot send messages.",
        "21602": "The message has no text.",
        "21603": "The message names no sending number.",
        "21604": "The message names no number to send to.",
        "21606": "The sending number is not this account's, or cannot send messages.",
        "21608": "The account is a trial, which sends to numbers that are verified in the Console alone.",
        "21610": "The contact has written STOP to this sending number.",
        "21611": "The queue of the sending number is full: more than it can send in hours.",
        "21612": "Twilio has no way from this sending number to that number.",
        "21614": "The contact's number takes no text messages: most often a landline.",
        "21616": "The sending number, as it is written, stands for several numbers of the account.",
        "21617": "The text is longer than 1,600 characters.",
        "21618": "Twilio cannot send this text.",
        "21619": "The message has neither text nor media.",
        "21624": "The time that Twilio was given to send it in is out of bounds.",
        "21635": "The contact's number is a landline.",
        "21657": "The contact's country does not take this name as a sender.",
        "21659": "The sending number is not Twilio's, or a short code of another country than the contact's.",
        "21660": "The sending number is not this account's.",
        "21661": "The sending number cannot send messages.",
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
        "30017": "The contact's network was congested.",
        "30018": "The contact's network takes messages from registered senders alone, and this one is not registered.",
        "30019": "The message is larger than the contact's network takes.",
        "30022": "The networks take no more of this A2P 10DLC campaign at such a rate.",
        "30023": "The daily limit of the A2P 10DLC brand is used up.",
        "30024": "The contact's network does not know the sending number yet, or not any more.",
        "30027": "T-Mobile's daily limit of the A2P 10DLC brand is used up.",
        "30032": "The toll-free sending number is not verified.",
        "30033": "The A2P 10DLC campaign of the sending number is suspended.",
        "30034": "The sending number is not registered for A2P 10DLC, which US networks ask for.",
        "30035": "The sending number is still being registered for A2P 10DLC.",
        "30036": "The message expired in Twilio's queue, and was not sent.",
        "30037": "Twilio has switched off the sending of messages for this account.",
        "30042": "The name of the sender is blocked: it is too general, or holds special characters.",
        "30410": "A provider behind Twilio did not answer in time: it may have delivered the message.",
        "30450": "Twilio's protection against fraud blocks this number, for half an hour at a time.",
        "63038": "The account has sent as many messages as it may in 24 hours.",
        "90007": "The time that Twilio was given to send it in is out of bounds.",
        "90010": "The account is not active: suspended or closed.",
    }
)

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "10001": _TOP_UP,
        "20003": "Copy the Account SID and Auth Token from the Twilio Console and connect the account again.",
        "20005": _TOP_UP,
        "20008": "Copy the live Account SID and Auth Token from the Twilio Console and connect the account again.",
        "20404": "Check the Account SID, and the region, of the connected account.",
        "21265": "Leave the number out.",
        "21267": "Send from a number of the account, or upgrade it.",
        "21408": "Turn the country on in the Console under Messaging, Settings, Geo permissions.",
        "21602": "Give the campaign a text.",
        "21608": "Verify the number in the Console, or upgrade the account.",
        "21610": "Do not contact it again: it is on the unsubscribe register now. Only the contact's START ends that.",
        "21611": "Lower the rate of the campaigns that share this number, or spread them over several numbers.",
        "21612": "Send from a number of the contact's country, or one that may send abroad.",
        "21617": "Shorten the text or the values that it is filled with.",
        "21616": "Write the number in full, like +14155550199.",
        "21635": "Ask the contact for a mobile number, or call it instead.",
        "30001": "Lower the rate, or send from a number with more throughput.",
        "30002": _TOP_UP,
        "30003": _UNREACHABLE,
        "30005": "Ask the contact for another number.",
        "30006": "Ask the contact for a mobile number, or call it instead.",
        "30007": "Change the text: no shortened links, say who writes, keep to what the registered campaign promises.",
        "30008": _UNREACHABLE,
        "30034": _REGISTER_10DLC,
        "30018": "Register the sender for that country in the Twilio Console, or send from a registered one.",
        "30022": "Lower the rate, or register for a higher throughput.",
        "30023": _DAILY,
        "30024": "Check the number's registration in the Console; a new one is known to all networks after some time.",
        "30027": _DAILY,
        "30032": "Have the toll-free number verified in the Twilio Console, or send from another one.",
        "30033": "See in the Console why it is suspended, and put that right. Send from another number meanwhile.",
        "30035": "Wait until the registration is through: the Console shows it. Send from another number meanwhile.",
        "30036": "Lower the rate of campaigns that share this number. While retry is on, it is tried again by itself.",
        "30037": "Ask Twilio's support why, then resume the campaigns.",
        "30042": "Send from a number, or under a name that says who you are.",
        "30410": "It is not sent again by itself: the contact could get it twice. Ask the contact before you do.",
        "30450": "Try again after half an hour; while retry is on, that happens by itself.",
        "63038": "Campaigns try again every hour. Spread the sending over more days, or ask Twilio for a higher limit.",
        "90010": _TOP_UP,
    }
)
"""More precise advice than that of the failure class, by code."""
