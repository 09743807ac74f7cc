"""Where the engine keeps everything: transactions over tables that speak the domain's language.

A storage offers two things: run a synchronous function in a transaction that may write, and run one on a
consistent snapshot that may only read. What a transaction can touch are the tables below. The rules of the
domain are not here: they are in `outreach.operations`, written once, over these tables, so that every storage
keeps the same rules.

Contract of every table, checked by `outreach.testing.storage_contract`:

- Values are immutable models; what is read later equals what was written, to the microsecond and the code point.
- A method that takes a `workspace_id` sees and touches rows of that workspace only.
- `get` returns None where there is nothing; `update` and `delete` of an absent row raise `LookupError`;
  `insert` of a present one raises `AlreadyThere`.
- Identifiers are unique over the whole database, so that `find` has one answer.
- Lists have one documented, total order. Texts are ordered by code points, moments by time.
- Reads in a transaction see its own writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self, TypeVar

from outreach.models.account import Account, AccountHold, CallbackRecord
from outreach.models.call import Call
from outreach.models.campaign import Campaign, Counters
from outreach.models.carriers import Channel
from outreach.models.directory import Agent, Flow, Number, Trunk
from outreach.models.dispatch import Dispatch, DispatchGroup, Sent
from outreach.models.message import InboundMessage, Keyword, Message, ReplyPurpose
from outreach.models.recipient import PreparedRecipient, Recipient, RecipientGroup
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.models.trail import TrailEntry
from outreach.models.unsubscribe import Unsubscribe
from outreach.models.work import AuditEntry, DueWork, HighWater, Home, Lease, RequestWindow, Run, StoredRequest, Unit
from outreach.models.workspace import ApiKey, Workspace

T = TypeVar("T")


class AlreadyThere(Exception):
    """A row with this identity, or a second open dispatch, is already there; the insert changed nothing."""


class Workspaces(Protocol):
    """Workspaces; the one table that is not within a workspace."""

    def get(self, workspace_id: str) -> Workspace | None: ...
    def insert(self, workspace: Workspace) -> None: ...
    def update(self, workspace: Workspace) -> None: ...
    def list(self) -> Sequence[Workspace]:
        """Return all, oldest first by (created_at, id)."""
        ...


class Keys(Protocol):
    """API keys; the digest is unique."""

    def by_digest(self, digest: str) -> ApiKey | None:
        """Return the key with this digest, of whatever workspace, revoked or not."""
        ...

    def get(self, key_id: str) -> ApiKey | None:
        """Return a key by its id, of whatever workspace (the operator's commands name keys alone)."""
        ...

    def insert(self, key: ApiKey) -> None: ...
    def update(self, key: ApiKey) -> None: ...
    def list(self, workspace_id: str) -> Sequence[ApiKey]:
        """Return a workspace's keys, oldest first by (created_at, id)."""
        ...


class Agents(Protocol):
    """Voice agents."""

    def get(self, workspace_id: str, agent_id: str) -> Agent | None: ...
    def insert(self, agent: Agent) -> None: ...
    def update(self, agent: Agent) -> None: ...
    def list(self, workspace_id: str) -> Sequence[Agent]:
        """Return a workspace's agents, oldest first by (created_at, id)."""
        ...


class Trunks(Protocol):
    """SIP trunks."""

    def get(self, workspace_id: str, trunk_id: str) -> Trunk | None: ...
    def insert(self, trunk: Trunk) -> None: ...
    def update(self, trunk: Trunk) -> None: ...
    def list(self, workspace_id: str) -> Sequence[Trunk]:
        """Return a workspace's trunks, those that were removed too, oldest first by (created_at, id)."""
        ...


class Numbers(Protocol):
    """Phone numbers that a workspace sends or calls from; (workspace, phone) is unique."""

    def get(self, workspace_id: str, number_id: str) -> Number | None: ...
    def by_phone(self, workspace_id: str, phone: str) -> Number | None: ...
    def insert(self, number: Number) -> None: ...
    def update(self, number: Number) -> None: ...
    def delete(self, workspace_id: str, number_id: str) -> None: ...
    def list(self, workspace_id: str) -> Sequence[Number]:
        """Return a workspace's numbers, oldest first by (created_at, id)."""
        ...


class Flows(Protocol):
    """Automation flows."""

    def get(self, workspace_id: str, flow_id: str) -> Flow | None: ...
    def insert(self, flow: Flow) -> None: ...
    def update(self, flow: Flow) -> None: ...
    def list(self, workspace_id: str) -> Sequence[Flow]:
        """Return a workspace's flows, those that were removed too, oldest first by (created_at, id)."""
        ...


class Accounts(Protocol):
    """Accounts at carriers and voice providers; (workspace, provider) is unique."""

    def get(self, workspace_id: str, account_id: str) -> Account | None: ...
    def find(self, account_id: str) -> Account | None:
        """Return an account of whatever workspace (a callback's address and the operator's commands name it alone)."""
        ...

    def at(self, workspace_id: str, provider: str) -> Account | None:
        """Return a workspace's account at a provider."""
        ...

    def insert(self, account: Account) -> None: ...
    def update(self, account: Account) -> None: ...
    def delete(self, workspace_id: str, account_id: str) -> bool:
        """Delete an account; return whether it was there."""
        ...

    def list(self, workspace_id: str) -> Sequence[Account]:
        """Return a workspace's accounts, oldest first by (created_at, id)."""
        ...


class AccountHolds(Protocol):
    """How long providers want to be left alone; one row a workspace and provider at most, with an account or without.

    Sandboxes have no accounts, and a provider is named there all the same.
    """

    def get(self, workspace_id: str, provider: str) -> AccountHold | None:
        """Return what a provider asked for last, over or not; None when it never did, or that was forgotten."""
        ...

    def put(self, hold: AccountHold) -> None:
        """Write it, over the one that is there."""
        ...

    def delete(self, workspace_id: str, provider: str) -> None:
        """Forget it; nothing happens when there is none."""
        ...


class Callbacks(Protocol):
    """What providers called back; (account, event) is unique."""

    def get(self, workspace_id: str, account_id: str, event_id: str) -> CallbackRecord | None:
        """Return an event of an account that has come before."""
        ...

    def insert(self, record: CallbackRecord) -> None: ...
    def update(self, record: CallbackRecord) -> None:
        """Write over an event's result and report; the rest stays as it is."""
        ...

    def waiting(self, workspace_id: str, provider: str, provider_id: str, *, limit: int) -> Sequence[CallbackRecord]:
        """Return events whose report names this identifier of this provider, oldest first by (received_at, event).

        As `provider_id`, or as the `telephony_id` of a call.
        """
        ...

    def list(self, workspace_id: str, *, limit: int = 1000) -> Sequence[CallbackRecord]:
        """Return the newest events, newest first by (received_at, account, event), all descending."""
        ...

    def sweep(self, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` events received before a moment; return how many."""
        ...


class Settings(Protocol):
    """SMS settings, one row a workspace at most."""

    def get(self, workspace_id: str) -> SmsSettings | None:
        """Return the settings; None before the first change."""
        ...

    def put(self, workspace_id: str, settings: SmsSettings) -> None: ...


class CallSettingsTable(Protocol):
    """Settings of calling campaigns, one row a workspace at most."""

    def get(self, workspace_id: str) -> CallSettings | None:
        """Return the settings; None before the first change."""
        ...

    def put(self, workspace_id: str, settings: CallSettings) -> None: ...


class ReplySettingsTable(Protocol):
    """How keywords are answered, one row a workspace at most."""

    def get(self, workspace_id: str) -> ReplySettings | None:
        """Return the settings; None before the first change."""
        ...

    def put(self, workspace_id: str, settings: ReplySettings) -> None: ...


class Register(Protocol):
    """The unsubscribe register; (workspace, phone) is unique."""

    def get(self, workspace_id: str, phone: str) -> Unsubscribe | None: ...
    def put(self, entry: Unsubscribe) -> None:
        """Write an entry, in place of the one that this number has."""
        ...

    def delete(self, workspace_id: str, phone: str) -> bool:
        """Remove a number; return whether it was there."""
        ...

    def list(self, workspace_id: str, *, after: str = "", limit: int = 1000) -> Sequence[Unsubscribe]:
        """Return entries in the order of their numbers, those greater than `after`, at most `limit`."""
        ...

    def stopped(self, workspace_id: str, channel: Channel, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers (at most 5,000) that must not be reached by this channel."""
        ...


class Campaigns(Protocol):
    """Campaigns.

    A campaign that is still loading is seen by `get_loading`, `publish` and `delete_loading` alone. The
    counters of a campaign are written by `add_counters` and `publish` only; `update` leaves them as they are.
    Campaigns are returned with the snapshot of their agent.
    """

    def insert_loading(self, campaign: Campaign, *, loading_until: datetime) -> None:
        """Write a campaign that nobody sees yet; it is a leftover once `loading_until` has passed."""
        ...

    def extend_loading(self, workspace_id: str, campaign_id: str, *, loading_until: datetime) -> bool:
        """Move the moment at which it becomes a leftover; return whether it is still there and loading."""
        ...

    def get_loading(self, workspace_id: str, campaign_id: str) -> Campaign | None: ...
    def publish(self, campaign: Campaign) -> None:
        """Make a loading campaign visible, with the counters and fields given."""
        ...

    def leftovers(self, now: datetime) -> Sequence[tuple[str, str]]:
        """Return (workspace, campaign) of those whose `loading_until` lies before now, by (loading_until, id)."""
        ...

    def delete_loading(self, workspace_id: str, campaign_id: str, *, limit: int) -> bool:
        """Delete up to `limit` recipients of a loading campaign, then the campaign; return whether all is gone.

        Its decision trail goes with it, in slices of as many.

        A campaign that is not loading is left alone, and True is returned: there is nothing to delete.
        """
        ...

    def get(self, workspace_id: str, campaign_id: str) -> Campaign | None: ...
    def find(self, campaign_id: str) -> Campaign | None:
        """Return a campaign of whatever workspace (the operator's commands name campaigns alone)."""
        ...

    def update(self, campaign: Campaign) -> None: ...
    def add_counters(self, workspace_id: str, campaign_id: str, change: Counters) -> Counters:
        """Add to the counters and return them as they are then."""
        ...

    def page(
        self,
        workspace_id: str,
        *,
        channel: Channel | None,
        status: CampaignStatus | None,
        search: str | None,
        offset: int,
        limit: int,
    ) -> tuple[Sequence[Campaign], int]:
        """Return campaigns newest first by (created_at, id), both descending, and how many match in all.

        `search` matches a part of the name, case-insensitively for every script (`policy.search.fold`).
        `offset` may be any integer from 0 on, however large.
        """
        ...

    def in_status(self, statuses: Collection[CampaignStatus], *, workspace_id: str | None = None) -> Sequence[Campaign]:
        """Return campaigns in these statuses, of one workspace or of all, oldest first by (created_at, id)."""
        ...


class Recipients(Protocol):
    """The recipients of campaigns, keyed by (campaign, position)."""

    def insert(
        self,
        workspace_id: str,
        campaign_id: str,
        rows: Iterable[tuple[int, PreparedRecipient, RecipientStatus, str | None]],
        *,
        now: datetime,
    ) -> None:
        """Write recipients: position, contact, status and reason; those that have ended, ended now.

        Raises:
            LookupError: The workspace has no such campaign, loading or published.
            AlreadyThere: A position is taken, or comes twice; none of the rows was written.
        """
        ...

    def known_phones(self, workspace_id: str, campaign_id: str, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers (at most 5,000) that the campaign already has."""
        ...

    def delete_stopped_since(self, workspace_id: str, campaign_id: str, channel: Channel, since: datetime) -> Counters:
        """Delete recipients whose number came onto the register at or after `since`; return what they counted."""
        ...

    def get(self, workspace_id: str, campaign_id: str, position: int) -> Recipient | None: ...
    def put(self, workspace_id: str, recipient: Recipient) -> None:
        """Write a recipient's state over the one it has; the contact's own fields do not change."""
        ...

    def due(self, workspace_id: str, campaign_id: str, now: datetime, *, limit: int) -> Sequence[Recipient]:
        """Return pending recipients, and waiting ones due at or before now.

        Those that wait for the second call of a double dial come first: it is made within seconds, or dropped. Then
        the other waiting ones, then pending ones. Waiting ones come by (due_at, position), pending ones by position.
        """
        ...

    def next_due(self, workspace_id: str, campaign_id: str) -> datetime | None:
        """Return the earliest due time of the waiting and of the in-progress ones that have one."""
        ...

    def overdue_in_progress(
        self, workspace_id: str, campaign_id: str, now: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return in-progress recipients due at or before now, by (due_at, position)."""
        ...

    def put_off(
        self, workspace_id: str, campaign_id: str, reason: str, now: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return recipients that wait for this reason and are due after now, by (due_at, position)."""
        ...

    def waiting_with(self, workspace_id: str, phone: str) -> Sequence[Recipient]:
        """Return the waiting recipients with this number in all campaigns of a workspace, by (campaign, position)."""
        ...

    def in_flight(self, workspace_id: str, campaign_id: str) -> int:
        """Return how many are dispatching, in progress or unknown."""
        ...

    def closable(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[Recipient]:
        """Return pending and waiting recipients, whatever their due time, by position."""
        ...

    def page(self, workspace_id: str, campaign_id: str, *, after: int = -1, limit: int = 1000) -> Sequence[Recipient]:
        """Return recipients by position, those greater than `after`, at most `limit`."""
        ...

    def by_phone(self, workspace_id: str, campaign_id: str, phone: str) -> Sequence[Recipient]:
        """Return the recipients with this number, by position."""
        ...

    def without_phone(self, workspace_id: str, campaign_id: str, phone_number: str) -> Sequence[Recipient]:
        """Return the recipients that were supplied with this, which is no possible number, by position."""
        ...

    def groups(self, workspace_id: str, campaign_id: str) -> Sequence[RecipientGroup]:
        """Return how many are in each state for each reason, by (status, reason), no reason first."""
        ...

    def recount(self, workspace_id: str, campaign_id: str) -> Counters:
        """Return the counters by looking at every recipient (`models.campaign.contribution`)."""
        ...


class Dispatches(Protocol):
    """The ledger. At most one unsettled dispatch a recipient and step, message or call."""

    def insert(self, dispatch: Dispatch) -> None:
        """Write an intent.

        Raises:
            AlreadyThere: What it is for (recipient and step, message, call) has an unsettled dispatch.
        """
        ...

    def get(self, workspace_id: str, dispatch_id: str) -> Dispatch | None: ...
    def find(self, dispatch_id: str) -> Dispatch | None:
        """Return a dispatch of whatever workspace (the operator's commands name dispatches alone)."""
        ...

    def by_provider_id(self, workspace_id: str, provider: str, provider_id: str) -> Dispatch | None:
        """Return the newest dispatch, by (created_at, id), with this identifier of this provider."""
        ...

    def update(self, dispatch: Dispatch) -> None:
        """Write over a dispatch.

        Raises:
            AlreadyThere: It would be a second unsettled one; nothing was changed.
        """
        ...

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[Dispatch]:
        """Return a recipient's dispatches, oldest first by (created_at, id)."""
        ...

    def of_call(self, workspace_id: str, call_id: str) -> Sequence[Dispatch]:
        """Return a call's dispatches, oldest first by (created_at, id)."""
        ...

    def of_message(self, workspace_id: str, message_id: str) -> Sequence[Dispatch]:
        """Return a message's dispatches, oldest first by (created_at, id)."""
        ...

    def sent_to(self, workspace_id: str, phone: str, *, since: datetime) -> Sequence[Sent]:
        """Return dispatches to a number that were created at or after a moment, oldest first.

        Those that reached nobody for sure (not sent, withdrawn, deferred) do not count, nor do answers to keywords.
        """
        ...

    def recent(self, workspace_id: str, campaign_id: str, *, since: datetime, limit: int) -> Sequence[Dispatch]:
        """Return a campaign's dispatches that are no more `dispatching`, created at or after a moment.

        They come newest first by (created_at, id), both descending, at most `limit`.
        """
        ...

    def groups(self, workspace_id: str, campaign_id: str) -> Sequence[DispatchGroup]:
        """Return what a campaign's dispatches came to, the most frequent first, at most a thousand groups.

        Of as many, by (provider, state, report, reason, error_code), nothing before something. The error code of a call
        that was placed and failed is the error of its record.
        """
        ...

    def abandoned(self, epoch: int, *, limit: int) -> Sequence[Dispatch]:
        """Return those `dispatching` of epochs below this one, in all workspaces, oldest first by (created_at, id)."""
        ...

    def unknown(self, workspace_id: str | None, *, limit: int, after: Dispatch | None = None) -> Sequence[Dispatch]:
        """Return the unknown ones of one workspace or of all, oldest first by (created_at, id).

        With `after` only those behind that one in this order, whatever has become of it.
        """
        ...


class Calls(Protocol):
    """Call records."""

    def get(self, workspace_id: str, call_id: str) -> Call | None: ...
    def find(self, call_id: str) -> Call | None:
        """Return a call of whatever workspace (the operator's commands name calls alone)."""
        ...

    def by_provider_id(self, workspace_id: str, provider_call_id: str) -> Call | None:
        """Return the newest call, by (created_at, id), with this identifier of a provider."""
        ...

    def insert(self, call: Call) -> None: ...
    def update(self, call: Call) -> None: ...
    def open_between(self, workspace_id: str, agent_id: str, to: str) -> Call | None:
        """Return the oldest open call, by (created_at, id), of this agent to this number."""
        ...


class Messages(Protocol):
    """Single messages."""

    def get(self, workspace_id: str, message_id: str) -> Message | None: ...
    def insert(self, message: Message) -> None: ...
    def update(self, message: Message) -> None: ...
    def last_reply(self, workspace_id: str, phone: str, purpose: ReplyPurpose) -> datetime | None:
        """Return when the newest answer of this purpose was made for a number; None when none was."""
        ...


class Inbound(Protocol):
    """Messages that people wrote back."""

    def insert(self, message: InboundMessage) -> None:
        """Write a message.

        Raises:
            AlreadyThere: It is there, or the workspace has one with its identifier of its provider.
        """
        ...

    def last_keyword(self, workspace_id: str, phone: str, keyword: Keyword) -> datetime | None:
        """Return when a number last wrote a keyword, by `written_at`; None when it never did."""
        ...

    def list(self, workspace_id: str, *, unclear: bool = False, limit: int = 1000) -> Sequence[InboundMessage]:
        """Return the newest messages, or those that are unclear, newest first by (received_at, id), both descending."""
        ...

    def replied_since(self, workspace_id: str, phone: str, since: datetime) -> bool:
        """Return whether a number has written at or after a moment."""
        ...


class WorkFeed(Protocol):
    """What is due, and what has changed; the change numbers go up over the whole database."""

    def touch(self, unit: Unit, due_at: datetime | None) -> int:
        """Write when a unit is due, under a new change number; return that number."""
        ...

    def get(self, unit: Unit) -> DueWork | None: ...
    def due(self) -> Sequence[DueWork]:
        """Return every unit that has a due time, by (due_at, change)."""
        ...

    def since(self, change: int) -> Sequence[DueWork]:
        """Return the units changed after this number, by change."""
        ...

    def last_change(self) -> int:
        """Return the highest change number; 0 in a new database."""
        ...

    def forget(self, *, limit: int) -> int:
        """Delete up to `limit` units of calls and messages with nothing due; return how many.

        The highest change number is never lost by this.
        """
        ...


class Leases(Protocol):
    """The right to dispatch from this database."""

    def current(self) -> Lease | None: ...
    def put(self, lease: Lease) -> None: ...
    def database_id(self) -> str:
        """Return what tells this database from others: given at its creation, shared by its copies."""
        ...

    def home(self) -> Home | None:
        """Return where the database was last confirmed to live."""
        ...

    def set_home(self, home: Home) -> None: ...


class Runs(Protocol):
    """What dispatching a campaign remembers across restarts."""

    def get(self, workspace_id: str, campaign_id: str) -> Run | None: ...
    def put(self, run: Run) -> None: ...
    def sender_slot(self, workspace_id: str, phone: str) -> datetime | None:
        """Return the first moment at which a sending number may send its next message; None for any."""
        ...

    def put_sender_slot(self, workspace_id: str, phone: str, next_slot_at: datetime) -> None:
        """Write that moment."""
        ...


class Requests(Protocol):
    """Request windows and idempotency keys."""

    def window(self, workspace_id: str) -> RequestWindow | None: ...
    def put_window(self, window: RequestWindow) -> None: ...
    def stored(self, workspace_id: str, operation: str, key: str) -> StoredRequest | None: ...
    def put_stored(self, request: StoredRequest) -> None: ...
    def delete_stored(self, workspace_id: str, operation: str, key: str) -> None:
        """Forget a key; nothing happens when it is not there."""
        ...

    def sweep(self, now: datetime, *, limit: int) -> int:
        """Delete up to `limit` keys that have expired (`expires_at` at or before now); return how many."""
        ...


class Audit(Protocol):
    """The audit trail; append only."""

    def append(self, entry: AuditEntry) -> None: ...
    def list(self, workspace_id: str | None, *, limit: int = 1000) -> Sequence[AuditEntry]:
        """Return the newest entries of a workspace, or of all: the one appended last comes first."""
        ...


class Trail(Protocol):
    """The decision trail; append only, but for a hold that is prolonged.

    Entries are numbered from 1, over the whole database, in the order in which they are committed; a number that
    has been given is never given again, whatever is deleted.
    """

    def append(self, entry: TrailEntry) -> None:
        """Write an entry under the next number, whatever number it has.

        Raises:
            LookupError: The workspace has no such campaign.
        """
        ...

    def prolong(self, workspace_id: str, campaign_id: str, position: int, due_at: datetime) -> None:
        """Have the latest `held` entry of a recipient last until `due_at`, repeated once more; if there is one."""
        ...

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[TrailEntry]:
        """Return the entries of one recipient, by number."""
        ...

    def of_campaign(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries of a campaign as a whole, those of no recipient: the latest so many, by number."""
        ...

    def of_workspace(self, workspace_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries that tell of the workspace itself: the latest so many, by number."""
        ...

    def of_number(self, workspace_id: str, phone: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries that tell of a phone number: the latest so many, by number."""
        ...

    def between(self, workspace_id: str | None, after: int, until: int) -> Sequence[TrailEntry]:
        """Return those of a workspace, or of all, numbered above `after` and up to `until`, by number."""
        ...

    def last_number(self) -> int:
        """Return the highest number that was ever given; 0 in a new database."""
        ...


class Transaction(Protocol):
    """All tables, within one transaction."""

    @property
    def workspaces(self) -> Workspaces: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def agents(self) -> Agents: ...
    @property
    def trunks(self) -> Trunks: ...
    @property
    def numbers(self) -> Numbers: ...
    @property
    def flows(self) -> Flows: ...
    @property
    def accounts(self) -> Accounts: ...
    @property
    def account_holds(self) -> AccountHolds: ...
    @property
    def callbacks(self) -> Callbacks: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def call_settings(self) -> CallSettingsTable: ...
    @property
    def reply_settings(self) -> ReplySettingsTable: ...
    @property
    def register(self) -> Register: ...
    @property
    def campaigns(self) -> Campaigns: ...
    @property
    def recipients(self) -> Recipients: ...
    @property
    def dispatches(self) -> Dispatches: ...
    @property
    def calls(self) -> Calls: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def inbound(self) -> Inbound: ...
    @property
    def work(self) -> WorkFeed: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def requests(self) -> Requests: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def trail(self) -> Trail: ...


Operation = Callable[[Transaction], T]
"""A synchronous function of a transaction: it touches nothing else, never waits, and takes at most 100 ms."""


class DispatchLock(Protocol):
    """Sees to it that one process at a time dispatches from a database."""

    def acquire(self) -> bool:
        """Take the lock without waiting; return whether it was free and is now the caller's.

        It is not free while anybody holds it, this process included: two engines may share one storage.

        Raises:
            DispatchRefused: Nothing may be dispatched from this database here.
        """
        ...

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        ...

    def home(self) -> Home | None:
        """Return where the database is now; None where that means nothing (in memory)."""
        ...

    def high_water(self) -> HighWater | None:
        """Return what was last noted beside the database; None when nothing is noted."""
        ...

    def note(self, mark: HighWater) -> None:
        """Note how far the database has come, outside it, so that an older copy put in its place is noticed."""
        ...


class Storage(Protocol):
    """A database. Open it with `async with`; it may be used from one event loop."""

    async def __aenter__(self) -> Self:
        """Open it, and bring its schema up to date.

        Raises:
            DatabaseMissing: There is none, and none was to be created.
            DatabaseNewer: It was written by a newer version of this package; nothing was changed.
            StorageError: It cannot be opened; the message says why and what to do.
        """
        ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Finish what was queued and close."""
        ...

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction, commit it durably, and return its result after the commit.

        Operations take effect one after the other. What one raises undoes all that it did, and nothing else,
        and is raised here. When the caller is cancelled the operation is done wholly or not at all.

        Args:
            operation: What to do.
            bulk: It is a piece of large work: operations without this go first.
        """
        ...

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation that writes nothing on a snapshot that holds every committed write; return its result.

        Raises:
            StorageError: The operation tried to write; nothing was changed.
        """
        ...

    @property
    def lock(self) -> DispatchLock:
        """The lock that one dispatching process holds."""
        ...
