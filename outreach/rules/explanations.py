"""Explanations of the reasons of recipients and campaigns, and of failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from outreach.models.base import Channel
from outreach.models.forecast import BindingRule
from outreach.models.states import CampaignStatus, ContactHistory, MessageStatus, RecipientStatus, ZoneSource
from outreach.rules.deciding import HOLDING_RULES
from outreach.rules.phones import NUMBER_BUSY

_RETRY: Final = "retry_"
"""The prefix of the reasons of calls that are made again; the rest is the outcome of the last one."""

_NO_RETRY: Final = ": retry was off, or no attempt was left"
_CLOSED_AT_THE_END: Final = frozenset({RecipientStatus.PENDING, RecipientStatus.WAITING})
_ENDS_OF_CAMPAIGNS: Final = MappingProxyType(
    {CampaignStatus.CANCELLED: RecipientStatus.CANCELED, CampaignStatus.EXPIRED: RecipientStatus.EXPIRED}
)
"""How the contacts end that wait when a campaign ends early."""

_ANY_CHANNEL: Final[Mapping[tuple[str, str | None], str]] = MappingProxyType(
    {
        ("pending", None): "not attempted yet",
        **{("waiting", rule.name): rule.meaning for rule in HOLDING_RULES.values()},
        ("waiting", "deferred"): "the provider deferred it or could not be reached: it is retried automatically",
        ("waiting", "withdrawn"): "withdrawn immediately before the request: it is retried automatically",
        ("waiting", "operator_retry"): "an operator requested another try",
        ("waiting", "retry"): "the last attempt failed temporarily: another one follows",
        ("waiting", "flow"): "the next step of its flow is due",
        ("waiting", "flow_wait"): "its flow waits",
        ("unconfirmed", None): "it is unknown whether it was reached: it is not retried",
        ("unconfirmed", "no_evidence"): "the provider never reported the outcome: it is not retried",
        ("unknown", "worker_lost"): "the process that made the request died: the outcome is being looked up",
        ("unknown", "interrupted"): "the request was interrupted: the outcome is being looked up",
        (
            "unknown",
            "adapter_error",
        ): "the provider's adapter failed during the request: the outcome is being looked up",
        ("unknown", "timeout"): "the provider did not respond in time: the outcome is being looked up",
        ("unknown", "dropped"): "the connection broke before a response: the outcome is being looked up",
        ("unknown", "unreadable"): "the response did not come from the provider: the outcome is being looked up",
        ("unknown", "decision_undone"): "an operator took a decision about it back: the outcome is being looked up",
        ("unknown", "repeated_id"): "the response was that of another request: the outcome is being looked up",
        (
            "unknown",
            "provider_error",
        ): "the provider responded with an error of its own: the outcome is being looked up",
        ("skipped", "duplicate"): "the same number is earlier in the list",
        ("skipped", "opted_out"): "on the unsubscribe register",
        ("skipped", "unreachable_before"): "a provider had reported the number as unreachable",
        ("skipped", "by_operator"): "a person left it out before its turn",
        ("skipped", "erased"): "erased at somebody's request before its turn",
        ("skipped", "timezone_unknown"): "no hour within a week is in the contact hours wherever the contact may be",
        ("left out", "opted_out"): "on the unsubscribe register: not loaded",
        ("canceled", None): "the campaign was cancelled before its turn",
        ("expired", None): "the campaign expired before its turn",
        ("failed", "agent_unavailable"): "the agent may not place calls",
        ("failed", "rejected"): "the provider rejected it permanently",
        (
            "failed",
            "rate_limited",
        ): "a limit of the provider was reached, and its campaign had ended or it had been tried ten times: "
        "a follow-up contacts it",
        ("failed", "failed"): "the provider does not say why it failed",
    }
)

_SMS: Final[Mapping[tuple[str, str | None], str]] = MappingProxyType(
    {
        ("completed", None): "sent, not yet confirmed",
        ("completed", "no_receipt"): "sent; no receipt arrived in time",
        ("completed", "replied"): "replied, which ends its flow",
        ("completed", "assumed_sent"): "unknown; an operator counted it as sent",
        ("skipped", "invalid_number"): "not a possible phone number: never sent to a carrier",
        ("failed", "temporary"): f"the provider or a network could not accept it at that moment{_NO_RETRY}",
        ("failed", "unreachable"): f"the phone or its network could not be reached{_NO_RETRY}",
        ("failed", "over_segment_cap"): "the text is longer than the settings allow",
        ("failed", "empty_message"): "the template left nothing to send",
        ("waiting", NUMBER_BUSY): "waits for the number of the sender pool that it gets its messages from",
        ("dispatching", None): "on its way to the carrier",
        ("in_progress", "awaiting_receipt"): "sent, not yet confirmed: another attempt follows if it fails",
    }
)

_CALLS: Final[Mapping[tuple[str, str | None], str]] = MappingProxyType(
    {
        ("completed", None): "the call took place",
        ("completed", "negative"): "the call took place, without a positive outcome",
        ("completed", "callback"): "the contact asks to be called again",
        ("completed", "voicemail"): "a machine answered and got the message",
        ("completed", "assumed_sent"): "unknown; an operator counted it as called",
        ("skipped", "invalid_number"): "not a possible phone number: never called",
        ("dispatching", None): "on its way to the voice provider",
        ("in_progress", "calling"): "ringing, or talking",
        ("waiting", "double_dial"): "nobody answered: it is called a second time at once",
        ("failed", "canceled_at_provider"): "the call was canceled at the provider before anybody was reached",
        ("failed", "busy"): "busy each time",
        ("failed", "no_answer"): "nobody answered, each time",
        ("failed", "declined"): "declined each time",
        ("failed", "voicemail"): "a machine answered each time",
        ("unconfirmed", "no_news"): "the provider never reported the call's end: it is not retried",
    }
)

_ENDS: Final = {
    "busy": "was busy",
    "no_answer": "did not answer",
    "declined": "declined",
    "voicemail": "was a machine",
    "temporary": "could not be called at that moment",
    "unreachable": "could not be reached",
    "rate_limited": "was rate-limited by the provider",
}

STARTED_AGAIN: Final = " again, because what was approved has changed"
"""Why a campaign waits to be started whose approved start was taken back: a part of a sentence."""

MOVED: Final = "the database was moved to another host or path, or is a copy"
RESTORED: Final = "the database was restored from an older copy, or another server has taken over"

_RESUME_SAFELY: Final = (
    "with the replaced database, or with `provider`, `campaigns resume --skip-contacted-in` goes on without contacting "
    "anybody twice"
)

PAUSE_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "operator": "an operator paused it",
        "missed_start": "its start passed while no server was dispatching or its workspace was not active",
        "agent_unavailable": "its agent is inactive or may not place calls",
        "provider_auth": "the provider rejects the account's credentials, or no secret key of the server opens them",
        "provider_funds": "the account at the provider has no credit left, or is suspended",
        "error_budget": "too many requests in a row failed for reasons other than the contacts",
        "moved": f"{MOVED}; {_RESUME_SAFELY}",
        "restored": f"{RESTORED}; {_RESUME_SAFELY}",
    }
)

SAFE_RESUME_OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # On another host or path no database is replaced.
        "moved": "--skip-contacted-in provider",
        "restored": "--skip-contacted-in REPLACED_DATABASE",
    }
)
"""The option of `campaigns resume` that contacts nobody twice, by the reason of a pause after which it otherwise may.

