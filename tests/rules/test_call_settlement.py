from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypeAlias, get_args

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.models.call import CallOutcome
from outreach.models.campaign import Recipient
from outreach.models.dispatch import ASSUMED_SENT, DispatchOutcome, FailureClass
from outreach.models.settings import CallSettings
from outreach.models.states import (
    OPEN_RECIPIENT_STATUSES,
    TERMINAL_CAMPAIGN_STATUSES,
    CampaignStatus,
    DispatchState,
    RecipientStatus,
)
from outreach.rules.settlement import (
    DOUBLE_DIAL,
    RETRYABLE_OUTCOMES,
    SECOND_LEG_DEADLINE,
    Backoff,
    drop_second_leg,
    end_call,
    second_leg_is_late,
    settle_call_recipient,
)
from outreach.testing.builders import NOW, make_recipient

D: TypeAlias = DispatchState
R: TypeAlias = RecipientStatus
C: TypeAlias = CampaignStatus

BACKOFF = Backoff(first=timedelta(seconds=1), longest=timedelta(minutes=5))
SETTINGS = CallSettings(retry_max_attempts=3, retry_delay_minutes=30)
OUTCOMES: tuple[CallOutcome | None, ...] = (*get_args(CallOutcome), None)
RETRIED = {"busy", "no_answer", "declined", "voicemail"}
"""docs/rules.md#retry, written down a second time."""


def calling(**changes: Any) -> Recipient:
    """Return a recipient whose first call is on its way."""
    return make_recipient(**{"status": R.DISPATCHING, "attempts": 1, "tries": 1, **changes})


def settle(
    recipient: Recipient, outcome: DispatchOutcome, *, campaign: C = C.ACTIVE, settings: Any = SETTINGS
) -> Recipient:
    """Settle with what these tests do not vary."""
    return settle_call_recipient(recipient, outcome, campaign=campaign, settings=settings, backoff=BACKOFF, now=NOW)


def end(
    recipient: Recipient,
    outcome: CallOutcome | None,
    *,
    campaign: C = C.ACTIVE,
    double_dial: bool = False,
    settings: CallSettings = SETTINGS,
    late: timedelta = timedelta(),
    now: datetime = NOW,
) -> Recipient:
    """End a call with what these tests do not vary."""
    return end_call(
        recipient,
        outcome,
        campaign=campaign,
        double_dial=double_dial,
        settings=settings,
        ended_at=now - late,
        now=now,
    )


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [
        (DispatchOutcome(state=D.ACCEPTED), (R.IN_PROGRESS, "calling", 1, None)),
        (DispatchOutcome(state=D.ACCEPTED, reason=ASSUMED_SENT), (R.COMPLETED, ASSUMED_SENT, 1, None)),
        (DispatchOutcome(state=D.UNKNOWN, reason="timeout"), (R.UNKNOWN, "timeout", 1, None)),
        (DispatchOutcome(state=D.UNCONFIRMED, reason="no_evidence"), (R.UNCONFIRMED, "no_evidence", 1, None)),
        (DispatchOutcome(state=D.WITHDRAWN, reason="too_late"), (R.WAITING, "withdrawn", 0, timedelta())),
        (DispatchOutcome(state=D.GIVEN_UP), (R.WAITING, "operator_retry", 0, timedelta())),
        (DispatchOutcome(state=D.DEFERRED), (R.WAITING, "deferred", 0, timedelta(seconds=1))),
        (DispatchOutcome(state=D.DEFERRED, retry_after_seconds=9), (R.WAITING, "deferred", 0, timedelta(seconds=9))),
        (DispatchOutcome(state=D.NOT_SENT), (R.WAITING, "deferred", 0, timedelta(seconds=1))),
    ],
)
def test_each_answer_of_the_provider(outcome: DispatchOutcome, wanted: tuple[R, str, int, timedelta | None]) -> None:
    """Accepted is in progress, unknown stays unknown, what reached nobody spends no attempt.

    docs/states.md#recipients.
    """
    after = settle(calling(), outcome)
    due = None if after.due_at is None else after.due_at - NOW
    assert (after.status, after.reason, after.attempts, due) == wanted
    assert (after.ended_at is None) == after.is_open


