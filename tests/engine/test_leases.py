from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from outreach.errors import LeaseLost
from outreach.ledger.leases import leases
from outreach.ledger.leases.leases import Takeover
from outreach.ledger.sending import singles
from outreach.models.base import Channel
from outreach.models.dispatch import DispatchOutcome
from outreach.models.message import Message
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus
from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_call,
    make_campaign,
    make_dispatch,
    make_message,
    make_provider_throttle,
    make_run,
)
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, TICK, given_campaign
from tests.engine.given import reread, settle

pytestmark = pytest.mark.virtual_time

HOME = DatabaseHome(host="machine-1", path="/srv/outreach.db")
ELSEWHERE = [DatabaseHome(host="machine-2", path=HOME.path), DatabaseHome(host=HOME.host, path="/tmp/copy.db")]  # noqa: S108


async def test_each_takeover_has_a_higher_epoch_and_the_old_worker_finds_out(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-11: a worker has one lease; its epoch is the fencing number."""
    first, second = await _take(storage), await _take(storage)
    assert (first.epoch, second.epoch) == (1, 2)
    await storage.write(lambda tx: leases.renew(tx, epoch=2, now=NOW + timedelta(seconds=2)))
    with pytest.raises(LeaseLost):
        await storage.write(lambda tx: leases.renew(tx, epoch=1, now=NOW))
    lease = await storage.read(lambda tx: tx.leases.current())
    assert lease is not None
    assert (lease.epoch, lease.renewed_at) == (2, NOW + timedelta(seconds=2))


async def test_a_takeover_keeps_how_far_the_caller_ids_have_gone_round(storage: Storage) -> None:
    """docs/rules.md#caller-id: the numbers of a group go on in turn, also after a restart."""
    campaign = await given_campaign(storage, campaign=make_campaign(status=CampaignStatus.ACTIVE))
    run = make_run(campaign_id=campaign.id, owner_epoch=0, assigned=7)
    await storage.write(lambda tx: tx.runs.put(run))
    taken = await _take(storage)
    after = await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id))
    assert after is not None
    assert (after.assigned, after.owner_epoch) == (7, taken.epoch)


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
async def test_a_database_on_another_host_or_path_does_not_start_sending(
    storage: Storage, elsewhere: DatabaseHome
) -> None:
    """docs/delivery-contract.md#rule-10: campaigns that run, or may have run on there, are paused as `moved`, once."""
    running = {
        status: await given_campaign(storage, campaign=make_campaign(status=status)) for status in CampaignStatus
    }
    assert (await _take(storage, home=HOME)).paused_campaigns == ()
    moved = await _take(storage, home=elsewhere)
    assert moved.reason == "moved"
    for status, campaign in running.items():
        after = await reread(storage, campaign)
        if status in {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED, CampaignStatus.PAUSED}:
            assert (after.status, after.pause_reason) == (CampaignStatus.PAUSED, "moved")
        else:
            assert after.status is status
    assert (await _take(storage, home=elsewhere)).reason is None


@pytest.mark.parametrize(("seconds", "reason"), [(0, None), (2, "restored")])
async def test_a_database_that_lacks_a_heartbeat_was_restored(
    storage: Storage, seconds: int, reason: str | None
) -> None:
    """A backup of this morning has the same epoch and the same change number where one campaign has gone on since."""
    campaign = await given_campaign(storage, campaign=make_campaign(status=CampaignStatus.ACTIVE))
    taken = await _take(storage, home=HOME)
    mark = await storage.write(lambda tx: leases.renew(tx, epoch=taken.epoch, now=NOW + TICK))
    assert mark is not None
    later = attrs.evolve(mark, renewed_at=NOW + TICK + timedelta(seconds=seconds))
    again = await storage.write(lambda tx: leases.take_over(tx, home=HOME, noted=later, now=NOW))
    assert (mark.renewed_at, again.reason) == (NOW + TICK, reason)
    assert (await reread(storage, campaign)).pause_reason == reason


