"""All pages of the set-up, in the order of their tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outreach_server.console.pages.set_up.accounts import AccountsNoun
from outreach_server.console.pages.set_up.audit import AuditNoun, WholeAuditNoun
from outreach_server.console.pages.set_up.keys import KeysNoun
from outreach_server.console.pages.set_up.nouns import Noun
from outreach_server.console.pages.set_up.people import AllUsersNoun, InvitationsNoun, UsersNoun
from outreach_server.console.pages.set_up.resources import resource_nouns
from outreach_server.console.pages.set_up.settings import PricesNoun, SettingsNoun
from outreach_server.console.pages.set_up.system import SystemNoun, WorkspacesNoun

NOUNS: Final[Sequence[Noun]] = (
    SettingsNoun(),
    *resource_nouns(),
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
