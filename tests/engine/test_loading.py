from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from outreach.errors import InvalidRequest, StorageError
from outreach.ledger.campaigns import recipients
from outreach.ledger.campaigns.recipients import ChunkResult, SeenNumbers
from outreach.models.campaign import Campaign, Counters, PreparedRecipient
from outreach.models.states import RecipientStatus
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW, make_call_campaign, make_campaign, make_prepared, make_unsubscribe, new_phone
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK
from tests.engine.given import reread

pytestmark = pytest.mark.virtual_time


async def test_a_chunk_leaves_out_the_register_and_ends_duplicates_and_invalid_numbers(storage: Storage) -> None:
    """Opted out: never written; a later duplicate and what is no number: loaded and ended.

    docs/interface.md#register.
    """
    first, stopped = make_prepared(), make_prepared()
    await _opt_out(storage, stopped)
    campaign = await _begin(storage)
    twice = make_prepared(phone_number="(415) 555-0102", phone=first.phone)
    nonsense = make_prepared(phone_number="call me", phone=None)
    result = await _load(storage, campaign, [first, stopped, twice, nonsense, stopped])
    assert result == ChunkResult(next_position=3, excluded=2, counters=Counters(total=3, pending=1, open=1))
    rows = await storage.read(lambda tx: tx.recipients.page(THIS_WORKSPACE, campaign.id))
    assert [(row.position, row.phone_number, row.status, row.reason) for row in rows] == [
        (0, first.phone_number, RecipientStatus.PENDING, None),
        (1, "(415) 555-0102", RecipientStatus.SKIPPED, "duplicate"),
        (2, "call me", RecipientStatus.SKIPPED, "invalid_number"),
    ]


async def test_a_duplicate_is_found_over_chunks_and_two_invalid_numbers_are_no_duplicates(storage: Storage) -> None:
    """docs/interface.md#duplicates: contacted once, however far apart the two rows are."""
    one = make_prepared()
    campaign = await _begin(storage)
    first = await _load(storage, campaign, [one, make_prepared(phone=None)])
    seen_numbers = SeenNumbers()
    seen_numbers.add([one.phone, None])
    second = await _load(
        storage, campaign, [one, make_prepared(phone=None)], seen_numbers=seen_numbers, position=first.next_position
    )
    rows = await storage.read(lambda tx: tx.recipients.page(THIS_WORKSPACE, campaign.id))
    assert [row.reason for row in rows] == [None, "invalid_number", "duplicate", "invalid_number"]
    assert first.counters + second.counters == Counters(total=4, pending=1, open=1)


async def test_a_number_that_only_seems_to_be_in_an_earlier_chunk_is_loaded(storage: Storage) -> None:
    """The set of earlier numbers may match too many; the database decides."""
    one = make_prepared()
    campaign = await _begin(storage)
    seen_numbers = SeenNumbers()
    seen_numbers.add([one.phone])
    assert (await _load(storage, campaign, [one], seen_numbers=seen_numbers)).counters.pending == 1


def test_every_number_of_earlier_chunks_is_a_candidate() -> None:
    """And hardly any other one."""
    numbers = [new_phone() for _ in range(5_000)]
    seen_numbers = SeenNumbers()
    assert seen_numbers.candidates(numbers) == set()
    seen_numbers.add([*numbers[:2_500], None])
    found = seen_numbers.candidates(numbers)
    assert found >= set(numbers[:2_500])
    assert len(found) < 2_600


@pytest.mark.parametrize(("scope", "excluded"), [("all", 1), ("sms", 1), ("call", 0)])
async def test_the_register_stops_by_channel(storage: Storage, scope: str, excluded: int) -> None:
    """docs/interface.md#register: scope all (default), sms or call."""
    one = make_prepared()
    await _opt_out(storage, one, scope=scope)
    sms, call = await _begin(storage), await _begin(storage, make_call_campaign())
    assert (await _load(storage, sms, [one])).excluded == excluded
    assert (await _load(storage, call, [one])).excluded == (1 if scope in {"all", "call"} else 0)


async def test_another_workspaces_register_stops_nothing(storage: Storage) -> None:
    """The register is the workspace's own."""
    one = make_prepared()
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(workspace_id=OTHER_WORKSPACE, phone=one.phone)))
    assert (await _load(storage, await _begin(storage), [one])).excluded == 0


async def test_publishing_makes_it_visible_with_its_counters_and_drops_who_opted_out_meanwhile(
    storage: Storage,
) -> None:
    """docs/rules.md#loading: the last transaction drops numbers that opted out while the chunks were written."""
    stays, goes = make_prepared(), make_prepared()
    campaign = await _begin(storage)
    result = await _load(storage, campaign, [stays, goes, goes])
    assert await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id)) is None
    await _opt_out(storage, goes)
    published, excluded = await _publish(storage, campaign, result)
    assert excluded == 2
    assert published.counters == Counters(total=1, pending=1, open=1)
    assert await reread(storage, campaign) == published
    assert (await storage.read(lambda tx: tx.audit.list(THIS_WORKSPACE)))[0].action == "campaign.create"


