"""All tables, within one transaction."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from outreach.models.resources import Agent, Flow, Trunk
from outreach.storage.unit_of_work.kinds import kind_of
from outreach.storage.unit_of_work.tables.accounts import Accounts, Callbacks, ProviderThrottles
from outreach.storage.unit_of_work.tables.base import WorkspaceTable
from outreach.storage.unit_of_work.tables.campaign_lists import CampaignLists
from outreach.storage.unit_of_work.tables.campaigns import Campaigns
from outreach.storage.unit_of_work.tables.directory import (
    Keys,
    Numbers,
    Workspaces,
    call_settings,
    price_tables,
    reply_settings,
    sms_settings,
)
from outreach.storage.unit_of_work.tables.erasures import Archives, Erasures
from outreach.storage.unit_of_work.tables.ledger import Calls, Dispatches, Inbound, Messages
from outreach.storage.unit_of_work.tables.recipients import Recipients
from outreach.storage.unit_of_work.tables.register import Register
from outreach.storage.unit_of_work.tables.reports import Reports
from outreach.storage.unit_of_work.tables.requests import Audit, Requests
from outreach.storage.unit_of_work.tables.trail import Subscriptions, Trail
from outreach.storage.unit_of_work.tables.unreachable import UnreachableNumbers
from outreach.storage.unit_of_work.tables.uploads import Uploads
from outreach.storage.unit_of_work.tables.work import Claims, Leases, Runs, Stops, Workers, WorkQueue
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork

M = TypeVar("M")


class Transaction:
    """The tables over a connection's unit of work; one object serves all its transactions."""

    def __init__(self, rows: UnitOfWork) -> None:
        self._rows = rows
        self.workspaces = Workspaces(rows)
        self.keys = Keys(rows)
        self.agents = self.table(Agent)
        self.trunks = self.table(Trunk)
        self.numbers = Numbers(rows)
        self.flows = self.table(Flow)
        self.accounts = Accounts(rows)
        self.provider_throttles = ProviderThrottles(rows)
        self.callbacks = Callbacks(rows)
        self.settings = sms_settings(rows)
        self.call_settings = call_settings(rows)
        self.reply_settings = reply_settings(rows)
        self.price_tables = price_tables(rows)
        self.register = Register(rows)
        self.campaigns = Campaigns(rows)
        self.campaign_lists = CampaignLists(rows)
        self.recipients = Recipients(rows)
        self.dispatches = Dispatches(rows)
        self.calls = Calls(rows)
        self.messages = Messages(rows)
        self.inbound = Inbound(rows)
        self.work = WorkQueue(rows)
        self.leases = Leases(rows)
        self.workers = Workers(rows)
        self.claims = Claims(rows)
        self.runs = Runs(rows)
        self.stops = Stops(rows)
        self.requests = Requests(rows)
        self.uploads = Uploads(rows)
        self.unreachable_numbers = UnreachableNumbers(rows)
        self.audit = Audit(rows)
        self.trail = Trail(rows)
        self.subscriptions = Subscriptions(rows)
        self.reports = Reports(rows)
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
