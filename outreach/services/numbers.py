"""The numbers that workspaces send and call from."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.errors import InvalidRequest, NotFound
from outreach.models.carriers import CARRIERS, CarrierName
from outreach.models.directory import Number
from outreach.operations.common import note, workspace_of
from outreach.protocols.storage import AlreadyThere, Transaction
from outreach.services.checks import check_choice, check_integer, check_phone
from outreach.services.context import ServiceContext
from outreach.services.once import Keys


class Numbers:
    """The numbers that workspaces send and call from."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Keys(context)

    async def add(
        self,
        workspace_id: str,
        phone: str,
        *,
        carrier: CarrierName | None = None,
        trunk_id: str | None = None,
        rate_per_minute: int | None = None,
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> Number:
        """Add a number.

        Args:
            workspace_id: Whose number it is.
            phone: Normalised to E.164; a workspace has a number once.
            carrier: The SMS carrier that it belongs to.
            trunk_id: The trunk that it is reached over.
            rate_per_minute: Messages a minute that it may send, over all campaigns; 1 to 600, None for no such rate.
            idempotency_key: Names this one number, such as `order-42`: within a day the same key makes no other one,
                and returns it.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace, or it has no such trunk.
            InvalidRequest: It is no number, the workspace has it already, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
        """
        if carrier is not None:
            check_choice("carrier", carrier, CARRIERS)
        if rate_per_minute is not None:
            check_integer("rate_per_minute", rate_per_minute, 1, 600)
        identifier, now = self._context.ids(), self._context.now()

        def operation(tx: Transaction) -> Number:
            workspace = workspace_of(tx, workspace_id)
            if trunk_id is not None and tx.trunks.get(workspace_id, trunk_id) is None:
                raise NotFound("trunk", trunk_id)
            number = Number(
                id=identifier,
                workspace_id=workspace_id,
                phone=check_phone("phone", phone, workspace.default_region) or "",
                carrier=carrier,
                trunk_id=trunk_id,
                rate_per_minute=rate_per_minute,
                created_at=now,
            )
            try:
                tx.numbers.insert(number)
            except AlreadyThere:
                raise InvalidRequest.at("phone", "the workspace has this number already") from None
            note(tx, now=now, workspace_id=workspace_id, actor=actor, action="number.add", subject=number.id)
            return number

        return await self._keys.written(
            workspace_id,
            "numbers.add",
            idempotency_key,
            operation,
            content=(phone, carrier, trunk_id, rate_per_minute),
            find=lambda tx, number_id: tx.numbers.get(workspace_id, number_id),
            kind="number",
        )

    async def list(self, workspace_id: str) -> Sequence[Number]:
        """Return a workspace's numbers, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: tx.numbers.list(workspace_of(tx, workspace_id).id))
