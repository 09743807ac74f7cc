from __future__ import annotations

from typing import get_args

import pytest

from outreach.models.campaign import PauseReason
from outreach.models.states import CampaignMove, DispatchState, RecipientStatus
from outreach.models.trail import Rule
from outreach.policy.call_settlement import RETRIED_OUTCOMES
from outreach.policy.deciding import rule_of_move, rule_of_outcome, rule_of_recipient
from outreach.policy.settlement import PASSING_FAILURES
from outreach.testing.builders import make_recipient


@pytest.mark.parametrize("reason", get_args(PauseReason))
def test_every_reason_for_a_pause_has_a_rule(reason: PauseReason) -> None:
    """Only an operator's own pause is the operator's."""
    rule = rule_of_move(CampaignMove.PAUSE, by_engine=reason != "operator", pause_reason=reason)
    assert (rule is Rule.OPERATOR) == (reason == "operator")


@pytest.mark.parametrize("move", CampaignMove)
def test_a_move_is_the_operators_or_the_clocks(move: CampaignMove) -> None:
    """But a campaign completes by its ledger, and expires by its expiry, whoever is asked."""
    fixed = {CampaignMove.COMPLETE: Rule.LEDGER, CampaignMove.EXPIRE: Rule.EXPIRY}
    for by_engine, rule in ((True, Rule.SCHEDULE), (False, Rule.OPERATOR)):
        assert rule_of_move(move, by_engine=by_engine, pause_reason=None) is fixed.get(move, rule)


@pytest.mark.parametrize("state", [DispatchState.ACCEPTED, DispatchState.REFUSED])
@pytest.mark.parametrize("by", [Rule.PROVIDER_ANSWER, Rule.PROVIDER_REPORT, Rule.RECONCILIATION, Rule.OPERATOR])
def test_evidence_is_by_who_told_it(state: DispatchState, by: Rule) -> None:
    """An answer, a report, a look-up, an operator."""
    assert rule_of_outcome(state, None, by) is by


def test_what_was_not_sent_is_deferred_or_found_out() -> None:
    """By the answer it is a deferral; by a look-up it is evidence."""
    assert rule_of_outcome(DispatchState.NOT_SENT, "connect", Rule.PROVIDER_ANSWER) is Rule.DEFERRAL
    assert rule_of_outcome(DispatchState.NOT_SENT, None, Rule.RECONCILIATION) is Rule.RECONCILIATION


@pytest.mark.parametrize("reason", sorted(PASSING_FAILURES | RETRIED_OUTCOMES))
def test_what_might_have_passed_ends_by_its_budget(reason: str) -> None:
    """The same reason as a wait, and as an end."""
    failed = make_recipient(status=RecipientStatus.FAILED, reason=reason)
    assert rule_of_recipient(failed, Rule.PROVIDER_ANSWER) is Rule.RETRY_BUDGET
    waits = make_recipient(status=RecipientStatus.WAITING, reason="retry")
    assert rule_of_recipient(waits, Rule.PROVIDER_ANSWER) is Rule.RETRY_BUDGET


def test_a_reason_that_says_nothing_leaves_it_to_what_brought_it_there() -> None:
    """Such as a refusal for good, or a positive call."""
    for status, reason in ((RecipientStatus.FAILED, "invalid_number"), (RecipientStatus.COMPLETED, None)):
        ended = make_recipient(status=status, reason=reason)
        assert rule_of_recipient(ended, Rule.PROVIDER_REPORT) is Rule.PROVIDER_REPORT
