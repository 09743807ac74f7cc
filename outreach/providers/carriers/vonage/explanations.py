"""Explanations of Vonage's error codes for people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PAGE: Final = "https://developer.vonage.com/en/api-errors/messages"

_TOP_UP: Final = "Top the account up in the Vonage dashboard, then resume the campaigns."
_OUT: Final = "Do not contact it again: it is on the unsubscribe register now."
_LOOKED_UP: Final = "Wait: it is looked up. You can also decide about it yourself."
_RULES: Final = "Set what the country's rules ask for (entity, header and content identifiers) in the Vonage dashboard."
_FRAUD: Final = "Look at the rules of Fraud Defender in the Vonage dashboard."

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "1000": "Too many requests for this account.",
        "1010": "The request lacks something that Vonage needs.",
        "1020": "A value of the request is not as Vonage takes it.",
        "1021": "A tag of the request is not as Vonage takes it.",
        "1022": "The template, or a value of it, is not as Vonage takes it.",
        "1030": "Vonage had an internal error: whether it accepted the message is unknown.",
        "1040": "Vonage could not process the message, for example because the number's prefix is unknown.",
        "1050": "The number is on Vonage's list of those that get no messages.",
        "1060": "The account may not send any more.",
        "1070": "The account has not enough credit for this message.",
        "1080": "The account may not send by this interface.",
        "1090": "The text is too long.",
        "1100": "The message was not handed on, because a connection failed.",
        "1120": "The rules of the contact's country do not allow this sender.",
        "1130": "The time that Vonage was given to send it in is out of bounds.",
        "1140": "The account lacks something that this sender needs.",
        "1150": "The class of the message is out of bounds.",
        "1160": "The account is a trial, which sends to numbers on its list alone.",
        "1170": "The contact's number is missing or no phone number.",
        "1180": "The phone is off or out of coverage.",
        "1190": "The number is not in use any more.",
        "1200": "The contact has changed network, and messages do not find the new one.",
        "1210": "A network took the message for spam, by its sender or by what it says.",
        "1220": "The phone was busy.",
        "1230": "A network failed on the way.",
        "1240": "The contact has written STOP.",
        "1241": "Too many messages to these numbers.",
        "1250": "No way leads to the number: its network or contract takes no such messages.",
        "1251": "The routing rules leave no way to the contact's network.",
        "1260": "The message could not be delivered to the number.",
        "1270": "The network blocked it, because its content has an age limit.",
        "1280": "The network blocked it: the contact's contract has no messages, or is suspended.",
        "1282": "The provider on the way blocked it, for its content or by its rules.",
        "1290": "The contact's own prepaid credit does not suffice to get the message.",
        "1300": "The number is not known in the provider's network.",
        "1310": "The contact's device cannot show the message.",
        "1320": "Vonage says that the message was sent already: the outcome of this request is unknown.",
        "1330": "The network failed without saying why; often the number is wrong.",
        "1331": "The provider on the way does not answer.",
        "1340": "The message came outside of the time in which answers are allowed.",
        "1350": "A fee for finding the contact has not been paid.",
        "1360": "The message expired before it was delivered.",
        "1370": "An access token at Vonage has expired.",
        "1380": "A file of the message cannot be fetched.",
        "1381": "A file of the message is too large.",
        "1382": "A file of the message is of a type that cannot be sent.",
        "1400": "Vonage does not send by this channel.",
        "1410": "A value for the channel is not as Vonage takes it.",
        "1420": "The sending number is not one that may send by this channel.",
        "1430": "The contact's number is not valid for this channel.",
        "1440": "The channel has no messages of this type.",
        "1450": "The reference of the message is longer than Vonage takes.",
        "1451": "The message that this one answers cannot be found.",
        "1460": "The daily limit of messages is used up, such as that of 10DLC.",
        "1461": "The provider sends this contact no more messages of this kind for now.",
        "1470": "Fraud Defender blocks the prefix of this number.",
        "1472": "Fraud Defender's limit for bursts is reached.",
        "1473": "Fraud Defender took the traffic for artificially inflated.",
        "1480": "The entity identifier that the country asks for is missing or wrong.",
        "1481": "The header that the country asks for is missing or wrong: it is the sender.",
        "1482": "The content identifier that the country asks for is missing or wrong.",
        "1483": "The country's register of consent does not allow this message.",
        "1484": "A rule of the contact's country was broken, without more being said.",
        "low-balance": "The account has not enough credit.",
        "unauthorized": "Vonage does not accept the API key and secret.",
        "unathorized": "Vonage does not accept the API key and secret.",
        "unprovisioned": "The account may not use this interface.",
        "forbidden": "The account may not do this.",
        "invalid-json": "The request is not as Vonage takes it.",
    }
)

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "1030": _LOOKED_UP,
        "1050": _OUT,
        "1060": "Ask Vonage's support why the account is barred, then resume the campaigns.",
        "1070": _TOP_UP,
        "1080": "Turn the Messages API on for the account in the Vonage dashboard.",
        "1120": "Send from a number, or under a name, that the country allows: Vonage lists the rules by country.",
        "1140": "Check in the Vonage dashboard that the number is this account's and may send messages.",
        "1160": "Add the number to the list in the Vonage dashboard, or upgrade the account.",
        "1190": "Ask the contact for another number.",
        "1240": "Do not contact it again: it is on the unsubscribe register now. Only the contact's START ends that.",
        "1320": _LOOKED_UP,
        "1420": "Check in the Vonage dashboard that the number is this account's and linked to this interface.",
        "1460": "Campaigns go on by themselves after midnight in Los Angeles. Spread the sending over more days, or "
        "register for a higher limit.",
        "1470": _FRAUD,
        "1472": "Lower the rate, or change the limit in Fraud Defender in the Vonage dashboard.",
        "1473": _FRAUD,
        "1480": _RULES,
        "1481": _RULES,
        "1482": _RULES,
        "1483": _OUT,
        "low-balance": _TOP_UP,
    }
)
"""More precise advice than that of the failure class, by code."""
