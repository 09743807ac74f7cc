"""`webhooks listen`: prints what an endpoint would get."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence

import click

from outreach import Outreach
from outreach.models import WebhookReplay
from outreach.server_support import Delivery, Listener, listen
from outreach_server.cli.base import Command, state, with_engine
from outreach_server.cli.output import note
from outreach_server.cli.resources import workspace_argument
from outreach_server.cli.values import Identifier, Whole, integer_of


def _listen(
    workspace_id: str, webhook_id: str | None, number: int | None, types: Sequence[str], full: bool, count: int | None
) -> None:
    async def work(engine: Outreach) -> None:
        like = None if webhook_id is None else await engine.webhooks.get(workspace_id, webhook_id)
        listener = Listener(
            workspace_id=workspace_id,
            types=types or (like.types if like else ()),
            payload="full" if full else (like.payload if like else "thin"),
        )
        note("Deliveries are printed as events happen. Ctrl-C ends this.")
        await _print(listen(engine, listener, number=number), count)

    with_engine(work)


async def _print(deliveries: AsyncIterator[Delivery], count: int | None) -> None:
    """Print deliveries as they come, a line each; with `--json` as one array, which is closed at Ctrl-C too."""
    out, as_json, printed = sys.stdout.buffer, state().as_json, 0
    try:
        async for one in deliveries:
            # The body is printed byte by byte as it is sent, so it is not read first.
            line = b'{"webhook-id":"%s","body":%s}' % (one.id.encode(), one.body)
            separator = (b"," if printed else b"[") if as_json else b""
            out.write(separator + line + b"\n")
            out.flush()
            printed += 1
            if printed == count:
                return
    finally:
        if as_json:
            out.write(b"]\n" if printed else b"[]\n")
            out.flush()


listen_command = Command(
    "listen",
    help="Print what an endpoint would get, one JSON object a line, until Ctrl-C. Nothing is sent or stored; with the "
    "URL or id of a webhook, its types and payload count.",
    callback=_listen,
    params=[
        workspace_argument(),
        click.Argument(["webhook_id"], type=Identifier("webhook"), metavar="URL", required=False),
        click.Option(
            ["--from", "number"],
            type=integer_of(WebhookReplay, "number"),
            help="The number of the first event; by default those from now on.",
        ),
        click.Option(["--type", "types"], multiple=True, help="A type of events, such as campaign.*; repeatable."),
        click.Option(["--full"], is_flag=True, help="Print numbers and texts too."),
        click.Option(["--count"], type=Whole(1, 1_000_000, unit=""), help="End after so many."),
    ],
)