Nothing shows whether a database that was moved is complete, or is an older copy.
"""

SCHEDULE_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "operator": "an operator paused it",
        "not_ready": "the campaigns of two runs in a row could not be started",
        "not_made": "the campaigns of two runs in a row could not be made",
        "nobody": "two runs in a row had nobody to contact",
        "audience_grew": "the list of its contacts has grown by more than half",
        "cost": "two runs in a row cost more than its limit, or their cost is not known",
        "awaits_approval": "two runs in a row needed the approval of a second person",
        "deleted": "the campaigns of two runs in a row were deleted",
        "removed": "it was removed",
        "no_further_run": "its rule has no further run",
        "moved": MOVED,
        "restored": RESTORED,
    }
)
"""Why a schedule does not go on: a part of a sentence."""

LIMITS: Final[Mapping[BindingRule, str]] = MappingProxyType(
    {
        **{rule.name: rule.limit for rule in HOLDING_RULES.values()},
        "pace": "its rate",
        "sender_rate": "the rate of the sending number",
        "business_hours": "business hours",
        "holidays": "holidays",
        "batch_concurrency": "how many calls are made at a time",
        "retry": "the delay between attempts",
        "flow": "the waits of the flow",
    }
)
"""The limit of a campaign in words, by the rule that a forecast names."""

CLOSING_RULES: Final[Sequence[str]] = (
    *("business_hours", "holidays"),
    *(rule.name for rule in HOLDING_RULES.values() if rule.local_hours is not None),
)
"""The rules of a forecast that go by the time of day or the date: while one binds, a campaign is closed."""


def ended_reasons() -> frozenset[str]:
    """Return the reasons that the end of a contact may have, over both channels."""
    open_states = {"pending", "waiting", "dispatching", "in_progress", "unknown", "left out"}
    named = {
        reason
        for words in (_ANY_CHANNEL, _SMS, _CALLS)
        for status, reason in words
        if reason is not None and status not in open_states
    }
    return frozenset(named | FAILURE_TEXTS.keys())


_ZONES_BY: Final[Mapping[ZoneSource, str]] = {
    "own": "its own time zone",
    "zip": "by its ZIP code",
    "state": "by its state",
    "number": "by its number",
}


def describe_zones(history: ContactHistory) -> str | None:
    """Return by which time zones, why, and by which narrower hours a contact's hours are checked; None if unknown."""
    if history.zone_source is None:
        return None
    narrower = [f"{one.place} ({one.source})" for one in history.narrower_hours]
    words = f"{', '.join(history.time_zones)}, {_ZONES_BY[history.zone_source]}"
    return f"{words}; narrower hours: {', '.join(narrower)}" if narrower else words


