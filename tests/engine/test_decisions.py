"""Decisions about many unknown requests at once, and taking them back (docs/delivery-contract.md#rule-6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import attrs
import pytest

from outreach import Conflict, InvalidRequest, NotFound, Outreach
from outreach.dispatch.looking_up import LookUps
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.settling import ledger
from outreach.models import DecisionResult, DispatchFilter
from outreach.models.campaign import Campaign, Counters
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.states import CallStatus, DispatchState, MessageStatus, RecipientStatus, TrailRule
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_agent, make_call, make_dispatch, make_lease, make_message, new_id
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE
from tests.engine.conftest import OpenStorage, given_workspaces
from tests.engine.given import BACKOFF, given_active

pytestmark = pytest.mark.anyio

R, D = RecipientStatus, DispatchState
LATER = NOW + timedelta(seconds=150)


@attrs.frozen(kw_only=True)
class Outage:
    """A campaign whose requests got no answer two minutes ago and less."""

    engine: Outreach
    storage: Storage
    campaign: Campaign
    requests: Sequence[Dispatch]

    async def states(self) -> dict[str, int]:
        """Return the number of contacts by state; the counters equal a recount."""

        def operation(tx: Transaction) -> dict[str, int]:
            stored = tx.campaigns.get(THIS_WORKSPACE, self.campaign.id)
            assert stored is not None
            assert stored.counters == tx.recipients.recount(THIS_WORKSPACE, self.campaign.id)
            found = tx.recipients.page(THIS_WORKSPACE, self.campaign.id)
            return dict(Counter(one.status.value for one in found))

        return await self.storage.read(operation)

    async def decide(self, decision: Any = "retry", *, dry_run: bool = False, **which: Any) -> DecisionResult:
        """Decide about many."""
        return await self.engine.dispatches.resolve_many(
            THIS_WORKSPACE, decision, DispatchFilter(**which), dry_run=dry_run, actor="cli:ann"
        )

    async def undo(self, *, dry_run: bool = False, **which: Any) -> DecisionResult:
        """Take decisions back."""
        return await self.engine.dispatches.undo_many(
            THIS_WORKSPACE, DispatchFilter(**which), dry_run=dry_run, actor="cli:ann"
        )


@pytest.fixture
def storage(open_storage: OpenStorage, clock: ManualClock) -> Storage:
    """Return a storage that the engine opens."""
    return open_storage(clock)


@pytest.fixture
async def writing(storage: Storage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine that does not dispatch on a database of two workspaces."""
    async with Outreach(storage, clock=clock) as engine:
        await given_workspaces(storage)
        yield engine


@pytest.fixture
async def outage(writing: Outreach, storage: Storage, clock: ManualClock) -> Outage:
    """Return a campaign with 120 unknown contacts: two slices."""
    return await given_outage(writing, storage, clock, 120)


async def given_outage(engine: Outreach, storage: Storage, clock: ManualClock, count: int) -> Outage:
    """Write a campaign with unknown contacts, each after a first request."""
    campaign = await given_active(storage, count)
    clock.advance(150)

    def operation(tx: Transaction) -> Sequence[Dispatch]:
        change, requests = Counters(), []
        for before in tx.recipients.page(THIS_WORKSPACE, campaign.id):
            request = make_dispatch(
                workspace_id=THIS_WORKSPACE,
                campaign_id=campaign.id,
                position=before.position,
                to=before.phone,
                state=D.UNKNOWN,
                reason="timeout" if before.position % 5 else "provider_error",
                created_at=NOW + timedelta(seconds=before.position),
            )
            tx.dispatches.insert(request)
            after = attrs.evolve(before, status=R.UNKNOWN, reason=request.reason, attempts=1, tries=1, dispatched=True)
            change += put_recipient(tx, THIS_WORKSPACE, before, after, rule=TrailRule.ONCE, now=NOW)
            requests.append(request)
        tx.campaigns.add_counters(THIS_WORKSPACE, campaign.id, change)
        tx.leases.put(make_lease(steady_since=NOW - timedelta(hours=1), steady_until=LATER))
        return requests

    requests = await storage.write(operation)
    return Outage(engine=engine, storage=storage, campaign=campaign, requests=requests)


async def test_a_decision_is_counted_before_it_changes_anything(outage: Outage) -> None:
    """A retry spares a request that may still be on its way; the count is what the decision then does."""
    counted = await outage.decide(dry_run=True)
    # The youngest request is 31 s old: the provider's time, an intent's life and the lease are not over.
    assert counted.changed + counted.kept == 120
    assert 1 < counted.kept < 90
    assert await outage.states() == {"unknown": 120}
    assert counted.becomes == {"waiting": counted.changed}
    assert await outage.decide() == counted
    assert await outage.states() == {"waiting": counted.changed, "unknown": counted.kept}


