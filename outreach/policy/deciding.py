"""Which rule decided, by what came of it: pure functions over the closed list of rules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach.models.campaign import PauseReason
from outreach.models.dispatch import ASSUMED_SENT
from outreach.models.recipient import Recipient
from outreach.models.states import CampaignMove, DispatchState, RecipientStatus
from outreach.models.trail import Rule
from outreach.policy.call_settlement import DOUBLE_DIAL, RETRIED_OUTCOMES
from outreach.policy.settlement import PASSING_FAILURES

_WAITS: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "retry": Rule.RETRY_BUDGET,
        **{f"retry_{reason}": Rule.RETRY_BUDGET for reason in RETRIED_OUTCOMES | PASSING_FAILURES},
        DOUBLE_DIAL: Rule.DOUBLE_DIAL,
        "flow": Rule.FLOW,
        "flow_wait": Rule.FLOW,
        "deferred": Rule.DEFERRAL,
        "operator_retry": Rule.OPERATOR,
    }
)
"""What a recipient waits for, where the reason says it better than what brought it there."""

_ENDS: Final[Mapping[tuple[RecipientStatus, str | None], Rule]] = MappingProxyType(
    {
        (RecipientStatus.SKIPPED, "opted_out"): Rule.REGISTER,
        (RecipientStatus.SKIPPED, "duplicate"): Rule.DUPLICATE,
        (RecipientStatus.SKIPPED, "invalid_number"): Rule.INVALID_NUMBER,
        (RecipientStatus.COMPLETED, "replied"): Rule.FLOW,
        (RecipientStatus.COMPLETED, "no_receipt"): Rule.RECEIPT_WAIT,
        (RecipientStatus.COMPLETED, ASSUMED_SENT): Rule.OPERATOR,
        (RecipientStatus.UNCONFIRMED, "no_evidence"): Rule.RECONCILIATION,
        (RecipientStatus.UNCONFIRMED, "no_news"): Rule.CALL_SILENCE,
        (RecipientStatus.CANCELED, None): Rule.CANCELLATION,
        (RecipientStatus.EXPIRED, None): Rule.EXPIRY,
        # An end for a reason that may pass is the end of the attempts: spent, switched off, or over with the campaign.
        **{(RecipientStatus.FAILED, reason): Rule.RETRY_BUDGET for reason in PASSING_FAILURES | RETRIED_OUTCOMES},
    }
)

_WITHDRAWN: Final[Mapping[str | None, Rule]] = MappingProxyType(
    {
        "opted_out": Rule.REGISTER,
        "unclear_reply": Rule.REGISTER,
        "too_late": Rule.VALID_UNTIL,
        "lease_over": Rule.VALID_UNTIL,
        "clock_set_back": Rule.VALID_UNTIL,
        "provider_hold": Rule.PROVIDER_HOLD,
    }
)

_OUTCOMES: Final[Mapping[DispatchState, Rule]] = MappingProxyType(
    {
        DispatchState.UNKNOWN: Rule.ONCE,
        DispatchState.UNCONFIRMED: Rule.RECONCILIATION,
        DispatchState.GIVEN_UP: Rule.OPERATOR,
        DispatchState.DEFERRED: Rule.DEFERRAL,
    }
)

_PAUSES: Final[Mapping[PauseReason, Rule]] = MappingProxyType(
    {
        "operator": Rule.OPERATOR,
        "missed_start": Rule.SCHEDULE,
        "agent_unavailable": Rule.AGENT,
        "provider_auth": Rule.ERROR_BUDGET,
        "provider_funds": Rule.ERROR_BUDGET,
        "error_budget": Rule.ERROR_BUDGET,
        "moved": Rule.COPIED_FILE,
        "restored": Rule.COPIED_FILE,
    }
)

_MOVES: Final[Mapping[CampaignMove, Rule]] = MappingProxyType(
    {CampaignMove.COMPLETE: Rule.LEDGER, CampaignMove.EXPIRE: Rule.EXPIRY}
)


def rule_of_recipient(after: Recipient, by: Rule) -> Rule:
    """Return the rule by which a recipient waits or has ended.

    Args:
        after: The recipient as it is then.
        by: What brought it there; it stands where the reason names no rule of its own.
    """
    if after.status is RecipientStatus.WAITING:
        return _WAITS.get(after.reason or "", by)
    return _ENDS.get((after.status, after.reason), by)


def rule_of_outcome(state: DispatchState, reason: str | None, by: Rule) -> Rule:
    """Return the rule by which a dispatch has its state.

    Args:
        state: What is known of the request.
        reason: Its failure class, or why it was withdrawn, deferred or is unknown.
        by: Who told; it stands for what a provider, a look-up or a report tells.
    """
    if state is DispatchState.WITHDRAWN:
        return _WITHDRAWN.get(reason, Rule.STOP)
    if state is DispatchState.NOT_SENT and by is Rule.PROVIDER_ANSWER:
        return Rule.DEFERRAL
    return _OUTCOMES.get(state, by)


def rule_of_move(move: CampaignMove, *, by_engine: bool, pause_reason: PauseReason | None) -> Rule:
    """Return the rule by which a campaign moved."""
    if pause_reason is not None:
        return _PAUSES[pause_reason]
    return _MOVES.get(move, Rule.SCHEDULE if by_engine else Rule.OPERATOR)