@pytest.mark.parametrize("noted", [(9, 0), (1, 10_000)])
async def test_a_database_older_than_what_was_noted_beside_it_does_not_start_sending(
    storage: Storage, noted: tuple[int, int]
) -> None:
    """A restored file pauses its campaigns as `restored`, and epochs never repeat.

    docs/delivery-contract.md#rule-10.
    """
    campaign = await given_campaign(storage, campaign=make_campaign(status=CampaignStatus.ACTIVE))
    await _take(storage, home=HOME)
    taken = await _take(storage, home=HOME, noted=noted)
    after = await reread(storage, campaign)
    assert (taken.reason, after.status, after.pause_reason) == ("restored", CampaignStatus.PAUSED, "restored")
    assert taken.epoch > noted[0]


async def test_a_note_of_another_database_holds_nothing_back(storage: Storage) -> None:
    """A note that an earlier database left at this place says nothing of this one; epochs still do not repeat."""
    campaign = await given_campaign(storage, campaign=make_campaign(status=CampaignStatus.ACTIVE))
    taken = await _take(storage, home=HOME, noted=(9, 10_000), database="another")
    assert (taken.reason, (await reread(storage, campaign)).status) == (None, CampaignStatus.ACTIVE)
    assert taken.epoch > 9


async def test_queued_singles_of_a_moved_database_are_canceled(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-10: what was queued before the copy is not sent from it."""
    agent, message = make_agent(), make_message()
    call = make_call(agent_id=agent.id)
    await storage.write(lambda tx: tx.agents.insert(agent))
    await storage.write(lambda tx: singles.create_message(tx, message, now=NOW))
    await storage.write(lambda tx: singles.create_call(tx, call, now=NOW))
    assert await storage.write(lambda tx: singles.cancel_queued_singles(tx, reason="moved", now=NOW)) == 2
    held = await storage.read(
        lambda tx: (tx.messages.get(THIS_WORKSPACE, message.id), tx.calls.get(THIS_WORKSPACE, call.id))
    )
    assert held[0] is not None
    assert held[1] is not None
    assert (held[0].status, held[0].reason, held[1].status, held[1].error) == ("canceled", "moved", "canceled", "moved")
    assert await storage.read(lambda tx: list(tx.work.due())) == []


@pytest.mark.parametrize("decided", [False, True])
@pytest.mark.parametrize("channel", ["sms", "call"])
async def test_a_single_that_was_not_sent_before_the_move_is_not_sent_after_it(
    storage: Storage, channel: Channel, decided: bool
) -> None:
    """docs/delivery-contract.md#rule-10: the original may send it again too; only an operator's word lets it go."""
    agent = make_agent()
    message, call = make_message(), make_call(agent_id=agent.id)
    of = {"message_id": message.id} if channel == "sms" else {"call_id": call.id}
    await storage.write(lambda tx: tx.agents.insert(agent))
    await storage.write(lambda tx: tx.messages.insert(attrs.evolve(message, status=MessageStatus.UNKNOWN, tries=1)))
    await storage.write(lambda tx: tx.calls.insert(attrs.evolve(call, status=CallStatus.UNKNOWN, tries=1)))
    before = await _take(storage, home=HOME)
    dispatch = make_dispatch(channel=channel, state=DispatchState.UNKNOWN, epoch=before.epoch, **of)
    await storage.write(lambda tx: tx.dispatches.insert(dispatch))
    moved = await _take(storage, home=ELSEWHERE[0])
    # The mark stays when the next worker takes over.
    await _take(storage, home=ELSEWHERE[0])
    assert moved.reason == "moved"
    state = DispatchState.GIVEN_UP if decided else DispatchState.NOT_SENT
    await settle(storage, dispatch, DispatchOutcome(state=state))
    found = await storage.read(
        lambda tx: (
            tx.messages.get(THIS_WORKSPACE, message.id) if channel == "sms" else tx.calls.get(THIS_WORKSPACE, call.id)
        )
    )
    assert found is not None
    told = found.reason if isinstance(found, Message) else found.error
    assert (found.status, told) == (("queued", None) if decided else ("canceled", "moved"))


@pytest.mark.parametrize("status", [CampaignStatus.ACTIVE, CampaignStatus.PAUSED, CampaignStatus.SCHEDULED])
@pytest.mark.parametrize(("slot", "floor"), [(-60, 1), (0, 1), (6, 6), (30, 1)])
async def test_a_new_worker_keeps_a_spacing_from_the_last_start_of_the_old_one(
    storage: Storage, status: CampaignStatus, slot: int, floor: int
) -> None:
    """docs/rules.md#pace: it holds over restarts, also for one that is resumed; no slot lies 30 s ahead."""
    campaign = await given_campaign(storage, campaign=make_campaign(status=status, rate_per_minute=60))
    run = make_run(campaign_id=campaign.id, next_slot_at=NOW + timedelta(seconds=slot))
    await storage.write(lambda tx: tx.runs.put(run))
    await _take(storage)
    after = await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id))
    assert after is not None
    assert after.next_slot_at == NOW + timedelta(seconds=floor)


