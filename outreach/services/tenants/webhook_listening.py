"""Follows the events of a workspace as an endpoint would get them, without one; nothing of it is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import anyio
import attrs

from outreach.ledger import webhooks
from outreach.ledger.common import workspace_of
from outreach.ledger.webhooks import EventBody
from outreach.models.webhook import WebhookPayload
from outreach.services.context import ServiceContext
from outreach.services.tenants.webhooks import check_types, checked_first
from outreach.storage.unit_of_work import Transaction


@attrs.frozen(kw_only=True)
class Listener:
    """A choice of events to listen to; implements `ledger.webhooks.Choice`.

    Attributes:
        types: The types of events; none for all.
        payload: The content of the bodies.
    """

    workspace_id: str
    types: Sequence[str] = ()
    payload: WebhookPayload = "thin"


class Delivery(NamedTuple):
    """A delivery as an endpoint would get it: the header `webhook-id`, and the body."""

    id: str
    body: bytes


async def listen(context: ServiceContext, listener: Listener, *, number: int | None) -> AsyncIterator[Delivery]:
    """Yield one delivery after the other, and wait for more, until it is closed.

    Args:
        context: The collaborators that the services share.
        listener: The events to listen to.
        number: The number of the first event; None for those from now on.

    Raises:
        NotFound: The workspace does not exist.
        InvalidRequest: There are no events of such a type, or the number is ahead of the events.
    """
    check_types(listener.types)

    def begin(tx: Transaction) -> tuple[int, int]:
        workspace_of(tx, listener.workspace_id)
        after = checked_first(tx, number) - 1
        return after, tx.trail.purged_until() if number is None else after

    def read(tx: Transaction) -> tuple[Sequence[EventBody], int, bool, int]:
        return webhooks.read(tx, listener, after, gap_until=gap_until, now=context.now())

    after, gap_until = await context.storage.read(begin)
    while True:
        bodies, after, at_end, gap_until = await context.storage.read(read)
        for one in bodies:
            yield Delivery(one.id, one.body)
        if at_end:
            await anyio.sleep(context.config.change_poll_seconds)