def describe_reason(
    status: str,
    reason: str | None,
    channel: Channel = "sms",
    *,
    report: MessageStatus | None = None,
    campaign: CampaignStatus | None = None,
) -> str | None:
    """Return the meaning of a recipient's status and reason, or None.

    Args:
        status: Its status.
        reason: Its reason, if it has one.
        channel: The campaign's.
        report: The carrier's report on the last message, if known.
        campaign: The campaign's state, if known: a contact that still waits when it has ended gets no turn any more.
    """
    if campaign is not None and campaign in _ENDS_OF_CAMPAIGNS and status in _CLOSED_AT_THE_END:
        return f"{_ANY_CHANNEL[_ENDS_OF_CAMPAIGNS[campaign], None]}: a running server closes it"
    if status == RecipientStatus.COMPLETED and report is MessageStatus.DELIVERED:
        return "delivered"
    key = (status, reason)
    own = (_CALLS if channel == "call" else _SMS).get(key)
    if own or key in _ANY_CHANNEL:
        return own or _ANY_CHANNEL[key]
    if reason is None:
        return None
    if reason.startswith(_RETRY):
        return f"the contact {_ENDS.get(reason.removeprefix(_RETRY), 'was not reached')}: another call follows"
    known = FAILURE_TEXTS.get(reason)
    return known[0].rstrip(".") if known else None


FailureText = tuple[str, str]
"""The meaning and the advice."""

_RETRY_ADVICE: Final = (
    "Try again later. A campaign does so by itself while attempts are left, and with messages only while retry is on "
    "(`retry_enabled` of the SMS settings)."
)

FAULT_WITHOUT_ANSWER: Final = "no_answer_but_a_fault"
"""The text for a request that is unknown because of its provider's own error."""

