"""The trail rules of waits, ends, outcomes and status changes, as pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach.models.campaign import PauseReason
from outreach.models.dispatch import ASSUMED_SENT
from outreach.models.recipient import Recipient
from outreach.models.states import CampaignAction, DispatchState, RecipientStatus
from outreach.models.trail import TrailRule
from outreach.rules.call_settlement import DOUBLE_DIAL, RETRYABLE_OUTCOMES
from outreach.rules.holding import UNCLEAR_REPLY
from outreach.rules.senders import NUMBER_BUSY
from outreach.rules.settlement import TRANSIENT_FAILURES

_WAITS: Final[Mapping[str, TrailRule]] = MappingProxyType(
    {
        "retry": TrailRule.RETRY_BUDGET,
        **{f"retry_{reason}": TrailRule.RETRY_BUDGET for reason in RETRYABLE_OUTCOMES | TRANSIENT_FAILURES},
        DOUBLE_DIAL: TrailRule.DOUBLE_DIAL,
        "flow": TrailRule.FLOW,
        "flow_wait": TrailRule.FLOW,
        "deferred": TrailRule.DEFERRAL,
        NUMBER_BUSY: TrailRule.PACE,
        "operator_retry": TrailRule.OPERATOR,
    }
)
"""Waits whose reason implies their rule."""

_ENDS: Final[Mapping[tuple[RecipientStatus, str | None], TrailRule]] = MappingProxyType(
    {
        (RecipientStatus.SKIPPED, "opted_out"): TrailRule.REGISTER,
        (RecipientStatus.SKIPPED, "duplicate"): TrailRule.DUPLICATE,
        (RecipientStatus.SKIPPED, "invalid_number"): TrailRule.INVALID_NUMBER,
        (RecipientStatus.COMPLETED, "replied"): TrailRule.FLOW,
        (RecipientStatus.COMPLETED, "no_receipt"): TrailRule.RECEIPT_WAIT,
        (RecipientStatus.COMPLETED, ASSUMED_SENT): TrailRule.OPERATOR,
        (RecipientStatus.UNCONFIRMED, "no_evidence"): TrailRule.RECONCILIATION,
        (RecipientStatus.UNCONFIRMED, "no_news"): TrailRule.CALL_SILENCE,
        (RecipientStatus.CANCELED, None): TrailRule.CANCELLATION,
        (RecipientStatus.EXPIRED, None): TrailRule.EXPIRY,
        # A transient or retryable failure ends a recipient when its attempts are used up.
        **{
            (RecipientStatus.FAILED, reason): TrailRule.RETRY_BUDGET
            for reason in TRANSIENT_FAILURES | RETRYABLE_OUTCOMES
        },
    }
)

_WITHDRAWN: Final[Mapping[str | None, TrailRule]] = MappingProxyType(
    {
        "opted_out": TrailRule.REGISTER,
        UNCLEAR_REPLY.name: UNCLEAR_REPLY.trail_rule,
        "too_late": TrailRule.VALID_UNTIL,
        "lease_over": TrailRule.VALID_UNTIL,
        "clock_set_back": TrailRule.VALID_UNTIL,
        "provider_throttle": TrailRule.PROVIDER_THROTTLE,
    }
)

_OUTCOMES: Final[Mapping[DispatchState, TrailRule]] = MappingProxyType(
    {
        DispatchState.UNKNOWN: TrailRule.ONCE,
        DispatchState.UNCONFIRMED: TrailRule.RECONCILIATION,
        DispatchState.GIVEN_UP: TrailRule.OPERATOR,
        DispatchState.DEFERRED: TrailRule.DEFERRAL,
    }
)

_PAUSES: Final[Mapping[PauseReason, TrailRule]] = MappingProxyType(
    {
        "operator": TrailRule.OPERATOR,
        "missed_start": TrailRule.SCHEDULE,
        "agent_unavailable": TrailRule.AGENT,
        "provider_auth": TrailRule.ERROR_BUDGET,
        "provider_funds": TrailRule.ERROR_BUDGET,
        "error_budget": TrailRule.ERROR_BUDGET,
        "moved": TrailRule.COPIED_FILE,
        "restored": TrailRule.COPIED_FILE,
    }
)

_ACTIONS: Final[Mapping[CampaignAction, TrailRule]] = MappingProxyType(
    {
        CampaignAction.COMPLETE: TrailRule.LEDGER,
        CampaignAction.REOPEN: TrailRule.PROVIDER_REPORT,
        CampaignAction.EXPIRE: TrailRule.EXPIRY,
    }
)


def rule_of_recipient(after: Recipient, by: TrailRule) -> TrailRule:
    """Return the rule of a recipient's wait or end; `by` unless its reason implies another."""
    if after.status is RecipientStatus.WAITING:
        return _WAITS.get(after.reason or "", by)
    return _ENDS.get((after.status, after.reason), by)


def rule_of_outcome(state: DispatchState, reason: str | None, by: TrailRule) -> TrailRule:
    """Return the rule of a dispatch's outcome; `by` is the source of what a provider or look-up reported."""
    if by is TrailRule.OPERATOR:
        return by
    if state is DispatchState.WITHDRAWN:
        return _WITHDRAWN.get(reason, TrailRule.STOP)
    if state is DispatchState.NOT_SENT and by is TrailRule.PROVIDER_ANSWER:
        return TrailRule.DEFERRAL
    return _OUTCOMES.get(state, by)


def rule_of_move(move: CampaignAction, *, by_engine: bool, pause_reason: PauseReason | None) -> TrailRule:
    """Return the rule of a campaign status change."""
    if pause_reason is not None:
        return _PAUSES[pause_reason]
    return _ACTIONS.get(move, TrailRule.SCHEDULE if by_engine else TrailRule.OPERATOR)
