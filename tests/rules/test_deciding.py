from __future__ import annotations

from typing import get_args

import pytest

from outreach.models.campaign import PauseReason
from outreach.models.states import CampaignAction, DispatchState, RecipientStatus, TrailRule
from outreach.rules.deciding import rule_of_move, rule_of_outcome, rule_of_recipient
from outreach.rules.settlement import RETRYABLE_OUTCOMES, TRANSIENT_FAILURES
from outreach.testing.builders import make_recipient


@pytest.mark.parametrize("reason", get_args(PauseReason))
def test_every_reason_for_a_pause_has_a_rule(reason: PauseReason) -> None:
    """Only an operator's own pause is the operator's."""
    rule = rule_of_move(CampaignAction.PAUSE, by_engine=reason != "operator", pause_reason=reason)
    assert (rule is TrailRule.OPERATOR) == (reason == "operator")


@pytest.mark.parametrize("move", CampaignAction)
def test_a_move_is_the_operators_or_the_clocks(move: CampaignAction) -> None:
    """But a campaign always completes by its ledger, and expires by its expiry."""
    fixed = {
        CampaignAction.COMPLETE: TrailRule.LEDGER,
        CampaignAction.REOPEN: TrailRule.PROVIDER_REPORT,
        CampaignAction.EXPIRE: TrailRule.EXPIRY,
    }
    for by_engine, rule in ((True, TrailRule.SCHEDULE), (False, TrailRule.OPERATOR)):
        assert rule_of_move(move, by_engine=by_engine, pause_reason=None) is fixed.get(move, rule)


@pytest.mark.parametrize("state", [DispatchState.ACCEPTED, DispatchState.REFUSED])
@pytest.mark.parametrize(
    "by", [TrailRule.PROVIDER_ANSWER, TrailRule.PROVIDER_REPORT, TrailRule.RECONCILIATION, TrailRule.OPERATOR]
)
def test_evidence_names_who_reported_it(state: DispatchState, by: TrailRule) -> None:
    """An answer, a report, a look-up, an operator."""
    assert rule_of_outcome(state, None, by) is by


def test_what_was_not_sent_is_deferred_or_found_out() -> None:
    """By the answer it is a deferral; by a look-up it is evidence."""
    assert rule_of_outcome(DispatchState.NOT_SENT, "connect", TrailRule.PROVIDER_ANSWER) is TrailRule.DEFERRAL
    assert rule_of_outcome(DispatchState.NOT_SENT, None, TrailRule.RECONCILIATION) is TrailRule.RECONCILIATION


@pytest.mark.parametrize("reason", sorted(TRANSIENT_FAILURES | RETRYABLE_OUTCOMES))
def test_what_might_have_passed_ends_by_its_budget(reason: str) -> None:
    """The same reason as a wait, and as an end."""
    failed = make_recipient(status=RecipientStatus.FAILED, reason=reason)
    assert rule_of_recipient(failed, TrailRule.PROVIDER_ANSWER) is TrailRule.RETRY_BUDGET
    waits = make_recipient(status=RecipientStatus.WAITING, reason="retry")
    assert rule_of_recipient(waits, TrailRule.PROVIDER_ANSWER) is TrailRule.RETRY_BUDGET


def test_a_reason_that_says_nothing_leaves_it_to_what_brought_it_there() -> None:
    """Such as a refusal for good, or a positive call."""
    for status, reason in ((RecipientStatus.FAILED, "invalid_number"), (RecipientStatus.COMPLETED, None)):
        ended = make_recipient(status=status, reason=reason)
        assert rule_of_recipient(ended, TrailRule.PROVIDER_REPORT) is TrailRule.PROVIDER_REPORT
