"""All pages of the set-up, in the order of their tabs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from outreach.server_support import RESOURCE_SERVICES
from outreach_server.console.pages.set_up.accounts import AccountsNoun
from outreach_server.console.pages.set_up.audit import AuditNoun, WholeAuditNoun
from outreach_server.console.pages.set_up.keys import KeysNoun
from outreach_server.console.pages.set_up.nouns import Noun
from outreach_server.console.pages.set_up.people import AllUsersNoun, InvitationsNoun, UsersNoun
from outreach_server.console.pages.set_up.resources import FlowsNoun, NumbersNoun, ResourceNoun
from outreach_server.console.pages.set_up.schedules import SchedulesNoun
from outreach_server.console.pages.set_up.settings import PricesNoun, SettingsNoun
from outreach_server.console.pages.set_up.system import SystemNoun, WorkspacesNoun
from outreach_server.console.pages.set_up.webhooks import WebhooksNoun

_OWN_WAYS: Final[Mapping[str, type[ResourceNoun]]] = {
    "flows": FlowsNoun,
    "numbers": NumbersNoun,
    "schedules": SchedulesNoun,
    "webhooks": WebhooksNoun,
}

NOUNS: Final[Sequence[Noun]] = (
    SettingsNoun(),
    *(_OWN_WAYS.get(name, ResourceNoun)(name) for name in RESOURCE_SERVICES),
    AccountsNoun(),
    PricesNoun(),
    KeysNoun(),
    UsersNoun(),
    InvitationsNoun(),
    AuditNoun(),
    WorkspacesNoun(),
    SystemNoun(),
    AllUsersNoun(),
    WholeAuditNoun(),
)
"""The nouns of workspaces, and then those of the server."""
