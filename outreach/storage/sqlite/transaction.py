"""All tables of one connection."""

from __future__ import annotations

import sqlite3

from outreach.storage.sqlite.tables.accounts import AccountHolds, Accounts, Callbacks
from outreach.storage.sqlite.tables.campaigns import Campaigns
from outreach.storage.sqlite.tables.directory import (
    Agents,
    CallSettingsTable,
    Flows,
    Numbers,
    Register,
    ReplySettingsTable,
    Settings,
    Trunks,
)
from outreach.storage.sqlite.tables.ledger import Calls, Dispatches, Inbound, Messages
from outreach.storage.sqlite.tables.recipients import Recipients
from outreach.storage.sqlite.tables.requests import Audit, Requests
from outreach.storage.sqlite.tables.trail import Trail
from outreach.storage.sqlite.tables.work import Leases, Runs, WorkFeed
from outreach.storage.sqlite.tables.workspaces import Keys, Workspaces


class SqliteTransaction:
    """The tables, within whatever transaction the connection is in; one object serves a connection's whole life."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.workspaces = Workspaces(connection)
        self.keys = Keys(connection)
        self.agents = Agents(connection)
        self.trunks = Trunks(connection)
        self.numbers = Numbers(connection)
        self.flows = Flows(connection)
        self.accounts = Accounts(connection)
        self.account_holds = AccountHolds(connection)
        self.callbacks = Callbacks(connection)
        self.settings = Settings(connection)
        self.call_settings = CallSettingsTable(connection)
        self.reply_settings = ReplySettingsTable(connection)
        self.register = Register(connection)
        self.campaigns = Campaigns(connection)
        self.recipients = Recipients(connection)
        self.dispatches = Dispatches(connection)
        self.calls = Calls(connection)
        self.messages = Messages(connection)
        self.inbound = Inbound(connection)
        self.work = WorkFeed(connection)
        self.leases = Leases(connection)
        self.runs = Runs(connection)
        self.requests = Requests(connection)
        self.audit = Audit(connection)
        self.trail = Trail(connection)
