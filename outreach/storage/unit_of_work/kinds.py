"""The kinds of rows (table, columns and key of each), and the database that loads, queries and writes them.

The columns of a row are the fields of its model (`serialization.documents`). Rows name their campaign by an internal
integer, which keeps millions of rows and their indexes small.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar, cast

import attrs

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.core.copying import copy_with
from outreach.models.account import ProviderThrottle, StoredAccount
from outreach.models.call import Call
from outreach.models.campaign import Campaign, Counters, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.message import InboundMessage, Message
from outreach.models.prices import PriceTable
from outreach.models.reports import CallbackRecord
from outreach.models.resources import RESOURCES, Agent, Number
from outreach.models.schedule import Occurrence, Schedule
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.states import TrailEntry
from outreach.models.subscription import StoredSubscription
from outreach.models.unreachable import UnreachableNumber
from outreach.models.unsubscribe import RegisterSalt, Unsubscribe
from outreach.models.upload import Upload
from outreach.models.user import Invitation, LoginFailures, Membership, RecoveryCode, Session, StoredUser
from outreach.models.webhook import Webhook, WebhookAttempt, WebhookCursor, WebhookHold
from outreach.models.work import (
    AuditEntry,
    CampaignRunState,
    Claim,
    DatabaseHome,
    IdempotencyRecord,
    Lease,
    RequestWindow,
    WorkerLease,
    WorkItem,
    WorkUnit,
)
from outreach.models.workspace import ApiKey, Workspace
from outreach.rules.segments import fold
from outreach.serialization.documents import RENAMED, Columns, Value

M = TypeVar("M")

Key = tuple[Any, ...]
"""The primary key in the domain's terms: campaigns by their identifiers."""


SINGLE_ROW_KEY: Final[Key] = (1,)

UNNUMBERED: Final = 0
"""The change number of a unit of work that has not been flushed."""

ALL_WORKSPACES: Final = ""
"""In the place of a workspace: what counts for all of them."""


def everything_changed(_: str) -> bool:
    """Return True: other connections may have written in any workspace (`Backend.changes`)."""
    return True


class CampaignRef(NamedTuple):
    """A campaign's internal number, workspace and identifier."""

    number: int
    workspace_id: str
    id: str


NO_CAMPAIGN: Final = CampaignRef(0, "", "")


@attrs.frozen(kw_only=True, eq=False)
class Kind(Generic[M]):
    """One kind of rows.

    Attributes:
        table: The table.
        noun: The name of one row, for messages.
        columns: The columns, in the order of a row.
        key: The key columns.
        fixed: Columns that updates leave unchanged.
        row: Returns the columns of a model under a key; the unit of work fills in the campaign's number.
        model: Returns the model of a row, given the reference of its campaign.
        key_of: Returns the key of a model; raises `TypeError` if the model does not hold it.
        campaign: The index of the campaign's number in the row, if any.
        campaign_key: The index of the campaign's identifier in the key, if any.
        fixed_fields: The model's fields of the fixed columns.
        fixed_values: Returns their values.
        hidden_by: Rows in which this column is set are invisible.
    """

    table: str
    noun: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    fixed: frozenset[str] = frozenset()
    row: Callable[[Key, M], list[Value]]
    model: Callable[[Sequence[Any], CampaignRef], M]
    key_of: Callable[[M], Key]
    campaign: int | None = None
    campaign_key: int | None = None
    fixed_values: Callable[[M], Sequence[Any]] | None = None
    fixed_fields: tuple[str, ...] = ()
    hidden_by: str | None = None

    def with_fixed_values(self, known: M, row: M) -> M:
        """Return a replacing row with the fixed values of the known one."""
        if self.fixed_values is None or self.fixed_values(known) == self.fixed_values(row):
            return row
        kept = {name: getattr(known, name) for name in self.fixed_fields}
        changed: M = attrs.evolve(row, **kept)  # type: ignore[misc]
        return changed

    @cached_property
    def workspace_key(self) -> int | None:
        """The index of the workspace in the key; None if it has none."""
        if self.table == "workspaces":
            return 0
        return self.key.index("workspace_id") if "workspace_id" in self.key else None

    @property
    def updatable(self) -> tuple[str, ...]:
        """The columns that an update writes."""
        return tuple(name for name in self.columns if name not in self.key and name not in self.fixed)


