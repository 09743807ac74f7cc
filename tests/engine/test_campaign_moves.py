from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeAlias

import pytest

from outreach.errors import CannotStart, IllegalTransition, WorkspaceUnavailable
from outreach.ledger.campaigns import transitions as moves
from outreach.models.campaign import CallerIdAllocation, Campaign
from outreach.models.settings import BusinessHours
from outreach.models.states import (
    CAMPAIGN_TRANSITIONS,
    TERMINAL_CAMPAIGN_STATUSES,
    CampaignAction,
    CampaignStatus,
    WorkspaceMode,
    WorkspaceStatus,
    next_campaign_status,
)
from outreach.models.work import WorkUnit
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_account,
    make_agent,
    make_call_campaign,
    make_campaign,
    make_number,
    make_trunk,
    make_workspace,
)
from outreach.testing.storage_tables.base_contract import (
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    given_campaign,
    given_recipients,
)
from tests.engine.given import SECOND, reread

pytestmark = pytest.mark.virtual_time

S: TypeAlias = CampaignStatus
M: TypeAlias = CampaignAction
HOUR = timedelta(hours=1)

DESIGN_TABLE = {
    (S.DRAFT, M.FINISH_SETUP): S.READY,
    (S.READY, M.REOPEN_SETUP): S.DRAFT,
    (S.READY, M.START): S.ACTIVE,
    (S.READY, M.SCHEDULE): S.SCHEDULED,
    (S.SCHEDULED, M.UNSCHEDULE): S.READY,
    (S.PAUSED, M.UNSCHEDULE): S.READY,
    (S.SCHEDULED, M.START): S.ACTIVE,
    (S.ACTIVE, M.PAUSE): S.PAUSED,
    (S.SCHEDULED, M.PAUSE): S.PAUSED,
    (S.PAUSED, M.RESUME): S.ACTIVE,
    (S.PAUSED, M.RESUME_SCHEDULE): S.SCHEDULED,
    (S.DRAFT, M.CANCEL): S.CANCELLED,
    (S.READY, M.CANCEL): S.CANCELLED,
    (S.SCHEDULED, M.CANCEL): S.CANCELLED,
    (S.ACTIVE, M.CANCEL): S.CANCELLED,
    (S.PAUSED, M.CANCEL): S.CANCELLED,
    (S.ACTIVE, M.COMPLETE): S.COMPLETED,
    (S.COMPLETED, M.REOPEN): S.ACTIVE,
    (S.ACTIVE, M.EXPIRE): S.EXPIRED,
    (S.SCHEDULED, M.EXPIRE): S.EXPIRED,
    (S.PAUSED, M.EXPIRE): S.EXPIRED,
}
"""docs/states.md#campaigns, written down a second time: the code's table must say the same."""


def to_ask_for(status: S) -> tuple[str, ...]:
    """Return what somebody can ask for in a status: what the library and the command line have by these names."""
    asked_for = {M.START, M.UNSCHEDULE, M.PAUSE, M.RESUME, M.CANCEL}
    by_itself = {(S.SCHEDULED, M.START), (S.PAUSED, M.UNSCHEDULE)}
    return tuple(sorted(m for s, m in DESIGN_TABLE if s is status and m in asked_for and (s, m) not in by_itself))


@pytest.mark.parametrize("status", S)
@pytest.mark.parametrize("move", M)
def test_every_pair_of_status_and_move_is_as_the_design_says(status: S, move: M) -> None:
    """docs/states.md#campaigns: one table; what it lacks raises with the state and the moves to ask for."""
    wanted = DESIGN_TABLE.get((status, move))
    if wanted is not None:
        assert next_campaign_status(status, move) is wanted
        return
    with pytest.raises(IllegalTransition) as caught:
        next_campaign_status(status, move)
    error = caught.value
    assert (error.state, error.move) == (status, move)
    assert error.allowed == to_ask_for(status)
    assert status in error.message
    assert move in error.message