FAILURE_TEXTS: Final[Mapping[str, FailureText]] = MappingProxyType(
    {
        "invalid_number": (
            "The number cannot be reached this way: it is not in use, or does not accept messages or calls.",
            "Ask the contact for another number. The same one fails again.",
        ),
        "opted_out": (
            "The contact has opted out at the provider.",
            "Do not contact it again: it is on the unsubscribe register now. Only the contact's own START ends that.",
        ),
        "unreachable": (
            "The phone could not be reached: it is off or without a network, or its network rejected the message.",
            _RETRY_ADVICE,
        ),
        "filtered": (
            "A network or the provider blocked it because of its content or sender.",
            "Look at the text (links, shortened ones above all) and at the registration of the sending number before "
            "you send more of it.",
        ),
        "bad_sender": (
            "The sending number or the agent is not set up as the provider needs it.",
            "Check that the number or agent belongs to this account, and that it may send or call to that country.",
        ),
        "bad_body": ("The provider rejects this text.", "Shorten it, or remove everything that is not plain text."),
        "rate_limited": (
            "A limit of the provider or of a network is reached. Nobody was reached.",
            "A campaign tries it again by itself, also after it has completed, unless it was cancelled or has expired "
            "meanwhile: then contact them by `campaigns follow-up CAMPAIGN_ID --results rate_limited`. If it happens "
            "often, lower the rate or ask for more.",
        ),
        "temporary": (
            "The provider or a network could not accept it at that moment.",
            _RETRY_ADVICE,
        ),
        "provider_funds": (
            "The account has no credit left, or is suspended.",
            "Top the account up at the provider, then resume the campaigns.",
        ),
        "provider_auth": (
            "The provider rejects the credentials, or the account may not do this.",
            "Check the credentials and the rights of the key, connect the account again, then resume the campaigns.",
        ),
        "provider_error": (
            "The provider had an error of its own, or its set-up is broken.",
            "Look at the provider's status page and at its own log of this request.",
        ),
        "rejected": (
            "The provider rejected it permanently.",
            "Look the code up at the provider; the same request will be rejected again.",
        ),
        "stale": (
            "It could not be sent within 10 minutes and was canceled. Nobody was reached.",
            "Send it again, if it still matters.",
        ),
        "moved": (
            "The database was moved before a provider accepted it, and it was canceled.",
            "Send it again once it is certain that the original database did not send it.",
        ),
        "restored": (
            "The database was restored from a copy before a provider accepted it, and it was canceled.",
            "Send it again once it is certain that it was not sent before.",
        ),
        "no_evidence": (
            "The provider never reported the outcome: it is unknown whether it was sent.",
            "Look it up at the provider before you send it again.",
        ),
        "no_news": (
            "The provider reported nothing after it accepted the call.",
            "Look it up at the provider; check that its callbacks reach this server.",
        ),
        FAULT_WITHOUT_ANSWER: (
            "The provider responded with an error of its own: it is not yet known whether it accepted the request.",
            "Wait while it is looked up at the provider, or decide about it yourself.",
        ),
        "adapter_error": (
            "The provider's adapter failed during the request: it is not yet known whether the provider accepted it.",
            "Wait while it is looked up at the provider. The server's log has the error.",
        ),
        "worker_lost": (
            "The process that made the request died: it is not yet known whether the provider accepted it.",
            "Wait while it is looked up at the provider, or decide about it yourself.",
        ),
        "interrupted": (
            "The request was interrupted: it is not yet known whether the provider accepted it.",
            "Wait while it is looked up at the provider, or decide about it yourself.",
        ),
        "operator_retry": (
            "It was never known whether it was sent, and an operator had it sent again.",
            "Nothing: the retry has its own outcome.",
        ),
        "decision_undone": (
            "An operator took a decision about it back: it is not known whether it was sent.",
            "Wait while it is looked up at the provider, or decide about it again.",
        ),
        "not_found": (
            "The provider has no record of the request: nothing was sent.",
            "Nothing: it is retried automatically.",
        ),
        "not_asked": (
            "The request could not be made here: nothing was sent.",
            "The server's log has the error, unless it was only late. It is retried automatically.",
        ),
        "not_connected": (
            "The provider could not be connected to. Nothing was sent.",
            "Check the network, DNS and firewall of this machine. It is retried automatically.",
        ),
        "timeout": (
            "The provider did not respond in time: it is not yet known whether it accepted the request.",
            "Wait while it is looked up at the provider, or decide about it yourself.",
        ),
        "dropped": (
            "The connection broke before a response: it is not yet known whether the provider accepted the request.",
            "Wait while it is looked up at the provider, or decide about it yourself.",
        ),
        "repeated_id": (
            "The response had the identifier of another request: it is not yet known whether this one was accepted.",
            "Wait while it is looked up at the provider. Check that no proxy in between mixes responses up, and that "
            "an adapter of your own returns another identifier for each request.",
        ),
        "unreadable": (
            "The response did not come from the provider: it is not yet known whether it accepted the request.",
            "Check that no proxy or sign-in page is between this machine and the provider.",
        ),
    }
)
"""By failure class, by why a request has no answer, and by why a single message or call was given up."""

OWN_CODES: Final[Mapping[str, FailureText]] = MappingProxyType(
    {
        "no_sender": (
            "It has no sending number. No request was made.",
            "Set the sending number of the campaign or message.",
        ),
        "simulated": (
            "The simulator failed it: by its failure rate, or because somebody simulated a failed receipt.",
            "Nothing: this is a sandbox. OUTREACH_SIMULATOR_FAILURE_RATE sets how often it happens by itself.",
        ),
    }
)
"""The engine's own codes, in place of a provider's."""