async def test_every_contact_has_a_step_in_its_trail_and_an_entry_in_the_audit(outage: Outage) -> None:
    """They name the operator's rule, and who decided."""
    await outage.decide("assume_sent")
    assert await outage.states() == {"completed": 120}
    for position in (0, 119):
        history = await outage.engine.campaigns.recipient_history(THIS_WORKSPACE, outage.campaign.id, position)
        steps = [(one.what.value, one.state, one.reason) for one in history.steps if one.rule is TrailRule.OPERATOR]
        assert ("outcome", "accepted", "assumed_sent") in steps
    entries = [
        one async for one in outage.engine.audit.iter_all(THIS_WORKSPACE) if one.action == "dispatch.assume_sent"
    ]
    assert {one.subject for one in entries} == {one.id for one in outage.requests}
    assert {one.actor for one in entries} == {"cli:ann"}


@pytest.mark.parametrize(
    ("which", "count"),
    [
        ({"provider": "twilio"}, 120),
        ({"provider": "vonage"}, 0),
        ({"reason": "provider_error"}, 24),
        ({"since": NOW + timedelta(seconds=10), "until": NOW + timedelta(seconds=20)}, 10),
        ({"since": NOW + timedelta(seconds=10), "reason": "provider_error", "until": NOW + timedelta(seconds=20)}, 2),
    ],
)
async def test_all_conditions_of_a_filter_hold_together(outage: Outage, which: dict[str, Any], count: int) -> None:
    """The campaign's, the account's, the time's, the reason's."""
    assert (await outage.decide("assume_sent", dry_run=True, **which)).changed == count
    assert (await outage.decide("assume_sent", campaign_id=outage.campaign.id, **which)).changed == count
    assert (await outage.undo(provider=which.get("provider"))).changed == count


@pytest.mark.parametrize("decision", ["retry", "assume_sent"])
async def test_an_undone_decision_leaves_the_contacts_as_they_were(outage: Outage, decision: str) -> None:
    """They are unknown again, with their counters; a campaign that had completed is active again."""

    def contacts(tx: Transaction) -> list[object]:
        found = tx.recipients.page(THIS_WORKSPACE, outage.campaign.id)
        return [attrs.evolve(one, reason=None) for one in found]

    before = await outage.storage.read(contacts)
    decided = await outage.decide(decision)
    counted = await outage.undo(dry_run=True)
    assert counted == DecisionResult(changed=decided.changed, kept=0, becomes={"unknown": decided.changed})
    assert await outage.undo() == counted
    assert await outage.undo() == DecisionResult()
    assert await outage.storage.read(contacts) == before
    # Unknown outcomes also spend the error budget.
    found = await outage.engine.campaigns.get(THIS_WORKSPACE, outage.campaign.id)
    assert found.status == ("paused" if decision == "retry" else "active")
    history = await outage.engine.campaigns.recipient_history(THIS_WORKSPACE, outage.campaign.id, 0)
    steps = [(one.what.value, one.state, one.reason, one.rule) for one in history.steps]
    assert ("outcome", "unknown", "decision_undone", TrailRule.OPERATOR) in steps
    # The same decision can be made once more.
    assert (await outage.decide(decision)).changed == decided.changed


async def test_no_decision_is_undone_after_which_something_was_sent(
    writing: Outreach, storage: Storage, clock: ManualClock
) -> None:
    """Nor one about a request that its provider has reported on since, or whose contact somebody left out."""
    outage = await given_outage(writing, storage, clock, 4)
    again, reported, left_out, _ = outage.requests
    await outage.decide()
    later = attrs.evolve(again, id=new_id(), try_number=2, state=D.DISPATCHING, reason=None, created_at=LATER)
    await storage.write(lambda tx: tx.dispatches.insert(later))
    accepted = DispatchOutcome(state=D.ACCEPTED, provider_id="P-1")
    await storage.write(lambda tx: ledger.settle(tx, THIS_WORKSPACE, reported.id, accepted, backoff=BACKOFF, now=LATER))
    await outage.engine.campaigns.skip_recipient(THIS_WORKSPACE, outage.campaign.id, left_out.position or 0)
    # The reported one is decided no more; it is not counted.
    assert await outage.undo() == DecisionResult(changed=1, kept=2, becomes={"unknown": 1})
    states = [(await outage.engine.dispatches.get(THIS_WORKSPACE, one.id)).state for one in outage.requests]
    assert states == [D.GIVEN_UP, D.ACCEPTED, D.GIVEN_UP, D.UNKNOWN]


