"""The numbers that workspaces send and call from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import attrs

from outreach.errors import Conflict, NotFound
from outreach.models.base import Page
from outreach.models.resources import NewNumber, Number, NumberUpdate
from outreach.models.work import IdempotencyKey
from outreach.operations.access.usages import require_unused, users_of_number
from outreach.operations.common import record_audit, trunk_of, wake_running_campaigns, workspace_of
from outreach.services.context import ServiceContext
from outreach.services.idempotency import Idempotency
from outreach.services.lists import PageRequest, iterate
from outreach.services.validation import (
    changed_fields,
    check_kind,
    check_phone,
    check_provider,
)
from outreach.working_set import AlreadyExists, Transaction


class Numbers:
    """The numbers that workspaces send and call from."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)

    async def create(
        self,
        workspace_id: str,
        new: NewNumber,
        *,
        idempotency_key: IdempotencyKey[Number] = None,
        actor: str = "library",
    ) -> Number:
        """Add a number.

        Args:
            workspace_id: The workspace.
            new: The number.
            idempotency_key: A name for this number, such as `order-42`: for a day, the same key returns this number.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace or the trunk does not exist.
            InvalidRequest: The number is invalid, the carrier is unknown, or the key was used with other content.
            Conflict: The workspace has the number already.
            RequestInProgress: The first call with this key is still running.
        """
        check_kind("new", new, NewNumber)
        self._check_carrier(new.carrier)
        identifier, now = self._context.ids(), self._context.now()

        def operation(tx: Transaction) -> Number:
            workspace = workspace_of(tx, workspace_id)
            if new.trunk_id is not None:
                trunk_of(tx, workspace_id, new.trunk_id)
            number = Number(
                id=identifier,
                workspace_id=workspace_id,
                phone=check_phone("phone", new.phone, workspace.default_region) or "",
                carrier=new.carrier,
                trunk_id=new.trunk_id,
                rate_per_minute=new.rate_per_minute,
                created_at=now,
            )
            try:
                tx.numbers.insert(number)
            except AlreadyExists:
                raise Conflict(
                    f"The workspace has number {number.phone} already. Change it, or remove it first."
                ) from None
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="number.add", subject=number.id)
            return number

        return await self._keys.written(
            workspace_id,
            "numbers.create",
            idempotency_key,
            operation,
            content=new,
            find=lambda tx, number_id: tx.numbers.get(workspace_id, number_id),
            kind="number",
        )

    async def get(self, workspace_id: str, number_id: str) -> Number:
        """Return a number.

        Raises:
            NotFound: The workspace has no such number.
        """
        return await self._context.storage.read(lambda tx: _number_of(tx, workspace_id, number_id))

    async def update(
        self, workspace_id: str, number_id: str, change: NumberUpdate, *, actor: str = "library"
    ) -> Number:
        """Change a number; running campaigns use its new rate at once.

        Raises:
            NotFound: The workspace has no such number or trunk.
            InvalidRequest: The carrier is unknown.
        """
        changes = changed_fields(change, NumberUpdate)
        self._check_carrier(changes.get("carrier"))
        now = self._context.now()

        def operation(tx: Transaction) -> Number:
            before = _number_of(tx, workspace_id, number_id)
            if changes.get("trunk_id") is not None:
                trunk_of(tx, workspace_id, changes["trunk_id"])
            after = attrs.evolve(before, **changes)
            tx.numbers.update(after)
            wake_running_campaigns(tx, workspace_id, now)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="number.update", subject=number_id)
            return after

        return await self._context.storage.write(operation)

    async def remove(self, workspace_id: str, number_id: str, *, actor: str = "library") -> Number:
        """Remove a number; its dispatches stay in the ledger.

        Raises:
            NotFound: The workspace has no such number.
            Conflict: A campaign that has not ended, or an active agent, uses it.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> Number:
            number = _number_of(tx, workspace_id, number_id)
            todo = "Change or cancel that first, or give the agent another caller ID."
            require_unused(f"Number {number.phone}", users_of_number(tx, number), todo)
            tx.numbers.delete(workspace_id, number_id)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="number.remove", subject=number_id)
            return number

        return await self._context.storage.write(operation)

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Number]:
        """Return a page of a workspace's numbers, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("numbers", workspace_id, after=after, limit=limit)
        found = await self._context.storage.read(lambda tx: tx.numbers.list(workspace_of(tx, workspace_id).id))
        return page_request.page_of_few(found)

    def iter_all(self, workspace_id: str) -> AsyncIterator[Number]:
        """Iterate over a workspace's numbers, oldest first; see `list`."""
        return iterate(partial(self.list, workspace_id))

    def _check_carrier(self, carrier: object) -> None:
        if carrier is not None:
            check_provider("carrier", carrier, "carrier", self._context.adapters)


def _number_of(tx: Transaction, workspace_id: str, number_id: str) -> Number:
    number = tx.numbers.get(workspace_id, number_id)
    if number is None:
        raise NotFound("number", number_id)
    return number