def test_the_table_has_no_other_moves_and_of_terminal_states_only_the_one_of_a_limit() -> None:
    """docs/states.md#campaigns: completed, cancelled and expired are terminal; the engine alone opens one again."""
    assert dict(CAMPAIGN_TRANSITIONS) == DESIGN_TABLE
    leaves = {state for state, step in CAMPAIGN_TRANSITIONS if step is not M.REOPEN}
    assert set(S) - leaves == TERMINAL_CAMPAIGN_STATUSES


async def test_every_move_carries_along_its_times_its_work_and_its_entry(storage: Storage) -> None:
    """Each legal move writes status, revision, started_at, completed_at, work feed and audit trail together."""
    later = NOW + HOUR
    for (status, move), wanted in DESIGN_TABLE.items():
        campaign = await given_campaign(storage, campaign=make_campaign(status=status))
        moved = await storage.write(
            lambda tx, campaign=campaign, move=move: moves.move(  # type: ignore[misc]
                tx, campaign, move, now=later, actor="cli:ann", pause_reason="operator"
            )
        )
        stored = await reread(storage, campaign)
        assert stored == moved
        assert (stored.status, stored.revision, stored.updated_at) == (wanted, campaign.revision + 1, later)
        assert stored.started_at == (later if wanted is S.ACTIVE else None)
        assert stored.completed_at == (later if wanted in TERMINAL_CAMPAIGN_STATUSES else None)
        assert stored.pause_reason == ("operator" if wanted is S.PAUSED else None)
        work = await storage.read(
            lambda tx, campaign=campaign: tx.work.get(WorkUnit("campaign", THIS_WORKSPACE, campaign.id))  # type: ignore[misc]
        )
        assert work is not None
        assert work.due_at == (later if wanted in {S.ACTIVE, S.SCHEDULED} else None)
        (entry, *_) = await storage.read(lambda tx: tx.audit.list(THIS_WORKSPACE))
        assert (entry.actor, entry.action, entry.subject) == ("cli:ann", f"campaign.{move}", campaign.id)


async def test_started_at_is_that_of_the_first_start(storage: Storage) -> None:
    """docs/interface.md#3, rule 3: started_at is set when the campaign first becomes active, and stays."""
    campaign = await given_recipients(storage, 1)
    operations: tuple[Callable[..., Campaign], ...] = (moves.start, moves.pause, moves.resume)
    for minutes, operation in enumerate(operations):
        await _do(storage, operation, campaign, now=NOW + timedelta(minutes=minutes))
    assert (await reread(storage, campaign)).started_at == NOW


@pytest.mark.parametrize(
    ("start_at", "status"),
    [(None, S.ACTIVE), (NOW - SECOND, S.ACTIVE), (NOW, S.ACTIVE), (NOW + SECOND, S.SCHEDULED)],
)
async def test_start_schedules_while_the_start_is_ahead(storage: Storage, start_at: Any, status: S) -> None:
    """docs/states.md#campaigns: ready becomes active when its start has passed, scheduled when it is ahead."""
    campaign = await given_campaign(
        storage,
        campaign=make_campaign(schedule_type="scheduled" if start_at else "immediate", scheduled_start_at=start_at),
    )
    started = await _do(storage, moves.start, campaign)
    assert started.status is status
    if status is S.SCHEDULED:
        work = await storage.read(lambda tx: tx.work.get(WorkUnit("campaign", THIS_WORKSPACE, campaign.id)))
        assert work is not None
        assert work.due_at == start_at


async def test_a_draft_says_by_field_what_it_lacks(storage: Storage) -> None:
    """Not a move that nobody can ask for; what else is in the way of the start is named too."""
    draft = make_campaign(status=S.DRAFT, body=" ", from_number=None, carrier=None, scheduled_expires_at=NOW)
    campaign = await given_campaign(storage, campaign=draft)
    with pytest.raises(CannotStart) as caught:
        await _do(storage, moves.start, campaign)
    paths = ["body", "from_number", "carrier", "scheduled_expires_at"]
    assert [detail.path for detail in caught.value.details] == paths
    assert caught.value.reasons == tuple(detail.message for detail in caught.value.details)
    assert "It has no carrier" in caught.value.message
    assert (await reread(storage, campaign)).status is S.DRAFT


