"""Our engine, which takes in the receipt of each message that a database holds, as one of its workers.

Told: `url`, of a database whose messages were accepted under their own ids.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import anyio
import psycopg

from benchmarks.sides.engine import Carrier
from benchmarks.sides.telling import tell, told
from outreach import Outreach
from outreach.protocols.carrier import OutboundMessage

_LOOK_AGAIN_SECONDS: Final = 0.01


async def run(task: dict[str, Any]) -> dict[str, Any]:
    """Report all of them."""
    carrier = Carrier(0.0)
    with psycopg.connect(task["url"]) as connection:
        rows = connection.execute("SELECT id, workspace_id, to_number FROM outreach.dispatches").fetchall()
    carrier.requests.extend(
        OutboundMessage(dispatch_id=dispatch, workspace_id=workspace, from_number=None, to=to, body="", not_after=None)
        for dispatch, workspace, to in rows
    )
    async with Outreach.open(task["url"], dispatch=True, sandbox_carrier=carrier):
        while carrier.sink is None:  # noqa: ASYNC110 - no event says that it is set
            await anyio.sleep(_LOOK_AGAIN_SECONDS)
        await carrier.report_all()
    with psycopg.connect(task["url"]) as connection:
        [(delivered,)] = connection.execute("SELECT count(*) FROM outreach.dispatches WHERE report = 'delivered'")
    return {"delivered": delivered}


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    tell(anyio.run(run, told()))