async def test_a_new_worker_lets_calls_start_at_once(storage: Storage) -> None:
    """docs/rules.md#concurrency: places are the pace of calls; a restart keeps no campaign from those free."""
    agent = make_agent()
    await storage.write(lambda tx: tx.agents.insert(agent))
    campaign = await given_campaign(
        storage, campaign=make_campaign(channel="call", agent_id=agent.id, status=CampaignStatus.ACTIVE)
    )
    await storage.write(lambda tx: tx.runs.put(make_run(campaign_id=campaign.id, next_slot_at=NOW)))
    taken = await _take(storage)
    after = await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id))
    assert after is not None
    assert (after.next_slot_at, after.owner_epoch) == (NOW, taken.epoch)


async def _take(
    storage: Storage,
    *,
    home: DatabaseHome | None = None,
    noted: tuple[int, int] | None = None,
    database: str | None = None,
) -> Takeover:
    def operation(tx: Transaction) -> Takeover:
        mark = None
        if noted is not None:
            mark = HighWaterMark(database=database or tx.leases.database_id(), epoch=noted[0], change=noted[1])
        return leases.take_over(tx, home=home, noted=mark, now=NOW)

    return await storage.write(operation)


async def test_a_heartbeat_never_lies_before_the_one_before(storage: Storage) -> None:
    """A clock that is set back, and a note that could not be written since, look like no copy from before it."""
    taken = await _take(storage, home=HOME)
    noted = await storage.write(lambda tx: leases.renew(tx, epoch=taken.epoch, now=NOW + TICK))
    early = NOW - timedelta(hours=1)
    mark = await storage.write(lambda tx: leases.renew(tx, epoch=taken.epoch, now=early, back=timedelta(hours=1)))
    assert noted is not None
    assert mark is not None
    assert noted.renewed_at is not None
    assert mark.renewed_at is not None
    assert mark.renewed_at > noted.renewed_at
    again = await storage.write(lambda tx: leases.take_over(tx, home=HOME, noted=noted, now=early))
    assert again.reason is None


async def test_a_late_repair_leaves_what_was_written_while_it_waited(storage: Storage) -> None:
    """The worker looked at its clock two seconds ago: what began a second ago is not from before the clock step."""
    taken = await _take(storage, home=HOME)
    second = timedelta(seconds=1)
    throttle = make_provider_throttle(since=NOW + second, until=NOW + timedelta(seconds=20))
    await storage.write(lambda tx: tx.provider_throttles.put(throttle))
    await storage.write(
        lambda tx: leases.renew(tx, epoch=taken.epoch, now=NOW, back=timedelta(hours=1), present=NOW + 2 * second)
    )
    found = await storage.read(lambda tx: tx.provider_throttles.get(THIS_WORKSPACE, throttle.provider))
    assert found == throttle
