"""What each way to fail means and what to do about it, whichever provider it is at."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

Row = tuple[str, str]
"""The meaning, and the advice."""

NO_ANSWER: Final = "no_answer_but_a_fault"
"""Of a request that is unknown because of its provider's own fault."""

CLASSES: Final[Mapping[str, Row]] = MappingProxyType(
    {
        "invalid_number": (
            "The number cannot be reached this way: it is not in use, or is none that takes messages or calls.",
            "Ask the contact for another number. The same one fails again.",
        ),
        "opted_out": (
            "The provider knows that the contact has opted out.",
            "Do not contact it again: it is on the unsubscribe register now. Only the contact's own START ends that.",
        ),
        "unreachable": (
            "The phone could not be reached: it is off or without a network, or its network did not take the message.",
            "Try again later. While retry is on, that happens by itself.",
        ),
        "filtered": (
            "A network or the provider blocked it, for what it says or for who sends it.",
            "Look at the text (links, shortened ones above all) and at the registration of the sending number before "
            "you send more of it.",
        ),
        "bad_sender": (
            "The sending number or the agent is not set up as the provider needs it.",
            "Check that the number or agent belongs to this account, and that it may send or call to that country.",
        ),
        "bad_body": (
            "The provider does not take this text.",
            "Shorten it, or take out what is no plain text.",
        ),
        "rate_limited": (
            "The provider takes no more for now. Nobody was reached, and no attempt is spent.",
            "Wait: it is tried again by itself. If it happens often, lower the rate or ask for a higher limit.",
        ),
        "temporary": (
            "The provider or a network could not take it at that moment.",
            "Try again later. While retry is on, that happens by itself.",
        ),
        "provider_funds": (
            "The account has no credit left, or is suspended.",
            "Top the account up at the provider, then resume the campaigns.",
        ),
        "provider_auth": (
            "The provider does not accept the credentials, or the account may not do this.",
            "Check the credentials and the rights of the key, connect the account again, then resume the campaigns.",
        ),
        "provider_error": (
            "The provider had a fault of its own, or something in the set-up there broke.",
            "Look at the provider's status page and at its own log of this request.",
        ),
        "rejected": (
            "The provider refused it for good.",
            "Look the code up at the provider; the same request is refused again.",
        ),
        "stale": (
            "It could not be sent within 10 minutes and was canceled. Nobody was reached.",
            "Send it again, if it still matters.",
        ),
        "moved": (
            "The database was moved before a provider had taken it, and it was canceled.",
            "Send it again from here, once it is sure that it was not sent from where the database was before.",
        ),
        "restored": (
            "The database was restored from a copy before a provider had taken it, and it was canceled.",
            "Send it again, once it is sure that it had not been sent before.",
        ),
        "no_evidence": (
            "The provider never told what became of it: nobody knows whether it was sent.",
            "Look it up at the provider before you send it again.",
        ),
        "no_news": (
            "Nothing was heard of the call after the provider had taken it.",
            "Look it up at the provider; check that its callbacks reach this server.",
        ),
        NO_ANSWER: (
            "The provider answered with a fault of its own: nobody knows yet whether it took the request.",
            "Wait: it is looked up at the provider. You can also decide about it yourself.",
        ),
        "adapter_error": (
            "The provider's adapter failed during the request: nobody knows yet whether the provider took it.",
            "Wait: it is looked up at the provider. The server's log has the error.",
        ),
        "worker_lost": (
            "The process that asked the provider has died: nobody knows yet whether it took the request.",
            "Wait: it is looked up at the provider. You can also decide about it yourself.",
        ),
        "interrupted": (
            "The request was cut off: nobody knows yet whether the provider took it.",
            "Wait: it is looked up at the provider. You can also decide about it yourself.",
        ),
        "not_connected": (
            "The provider could not be connected to. Nothing was sent.",
            "Check the network, DNS and firewall of this machine. It is tried again by itself.",
        ),
        "timeout": (
            "The provider did not answer in time: nobody knows yet whether it took the request.",
            "Wait: it is looked up at the provider. You can also decide about it yourself.",
        ),
        "dropped": (
            "The connection broke before an answer came: nobody knows yet whether the provider took the request.",
            "Wait: it is looked up at the provider. You can also decide about it yourself.",
        ),
        "unreadable": (
            "The answer was none of the provider's: nobody knows yet whether it took the request.",
            "Check that nothing stands between this machine and the provider, such as a proxy or a page to sign in.",
        ),
    }
)
"""By failure class, by why a request has no answer, and by why a single message or call was given up."""

OWN_CODES: Final[Mapping[str, Row]] = MappingProxyType(
    {
        "no_sender": (
            "It names no number to send from. The provider was not asked.",
            "Set the sending number of the campaign or message.",
        ),
        "simulated": (
            "The simulator refused it, as often as its failure rate says. It stands for a fault that passes.",
            "Nothing: this is a sandbox. OUTREACH_SIMULATOR_FAILURE_RATE sets how often it happens.",
        ),
    }
)
"""Codes of ours, in the place where a provider's would stand."""
