"""All tables, within one transaction, and operations over one connection, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from outreach.models.resources import Agent, Flow, Trunk
from outreach.storage.unit_of_work import kinds
from outreach.storage.unit_of_work.kinds import Backend, kind_of
from outreach.storage.unit_of_work.tables.base import WorkspaceTable
from outreach.storage.unit_of_work.tables.campaigns import (
    Approvals,
    Audit,
    CampaignLists,
    Campaigns,
    Forecasts,
    Subscriptions,
    Trail,
)
from outreach.storage.unit_of_work.tables.directory import (
    Accounts,
    Callbacks,
    Keys,
    Numbers,
    ProviderThrottles,
    Register,
    Requests,
    Workspaces,
    WorkspaceSettings,
)
from outreach.storage.unit_of_work.tables.erasures import Archives, Erasures
from outreach.storage.unit_of_work.tables.ledger import Calls, Dispatches, Inbound, Messages
from outreach.storage.unit_of_work.tables.recipients import Recipients
from outreach.storage.unit_of_work.tables.reports import Reports
from outreach.storage.unit_of_work.tables.schedules import Occurrences, Schedules
from outreach.storage.unit_of_work.tables.unreachable import UnreachableNumbers
from outreach.storage.unit_of_work.tables.uploads import Uploads
from outreach.storage.unit_of_work.tables.users import (
    Failures,
    Invitations,
    Memberships,
    RecoveryCodes,
    Sessions,
    Users,
)
from outreach.storage.unit_of_work.tables.webhooks import WebhookAttempts, WebhookCursors, WebhookHolds, Webhooks
from outreach.storage.unit_of_work.tables.work import Claims, Leases, Runs, Stops, Workers, WorkQueue
from outreach.storage.unit_of_work.unit_of_work import TransactionControl, UnitOfWork

M = TypeVar("M")
T = TypeVar("T")


class Transaction:
    """The tables over a connection's unit of work; one object serves all its transactions."""

    def __init__(self, rows: UnitOfWork) -> None:
        self._rows = rows
        self.require_written_within = rows.require_written_within
        self.workspaces = Workspaces(rows)
        self.keys = Keys(rows, kinds.KEYS)
        self.agents = self.table(Agent)
        self.trunks = self.table(Trunk)
        self.numbers = Numbers(rows, kinds.NUMBERS)
        self.flows = self.table(Flow)
        self.schedules = Schedules(rows, kinds.SCHEDULES)
        self.occurrences = Occurrences(rows, kinds.OCCURRENCES)
        self.webhooks = Webhooks(rows, kinds.WEBHOOKS)
        self.webhook_cursors = WebhookCursors(rows)
        self.webhook_holds = WebhookHolds(rows)
        self.webhook_attempts = WebhookAttempts(rows)
        self.accounts = Accounts(rows, kinds.ACCOUNTS)
        self.provider_throttles = ProviderThrottles(rows)
        self.callbacks = Callbacks(rows)
        self.settings = WorkspaceSettings(rows, kinds.SMS_SETTINGS)
        self.call_settings = WorkspaceSettings(rows, kinds.CALL_SETTINGS)
        self.reply_settings = WorkspaceSettings(rows, kinds.REPLY_SETTINGS)
        self.price_tables = WorkspaceSettings(rows, kinds.PRICE_TABLES)
        self.register = Register(rows)
        self.campaigns = Campaigns(rows)
        self.campaign_lists = CampaignLists(rows)
        self.recipients = Recipients(rows)
        self.dispatches = Dispatches(rows, kinds.DISPATCHES)
        self.calls = Calls(rows, kinds.CALLS)
        self.messages = Messages(rows, kinds.MESSAGES)
        self.inbound = Inbound(rows, kinds.INBOUND)
        self.work = WorkQueue(rows)
        self.leases = Leases(rows)
        self.workers = Workers(rows)
        self.claims = Claims(rows)
        self.runs = Runs(rows)
        self.stops = Stops(rows)
        self.requests = Requests(rows)
        self.uploads = Uploads(rows, kinds.UPLOADS)
        self.unreachable_numbers = UnreachableNumbers(rows)
        self.audit = Audit(rows)
        self.trail = Trail(rows)
        self.subscriptions = Subscriptions(rows)
        self.users = Users(rows, kinds.USERS)
        self.memberships = Memberships(rows)
        self.sessions = Sessions(rows, kinds.SESSIONS)
        self.invitations = Invitations(rows, kinds.INVITATIONS)
        self.recovery_codes = RecoveryCodes(rows)
        self.login_failures = Failures(rows)
        self.reports = Reports(rows)
        self.forecasts = Forecasts(rows)
        self.approvals = Approvals(rows)
        self.erasures = Erasures(rows)
        self.archives = Archives(rows)

    def table(self, model: type[M]) -> WorkspaceTable[M]:
        """Return the table of a resource by its model."""
        return WorkspaceTable(self._rows, kind_of(model))

    @property
    def own_clock(self) -> bool:
        """Whether the database may run on another machine, whose clock engines go by."""
        return self._rows.backend.own_clock

    def now(self) -> datetime:
        """Return the time by the clock of the database, which decides about leases."""
        return self._rows.backend.now()


class OperationRunner:
    """Runs operations over one connection, each in a transaction of its own. It blocks, and is used by one at a time.

    Args:
        backend: The connection.
        control: How its transactions begin and end.
    """

    def __init__(self, backend: Backend, control: TransactionControl) -> None:
        self._rows = UnitOfWork(backend, read_only=True)
        self._transaction = Transaction(self._rows)
        self._control = control

    def write(self, operation: Callable[[Transaction], T]) -> T:
        """Run an operation and commit it; return its result. Whatever it or the database raises, nothing is written."""
        return self._rows.run_writing(self._control, lambda: operation(self._transaction))

    def read(self, operation: Callable[[Transaction], T]) -> T:
        """Run a reading operation on a snapshot; return its result."""
        # Rows cached before may be outdated.
        self._rows.forget()
        self._control.begin()
        try:
            return operation(self._transaction)
        finally:
            self._control.roll_back()
