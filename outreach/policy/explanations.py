"""What the reasons of recipients and campaigns mean: a sentence for each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach.models.base import Channel
from outreach.models.states import MessageStatus, RecipientStatus

_RETRY: Final = "retry_"
"""How the reasons of calls that are made again begin; the rest is how the last one ended."""

_OF_BOTH: Final[Mapping[tuple[str, str | None], str]] = MappingProxyType(
    {
        ("pending", None): "not attempted yet",
        ("waiting", "contact_hours"): "outside of the hours (8 to 21) at the places where the number may be",
        ("waiting", "frequency_cap"): "the number has been contacted as often as the workspace allows in 24 hours",
        ("waiting", "deferred"): "the provider took it not now, or was not reached: it is tried again by itself",
        ("waiting", "withdrawn"): "taken back in the last moment before the request: it is tried again by itself",
        ("waiting", "operator_retry"): "somebody let it be tried once more",
        ("waiting", "unclear_reply"): "has written what may be an opt-out: it waits until somebody has decided",
        ("waiting", "retry"): "the last attempt failed for something that may pass: another one follows",
        ("waiting", "flow"): "the next step of its flow is due",
        ("waiting", "flow_wait"): "its flow waits",
        ("unconfirmed", None): "nobody can tell whether it was reached: it is not tried again",
        ("unconfirmed", "no_evidence"): "the provider never told what became of it: it is not tried again",
        ("unknown", "worker_lost"): "the process that asked the provider has died: it is being looked up there",
        ("unknown", "interrupted"): "the request was cut off: it is being looked up at the provider",
        ("unknown", "adapter_error"): "the provider's adapter failed during the request: it is being looked up",
        ("unknown", "timeout"): "the provider did not answer in time: it is being looked up there",
        ("unknown", "dropped"): "the connection broke before an answer: it is being looked up at the provider",
        ("unknown", "unreadable"): "the answer was none of the provider's: it is being looked up there",
        ("unknown", "provider_error"): "the provider answered with a fault of its own: it is being looked up there",
        ("skipped", "duplicate"): "the same number stands earlier in the list",
        ("skipped", "opted_out"): "on the unsubscribe register",
        ("skipped", "timezone_unknown"): "no hour within a week is between 8 and 21 wherever the number may be",
        ("left out", "opted_out"): "on the unsubscribe register: never even written",
        ("canceled", None): "the campaign was cancelled before its turn",
        ("expired", None): "the campaign expired before its turn",
        ("failed", "agent_unavailable"): "the agent may not call out",
        ("failed", "rejected"): "the provider refused it for good",
        ("failed", "failed"): "the provider does not say why it failed",
    }
)

_OF_MESSAGES: Final[Mapping[tuple[str, str | None], str]] = MappingProxyType(
    {
        ("completed", None): "sent, not yet confirmed",
        ("completed", "no_receipt"): "sent; no receipt came in the time that is waited for one",
        ("completed", "replied"): "has written back, and its flow ends there",
        ("completed", "assumed_sent"): "nobody knows, and somebody took it as sent",
        ("skipped", "invalid_number"): "no possible phone number: never handed to a carrier",
        ("failed", "over_segment_cap"): "the text is longer than the settings allow",
        ("failed", "empty_message"): "the template left nothing to send",
        ("dispatching", None): "on its way to the carrier",
        ("in_progress", "awaiting_receipt"): "sent, not yet confirmed: another attempt follows if it fails",
    }
)

_OF_CALLS: Final[Mapping[tuple[str, str | None], str]] = MappingProxyType(
    {
        ("completed", None): "the call took place",
        ("completed", "negative"): "the call took place, without a positive outcome",
        ("completed", "voicemail"): "a machine answered",
        ("completed", "assumed_sent"): "nobody knows, and somebody took it as called",
        ("skipped", "invalid_number"): "no possible phone number: never called",
        ("dispatching", None): "on its way to the voice provider",
        ("in_progress", "calling"): "ringing, or talking",
        ("waiting", "double_dial"): "nobody answered: it is called a second time at once",
        ("failed", "canceled_at_provider"): "the call was canceled at the provider before anybody was reached",
        ("failed", "busy"): "busy each time",
        ("failed", "no_answer"): "nobody answered, each time",
        ("failed", "declined"): "declined each time",
        ("failed", "voicemail"): "a machine answered each time",
        ("unconfirmed", "no_news"): "nothing was heard of the call: it is not made again",
    }
)

_ENDS: Final = {
    "busy": "was busy",
    "no_answer": "did not answer",
    "declined": "declined",
    "voicemail": "was a machine",
    "temporary": "could not be called at that moment",
    "unreachable": "could not be reached",
    "rate_limited": "found no place at the provider",
}

PAUSE_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "operator": "somebody paused it",
        "missed_start": "its start passed while nobody was dispatching, or its workspace could not work",
        "agent_unavailable": "its agent is inactive, or may not call out",
        "provider_auth": "the provider does not accept the account's credentials",
        "provider_funds": "the account at the provider has no credit left, or is suspended",
        "error_budget": "too many requests in a row went wrong, for reasons that are not the contacts'",
        "moved": "the database was moved to another host or path",
        "restored": "the database is older than it was: it was restored from a copy",
    }
)
"""Why a campaign is paused."""


def describe_reason(
    status: str, reason: str | None, channel: Channel = "sms", *, report: MessageStatus | None = None
) -> str | None:
    """Return what the state of a recipient and its reason mean, in words; None where nobody has words for it.

    Args:
        status: Of the recipient.
        reason: Why it waits or how it ended.
        channel: Of its campaign.
        report: What the carrier has told of its last message, where that is known.
    """
    if status == RecipientStatus.COMPLETED and report is MessageStatus.DELIVERED:
        return "delivered"
    key = (status, reason)
    own = (_OF_CALLS if channel == "call" else _OF_MESSAGES).get(key)
    if own or key in _OF_BOTH:
        return own or _OF_BOTH[key]
    if reason is None:
        return None
    if reason.startswith(_RETRY):
        return f"the contact {_ENDS.get(reason.removeprefix(_RETRY), 'was not reached')}: another call follows"
    known = FAILURE_TEXTS.get(reason)
    return known[0].rstrip(".") if known else None


FailureText = tuple[str, str]
"""The meaning, and the advice."""

FAULT_WITHOUT_ANSWER: Final = "no_answer_but_a_fault"
"""Of a request that is unknown because of its provider's own fault."""

FAILURE_TEXTS: Final[Mapping[str, FailureText]] = MappingProxyType(
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
        FAULT_WITHOUT_ANSWER: (
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

OWN_CODES: Final[Mapping[str, FailureText]] = MappingProxyType(
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
