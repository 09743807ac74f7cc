"""The price tables of workspaces, from which a preflight computes what a campaign costs."""

from __future__ import annotations

from outreach.errors import InvalidRequest
from outreach.ledger.common import record_audit, workspace_of
from outreach.models.fields import OneOf, problems_of, refusals, within
from outreach.models.prices import PriceTable, unknown_country
from outreach.providers.registry import Adapters
from outreach.rules.numbering import is_region
from outreach.services.context import ServiceContext, check_kind
from outreach.storage.unit_of_work import Transaction


class Prices:
    """The prices of SMS segments and minutes of calls, a table a workspace."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def get(self, workspace_id: str) -> PriceTable | None:
        """Return a workspace's prices; None if it has none.

        Raises:
            NotFound: The workspace does not exist.
        """
        return await self._context.storage.read(lambda tx: tx.price_tables.get(workspace_of(tx, workspace_id).id))

    async def update(self, workspace_id: str, table: PriceTable, *, actor: str = "library") -> PriceTable:
        """Replace a workspace's prices and return them.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A currency, provider, country or amount is invalid, or two prices are for the same; nothing
                was changed.
        """
        _check(table, self._context.adapters)
        await self._write(workspace_id, table, actor)
        return table

    async def remove(self, workspace_id: str, *, actor: str = "library") -> None:
        """Remove a workspace's prices; nothing happens if it has none.

        Raises:
            NotFound: The workspace does not exist.
        """
        await self._write(workspace_id, None, actor)

    async def _write(self, workspace_id: str, table: PriceTable | None, actor: str) -> None:
        now = self._context.now()

        def operation(tx: Transaction) -> None:
            workspace_of(tx, workspace_id)
            if table is not None:
                tx.price_tables.put(workspace_id, table)
            elif not tx.price_tables.delete(workspace_id):
                return
            action = "prices.remove" if table is None else "prices.update"
            record_audit(tx, workspace_id, action, workspace_id, actor=actor, now=now)

        await self._context.storage.write_in(workspace_id, operation)


def _check(table: PriceTable, adapters: Adapters) -> None:
    check_kind("table", table, PriceTable)
    details = problems_of(table)
    if details:
        raise InvalidRequest(details=details)
    for index, price in enumerate(table.prices):
        path = f"prices[{index}]"
        if price.provider is not None:
            names = (*adapters.names("carrier" if price.kind == "sms" else "voice"), "simulator")
            details += refusals(f"{path}.provider", price.provider, OneOf(names))
        if price.country is not None and not is_region(price.country):
            details += within(f"{path}.country", unknown_country(price.country).details)
    if details:
        raise InvalidRequest(details=details)
