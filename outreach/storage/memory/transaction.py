"""All tables over one journal."""

from __future__ import annotations

from outreach.storage.memory.accounts import AccountHolds, Accounts, Callbacks
from outreach.storage.memory.calls import Calls, Inbound, Messages
from outreach.storage.memory.campaigns import Campaigns
from outreach.storage.memory.directory import Agents, Flows, Keys, Numbers, Trunks, Workspaces
from outreach.storage.memory.dispatches import Dispatches
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.recipients import Recipients
from outreach.storage.memory.register import CallSettingsTable, Register, ReplySettingsTable, Settings
from outreach.storage.memory.requests import Audit, Requests
from outreach.storage.memory.rows import CampaignRows, RecipientRows
from outreach.storage.memory.trail import Trail, TrailRows
from outreach.storage.memory.work import Leases, Runs, WorkFeed


class Tables:
    """All tables; they are the transaction too, because the journal knows whether one is open."""

    def __init__(self, journal: Journal) -> None:
        campaigns, recipients, trail = CampaignRows(journal), RecipientRows(journal), TrailRows(journal)
        self.workspaces = Workspaces(journal)
        self.keys = Keys(journal)
        self.agents = Agents(journal)
        self.trunks = Trunks(journal)
        self.numbers = Numbers(journal)
        self.flows = Flows(journal)
        self.accounts = Accounts(journal)
        self.account_holds = AccountHolds(journal)
        self.callbacks = Callbacks(journal)
        self.settings = Settings(journal)
        self.call_settings = CallSettingsTable(journal)
        self.reply_settings = ReplySettingsTable(journal)
        self.register = Register(journal)
        self.campaigns = Campaigns(campaigns, recipients, trail, self.agents)
        self.recipients = Recipients(recipients, campaigns, self.register)
        self.calls = Calls(journal)
        self.messages = Messages(journal)
        self.dispatches = Dispatches(journal, self.messages, self.calls)
        self.inbound = Inbound(journal)
        self.work = WorkFeed(journal)
        self.leases = Leases(journal)
        self.runs = Runs(journal)
        self.requests = Requests(journal)
        self.audit = Audit(journal)
        self.trail = Trail(trail, campaigns, journal)
