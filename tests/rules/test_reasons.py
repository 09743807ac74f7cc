from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import attrs
import pytest

from outreach.models.campaign import PauseReason
from outreach.models.dispatch import FailureClass
from outreach.models.forecast import BindingRule
from outreach.models.states import CampaignStatus, HeldBackRule, MessageStatus
from outreach.models.workspace import Workspace
from outreach.rules.deciding import HOLDING_RULES
from outreach.rules.explanations import LIMITS, PAUSE_REASONS, describe_reason
from outreach.rules.settlement import RETRYABLE_OUTCOMES, TRANSIENT_FAILURES

EITHER: dict[str, Sequence[str | None]] = {
    "pending": [None],
    "waiting": ["deferred", "withdrawn", "operator_retry", *get_args(HeldBackRule)],
    "dispatching": [None],
    "unknown": [
        "timeout",
        "dropped",
        "unreadable",
        "repeated_id",
        "provider_error",
        "interrupted",
        "adapter_error",
        "worker_lost",
    ],
    "completed": [None, "assumed_sent"],
    "failed": get_args(FailureClass),
    "skipped": ["duplicate", "invalid_number", "opted_out", "timezone_unknown"],
    "canceled": [None],
    "expired": [None],
    "unconfirmed": [None, "no_evidence"],
}
MESSAGES: dict[str, Sequence[str | None]] = {
    "waiting": ["retry", "flow", "flow_wait"],
    "in_progress": ["awaiting_receipt"],
    "completed": ["replied", "no_receipt"],
    "failed": ["over_segment_cap", "empty_message"],
}
CALLS: dict[str, Sequence[str | None]] = {
    "waiting": ["double_dial", *(f"retry_{one}" for one in sorted(RETRYABLE_OUTCOMES | TRANSIENT_FAILURES))],
    "in_progress": ["calling"],
    "completed": ["negative", "voicemail"],
    "failed": ["agent_unavailable", "canceled_at_provider", "failed", *sorted(RETRYABLE_OUTCOMES)],
    "unconfirmed": ["no_news"],
}


@pytest.mark.parametrize(
    ("channel", "status", "reason"),
    [
        (channel, status, reason)
        for channel, tables in (("sms", (EITHER, MESSAGES)), ("call", (EITHER, CALLS)))
        for table in tables
        for status, reasons in table.items()
        for reason in reasons
    ],
)
def test_every_reason_comes_with_words(channel: str, status: str, reason: str | None) -> None:
    """What the engine gives as a reason is told to people in a sentence."""
    words = describe_reason(status, reason, channel)  # type: ignore[arg-type]
    assert words
    assert len(words.split()) > 1


def test_every_rule_that_holds_contacts_back_is_in_the_table() -> None:
    """And every limit of a forecast has words; a rule that a setting releases is named as the setting."""
    assert set(HOLDING_RULES) == set(get_args(HeldBackRule))
    assert set(LIMITS) == set(get_args(BindingRule))
    settings = {name for name, rule in HOLDING_RULES.items() if rule.released_by == "setting"}
    assert settings <= {field.name for field in attrs.fields(Workspace)}


def test_every_pause_comes_with_words() -> None:
    """And nothing else does."""
    assert set(PAUSE_REASONS) == set(get_args(PauseReason))


def test_an_accepted_message_is_reported_as_accepted_until_its_receipt() -> None:
    """A receipt alone says that it has arrived."""
    assert describe_reason("completed", None) == "sent, not yet confirmed"
    assert describe_reason("completed", None, report=MessageStatus.SENT) == "sent, not yet confirmed"
    assert describe_reason("completed", None, report=MessageStatus.DELIVERED) == "delivered"
    assert describe_reason("completed", None, "call") == "the call took place"


@pytest.mark.parametrize(
    ("campaign", "words"),
    [
        (CampaignStatus.CANCELLED, "the campaign was cancelled before its turn: a running server closes it"),
        (CampaignStatus.EXPIRED, "the campaign expired before its turn: a running server closes it"),
    ],
)
def test_what_waits_in_a_campaign_that_has_ended_gets_no_turn(campaign: CampaignStatus, words: str) -> None:
    """It is not "not attempted yet"; what is in flight keeps its outcome, and a running campaign its words."""
    assert describe_reason("pending", None, campaign=campaign) == words
    assert describe_reason("waiting", "retry", "call", campaign=campaign) == words
    assert describe_reason("unknown", "timeout", campaign=campaign) == describe_reason("unknown", "timeout")
    assert describe_reason("pending", None, campaign=CampaignStatus.ACTIVE) == "not attempted yet"


def test_nothing_is_made_up() -> None:
    """Of a reason that nobody has words for."""
    assert describe_reason("failed", "some_new_reason") is None
    assert describe_reason("in_progress", None) is None
