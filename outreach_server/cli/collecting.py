"""Lists of the engine as a command shows them, and their filters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, TypeVar

import click

from outreach import NewSmsCampaign
from outreach_server.cli.values import text_of

T = TypeVar("T")

BY_EXTERNAL_ID: Final = click.option(
    "--external-id",
    type=text_of(NewSmsCampaign, "external_id"),
    metavar="ID",
    help="Only those that your application knows by this id.",
)
BY_METADATA: Final = click.option(
    "--metadata",
    metavar="KEY=VALUE",
    help="Only those with this pair in their metadata, such as team=7.",
)


async def collect(found: AsyncIterator[T], limit: int | None = None) -> list[T]:
    """Return the items of a list, or the first so many."""
    items: list[T] = []
    if limit is None or limit > 0:
        async for item in found:
            items.append(item)
            if len(items) == limit:
                break
    return items
