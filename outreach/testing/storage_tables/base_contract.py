"""What the parts of the storage contract share: fixtures, awkward values and ways to fill a database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import attrs
import pytest

from outreach.models.campaign import Campaign
from outreach.models.recipient import PreparedRecipient
from outreach.models.states import RecipientStatus
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW, WORKSPACE_ID, make_campaign, make_prepared, make_workspace
from outreach.working_set import Transaction

THIS_WORKSPACE: Final = WORKSPACE_ID
OTHER_WORKSPACE: Final = "0195554e-0000-7000-8000-00000000beef"
"""Another workspace, which must not see or touch what belongs to the first."""

TICK: Final = timedelta(microseconds=1)
"""The shortest time that must make a difference."""

MAX_INTEGER: Final = 2**63 - 1

AWKWARD_TEXTS: Final = {
    "empty": "",
    "blank": "  \t\r\n ",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈 👍🏽",
    "right-to-left": "\u202eمرحبا بالعالم\u202c שלום",
    "composed": "Caf\u00e9",
    "decomposed": "Cafe\u0301",
    "quoting": "'; DROP TABLE campaigns; -- \" \\ % _ ? :name {{x}} NULL",
    "control": "\x01\x1f\x7f\ufeff",
    "last code points": "\uffff\U0010ffff",
    "numeric": "007",
    "long": "ü😀" * 50_000,
}

awkward_texts = pytest.mark.parametrize("text", AWKWARD_TEXTS.values(), ids=AWKWARD_TEXTS.keys())

AWKWARD_MOMENTS: Final = (
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 11, 1, 5, 59, 59, 999999, tzinfo=UTC),
    datetime(2026, 11, 1, 6, 0, 0, 1, tzinfo=UTC),
    datetime(2100, 2, 28, 23, 0, 0, 100000, tzinfo=UTC),
)

awkward_moments = pytest.mark.parametrize("moment", AWKWARD_MOMENTS, ids=str)

Row = tuple[int, PreparedRecipient, RecipientStatus, str | None]


def pending(*contacts: PreparedRecipient) -> list[Row]:
    """Return rows of pending recipients, from position 0."""
    return [(position, contact, RecipientStatus.PENDING, None) for position, contact in enumerate(contacts)]


def publish(tx: Transaction, campaign: Campaign, rows: Sequence[Row] = ()) -> Campaign:
    """Write a campaign with its recipients, publish it with its true counters, and return it."""
    tx.campaigns.insert_loading(campaign, loading_until=NOW + timedelta(minutes=5))
    tx.recipients.insert(campaign.workspace_id, campaign.id, rows, now=NOW)
    counted = attrs.evolve(campaign, counters=tx.recipients.recount(campaign.workspace_id, campaign.id))
    tx.campaigns.publish(counted)
    return counted


async def given_campaign(storage: Storage, *contacts: PreparedRecipient, campaign: Campaign | None = None) -> Campaign:
    """Write a published campaign whose recipients are all pending."""
    wanted = make_campaign() if campaign is None else campaign
    return await storage.write(lambda tx: publish(tx, wanted, pending(*contacts)))


async def given_recipients(storage: Storage, count: int) -> Campaign:
    """Write a published campaign with so many pending recipients."""
    return await given_campaign(storage, *(make_prepared() for _ in range(count)))


class ContractBase:
    """Fixtures of every part; a subclass of the whole defines the fixture `open_storage` (see `storage_contract`)."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run on asyncio, the engine's loop."""
        return "asyncio"

    @pytest.fixture
    async def database(self, open_storage: Callable[[], Storage]) -> AsyncIterator[Storage]:
        """Open a new, empty database."""
        async with open_storage() as storage:
            yield storage

    @pytest.fixture
    async def storage(self, database: Storage) -> Storage:
        """Return an open database that holds two workspaces."""

        def insert(tx: Transaction) -> None:
            tx.workspaces.insert(make_workspace(id=THIS_WORKSPACE))
            tx.workspaces.insert(make_workspace(id=OTHER_WORKSPACE, name="Other"))

        await database.write(insert)
        return database