async def test_a_flow_campaign_without_a_flow_lacks_that(storage: Storage) -> None:
    """And no message of its own."""
    draft = make_campaign(status=S.DRAFT, message_source="flow", body=None, flow_id=None)
    campaign = await given_campaign(storage, campaign=draft)
    with pytest.raises(CannotStart) as caught:
        await _do(storage, moves.start, campaign)
    assert [detail.path for detail in caught.value.details] == ["flow_id"]


async def test_a_draft_that_lacks_nothing_any_more_starts(storage: Storage) -> None:
    """Whatever left it a draft."""
    campaign = await given_campaign(storage, campaign=make_campaign(status=S.DRAFT))
    assert (await _do(storage, moves.start, campaign)).status is S.ACTIVE


@pytest.mark.parametrize("operation", [moves.pause, moves.cancel])
async def test_pause_and_cancel_a_second_time_change_nothing(
    storage: Storage, operation: Callable[..., Campaign]
) -> None:
    """Pausing what is paused and cancelling what is cancelled answer with the campaign as it is."""
    campaign = await given_campaign(storage, campaign=make_campaign(status=S.ACTIVE))
    first = await _do(storage, operation, campaign)
    again = await _do(storage, operation, campaign, now=NOW + HOUR)
    assert again == first
    assert len(await storage.read(lambda tx: tx.audit.list(THIS_WORKSPACE))) == 1


@pytest.mark.parametrize("status", sorted(TERMINAL_CAMPAIGN_STATUSES))
@pytest.mark.parametrize("operation", [moves.start, moves.pause, moves.resume, moves.cancel, moves.unschedule])
async def test_nothing_moves_a_campaign_that_is_over(
    storage: Storage, operation: Callable[..., Campaign], status: S
) -> None:
    """docs/states.md#campaigns: terminal states are final; only cancelling the cancelled is quiet."""
    campaign = await given_campaign(storage, campaign=make_campaign(status=status, completed_at=NOW))
    if operation is moves.cancel and status is S.CANCELLED:
        assert (await _do(storage, operation, campaign)).revision == campaign.revision
        return
    with pytest.raises(IllegalTransition) as caught:
        await _do(storage, operation, campaign)
    assert caught.value.allowed == ()
    assert "this state is final" in caught.value.message
    may_reopen = status is S.COMPLETED and operation in {moves.pause, moves.cancel}
    assert ("outreach-server stop WORKSPACE_ID" in caught.value.message) is may_reopen


@pytest.mark.parametrize("operation", [moves.start, moves.resume])
@pytest.mark.parametrize("expiry", [NOW - SECOND, NOW])
async def test_nothing_starts_after_its_expiry(
    storage: Storage, operation: Callable[..., Campaign], expiry: Any
) -> None:
    """docs/states.md#campaigns: never after expiry, and expired means now >= expiry."""
    status = S.READY if operation is moves.start else S.PAUSED
    campaign = await given_campaign(storage, campaign=make_campaign(status=status, scheduled_expires_at=expiry))
    with pytest.raises(CannotStart) as caught:
        await _do(storage, operation, campaign)
    assert caught.value.reasons == ("Its scheduled_expires_at has passed.",)


@pytest.mark.parametrize(
    ("started_at", "start_at", "status"),
    [
        (None, NOW + HOUR, S.SCHEDULED),
        (None, NOW - HOUR, S.ACTIVE),
        (NOW, NOW + HOUR, S.SCHEDULED),
        (None, None, S.ACTIVE),
    ],
)
async def test_resume_schedules_while_the_start_is_still_ahead(
    storage: Storage, started_at: Any, start_at: Any, status: S
) -> None:
    """docs/states.md#campaigns: paused becomes scheduled when the start is still ahead, else active."""
    campaign = await given_campaign(
        storage,
        campaign=make_campaign(
            status=S.PAUSED, schedule_type="scheduled", scheduled_start_at=start_at, started_at=started_at
        ),
    )
    assert (await _do(storage, moves.resume, campaign)).status is status


