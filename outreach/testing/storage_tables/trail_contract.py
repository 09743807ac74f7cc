"""The contract of the decision trail."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import pytest

from outreach.models.states import TrailEntry, TrailRule, TrailStepKind
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_campaign, make_prepared, make_trail_entry, new_id
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    as_key,
    awkward_moments,
    awkward_texts,
    given_campaign,
    given_rows,
)


async def append(storage: Storage, *entries: TrailEntry) -> None:
    """Write entries in one transaction."""
    await given_rows(storage, *entries)


async def all_of(storage: Storage) -> list[TrailEntry]:
    """Return every entry of the trail."""
    return list(await storage.read(lambda tx: tx.trail.between(None, 0, MAX_INTEGER)))


class TrailContract(ContractBase):
    """The decision trail."""

    @awkward_texts
    async def test_an_entry_of_the_trail_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """All of its fields, but for the number, which is the next."""
        campaign = await given_campaign(storage, make_prepared())
        full = TrailEntry(
            number=99,
            at=NOW + TICK,
            workspace_id=THIS_WORKSPACE,
            what=TrailStepKind.OUTCOME,
            rule=TrailRule.ONCE,
            state=text,
            reason=text,
            campaign_id=campaign.id,
            position=MAX_INTEGER,
            call_id=text,
            message_id=text,
            dispatch_id=text,
            step=1,
            attempt=2,
            leg=3,
            due_at=NOW - TICK,
            repeats=4,
            actor=text,
            phone=as_key(text),
        )
        bare = TrailEntry(
            at=NOW, workspace_id=THIS_WORKSPACE, what=TrailStepKind.REPLIED, rule=TrailRule.PROVIDER_REPORT
        )
        await append(storage, full, bare)
        assert await all_of(storage) == [attrs.evolve(full, number=1), attrs.evolve(bare, number=2)]

    @pytest.mark.parametrize("what", TrailStepKind)
    @pytest.mark.parametrize("rule", [TrailRule.LOAD, TrailRule.LEDGER])
    async def test_every_kind_can_be_written(self, storage: Storage, what: TrailStepKind, rule: TrailRule) -> None:
        """Kinds and rules are read as what they were."""
        await append(storage, make_trail_entry(what=what, rule=rule))
        (entry,) = await all_of(storage)
        assert (entry.what, entry.rule) == (what, rule)

    async def test_numbers_rise_by_one_over_the_whole_database(self, storage: Storage) -> None:
        """In the order of the commits; an operation that raises takes no number."""
        assert await storage.read(lambda tx: tx.trail.last_number()) == 0
        await append(storage, make_trail_entry(), make_trail_entry(workspace_id=OTHER_WORKSPACE))

        def broken(tx: Transaction) -> None:
            tx.trail.append(make_trail_entry(state="never"))
            raise KeyError("broken")

        with pytest.raises(KeyError, match="broken"):
            await storage.write(broken)
        assert await storage.read(lambda tx: tx.trail.last_number()) == 2
        await append(storage, make_trail_entry())
        assert [entry.number for entry in await all_of(storage)] == [1, 2, 3]

    async def test_opt_outs_of_a_stretch_are_counted_by_source(self, storage: Storage) -> None:
        """Above `after` and up to `until`, over all workspaces; without a source they count as an operator's."""
        await append(
            storage,
            make_trail_entry(reason="keyword"),
            make_trail_entry(reason="keyword", workspace_id=OTHER_WORKSPACE),
            make_trail_entry(reason=None),
            make_trail_entry(what=TrailStepKind.OPTED_IN, reason="keyword"),
            make_trail_entry(reason="keyword"),
        )
        counted = await storage.read(lambda tx: [dict(tx.trail.count_opt_outs(after, 4)) for after in (0, 1, 4)])
        assert counted == [{"keyword": 2, "operator": 1}, {"keyword": 1, "operator": 1}, {}]

    async def test_a_stretch_is_half_open_and_keeps_to_its_workspace(self, storage: Storage) -> None:
        """Above `after` and up to `until`; None is every workspace."""
        await append(
            storage,
            *(
                make_trail_entry(workspace_id=one)
                for one in (THIS_WORKSPACE, OTHER_WORKSPACE, THIS_WORKSPACE, THIS_WORKSPACE, OTHER_WORKSPACE)
            ),
        )

        async def numbers(workspace_id: str | None, after: int, until: int) -> list[int]:
            found = await storage.read(lambda tx: tx.trail.between(workspace_id, after, until))
            return [entry.number for entry in found]

        assert await numbers(None, 0, 5) == [1, 2, 3, 4, 5]
        assert await numbers(None, 1, 3) == [2, 3]
        assert await numbers(None, 3, 3) == []
        assert await numbers(THIS_WORKSPACE, 0, MAX_INTEGER) == [1, 3, 4]
        assert await numbers(OTHER_WORKSPACE, 2, 4) == []
        assert await numbers(new_id(), 0, MAX_INTEGER) == []

    async def test_the_entries_of_a_recipient_are_its_own(self, storage: Storage) -> None:
        """Not its campaign's, not those of another position, campaign or workspace."""
        campaign, other = await given_campaign(storage), await given_campaign(storage)
        places: list[dict[str, Any]] = [
            {"campaign_id": campaign.id, "position": 7},
            {"campaign_id": campaign.id},
            {"campaign_id": other.id, "position": 7},
            {"campaign_id": campaign.id, "position": 8},
            {"campaign_id": campaign.id, "position": 7},
            {"campaign_id": campaign.id},
            {"campaign_id": campaign.id},
        ]
        await append(storage, *(make_trail_entry(**place) for place in places))

        def look(tx: Transaction, workspace_id: str) -> list[list[int]]:
            found = (
                tx.trail.of_recipient(workspace_id, campaign.id, 7),
                tx.trail.of_campaign(workspace_id, campaign.id, limit=9),
                tx.trail.of_campaign(workspace_id, campaign.id, limit=2),
            )
            return [[entry.number for entry in entries] for entries in found]

        assert await storage.read(lambda tx: look(tx, THIS_WORKSPACE)) == [[1, 5], [2, 6, 7], [6, 7]]
        assert await storage.read(lambda tx: look(tx, OTHER_WORKSPACE)) == [[], [], []]
        (first, _) = await storage.read(lambda tx: tx.trail.of_recipient(THIS_WORKSPACE, campaign.id, 7))
        assert first == make_trail_entry(number=1, campaign_id=campaign.id, position=7)

    async def test_entries_about_a_workspace_are_found_by_it(self, storage: Storage) -> None:
        """The latest so many, in order, and nothing else that is in the workspace."""
        kinds = [TrailStepKind.WORKSPACE, TrailStepKind.OPTED_OUT, TrailStepKind.WORKSPACE, TrailStepKind.WORKSPACE]
        await append(
            storage,
            *(make_trail_entry(what=what) for what in kinds),
            make_trail_entry(what=TrailStepKind.WORKSPACE, workspace_id=OTHER_WORKSPACE),
        )

        async def numbers(workspace_id: str, limit: int) -> list[int]:
            found = await storage.read(lambda tx: tx.trail.of_workspace(workspace_id, limit=limit))
            return [entry.number for entry in found]

        assert await numbers(THIS_WORKSPACE, 9) == [1, 3, 4]
        assert await numbers(THIS_WORKSPACE, 2) == [3, 4]
        assert await numbers(OTHER_WORKSPACE, 9) == [5]

    async def test_entries_about_a_number_are_found_by_it(self, storage: Storage) -> None:
        """The latest so many, in order, of this workspace, whatever they tell."""
        phone = "+14155550101"
        await append(
            storage,
            make_trail_entry(what=TrailStepKind.OPTED_OUT, phone=phone),
            make_trail_entry(what=TrailStepKind.OPTED_OUT, phone="+14155550102"),
            make_trail_entry(what=TrailStepKind.OPTED_IN, phone=phone),
            make_trail_entry(what=TrailStepKind.REPLIED, phone=phone),
            make_trail_entry(what=TrailStepKind.OPTED_OUT, phone=phone, workspace_id=OTHER_WORKSPACE),
            make_trail_entry(what=TrailStepKind.WORKSPACE),
        )

        async def numbers(workspace_id: str, limit: int) -> list[int]:
            found = await storage.read(lambda tx: tx.trail.of_number(workspace_id, phone, limit=limit))
            return [entry.number for entry in found]

        assert await numbers(THIS_WORKSPACE, 9) == [1, 3, 4]
        assert await numbers(THIS_WORKSPACE, 2) == [3, 4]
        assert await numbers(OTHER_WORKSPACE, 9) == [5]

    @awkward_moments
    async def test_a_hold_is_prolonged_in_its_place(self, storage: Storage, moment: datetime) -> None:
        """The latest one of the recipient alone; where there is none, nothing happens."""
        campaign = await given_campaign(storage, make_prepared(), make_prepared())
        place: dict[str, Any] = {"campaign_id": campaign.id, "position": 0}
        held = make_trail_entry(what=TrailStepKind.HELD, due_at=NOW, **place)
        await append(storage, held, held, make_trail_entry(what=TrailStepKind.REPORTED, **place), make_trail_entry())

        def prolong(tx: Transaction) -> None:
            tx.trail.prolong(THIS_WORKSPACE, campaign.id, 0, NOW)
            tx.trail.prolong(THIS_WORKSPACE, campaign.id, 0, moment)
            tx.trail.prolong(THIS_WORKSPACE, campaign.id, 1, moment)
            tx.trail.prolong(OTHER_WORKSPACE, campaign.id, 0, NOW - TICK)

        before = await all_of(storage)
        await storage.write(prolong)
        after = await all_of(storage)
        assert after[1] == attrs.evolve(before[1], due_at=moment, repeats=2)
        assert after[:1] + after[2:] == before[:1] + before[2:]

    async def test_a_campaign_must_be_the_workspaces(self, storage: Storage) -> None:
        """An absent one, or another workspace's, raises LookupError and leaves no entry; a loading one is there."""
        campaign = await given_campaign(storage)
        for owner, campaign_id in ((THIS_WORKSPACE, new_id()), (OTHER_WORKSPACE, campaign.id)):
            entry = make_trail_entry(workspace_id=owner, campaign_id=campaign_id)
            with pytest.raises(LookupError):
                await append(storage, entry)
        assert await all_of(storage) == []
        loading = make_campaign()
        await storage.write(lambda tx: tx.campaigns.insert_loading(loading, loading_until=NOW))
        await append(storage, make_trail_entry(campaign_id=loading.id))
        assert [entry.campaign_id for entry in await all_of(storage)] == [loading.id]

    async def test_entries_about_an_unfinished_loading_are_deleted_with_it(self, storage: Storage) -> None:
        """In slices too, and its numbers are never given again."""
        loading, kept = make_campaign(), await given_campaign(storage)
        await storage.write(lambda tx: tx.campaigns.insert_loading(loading, loading_until=NOW))
        await append(
            storage,
            make_trail_entry(campaign_id=kept.id),
            *(make_trail_entry(campaign_id=loading.id, position=position) for position in (0, None, 1)),
        )

        async def delete() -> bool:
            return await storage.write(lambda tx: tx.campaigns.delete_loading(THIS_WORKSPACE, loading.id, limit=2))

        assert (await delete(), len(await all_of(storage))) == (False, 2)
        assert (await delete(), len(await all_of(storage))) == (True, 1)
        assert await storage.read(lambda tx: (tx.trail.last_number(), tx.trail.purged_until())) == (4, 0)
        await append(storage, make_trail_entry())
        assert [entry.number for entry in await all_of(storage)] == [1, 5]