async def test_who_opted_out_before_the_chunks_is_not_dropped_twice(storage: Storage) -> None:
    """Contacts left out of a chunk and contacts dropped at the end are counted once each."""
    early, late = make_prepared(), make_prepared()
    await _opt_out(storage, early)
    campaign = await _begin(storage)
    result = await _load(storage, campaign, [early, late, make_prepared()])
    await _opt_out(storage, late)
    _, excluded = await _publish(storage, campaign, result)
    assert excluded == 2


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_campaign_whose_every_contact_opted_out_is_refused(storage: Storage, when: str) -> None:
    """docs/interface.md#4.3, rule 3: if every supplied contact is opted out, the request fails with 400."""
    contacts = [make_prepared(), make_prepared()]
    if when == "before":
        await _opt_out(storage, *contacts)
    campaign = await _begin(storage)
    result = await _load(storage, campaign, contacts)
    if when == "meanwhile":
        await _opt_out(storage, *contacts)
    with pytest.raises(InvalidRequest, match="unsubscribe register") as caught:
        await _publish(storage, campaign, result)
    assert [detail.path for detail in caught.value.details] == ["recipients"]
    assert await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id)) is None


async def test_a_campaign_of_invalid_numbers_alone_is_created_with_nobody_to_reach(storage: Storage) -> None:
    """Numbers that are not numbers are loaded; only the register refuses a campaign."""
    campaign = await _begin(storage)
    result = await _load(storage, campaign, [make_prepared(phone_number="x", phone=None)])
    published, _ = await _publish(storage, campaign, result)
    assert published.counters == Counters(total=1)


async def test_what_was_swept_away_is_not_loaded_or_published(storage: Storage) -> None:
    """A load that came to a halt for too long finds its campaign gone, and says so."""
    campaign = await _begin(storage)
    result = await _load(storage, campaign, [make_prepared()])
    assert await storage.write(lambda tx: tx.campaigns.delete_loading(THIS_WORKSPACE, campaign.id, limit=10))
    with pytest.raises(StorageError, match="No contacts arrived for 120 seconds"):
        await _load(storage, campaign, [make_prepared()], position=1)
    with pytest.raises(StorageError, match="nothing was created"):
        await _publish(storage, campaign, result)


async def test_each_chunk_keeps_the_load_from_being_a_leftover(storage: Storage) -> None:
    """A leftover is one that got no chunk for the whole lease, counted from the last chunk."""
    campaign = await _begin(storage)
    later = NOW + recipients.LOADING_LEASE
    assert not await storage.read(lambda tx: tx.campaigns.leftovers(later))
    assert len(await storage.read(lambda tx: tx.campaigns.leftovers(later + TICK))) == 1
    await storage.write(
        lambda tx: recipients.load_chunk(tx, campaign, [make_prepared()], seen_numbers=None, position=0, now=later)
    )
    assert not await storage.read(lambda tx: tx.campaigns.leftovers(later + TICK))


async def test_a_contact_that_opted_out_at_the_moment_the_load_began_is_dropped(storage: Storage) -> None:
    """At the boundary the stop wins: `since` itself counts."""
    one, other = make_prepared(phone=new_phone()), make_prepared()
    campaign = await _begin(storage)
    result = await _load(storage, campaign, [one, other])
    await _opt_out(storage, one, after=timedelta(0))
    _, excluded = await _publish(storage, campaign, result)
    assert excluded == 1


async def _begin(storage: Storage, campaign: Campaign | None = None) -> Campaign:
    wanted = campaign or make_campaign()
    await storage.write(lambda tx: recipients.begin_loading(tx, wanted, now=NOW))
    return wanted


async def _load(
    storage: Storage,
    campaign: Campaign,
    chunk: Sequence[PreparedRecipient],
    *,
    seen_numbers: SeenNumbers | None = None,
    position: int = 0,
) -> ChunkResult:
    return await storage.write(
        lambda tx: recipients.load_chunk(tx, campaign, chunk, seen_numbers=seen_numbers, position=position, now=NOW)
    )


async def _publish(storage: Storage, campaign: Campaign, result: ChunkResult) -> tuple[Campaign, int]:
    return await storage.write(
        lambda tx: recipients.publish_loaded(
            tx,
            campaign,
            variable_names=None,
            loaded=result.counters,
            excluded=result.excluded,
            since=campaign.created_at,
            now=NOW,
            actor="test",
        )
    )


async def _opt_out(
    storage: Storage,
    *contacts: PreparedRecipient,
    scope: str = "all",
    after: timedelta = TICK,
) -> None:
    for contact in contacts:
        entry = make_unsubscribe(phone=contact.phone, scope=scope, created_at=NOW + after)
        await storage.write(lambda tx, entry=entry: tx.register.put(entry))  # type: ignore[misc]
