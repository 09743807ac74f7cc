"""What is asked of the database for many campaigns is asked for all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from outreach.ledger.leases import clock_steps, leases
from outreach.ledger.leases.leases import Wanted
from outreach.ledger.sending import committing, intents
from outreach.ledger.sending.intents import CommittedIntent
from outreach.models.campaign import Campaign
from outreach.models.states import CampaignStatus
from outreach.models.work import Claim
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.memory import empty_database, open_image, write_now
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    WORKSPACE_ID,
    make_campaign,
    make_dispatch,
    make_prepared,
    make_run,
    make_workspace,
    new_id,
)
from outreach.testing.storage_tables.base_contract import pending, publish
from tests.storage.unit_of_work.test_unit_of_work import forgetting, statements_of

MANY = 30

Asking = Callable[[Transaction, Sequence[Campaign]], Any]


def _claim(tx: Transaction, campaigns: Sequence[Campaign]) -> None:
    wanted = [Wanted(workspace_id=WORKSPACE_ID, campaign=one) for one in campaigns]
    assert all(leases.claim_all(tx, wanted, epoch=1, now=NOW))


def _look_back(tx: Transaction, campaigns: Sequence[Campaign]) -> None:
    asked = [CommittedIntent(make_dispatch(campaign_id=one.id, position=0), None, None) for one in campaigns]
    assert set(intents.withdrawal_reasons(tx, asked, NOW)) == {"settled_elsewhere"}


def _plan(tx: Transaction, campaigns: Sequence[Campaign]) -> None:
    plans = committing.plan_waves(tx, [(WORKSPACE_ID, one.id, 10) for one in campaigns], now=NOW)
    assert all(plan is not None and not plan.due for plan in plans)


def _look_at_waits(tx: Transaction, _: Sequence[Campaign]) -> None:
    clock_steps.correct_waits(tx, receipt=timedelta(days=1), epoch=1, now=NOW)


@pytest.fixture
def session() -> Iterator[Session]:
    """A database in memory that holds a workspace and two workers."""
    with closing(open_image(empty_database())) as connection:
        made = Session(connection)

        def prepare(tx: Transaction) -> None:
            tx.workspaces.insert(make_workspace(id=WORKSPACE_ID))
            for epoch in (1, 2):
                leases.begin_worker(tx, epoch=epoch, place=epoch, lasts=timedelta(minutes=1))
            for _ in range(2 * MANY):
                # The other worker drives so much that there is room for all.
                tx.claims.put(Claim(workspace_id=WORKSPACE_ID, subject=new_id(), epoch=2, held=True))

        write_now(made, prepare)
        yield made


@pytest.mark.parametrize("asking", [_claim, _look_back, _plan, _look_at_waits])
def test_many_campaigns_take_as_many_statements_as_one(session: Session, asking: Asking) -> None:
    """A database on another machine is a round trip away, and other writers wait meanwhile."""

    def given(count: int) -> list[Campaign]:
        made = [make_campaign(id=new_id(), status=CampaignStatus.ACTIVE) for _ in range(count)]

        def write(tx: Transaction) -> None:
            for campaign in made:
                publish(tx, campaign, pending() if asking is _plan else pending(make_prepared()))
                tx.runs.put(make_run(campaign_id=campaign.id, owner_epoch=2))

        write_now(session, write)
        return made

    one = given(1)
    first = tuple(statements_of(forgetting(session), lambda tx: asking(tx, one)))
    many = given(MANY)
    assert tuple(statements_of(forgetting(session), lambda tx: asking(tx, many))) == first