@pytest.mark.parametrize("operation", [moves.start, moves.resume])
@pytest.mark.parametrize("workspace_status", [s for s in WorkspaceStatus if s is not WorkspaceStatus.ACTIVE])
async def test_nothing_starts_in_a_workspace_that_may_not_work(
    storage: Storage, operation: Callable[..., Campaign], workspace_status: WorkspaceStatus
) -> None:
    """docs/interface.md#5: an unavailable, suspended or paywalled workspace starts nothing."""
    campaign = await given_campaign(storage, campaign=make_campaign(status=S.PAUSED))
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(status=workspace_status)))
    with pytest.raises(WorkspaceUnavailable):
        await _do(storage, operation, campaign)


async def test_everything_that_is_in_the_way_of_a_start_is_named(storage: Storage) -> None:
    """CannotStart carries every reason, not the first one only."""
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(mode=WorkspaceMode.LIVE)))
    campaign = await given_campaign(storage, campaign=make_campaign(scheduled_expires_at=NOW - SECOND))
    with pytest.raises(CannotStart) as caught:
        await _do(storage, moves.start, campaign)
    assert len(caught.value.reasons) == 3
    assert [detail.path for detail in caught.value.details] == ["scheduled_expires_at", "account.twilio", "from_number"]
    assert "outreach-server" not in caught.value.message
    assert (await reread(storage, campaign)).status is S.READY


async def test_a_live_campaign_starts_once_its_workspace_has_an_account(storage: Storage) -> None:
    """docs/rules.md#sandbox: a live workspace sends by real providers, and without an account it does not start."""
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(mode=WorkspaceMode.LIVE)))
    campaign = await given_campaign(storage)
    await storage.write(lambda tx: tx.numbers.insert(make_number(phone=campaign.from_number)))
    await storage.write(lambda tx: tx.accounts.insert(make_account(provider="telnyx")))
    with pytest.raises(CannotStart, match="no account at twilio"):
        await _do(storage, moves.start, campaign)
    await storage.write(lambda tx: tx.accounts.insert(make_account(provider="twilio")))
    assert (await _do(storage, moves.start, campaign)).status is S.ACTIVE


async def test_a_campaign_whose_hours_never_open_does_not_start(storage: Storage) -> None:
    """It would be active for ever and reach nobody."""
    never = BusinessHours(enabled=True, timezone="UTC", schedule={}, batch_concurrency=10)
    campaign = await given_campaign(storage, campaign=make_campaign(business_hours=never, status=S.READY))
    with pytest.raises(CannotStart, match="no opening within a year"):
        await _do(storage, moves.start, campaign)


@pytest.mark.parametrize("operation", [moves.start, moves.resume])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (None, ("It has no agent.",)),
        ({"is_active": False}, ("Its agent 'Ada' is inactive.",)),
        ({"direction": "inbound"}, ("Its agent 'Ada' is inbound and may not call out.",)),
        (
            {"is_active": False, "direction": "inbound"},
            ("Its agent 'Ada' is inactive.", "Its agent 'Ada' is inbound and may not call out."),
        ),
        ({"workspace_id": OTHER_WORKSPACE}, ("It has no agent.",)),
    ],
)
async def test_a_calling_campaign_does_not_start_without_an_agent_that_may_call_out(
    storage: Storage, operation: Callable[..., Campaign], changes: dict[str, Any] | None, words: tuple[str, ...]
) -> None:
    """It is ready when its agent is active and may call out; that is asked again at the start.

    docs/interface.md#campaigns.
    """
    agent_id = None if changes is None else await _given_agent(storage, **changes)
    status = S.READY if operation is moves.start else S.PAUSED
    campaign = await given_campaign(storage, campaign=make_call_campaign(agent_id=agent_id, status=status))
    with pytest.raises(CannotStart) as caught:
        await _do(storage, operation, campaign)
    assert caught.value.reasons == words
    assert (await reread(storage, campaign)).status is status