def _kind(
    table: str, model: type[M], noun: str, *, key: Sequence[str] = ("workspace_id", "id"), fixed: Sequence[str] = ()
) -> Kind[M]:
    """Return the kind of a model whose fields are its columns."""
    columns = Columns(model)
    names = tuple("campaign_number" if name == "campaign_id" else name for name in columns.names)
    campaign = names.index("campaign_number") if "campaign_number" in names else None
    field_of = {column: field for field, column in RENAMED.items()}
    fields = tuple(field_of.get(name, name) for name in key)
    fixed_fields = tuple("campaign_id" if name == "campaign_number" else field_of.get(name, name) for name in fixed)

    def read(row: Sequence[Any], ref: CampaignRef) -> M:
        if campaign is None:
            return columns.model(row)
        values = list(row)
        values[campaign] = ref.id or None
        return columns.model(values)

    return Kind(
        table=table,
        noun=noun,
        columns=names,
        key=tuple("campaign_number" if name == "campaign_id" else name for name in key),
        fixed=frozenset(fixed),
        fixed_fields=fixed_fields,
        fixed_values=attrgetter(*fixed_fields) if len(fixed_fields) > 1 else None,
        row=lambda _, it: columns.row(it),
        model=read,
        key_of=lambda it: tuple(getattr(it, field) for field in fields),
        campaign=campaign,
        campaign_key=list(key).index("campaign_id") if "campaign_id" in key else None,
    )


def _without_key(table: str, model: type[M], noun: str, *, key: str = "workspace_id") -> Kind[M]:
    """Return a kind with a key of one column, which its models do not hold."""
    columns = Columns(model)
    return Kind(
        table=table,
        noun=noun,
        columns=(key, *columns.names),
        key=(key,),
        row=lambda key, it: [key[0], *columns.row(it)],
        model=lambda row, _: columns.model(row[1:]),
        key_of=_key_not_in_model,
    )


def _key_not_in_model(_: object) -> Key:
    raise TypeError("The model of this kind does not hold its key.")


WORKSPACES: Final = _kind("workspaces", Workspace, "workspace", key=("id",))
KEYS: Final = _kind("api_keys", ApiKey, "API key")
RESOURCE_KINDS: Final[Mapping[type[Any], Kind[Any]]] = {
    model: _kind(f"{noun}s", model, noun) for noun, model in RESOURCES.items()
}
"""The kinds of what a workspace's owner sets up, by their models."""


def kind_of(model: type[M]) -> Kind[M]:
    """Return the kind of a resource."""
    return RESOURCE_KINDS[model]


AGENTS: Final = kind_of(Agent)
NUMBERS: Final = kind_of(Number)
SCHEDULES: Final = kind_of(Schedule)
OCCURRENCES: Final = attrs.evolve(
    _kind("occurrences", Occurrence, "run of a schedule", key=("workspace_id", "schedule_id", "at")),
    key_of=lambda it: (it.workspace_id, it.schedule_id, format_timestamp(it.at)),
)
WEBHOOKS: Final = kind_of(Webhook)
WEBHOOK_CURSORS: Final = _kind(
    "webhook_cursors", WebhookCursor, "cursor of a webhook", key=("workspace_id", "webhook_id")
)
WEBHOOK_HOLDS: Final = _kind(
    "webhook_holds", WebhookHold, "held event", key=("workspace_id", "webhook_id", "number"), fixed=("key", "first_at")
)
WEBHOOK_ATTEMPTS: Final = _kind("webhook_attempts", WebhookAttempt, "attempt of a delivery")
ACCOUNTS: Final = _kind("accounts", StoredAccount, "account", fixed=("provider", "created_at"))
PROVIDER_THROTTLES: Final = _kind(
    "provider_throttles", ProviderThrottle, "throttle of an account", key=("workspace_id", "provider")
)
CALLBACKS: Final = _kind(
    "callbacks",
    CallbackRecord,
    "callback",
    key=("workspace_id", "account_id", "event_id"),
    fixed=("body", "received_at"),
)
SMS_SETTINGS: Final = _without_key("sms_settings", SmsSettings, "settings row")
CALL_SETTINGS: Final = _without_key("call_settings", CallSettings, "call settings row")
PRICE_TABLES: Final = _without_key("price_tables", PriceTable, "price table")
REPLY_SETTINGS: Final = _without_key("reply_settings", ReplySettings, "reply settings row")
REGISTER_SALTS: Final = _without_key("register_salts", RegisterSalt, "salt of a register")
UNSUBSCRIBES: Final = _kind("unsubscribes", Unsubscribe, "register entry", key=("workspace_id", "phone"))
UNREACHABLE_NUMBERS: Final = _kind(
    "unreachable_numbers", UnreachableNumber, "unreachable number", key=("workspace_id", "phone", "channel")
)
REQUEST_WINDOWS: Final = _kind("request_windows", RequestWindow, "request window", key=("workspace_id",))
IDEMPOTENCY_KEYS: Final = _kind(
    "idempotency_keys", IdempotencyRecord, "stored request", key=("workspace_id", "operation", "key")
)
UPLOADS: Final = _kind("uploads", Upload, "upload", fixed=("file_name", "size_bytes", "created_at"))
SUBSCRIPTIONS: Final = _kind(
    "subscriptions", StoredSubscription, "subscription", key=("name",), fixed=("workspace_id", "created_at")
)
USERS: Final = _kind("users", StoredUser, "user", key=("id",), fixed=("created_at",))
MEMBERSHIPS: Final = _kind("memberships", Membership, "membership", key=("workspace_id", "user_id"))
SESSIONS: Final = _kind("sessions", Session, "session", key=("id",), fixed=("user_id", "created_at"))
INVITATIONS: Final = _kind("invitations", Invitation, "invitation", key=("id",), fixed=("digest", "created_at"))
RECOVERY_CODES: Final = _kind("recovery_codes", RecoveryCode, "recovery code", key=("user_id", "digest"))
LOGIN_FAILURES: Final = _kind("login_failures", LoginFailures, "number of failed logins", key=("bucket",))
INBOUND: Final = _kind("inbound_messages", InboundMessage, "inbound message")
MESSAGES: Final = _kind("messages", Message, "message")
CALLS: Final = _kind(
    "calls",
    Call,
    "call",
    fixed=("agent_id", "campaign_number", "position", "to_number", "created_at", "external_id", "metadata"),
)
DISPATCHES: Final = _kind(
    "dispatches",
    Dispatch,
    "dispatch",
    # Only the outcome of a dispatch changes.
    fixed=(
        *("channel", "campaign_number", "position", "message_id", "call_id", "step", "attempt", "leg", "try_number"),
        *("provider", "from_number", "to_number", "body", "segments", "slot_at", "valid_until", "epoch"),
    ),
)
AUDIT: Final = _kind("audit", AuditEntry, "audit entry", key=())