@pytest.mark.parametrize("reason", get_args(FailureClass))
def test_only_a_refusal_that_may_pass_is_tried_again(reason: str) -> None:
    """What may pass; the account's trouble is not the contact's; every other refusal is final."""
    after = settle(calling(), DispatchOutcome(state=D.REFUSED, reason=reason))
    if reason == "temporary":
        assert (after.status, after.reason) == (R.WAITING, "retry_temporary")
        assert after.due_at == NOW + timedelta(minutes=30)
    elif reason in {"provider_auth", "provider_funds"}:
        assert (after.status, after.reason, after.attempts, after.dispatched) == (R.WAITING, "deferred", 0, False)
        return
    else:
        assert (after.status, after.reason, after.ended_at) == (R.FAILED, reason, NOW)
    assert after.dispatched


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_each_end_of_a_call(outcome: CallOutcome | None, attempts: int) -> None:
    """docs/rules.md#retry: busy, no answer, declined and voicemail share one budget; the first attempt counts."""
    after = end(calling(status=R.IN_PROGRESS, attempts=attempts), outcome)
    assert after.dispatched
    assert after.successful == (outcome == "positive")
    if outcome in RETRIED and attempts < 3:
        assert (after.status, after.reason) == (R.WAITING, f"retry_{outcome}")
        assert (after.due_at, after.tries) == (NOW + timedelta(minutes=30), 0)
    elif outcome in RETRIED or outcome == "failed":
        assert (after.status, after.reason, after.ended_at) == (R.FAILED, outcome, NOW)
    else:
        assert (after.status, after.ended_at) == (R.COMPLETED, NOW)
        assert after.reason == (None if outcome == "positive" else outcome)


def test_the_code_retries_what_the_design_says() -> None:
    """docs/rules.md#retry."""
    assert RETRYABLE_OUTCOMES == RETRIED


@pytest.mark.parametrize("campaign", sorted(TERMINAL_CAMPAIGN_STATUSES))
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("double_dial", [True, False])
def test_nothing_is_retried_in_a_campaign_that_is_over(
    campaign: C, outcome: CallOutcome | None, double_dial: bool
) -> None:
    """docs/states.md#recipients: what is in flight keeps its true outcome and is not retried."""
    after = end(calling(status=R.IN_PROGRESS), outcome, campaign=campaign, double_dial=double_dial)
    assert not after.is_open
    assert after.status is (R.FAILED if outcome in RETRIED | {"failed"} else R.COMPLETED)


@pytest.mark.parametrize(
    ("outcome", "leg", "second"),
    [(outcome, leg, outcome == "no_answer" and leg == 1) for outcome in OUTCOMES for leg in (1, 2)],
)
def test_a_second_leg_follows_only_a_known_no_answer(outcome: CallOutcome | None, leg: int, second: bool) -> None:
    """docs/rules.md#double-dial: within the attempt, only after a known no answer, and once."""
    after = end(calling(status=R.IN_PROGRESS, leg=leg), outcome, double_dial=True)
    assert (after.reason == DOUBLE_DIAL and after.leg == 2) is second
    if second:
        assert (after.status, after.due_at, after.attempts) == (R.WAITING, NOW, 1)
    elif after.is_open:
        assert after.leg == 1


@pytest.mark.parametrize(
    ("waited", "late"),
    [(timedelta(), False), (SECOND_LEG_DEADLINE, False), (SECOND_LEG_DEADLINE + timedelta(microseconds=1), True)],
)
def test_a_second_leg_is_late_after_ten_seconds(waited: timedelta, late: bool) -> None:
    """docs/rules.md#double-dial: within 10 s, else dropped; then the attempt was a no answer."""
    assert timedelta(seconds=10) == SECOND_LEG_DEADLINE
    waits = end(calling(status=R.IN_PROGRESS), "no_answer", double_dial=True)
    assert second_leg_is_late(waits, NOW + waited) is late
    dropped = drop_second_leg(waits, campaign=C.ACTIVE, settings=SETTINGS, now=NOW + waited)
    assert (dropped.status, dropped.reason, dropped.leg) == (R.WAITING, "retry_no_answer", 1)
    assert dropped.attempts == 1


@pytest.mark.parametrize(("late", "leg"), [(timedelta(seconds=60), 2), (timedelta(seconds=61), 1)])
def test_a_no_answer_that_is_reported_late_has_no_second_leg(late: timedelta, leg: int) -> None:
    """A second call would not follow the first one immediately. The contact is called again by the retry settings."""
    after = end(calling(status=R.IN_PROGRESS), "no_answer", double_dial=True, late=late)
    assert (after.status, after.leg, after.attempts) == (R.WAITING, leg, 1)
    assert after.reason == ("double_dial" if leg == 2 else "retry_no_answer")