@pytest.mark.parametrize("status", [S.SCHEDULED, S.ACTIVE, S.PAUSED])
@pytest.mark.parametrize(("expiry", "expired"), [(NOW, True), (NOW - HOUR, True), (NOW + SECOND, False)])
async def test_the_clock_expires_what_runs_waits_or_is_paused(
    storage: Storage, status: S, expiry: Any, expired: bool
) -> None:
    """docs/states.md#campaigns: scheduled, active and paused expire by the clock, at the moment itself."""
    campaign = await given_campaign(
        storage,
        campaign=make_campaign(
            status=status,
            scheduled_expires_at=expiry,
            schedule_type="scheduled",
            scheduled_start_at=NOW + 2 * HOUR,
        ),
    )
    assert (await _advance(storage, campaign)).status is (S.EXPIRED if expired else status)


@pytest.mark.parametrize("status", [S.DRAFT, S.READY, *sorted(TERMINAL_CAMPAIGN_STATUSES)])
async def test_the_clock_never_moves_a_campaign_that_was_not_started(storage: Storage, status: S) -> None:
    """docs/interface.md#expiry: the raw status of a draft or ready campaign never changes by time."""
    campaign = await given_campaign(
        storage, campaign=make_campaign(status=status, scheduled_expires_at=NOW - HOUR, scheduled_start_at=NOW - HOUR)
    )
    assert (await _advance(storage, campaign)) == await reread(storage, campaign)
    assert (await reread(storage, campaign)).status is status


@pytest.mark.field(15)
@pytest.mark.parametrize(
    ("late", "status", "reason"),
    [
        (timedelta(0), S.ACTIVE, None),
        (HOUR, S.ACTIVE, None),
        (HOUR + timedelta(microseconds=1), S.PAUSED, "missed_start"),
        (-timedelta(microseconds=1), S.SCHEDULED, None),
    ],
)
async def test_a_start_missed_by_more_than_the_grace_pauses(
    storage: Storage, late: timedelta, status: S, reason: str | None
) -> None:
    """Field, test 15 (listmonk #1801: it goes out at once): later than the grace it is paused, `missed_start`.

    docs/states.md#campaigns.
    """
    campaign = await given_campaign(
        storage,
        campaign=make_campaign(status=S.SCHEDULED, schedule_type="scheduled", scheduled_start_at=NOW - late),
    )
    moved = await _advance(storage, campaign)
    assert (moved.status, moved.pause_reason) == (status, reason)


@pytest.mark.parametrize("suspended", [one for one in WorkspaceStatus if one is not WorkspaceStatus.ACTIVE])
@pytest.mark.parametrize(
    ("late", "status", "reason"), [(timedelta(0), S.ACTIVE, None), (2 * HOUR, S.PAUSED, "missed_start")]
)
async def test_nothing_starts_while_its_workspace_may_not_work(
    storage: Storage, suspended: WorkspaceStatus, late: timedelta, status: S, reason: str | None
) -> None:
    """It keeps its campaigns' states; a start that is missed over it is no surprise afterwards.

    docs/states.md#workspaces.
    """
    campaign = await given_campaign(
        storage,
        campaign=make_campaign(status=S.SCHEDULED, schedule_type="scheduled", scheduled_start_at=NOW - late),
    )
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(status=suspended)))
    assert (await _advance(storage, campaign)) == await reread(storage, campaign)
    assert (await reread(storage, campaign)).status is S.SCHEDULED
    await storage.write(lambda tx: tx.workspaces.update(make_workspace()))
    moved = await _advance(storage, campaign)
    assert (moved.status, moved.pause_reason) == (status, reason)


@pytest.mark.parametrize("status", WorkspaceStatus)
async def test_expiry_goes_before_a_start_that_is_due(storage: Storage, status: WorkspaceStatus) -> None:
    """Both have passed: it does not start for a moment, and expires also while its workspace may not work."""
    campaign = await given_campaign(
        storage,
        campaign=make_campaign(
            status=S.SCHEDULED,
            schedule_type="scheduled",
            scheduled_start_at=NOW - 2 * SECOND,
            scheduled_expires_at=NOW - SECOND,
        ),
    )
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(status=status)))
    assert (await _advance(storage, campaign)).status is S.EXPIRED