_MAX_REMEMBERED_CAMPAIGNS: Final = 2000
"""Campaigns whose columns are remembered with what was made of them; each takes some kilobytes."""


def _make_campaigns() -> Kind[Campaign]:
    columns = Columns(Campaign, without=("counters", "agent"))
    counters = attrs.fields_dict(Counters)
    count = len(columns.names)

    def row(_: Key, campaign: Campaign) -> list[Value]:
        counted = [getattr(campaign.counters, name) for name in counters]
        return [*columns.row(campaign), *counted, fold(campaign.name)]

    made: dict[str, tuple[tuple[Any, ...], Campaign]] = {}
    identifier = columns.names.index("id")

    def model(values: Sequence[Any], _: CampaignRef) -> Campaign:
        counted = Counters(**dict(zip(counters, values[count : count + len(counters)], strict=True)))
        described = tuple(values[:count])
        before = made.get(described[identifier])
        if before is not None and before[0] == described:
            return copy_with(before[1], counters=counted)
        campaign = columns.model(described, counters=counted)
        # The mappings in these could be changed by the caller that gets them.
        if campaign.business_hours is None and not campaign.metadata:
            # Each read makes all campaigns anew that it plans for; little but their counters changes.
            if len(made) >= _MAX_REMEMBERED_CAMPAIGNS:
                made.clear()
            made[campaign.id] = described, campaign
        return campaign

    recounted = tuple(f"recipients_{name}" for name in counters)
    return Kind(
        table="campaigns",
        noun="campaign",
        columns=(*columns.names, *recounted, "name_folded"),
        key=("workspace_id", "id"),
        fixed=frozenset(recounted),
        row=row,
        model=model,
        key_of=lambda campaign: (campaign.workspace_id, campaign.id),
        # A campaign is invisible while its recipients load.
        hidden_by="loading_until",
    )


CAMPAIGNS: Final = _make_campaigns()


LOADING_CAMPAIGNS: Final[Kind[tuple[Campaign, datetime]]] = Kind(
    table=CAMPAIGNS.table,
    noun=CAMPAIGNS.noun,
    columns=(*CAMPAIGNS.columns, "loading_until"),
    key=CAMPAIGNS.key,
    row=lambda key, loading: [*CAMPAIGNS.row(key, loading[0]), format_timestamp(loading[1])],
    model=lambda row, ref: (CAMPAIGNS.model(row[:-1], ref), parse_timestamp(row[-1])),
    key_of=lambda loading: CAMPAIGNS.key_of(loading[0]),
)
"""The hidden campaigns that are loading, each with the end of its lease."""


