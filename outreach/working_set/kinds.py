"""The kinds of rows there are: the table of each, its columns and its key.

The columns of a row are the fields of its model (`convert.columns`). Rows that belong to a campaign name it by its
number, an integer that the database gives it and that nobody sees outside: it keeps millions of rows and their
indexes small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

import attrs

from outreach.clock import format_timestamp, parse_timestamp
from outreach.convert.columns import RENAMED, Columns, Value
from outreach.models.account import Account, CallbackRecord, ProviderThrottle
from outreach.models.call import Call
from outreach.models.campaign import Campaign, Counters
from outreach.models.dispatch import Dispatch
from outreach.models.message import InboundMessage, Message
from outreach.models.recipient import Recipient
from outreach.models.resources import (
    Agent,
    Flow,
    Number,
    Trunk,
)
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.trail import TrailEntry
from outreach.models.unsubscribe import Unsubscribe
from outreach.models.work import (
    AuditEntry,
    CampaignRunState,
    DatabaseHome,
    IdempotencyRecord,
    Lease,
    RequestWindow,
    WorkItem,
    WorkUnit,
)
from outreach.models.workspace import ApiKey, Workspace
from outreach.policy.texts import fold

M = TypeVar("M")

Key = tuple[Any, ...]
"""What tells a row from all others of its kind, in the domain's words: campaigns by their identifiers."""


SINGLE_ROW_KEY: Final[Key] = (1,)
"""The key of a table with one row."""


class CampaignRef(NamedTuple):
    """A campaign as rows name it.

    Attributes:
        number: The database's own name for it.
    """

    number: int
    workspace_id: str
    id: str


NO_CAMPAIGN: Final = CampaignRef(0, "", "")
"""The campaign of a row that belongs to none."""


@attrs.frozen(kw_only=True, eq=False)
class Kind(Generic[M]):
    """One kind of rows.

    Attributes:
        table: Its table.
        noun: TrailStepKind one row is, for messages.
        columns: The columns, in the order of a row.
        key: The columns by which a row is found.
        fixed: Columns that stay as they were inserted.
        row: Returns the columns of a model under a key; the campaign's number is filled in by the working set.
        model: Returns the model of a row; the reference is that of the campaign that the row names.
        key_of: Returns the key of a model; None where the model does not hold all of it.
        campaign: Where in the row the campaign's number stands; None where it has none.
        campaign_key: Where in the key the campaign's identifier stands; None where it is no part of it.
        fixed_fields: The fields of the model that are fixed.
        fixed_values: Returns their values.
        hidden_by: Rows in which this column holds anything are not there; None for no such column.
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
        """Return a row that is written over another one, with what stays of that one."""
        if self.fixed_values is None or self.fixed_values(known) == self.fixed_values(row):
            return row
        stays = {name: getattr(known, name) for name in self.fixed_fields}
        changed: M = attrs.evolve(row, **stays)  # type: ignore[misc]
        return changed

    @property
    def updatable(self) -> tuple[str, ...]:
        """The columns that an update writes."""
        return tuple(name for name in self.columns if name not in self.key and name not in self.fixed)


def _kind(
    table: str, model: type[M], noun: str, *, key: Sequence[str] = ("workspace_id", "id"), fixed: Sequence[str] = ()
) -> Kind[M]:
    """Return the kind of a model whose fields are its columns, a campaign's among them."""
    columns = Columns(model)
    names = tuple("campaign_number" if name == "campaign_id" else name for name in columns.names)
    campaign = names.index("campaign_number") if "campaign_number" in names else None
    field_of = {column: field for field, column in RENAMED.items()}
    fields = tuple(field_of.get(name, name) for name in key)
    stays = tuple("campaign_id" if name == "campaign_number" else field_of.get(name, name) for name in fixed)

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
        fixed_fields=stays,
        fixed_values=attrgetter(*stays) if len(stays) > 1 else None,
        row=lambda _, it: columns.row(it),
        model=read,
        key_of=lambda it: tuple(getattr(it, field) for field in fields),
        campaign=campaign,
        campaign_key=list(key).index("campaign_id") if "campaign_id" in key else None,
    )


def _of_workspace(table: str, model: type[M], noun: str) -> Kind[M]:
    """Return a kind with one row a workspace, whose model does not name it."""
    columns = Columns(model)
    return Kind(
        table=table,
        noun=noun,
        columns=("workspace_id", *columns.names),
        key=("workspace_id",),
        row=lambda key, it: [key[0], *columns.row(it)],
        model=lambda row, _: columns.model(row[1:]),
        key_of=_not_in_the_model,
    )


def _not_in_the_model(_: object) -> Key:
    raise TypeError("A row of this kind is named by its key alone.")


