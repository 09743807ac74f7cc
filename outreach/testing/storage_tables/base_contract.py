"""Shared code of the parts of the storage contract: fixtures, awkward values and ways to fill a database."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import attrs
import pytest

from outreach.models.account import ProviderThrottle, StoredAccount
from outreach.models.call import Call
from outreach.models.campaign import Campaign, PreparedRecipient
from outreach.models.dispatch import Dispatch
from outreach.models.message import InboundMessage, Message
from outreach.models.reports import CallbackRecord
from outreach.models.resources import Agent, Flow, Number, Trunk
from outreach.models.schedule import Occurrence, Schedule
from outreach.models.states import RecipientStatus, TrailEntry
from outreach.models.unsubscribe import Unsubscribe
from outreach.models.user import Invitation, LoginFailures, Membership, Session, StoredUser
from outreach.models.webhook import Webhook, WebhookAttempt, WebhookCursor, WebhookHold
from outreach.models.work import AuditEntry, CampaignRunState, Claim, IdempotencyRecord, RequestWindow, WorkerLease
from outreach.models.workspace import ApiKey, Workspace
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, WORKSPACE_ID, make_campaign, make_prepared, make_workspace

R = TypeVar("R")
V = TypeVar("V")

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

MAX_KEY_LENGTH: Final = 250
"""The most characters of identifiers, keys and phone numbers; a storage need not take longer ones."""


def as_key(text: str) -> str:
    """Return a text as an identifier, key or phone number may be."""
    return text[:MAX_KEY_LENGTH]


def bound(function: Callable[[Transaction, V], R], value: V) -> Callable[[Transaction], R]:
    """Return a function of a transaction alone, for a value that a loop changes."""
    return lambda tx: function(tx, value)


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


_WRITERS: Final[Mapping[type, Callable[[Transaction], Callable[[Any], object]]]] = {
    Agent: lambda tx: tx.agents.insert,
    ApiKey: lambda tx: tx.keys.insert,
    AuditEntry: lambda tx: tx.audit.append,
    Call: lambda tx: tx.calls.insert,
    CallbackRecord: lambda tx: tx.callbacks.insert,
    Campaign: lambda tx: functools.partial(publish, tx),
    CampaignRunState: lambda tx: tx.runs.put,
    Claim: lambda tx: tx.claims.put,
    Dispatch: lambda tx: tx.dispatches.insert,
    Flow: lambda tx: tx.flows.insert,
    IdempotencyRecord: lambda tx: tx.requests.put_stored,
    InboundMessage: lambda tx: tx.inbound.insert,
    Invitation: lambda tx: tx.invitations.insert,
    LoginFailures: lambda tx: tx.login_failures.put,
    Membership: lambda tx: tx.memberships.put,
    Message: lambda tx: tx.messages.insert,
    Number: lambda tx: tx.numbers.insert,
    Occurrence: lambda tx: tx.occurrences.insert,
    ProviderThrottle: lambda tx: tx.provider_throttles.put,
    RequestWindow: lambda tx: tx.requests.put_window,
    Schedule: lambda tx: tx.schedules.insert,
    Session: lambda tx: tx.sessions.insert,
    StoredAccount: lambda tx: tx.accounts.insert,
    StoredUser: lambda tx: tx.users.insert,
    TrailEntry: lambda tx: tx.trail.append,
    Trunk: lambda tx: tx.trunks.insert,
    Unsubscribe: lambda tx: tx.register.put,
    Webhook: lambda tx: tx.webhooks.insert,
    WebhookAttempt: lambda tx: tx.webhook_attempts.insert,
    WebhookCursor: lambda tx: tx.webhook_cursors.put,
    WebhookHold: lambda tx: tx.webhook_holds.put,
    WorkerLease: lambda tx: tx.workers.put,
    Workspace: lambda tx: tx.workspaces.insert,
}
"""The method that inserts, puts or appends a row of each kind."""


def write_rows(tx: Transaction, *rows: object) -> None:
    """Write rows of any kinds, in this order; campaigns are published."""
    for row in rows:
        _WRITERS[type(row)](tx)(row)


async def given_rows(storage: Storage, *rows: object) -> None:
    """Write rows of any kinds in one transaction, in this order; campaigns are published."""
    await storage.write(lambda tx: write_rows(tx, *rows))


def change_recipient(tx: Transaction, campaign_id: str, position: int, **changes: Any) -> None:
    """Change the state of a recipient that is there."""
    recipient = tx.recipients.get(THIS_WORKSPACE, campaign_id, position)
    assert recipient is not None
    tx.recipients.put(THIS_WORKSPACE, attrs.evolve(recipient, **changes))


async def given_campaign(storage: Storage, *contacts: PreparedRecipient, campaign: Campaign | None = None) -> Campaign:
    """Write a published campaign whose recipients are all pending."""
    wanted = make_campaign() if campaign is None else campaign
    return await storage.write(lambda tx: publish(tx, wanted, pending(*contacts)))


async def given_recipients(storage: Storage, count: int) -> Campaign:
    """Write a published campaign with this many pending recipients."""
    return await given_campaign(storage, *(make_prepared() for _ in range(count)))


class ContractBase:
    """The base of every part; a subclass of the whole defines the fixture `open_storage` (see `storage_contract`).

    A test that takes `database` gets a new, empty database, opened for it; one that takes `storage` gets one with two
    workspaces. Both are opened by the test itself and are no fixtures, so that any plugin can run the tests.
    """

    def __init_subclass__(cls, **given: Any) -> None:
        """Have the tests of a part open what they take."""
        super().__init_subclass__(**given)
        for name, test in list(vars(cls).items()):
            if name.startswith("test_") and inspect.iscoroutinefunction(test):
                setattr(cls, name, _opening(test))

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run on asyncio, the engine's loop, where anyio runs the tests."""
        return "asyncio"


def _opening(test: Callable[..., Any]) -> Callable[..., Any]:
    """Return a test that takes `open_storage`, opens it, and hands it to a test as `storage` or `database`."""
    signature = inspect.signature(test)
    opened = {"storage", "database"} & signature.parameters.keys()
    if not opened:
        return test
    [name] = opened
    passes_on = "open_storage" in signature.parameters

    @functools.wraps(test)
    async def run(self: object, open_storage: Callable[[], Storage], **given: Any) -> None:
        if passes_on:
            given["open_storage"] = open_storage
        async with open_storage() as storage:
            if name == "storage":
                await given_rows(
                    storage, make_workspace(id=THIS_WORKSPACE), make_workspace(id=OTHER_WORKSPACE, name="Other")
                )
            await test(self, **{name: storage}, **given)

    kept = [one for one in signature.parameters.values() if one.name not in {name, "open_storage"}]
    takes = inspect.Parameter("open_storage", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = signature.replace(parameters=[*kept, takes])  # type: ignore[attr-defined]
    return run
