"""The contract of request windows, idempotency keys and the audit trail."""

from __future__ import annotations

from datetime import datetime

import attrs
import pytest

from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_audit_entry, make_stored_request, make_window
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    as_key,
    awkward_moments,
    awkward_texts,
    bound,
    given_rows,
)


class RequestsContract(ContractBase):
    """Request windows, idempotency keys and the audit trail."""

    @awkward_moments
    async def test_a_workspace_has_one_window(self, storage: Storage, moment: datetime) -> None:
        """A put takes the place of the last one, in its workspace."""
        assert await storage.read(lambda tx: tx.requests.window(THIS_WORKSPACE)) is None
        window, other = make_window(started_at=moment, count=MAX_INTEGER), make_window(workspace_id=OTHER_WORKSPACE)
        await given_rows(storage, make_window(), window, other)
        assert await storage.read(lambda tx: tx.requests.window(THIS_WORKSPACE)) == window
        assert await storage.read(lambda tx: tx.requests.window(OTHER_WORKSPACE)) == other

    @awkward_texts
    async def test_a_stored_request_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """A put takes the place of the last one under the same workspace, operation and key."""
        running = make_stored_request(key=as_key(text), operation=as_key(text))
        finished = attrs.evolve(
            running,
            fingerprint=text,
            token=text,
            answer=text.encode() + b"\x00\xff",
            location=text,
            locked_until=NOW + TICK,
            expires_at=NOW + 2 * TICK,
        )
        for request in (running, finished):
            await storage.write(bound(lambda tx, request: tx.requests.put_stored(request), request))
            assert (
                await storage.read(lambda tx: tx.requests.stored(THIS_WORKSPACE, as_key(text), as_key(text))) == request
            )

    async def test_an_empty_answer_is_not_none(self, storage: Storage) -> None:
        """None is a request that still runs."""
        empty, none = make_stored_request(answer=b"", location=""), make_stored_request()
        for request in (empty, none):
            await storage.write(bound(lambda tx, request: tx.requests.put_stored(request), request))
            stored = bound(lambda tx, key: tx.requests.stored(THIS_WORKSPACE, "create_call", key), request.key)
            assert await storage.read(stored) == request

    async def test_a_key_is_of_one_workspace_and_operation(self, storage: Storage) -> None:
        """The same key elsewhere is another; deleting one leaves the others, and an absent one is no error."""
        places = [(THIS_WORKSPACE, "a"), (THIS_WORKSPACE, "b"), (OTHER_WORKSPACE, "a")]
        made = [make_stored_request(workspace_id=owner, operation=name, key="k") for owner, name in places]

        def stored(tx: Transaction) -> list[object]:
            tx.requests.prefetch_stored((owner, name, "k") for owner, name in places)
            return [tx.requests.stored(owner, name, "k") for owner, name in places]

        await given_rows(storage, *made)
        assert await storage.read(stored) == made
        assert await storage.read(lambda tx: tx.requests.stored(OTHER_WORKSPACE, "b", "k")) is None
        await storage.write(lambda tx: tx.requests.delete_stored(THIS_WORKSPACE, "a", "k"))
        assert await storage.read(stored) == [None, *made[1:]]
        await storage.write(lambda tx: tx.requests.delete_stored(THIS_WORKSPACE, "a", "k"))
        assert await storage.read(stored) == [None, *made[1:]]

    async def test_expired_keys_are_swept(self, storage: Storage) -> None:
        """Expired is at or before now; at most `limit` go at a time, of all workspaces."""
        moments = [NOW - TICK, NOW, NOW, NOW + TICK]
        made = [make_stored_request(expires_at=moment) for moment in moments]
        made[1] = attrs.evolve(made[1], workspace_id=OTHER_WORKSPACE)
        await given_rows(storage, *made)
        assert [await storage.write(lambda tx: tx.requests.sweep(NOW, limit=2)) for _ in range(3)] == [2, 1, 0]

        def left(tx: Transaction) -> list[object]:
            return [tx.requests.stored(one.workspace_id, one.operation, one.key) for one in made]

        assert await storage.read(left) == [None, None, None, made[3]]

    @awkward_texts
    async def test_an_audit_entry_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """Every text comes back to the code point; empty is not None."""
        full = make_audit_entry(actor=text, action=text, subject=text, detail=text)
        bare = make_audit_entry(detail=None)
        await given_rows(storage, full, bare)
        assert list(await storage.read(lambda tx: tx.audit.list(THIS_WORKSPACE))) == [bare, full]

    async def test_the_entry_appended_last_comes_first(self, storage: Storage) -> None:
        """Whatever the clock said; equal entries are each kept; at most `limit` of a workspace, or of all."""
        moments = [NOW, NOW, NOW - TICK, NOW + TICK]
        owners = [THIS_WORKSPACE, OTHER_WORKSPACE, None, THIS_WORKSPACE]
        made = [make_audit_entry(at=at, workspace_id=owner) for at, owner in zip(moments, owners, strict=True)]
        made.append(made[0])
        await given_rows(storage, *made)
        newest = made[::-1]

        async def listed(workspace_id: str | None, limit: int = 1000) -> list[object]:
            return list(await storage.read(lambda tx: tx.audit.list(workspace_id, limit=limit)))

        assert await listed(None) == newest
        assert await listed(None, 2) == newest[:2]
        assert await listed(THIS_WORKSPACE) == [made[4], made[3], made[0]]
        assert await listed(THIS_WORKSPACE, 1) == [made[4]]
        assert await listed(OTHER_WORKSPACE) == [made[1]]

    async def test_a_page_of_entries_begins_below_a_number(self, storage: Storage) -> None:
        """Of a workspace or of all; every entry has a number of its own, which rises."""
        owners = [THIS_WORKSPACE, OTHER_WORKSPACE, THIS_WORKSPACE, None]
        await given_rows(storage, *(make_audit_entry(workspace_id=owner) for owner in owners))
        for owner, count in ((None, 4), (THIS_WORKSPACE, 2), (OTHER_WORKSPACE, 1)):
            every = list(await storage.read(bound(lambda tx, owner: tx.audit.numbered(owner, limit=9), owner)))
            numbers = [number for number, _ in every]
            assert numbers == sorted(set(numbers), reverse=True)
            assert len(numbers) == count
            for index, number in enumerate(numbers):
                rest = await storage.read(
                    lambda tx, owner=owner, number=number: tx.audit.numbered(owner, after=number, limit=9)  # type: ignore[misc]
                )
                assert list(rest) == every[index + 1 :]

    async def test_entries_of_several_subjects_are_read_at_once(self, storage: Storage) -> None:
        """The newest first, of one workspace, together with other filters; of no subject there are none."""
        made = [make_audit_entry(subject=one, actor=by) for one, by in (("a", "x"), ("b", "x"), ("é", "x"), ("a", "y"))]
        await given_rows(storage, *made, make_audit_entry(subject="a", actor="x", workspace_id=OTHER_WORKSPACE))

        def found(tx: Transaction) -> list[list[object]]:
            listed = (
                tx.audit.numbered(THIS_WORKSPACE, subjects=["a", "é", "c"], limit=9),
                tx.audit.numbered(THIS_WORKSPACE, subjects=["é", "a"], actor="x", limit=9),
                tx.audit.numbered(THIS_WORKSPACE, subjects=[], limit=9),
            )
            return [[entry for _, entry in one] for one in listed]

        assert await storage.read(found) == [[made[3], made[2], made[0]], [made[2], made[0]], []]

    @pytest.mark.parametrize("count", [1000, 1001])
    async def test_a_list_of_entries_has_a_limit_of_its_own(self, storage: Storage, count: int) -> None:
        """Without a limit a thousand are returned."""
        entry = make_audit_entry()
        await given_rows(storage, *[entry] * count)
        assert len(await storage.read(lambda tx: tx.audit.list(None))) == 1000