WORKSPACES: Final = _kind("workspaces", Workspace, "workspace", key=("id",))
KEYS: Final = _kind("api_keys", ApiKey, "API key")
AGENTS: Final = _kind("agents", Agent, "agent")
TRUNKS: Final = _kind("trunks", Trunk, "trunk")
NUMBERS: Final = _kind("numbers", Number, "number")
FLOWS: Final = _kind("flows", Flow, "flow")
ACCOUNTS: Final = _kind("accounts", Account, "account", fixed=("provider", "created_at"))
PROVIDER_THROTTLES: Final = _kind(
    "account_holds", ProviderThrottle, "hold of an account", key=("workspace_id", "provider")
)
CALLBACKS: Final = _kind(
    "callbacks",
    CallbackRecord,
    "callback",
    key=("workspace_id", "account_id", "event_id"),
    fixed=("body", "received_at"),
)
SMS_SETTINGS: Final = _of_workspace("sms_settings", SmsSettings, "settings row")
CALL_SETTINGS: Final = _of_workspace("call_settings", CallSettings, "call settings row")
REPLY_SETTINGS: Final = _of_workspace("reply_settings", ReplySettings, "reply settings row")
UNSUBSCRIBES: Final = _kind("unsubscribes", Unsubscribe, "register entry", key=("workspace_id", "phone"))
REQUEST_WINDOWS: Final = _kind("request_windows", RequestWindow, "request window", key=("workspace_id",))
IDEMPOTENCY_KEYS: Final = _kind(
    "idempotency_keys", IdempotencyRecord, "stored request", key=("workspace_id", "operation", "key")
)
INBOUND: Final = _kind("inbound_messages", InboundMessage, "inbound message")
MESSAGES: Final = _kind("messages", Message, "message")
CALLS: Final = _kind(
    "calls",
    Call,
    "call",
    fixed=("agent_id", "campaign_number", "position", "to_number", "created_at"),
)
DISPATCHES: Final = _kind(
    "dispatches",
    Dispatch,
    "dispatch",
    # What was asked for stays: only what became of it changes.
    fixed=(
        *("channel", "campaign_number", "position", "message_id", "call_id", "step", "attempt", "leg", "try_number"),
        *("provider", "from_number", "to_number", "body", "segments", "slot_at", "valid_until", "epoch"),
    ),
)
AUDIT: Final = _kind("audit", AuditEntry, "audit entry", key=())


def _make_campaigns() -> Kind[Campaign]:
    columns = Columns(Campaign, without=("counters", "agent"))
    counters = attrs.fields_dict(Counters)
    count = len(columns.names)

    def row(_: Key, campaign: Campaign) -> list[Value]:
        counted = [getattr(campaign.counters, name) for name in counters]
        return [*columns.row(campaign), *counted, fold(campaign.name)]

    def model(values: Sequence[Any], _: CampaignRef) -> Campaign:
        counted = Counters(**dict(zip(counters, values[count : count + len(counters)], strict=True)))
        return columns.model(values[:count], counters=counted)

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
        # Nobody sees a campaign while its recipients are loaded.
        hidden_by="loading_until",
    )


CAMPAIGNS: Final = _make_campaigns()


def _make_loading() -> Kind[tuple[Campaign, datetime]]:
    """Return campaigns as they are inserted before anybody may see them, with the moment until which they may load."""
    return Kind(
        table=CAMPAIGNS.table,
        noun=CAMPAIGNS.noun,
        columns=(*CAMPAIGNS.columns, "loading_until"),
        key=CAMPAIGNS.key,
        row=lambda key, loading: [*CAMPAIGNS.row(key, loading[0]), format_timestamp(loading[1])],
        model=lambda row, ref: (CAMPAIGNS.model(row[:-1], ref), parse_timestamp(row[-1])),
        key_of=lambda loading: CAMPAIGNS.key_of(loading[0]),
    )


LOADING_CAMPAIGNS: Final = _make_loading()


def _make_recipients() -> Kind[Recipient]:
    kind = _kind(
        "recipients",
        Recipient,
        "recipient",
        key=("campaign_id", "position"),
        fixed=("phone_number", "phone", "first_name", "last_name", "email", "company", "custom_variables"),
    )
    variables = kind.columns.index("custom_variables")

    def row(key: Key, recipient: Recipient) -> list[Value]:
        values = kind.row(key, recipient)
        # Nothing is stored for no variables; the contact's own columns are never written over.
        values[variables] = values[variables] if recipient.custom_variables else None
        return values

    return attrs.evolve(kind, row=row)


RECIPIENTS: Final = _make_recipients()


def _make_trail() -> Kind[TrailEntry]:
    # The number is the database's to give.
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
        key_of=_not_in_the_model,
    )


LEASE: Final = _make_lease()


def _make_home() -> Kind[DatabaseHome]:
    columns = Columns(DatabaseHome)
    return Kind(
        table="home",
        noun="home",
        columns=("id", *columns.names),
        key=("id",),
        row=lambda key, home: [key[0], *columns.row(home)],
        model=lambda row, _: columns.model(row[1:]),
        key_of=_not_in_the_model,
    )


HOME: Final = _make_home()


def _make_sender_paces() -> Kind[datetime]:
    return Kind(
        table="sender_paces",
        noun="pace of a number",
        columns=("workspace_id", "phone", "next_slot_at"),
        key=("workspace_id", "phone"),
        row=lambda key, slot: [*key, format_timestamp(slot)],
        model=lambda row, _: parse_timestamp(row[2]),
        key_of=_not_in_the_model,
    )


SENDER_PACES: Final = _make_sender_paces()


def _make_stops() -> Kind[int]:
    return Kind(
        table="stops",
        noun="number of stops",
        columns=("id", "number"),
        key=("id",),
        row=lambda key, number: [key[0], number],
        model=lambda row, _: int(row[1]),
        key_of=_not_in_the_model,
    )


STOPS: Final = _make_stops()

ALL_KINDS: Final[tuple[Kind[Any], ...]] = (
    *(WORKSPACES, KEYS, AGENTS, TRUNKS, NUMBERS, FLOWS, ACCOUNTS, PROVIDER_THROTTLES, CALLBACKS),
    *(SMS_SETTINGS, CALL_SETTINGS, REPLY_SETTINGS, UNSUBSCRIBES, REQUEST_WINDOWS, IDEMPOTENCY_KEYS),
    *(CAMPAIGNS, RECIPIENTS, CALLS, MESSAGES, DISPATCHES, INBOUND),
    *(WORK, RUNS, SENDER_PACES, LEASE, HOME, STOPS),
)
"""The kinds whose rows have keys, those that others refer to first: the order in which they are written."""