async def test_pause_all_pauses_what_runs_and_what_is_scheduled_in_its_workspace(storage: Storage) -> None:
    """The stop command pauses active and scheduled campaigns of one workspace, or of all."""
    mine = {s: await given_campaign(storage, campaign=make_campaign(status=s)) for s in S}
    other = await given_campaign(storage, campaign=make_campaign(status=S.ACTIVE, workspace_id=OTHER_WORKSPACE))
    paused = await storage.write(lambda tx: moves.pause_all(tx, THIS_WORKSPACE, now=NOW, actor="cli"))
    assert {campaign.id for campaign in paused} == {mine[S.ACTIVE].id, mine[S.SCHEDULED].id}
    for status, campaign in mine.items():
        wanted = S.PAUSED if status in {S.ACTIVE, S.SCHEDULED} else status
        assert (await reread(storage, campaign)).status is wanted
    assert (await reread(storage, other)).status is S.ACTIVE
    assert [c.id for c in await storage.write(lambda tx: moves.pause_all(tx, None, now=NOW, actor="cli"))] == [other.id]


async def _do(storage: Storage, operation: Callable[..., Campaign], campaign: Campaign, *, now: Any = NOW) -> Campaign:
    return await storage.write(lambda tx: operation(tx, campaign.workspace_id, campaign.id, now=now, actor="test"))


async def _given_agent(storage: Storage, **changes: Any) -> str:
    agent = make_agent(**changes)
    await storage.write(lambda tx: tx.agents.insert(agent))
    return agent.id


async def _advance(storage: Storage, campaign: Campaign) -> Campaign:
    moved = await storage.write(lambda tx: moves.apply_schedule(tx, THIS_WORKSPACE, campaign.id, now=NOW, grace=HOUR))
    assert moved is not None
    return moved


@pytest.mark.parametrize("provider", ["vapi", "elevenlabs", "retell"])
@pytest.mark.parametrize("mode", WorkspaceMode)
async def test_a_calling_campaign_that_would_show_other_numbers_does_not_start(
    storage: Storage, mode: WorkspaceMode, provider: Any
) -> None:
    """Numbers that are not those of their identifiers."""
    agent = make_agent(provider=provider)
    trunk = make_trunk(provider_trunk_id=None)
    known, another = make_number(phone="+14155550191"), make_number(phone="+14155550192")
    group = (
        CallerIdAllocation(number_id=known.id, phone=known.phone, count=1),
        CallerIdAllocation(number_id=known.id, phone=another.phone, count=1),
        CallerIdAllocation(number_id="PN-1", phone=another.phone, count=1),
        CallerIdAllocation(number_id="PN-2", phone="+14155550193", count=1),
    )

    def given(tx: Transaction) -> None:
        tx.workspaces.update(make_workspace(id=THIS_WORKSPACE, mode=mode))
        tx.agents.insert(agent)
        tx.trunks.insert(trunk)
        tx.numbers.insert(known)
        tx.numbers.insert(another)

    await storage.write(given)
    made = make_campaign(
        status=S.READY, channel="call", agent_id=agent.id, trunk_id=trunk.id, cli_mode="group", cli_group=group
    )
    campaign = await given_campaign(storage, campaign=made)
    if mode is WorkspaceMode.SANDBOX:
        assert (await _do(storage, moves.start, campaign)).status is S.ACTIVE
        return
    with pytest.raises(CannotStart) as caught:
        await _do(storage, moves.start, campaign)
    told = "\n".join(caught.value.reasons)
    assert f"The number {known.id} of its caller-ID group is +14155550191, not +14155550192." in told
    assert "+14155550193 of its caller-ID group is not a number of the workspace" in told
    assert told.count("caller-ID group") == 2
