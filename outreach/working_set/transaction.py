"""All tables, within one transaction."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from outreach.working_set.kinds import AGENTS, FLOWS, TRUNKS, Kind
from outreach.working_set.tables.accounts import Accounts, Callbacks, ProviderThrottles
from outreach.working_set.tables.base import WorkspaceTable
from outreach.working_set.tables.campaign_lists import CampaignLists
from outreach.working_set.tables.campaigns import Campaigns
from outreach.working_set.tables.directory import (
    Keys,
    Numbers,
    Workspaces,
    call_settings,
    price_tables,
    reply_settings,
    sms_settings,
)
from outreach.working_set.tables.erasures import Archives, Erasures
from outreach.working_set.tables.ledger import Calls, Dispatches, Inbound, Messages
from outreach.working_set.tables.recipients import Recipients
from outreach.working_set.tables.register import Register
from outreach.working_set.tables.reports import Reports
from outreach.working_set.tables.requests import Audit, Requests
from outreach.working_set.tables.trail import Subscriptions, Trail
from outreach.working_set.tables.work import Claims, Leases, Runs, Stops, Workers, WorkQueue
from outreach.working_set.working_set import WorkingSet

M = TypeVar("M")


class Transaction:
    """The tables over a connection's working set; one object serves all its transactions."""

    def __init__(self, rows: WorkingSet) -> None:
        self._rows = rows
        self.workspaces = Workspaces(rows)
        self.keys = Keys(rows)
        self.agents = self.table(AGENTS)
        self.trunks = self.table(TRUNKS)
        self.numbers = Numbers(rows)
        self.flows = self.table(FLOWS)
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
        self.audit = Audit(rows)
        self.trail = Trail(rows)
        self.subscriptions = Subscriptions(rows)
        self.reports = Reports(rows)
        self.erasures = Erasures(rows)
        self.archives = Archives(rows)

    def table(self, kind: Kind[M]) -> WorkspaceTable[M]:
        """Return the table of a kind of rows that a workspace's owner sets up."""
        return WorkspaceTable(self._rows, kind)

    @property
    def own_clock(self) -> bool:
        """Whether the database may run on another machine, whose clock engines go by."""
        return self._rows.backend.own_clock

    def now(self) -> datetime:
        """Return the time by the clock of the database, which decides about leases."""
        return self._rows.backend.now()