def _make_recipients() -> Kind[Recipient]:
    kind = _kind(
        "recipients",
        Recipient,
        "recipient",
        key=("campaign_id", "position"),
        fixed=(
            *("phone_number", "phone", "first_name", "last_name", "email", "company", "custom_variables"),
            *("external_id", "added_at", "time_zone", "us_place"),
        ),
    )
    variables = kind.columns.index("custom_variables")

    def row(key: Key, recipient: Recipient) -> list[Value]:
        values = kind.row(key, recipient)
        # No variables are stored as NULL.
        values[variables] = values[variables] if recipient.custom_variables else None
        return values

    return attrs.evolve(kind, row=row)


RECIPIENTS: Final = _make_recipients()


def _make_trail() -> Kind[TrailEntry]:
    # The database assigns the number.
    kind = _kind("trail", TrailEntry, "trail entry", key=())
    return attrs.evolve(kind, row=lambda key, entry: [None, *kind.row(key, entry)[1:]])


TRAIL: Final = _make_trail()


def _make_runs() -> Kind[CampaignRunState]:
    columns = Columns(CampaignRunState, without=("workspace_id", "campaign_id"))
    return Kind(
        table="runs",
        noun="campaign",
        columns=("campaign_number", *columns.names),
        key=("campaign_number",),
        row=lambda _, run: [None, *columns.row(run)],
        model=lambda row, ref: columns.model(row[1:], workspace_id=ref.workspace_id, campaign_id=ref.id),
        key_of=lambda run: (run.campaign_id,),
        campaign=0,
        campaign_key=0,
    )


RUNS: Final = _make_runs()


def _make_work() -> Kind[WorkItem]:
    def row(_: Key, work: WorkItem) -> list[Value]:
        return [*work.unit, None if work.due_at is None else format_timestamp(work.due_at), work.change]

    def model(row: Sequence[Any], _: CampaignRef) -> WorkItem:
        kind, workspace_id, unit_id, due_at, change = row
        return WorkItem(
            unit=WorkUnit(kind, workspace_id, unit_id),
            due_at=None if due_at is None else parse_timestamp(due_at),
            change=change,
        )

    return Kind(
        table="work",
        noun="unit of work",
        columns=("kind", "workspace_id", "unit_id", "due_at", "change"),
        key=("kind", "workspace_id", "unit_id"),
        row=row,
        model=model,
        key_of=lambda work: tuple(work.unit),
    )


WORK: Final = _make_work()


def _make_lease() -> Kind[Lease]:
    columns = Columns(Lease, without=("home",))

    def row(key: Key, lease: Lease) -> list[Value]:
        home = lease.home
        return [key[0], *((None, None) if home is None else (home.host, home.path)), *columns.row(lease)]

    def model(row: Sequence[Any], _: CampaignRef) -> Lease:
        _, host, path, *rest = row
        return columns.model(rest, home=None if host is None else DatabaseHome(host=host, path=path))

    return Kind(
        table="lease",
        noun="lease",
        columns=("id", "host", "path", *columns.names),
        key=("id",),
        row=row,
        model=model,
        key_of=_key_not_in_model,
    )


LEASE: Final = _make_lease()


WORKERS: Final = _kind("workers", WorkerLease, "worker", key=("epoch",))
CLAIMS: Final = _kind("claims", Claim, "claim", key=("workspace_id", "subject"))
HOME: Final = _without_key("home", DatabaseHome, "home", key="id")
SENDER_PACES: Final[Kind[datetime]] = Kind(
    table="sender_paces",
    noun="pace of a number",
    columns=("workspace_id", "phone", "next_slot_at"),
    key=("workspace_id", "phone"),
    row=lambda key, slot: [*key, format_timestamp(slot)],
    model=lambda row, _: parse_timestamp(row[2]),
    key_of=_key_not_in_model,
)
STOPS: Final[Kind[int]] = Kind(
    table="stop_counts",
    noun="number of stops",
    columns=("workspace_id", "number"),
    key=("workspace_id",),
    row=lambda key, number: [key[0], number],
    model=lambda row, _: int(row[1]),
    key_of=_key_not_in_model,
)