@pytest.mark.parametrize("decision", ["retry", "assume_sent"])
async def test_single_messages_and_calls_are_decided_too(
    writing: Outreach, storage: Storage, clock: ManualClock, decision: str
) -> None:
    """An undone one is unknown again, and nothing is due for it."""
    outage = await given_outage(writing, storage, clock, 0)
    agent = make_agent(workspace_id=THIS_WORKSPACE)
    message = make_message(workspace_id=THIS_WORKSPACE, status=MessageStatus.UNKNOWN, attempts=1, tries=1)
    call = make_call(workspace_id=THIS_WORKSPACE, agent_id=agent.id, status=CallStatus.UNKNOWN, tries=1)
    common = {"workspace_id": THIS_WORKSPACE, "state": D.UNKNOWN, "reason": "timeout"}

    def operation(tx: Transaction) -> None:
        tx.agents.insert(agent)
        tx.messages.insert(message)
        tx.calls.insert(call)
        tx.dispatches.insert(make_dispatch(message_id=message.id, **common))
        tx.dispatches.insert(make_dispatch(call_id=call.id, channel="call", body=None, segments=None, **common))

    await storage.write(operation)
    becomes = {"queued": 2} if decision == "retry" else {"accepted": 1, "unconfirmed": 1}
    assert await outage.decide(decision) == DecisionResult(changed=2, kept=0, becomes=becomes)
    assert await outage.undo() == DecisionResult(changed=2, kept=0, becomes={"unknown": 2})
    undone = await outage.engine.messages.get(THIS_WORKSPACE, message.id)
    assert undone == attrs.evolve(message, reason="decision_undone")
    assert await outage.engine.calls.get(THIS_WORKSPACE, call.id) == attrs.evolve(call, error="decision_undone")


async def test_a_wrong_decision_is_refused(outage: Outage) -> None:
    """Nothing is changed; another workspace's requests are not found."""
    with pytest.raises(InvalidRequest, match="assume_sent or retry"):
        await outage.decide("undo")
    with pytest.raises(NotFound):
        await outage.decide(campaign_id=new_id())
    with pytest.raises(NotFound):
        await outage.engine.dispatches.undo_many(new_id())
    assert await outage.engine.dispatches.resolve_many(OTHER_WORKSPACE, "retry") == DecisionResult()
    assert await outage.states() == {"unknown": 120}


async def test_a_look_up_settles_by_evidence_alone(
    outage: Outage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing, or that it did not arrive while it may be on its way, leaves it unknown; each is in the audit."""
    dispatches, first, last = outage.engine.dispatches, outage.requests[0], outage.requests[-1]
    with pytest.raises(Conflict, match="sandbox"):
        await dispatches.look_up(THIS_WORKSPACE, first.id)
    answers: list[DispatchOutcome | Exception | None] = []

    async def ask(*_: object) -> DispatchOutcome | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(LookUps, "ask", ask)
    monkeypatch.setattr(dispatches, "_provider_pool", lambda _: None)
    not_sent = DispatchOutcome(state=DispatchState.NOT_SENT)
    for request, answer, state in (
        (first, None, DispatchState.UNKNOWN),
        (last, not_sent, DispatchState.UNKNOWN),
        (first, not_sent, DispatchState.NOT_SENT),
    ):
        answers.append(answer)
        found = await dispatches.look_up(THIS_WORKSPACE, request.id, actor="cli:ann")
        assert (found.dispatch.state, found.answer) == (state, answer and answer.state)
    answers.append(OSError("secret"))
    with pytest.raises(Conflict, match="twilio could not be asked") as refused:
        await dispatches.look_up(THIS_WORKSPACE, last.id)
    assert "secret" not in str(refused.value)
    with pytest.raises(Conflict, match="nothing to look up"):
        await dispatches.look_up(THIS_WORKSPACE, first.id)
    with pytest.raises(NotFound):
        await dispatches.look_up(OTHER_WORKSPACE, last.id)
    entries = [one for one in await outage.engine.audit.list(THIS_WORKSPACE) if one.action == "dispatch.look_up"]
    assert [(one.actor, one.detail) for one in reversed(entries)] == [
        ("cli:ann", "no evidence"),
        ("cli:ann", "not_sent"),
        ("cli:ann", "not_sent"),
    ]
    assert await outage.states() == {"unknown": 119, "waiting": 1}
