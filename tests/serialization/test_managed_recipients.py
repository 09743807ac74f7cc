"""Recipients and their histories over HTTP: their words agree with what the carrier has reported."""

from __future__ import annotations

import attrs
import pytest

from outreach.models.campaign import RecipientCount
from outreach.models.states import ContactHistory, RecipientStatus, TrailRule, TrailStep, TrailStepKind
from outreach.serialization.manage.campaigns import write_history, write_recipient, write_recipient_count
from outreach.testing.builders import NOW, make_recipient


def step(what: TrailStepKind, state: str) -> TrailStep:
    """Return a step of a history."""
    return TrailStep(at=NOW, what=what, rule=TrailRule.PROVIDER_REPORT, state=state)


INTENT = step(TrailStepKind.INTENT, "dispatching")
ENDED = step(TrailStepKind.ENDED, "completed")
SENT = step(TrailStepKind.REPORTED, "sent")
DELIVERED = step(TrailStepKind.REPORTED, "delivered")


def test_a_list_does_not_say_that_nothing_is_confirmed() -> None:
    """It does not read the carrier's reports; of a call, the state says all."""
    done = attrs.evolve(make_recipient(), status=RecipientStatus.COMPLETED)
    assert write_recipient(done, "sms")["why"] == "sent"
    assert write_recipient(done, "call")["why"] == "the call took place"
    assert write_recipient(attrs.evolve(done, reason="no_receipt"), "sms")["why"] == "sent; no receipt arrived in time"
    group = RecipientCount(status=RecipientStatus.COMPLETED, reason=None, count=2)
    assert write_recipient_count(group, "sms", {})["why"] == "sent"


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([INTENT, ENDED], "sent, not yet confirmed"),
        ([INTENT, ENDED, SENT], "sent, not yet confirmed"),
        ([INTENT, ENDED, SENT, DELIVERED], "delivered"),
        ([INTENT, DELIVERED, INTENT, ENDED], "sent, not yet confirmed"),
    ],
    ids=["no report", "sent", "delivered", "the last message counts"],
)
def test_a_history_says_what_the_carrier_reported(steps: list[TrailStep], why: str) -> None:
    """By the last report on the last message."""
    history = ContactHistory(
        campaign_id="c",
        position=0,
        phone_number="+14155550101",
        phone="+14155550101",
        status=RecipientStatus.COMPLETED,
        reason=None,
        due_at=None,
        steps=steps,
    )
    assert write_history(history, {}, "sms")["why"] == why