ALL_KINDS: Final[tuple[Kind[Any], ...]] = (
    *(WORKSPACES, KEYS),
    *RESOURCE_KINDS.values(),
    *(OCCURRENCES, WEBHOOK_CURSORS, WEBHOOK_HOLDS, WEBHOOK_ATTEMPTS, ACCOUNTS, PROVIDER_THROTTLES, CALLBACKS),
    *(SMS_SETTINGS, CALL_SETTINGS, REPLY_SETTINGS, PRICE_TABLES),
    *(UNSUBSCRIBES, REGISTER_SALTS, UNREACHABLE_NUMBERS, REQUEST_WINDOWS, IDEMPOTENCY_KEYS, UPLOADS),
    *(CAMPAIGNS, RECIPIENTS, CALLS, MESSAGES, DISPATCHES, INBOUND),
    *(WORK, RUNS, SENDER_PACES, LEASE, WORKERS, CLAIMS, HOME, STOPS, SUBSCRIPTIONS),
    *(USERS, MEMBERSHIPS, SESSIONS, INVITATIONS, RECOVERY_CODES, LOGIN_FAILURES),
)
"""The kinds of rows with keys, in the order in which foreign keys need them to be written."""


Row = Sequence[Any]
"""The values of a row, in the order of its kind's columns."""

Change = Literal["insert", "update", "put", "delete"]
"""The kinds of writes: new rows, changed rows, either, deleted keys."""


class Write(NamedTuple):
    """Rows that are written by one statement.

    Attributes:
        kind: The kind whose rows they are; None for rows of values of a named statement.
        statement: What is done with rows of the kind, or the name of the statement.
        rows: The rows; for `delete` their keys.
    """

    kind: Kind[Any] | None
    statement: str
    rows: Sequence[Sequence[Value]]


class Backend(Protocol):
    """One connection to a database, within a transaction that its owner begins and ends.

    Queries are named: `campaigns.leftovers` is the query `leftovers` of the aggregate `campaigns`, and
    `campaigns.page?status` is `page` with a filter. Whole rows come in the order of their kind's columns.

    Attributes:
        own_clock: Whether the database may run on another machine, whose clock engines go by.
    """

    own_clock: bool

    def now(self) -> datetime:
        """Return the time by the clock of the database, aware, in UTC: one clock for all that open it."""
        ...

    def changes(self) -> Callable[[str], bool] | None:
        """Return what other connections may have committed since the last call; None for nothing.

        `everything_changed` says that it may be anything. Any other function says whether it may be in a workspace, or,
        for `ALL_WORKSPACES`, among the rows without one.
        """
        ...

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Iterable[Row]:
        """Return the rows of a kind that have these keys, in any order."""
        ...

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        """Run a named query that reads."""
        ...

    def execute(self, name: str, values: Mapping[str, Value]) -> int:
        """Run a named statement that writes at once; return how many rows it wrote."""
        ...

    def write(self, kind: Kind[Any], change: Change, rows: Sequence[Sequence[Value]]) -> int:
        """Write rows of a kind (for `delete`: their keys); return how many were written.

        `insert` leaves out rows that violate a key or unique rule, and `update` rows that do not exist.
        """
        ...

    def is_row_error(self, error: Exception) -> bool:
        """Return whether an error is about a row rather than the database."""
        ...

    def run_many(self, name: str, rows: Iterable[Sequence[Value]]) -> int:
        """Run a named statement for each of many rows of values; return how many rows it wrote."""
        ...

    def write_all(self, writes: Sequence[Write]) -> Sequence[int]:
        """Make writes in this order, on a server in one round trip; return how many rows each wrote.

        `write_one_by_one` does it where there is no round trip to save.
        """
        ...

    def write_numbered(self, writes: Sequence[Write], *, at_commit: bool) -> None:
        """Make writes that draw numbers in the order of the commits.

        Args:
            writes: The writes, in their order.
            at_commit: Whether the commit follows, so that they may be kept for it.
        """
        ...


def and_visible(kind: Kind[Any]) -> str:
    """Return the end of a condition, which leaves out hidden rows; empty where no row is ever hidden."""
    return f" AND {kind.table}.{kind.hidden_by} IS NULL" if kind.hidden_by else ""


def filtered(name: str, filters: Collection[str]) -> str:
    """Return the name of a query with the conditions of these filters, such as `campaigns.page?channel,status`."""
    return f"{name}?{','.join(sorted(filters))}" if filters else name


def write_one_by_one(backend: Backend, writes: Sequence[Write]) -> Sequence[int]:
    """Make writes one after the other; return how many rows each wrote."""
    return [
        backend.run_many(statement, rows) if kind is None else backend.write(kind, cast("Change", statement), rows)
        for kind, statement, rows in writes
    ]