@pytest.mark.parametrize("reason", ["contact_hours", "frequency_cap", "deferred"])
def test_a_second_leg_that_something_else_has_put_off_is_late(reason: str) -> None:
    """At the second leg nothing is waited for but the double dial; what waits for the morning is dropped."""
    waits = end(calling(status=R.IN_PROGRESS), "no_answer", double_dial=True)
    assert second_leg_is_late(attrs.evolve(waits, reason=reason), NOW)


@pytest.mark.parametrize("changes", [{"reason": "retry_no_answer", "leg": 1}, {"status": R.PENDING}])
def test_nobody_else_is_late(changes: dict[str, Any]) -> None:
    """Only who waits for the second call of a double dial can be too late for it."""
    waits = end(calling(status=R.IN_PROGRESS), "no_answer", double_dial=True)
    assert not second_leg_is_late(attrs.evolve(waits, **changes), NOW + timedelta(hours=1))


@pytest.mark.parametrize("state", [D.NOT_SENT, D.DEFERRED, D.WITHDRAWN, D.GIVEN_UP])
def test_a_second_leg_that_could_not_start_ends_its_attempt(state: D) -> None:
    """The first call of the attempt was a no answer: that is what the attempt came to, and it stays spent."""
    after = settle(calling(leg=2, tries=1), DispatchOutcome(state=state))
    assert (after.status, after.reason, after.leg, after.attempts, after.tries) == (
        R.WAITING,
        "retry_no_answer",
        1,
        1,
        0,
    )


ENDED = [status for status in RecipientStatus if status not in OPEN_RECIPIENT_STATUSES]


@pytest.mark.parametrize("status", ENDED)
@pytest.mark.parametrize("campaign", C)
def test_an_ended_recipient_is_never_opened_again(status: R, campaign: C) -> None:
    """docs/delivery-contract.md#rule-6: late evidence is kept, it opens nothing."""
    recipient = calling(status=status, ended_at=NOW, dispatched=True)
    answers = (D.ACCEPTED, D.REFUSED, D.UNCONFIRMED)
    reasons = (None, "temporary", "provider_auth", "provider_funds")
    outcomes = [DispatchOutcome(state=state, reason=reason) for state in answers for reason in reasons]
    for outcome in outcomes:
        assert not settle(recipient, outcome, campaign=campaign).is_open
    for heard in OUTCOMES:
        for double_dial in (True, False):
            assert not end(recipient, heard, campaign=campaign, double_dial=double_dial).is_open


answers = st.sampled_from(
    [
        DispatchOutcome(state=D.ACCEPTED),
        DispatchOutcome(state=D.REFUSED, reason="temporary"),
        DispatchOutcome(state=D.REFUSED, reason="rejected"),
        DispatchOutcome(state=D.DEFERRED),
        DispatchOutcome(state=D.NOT_SENT),
        DispatchOutcome(state=D.WITHDRAWN),
    ]
)


@given(
    st.lists(st.tuples(answers, st.sampled_from(OUTCOMES), st.floats(0, 20)), max_size=40),
    st.integers(1, 5),
    st.booleans(),
)
def test_whatever_comes_attempts_stay_within_the_budget_and_legs_within_two(
    course: list[tuple[DispatchOutcome, CallOutcome | None, float]], budget: int, double_dial: bool
) -> None:
    """Field, test 14: one budget for all reasons, and a double dial counts once."""
    settings = CallSettings(retry_max_attempts=budget, retry_delay_minutes=30)
    recipient, now = make_recipient(), NOW
    placed: dict[int, list[datetime]] = {}
    rang_out_at = now
    for answer, outcome, seconds in course:
        if not recipient.is_open:
            break
        now = max(now, recipient.due_at or now) + timedelta(seconds=seconds)
        if second_leg_is_late(recipient, now):
            recipient = drop_second_leg(recipient, campaign=C.ACTIVE, settings=settings, now=now)
            continue
        leg = recipient.leg
        attempts = recipient.attempts + 1 if leg == 1 else recipient.attempts
        if leg == 2:
            assert now - rang_out_at <= timedelta(seconds=10)
        recipient = attrs.evolve(recipient, status=R.DISPATCHING, due_at=None, attempts=attempts, tries=1)
        recipient = settle_call_recipient(
            recipient, answer, campaign=C.ACTIVE, settings=settings, backoff=BACKOFF, now=now
        )
        if recipient.status is R.IN_PROGRESS:
            placed.setdefault(attempts, []).append(now)
            now += timedelta(seconds=seconds)
            recipient = end(recipient, outcome, double_dial=double_dial, settings=settings, now=now)
            rang_out_at = now
    assert recipient.attempts <= budget
    assert all(attempt <= budget for attempt in placed)
    assert all(len(legs) <= (2 if double_dial else 1) for legs in placed.values())
