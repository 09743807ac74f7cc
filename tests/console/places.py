"""Every page of the console: what tests open, they take from here.

A page stands under the name of its route, with its addresses: first as it is, then with what it shows by a query. An
address begins in the workspace, or with a slash in the console. Braces name a campaign, a draft, a campaign that has
ended, a contact's place in it, a number, a call, an upload, an import, a part of a name, or one of `furniture.furnish`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final

from outreach_server.console.access import Right

NO_PAGES: Final = frozenset({"live", "static"})
"""Routes of streams and of the console's own files."""

FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "export": ("campaigns/{campaign}/export",),
    "register-file": ("register/file",),
    "audit-file": ("audit/file",),
    "system-audit-file": ("/system/audit/file",),
}
"""Routes that answer with a file."""

PUBLIC: Final[Mapping[str, tuple[str, ...]]] = {
    "login": ("/login", "/login?next=/"),
    "two-factor": ("/two-factor",),
    "setup": ("/setup",),
    "invitation": ("/invitation/{invitation}", "/invitation/none"),
}
"""Those of people who are not signed in."""

OF_LOGIN: Final[Mapping[str, tuple[str, ...]]] = {
    "logout": ("/logout",),
    "account": ("/account",),
    "account-two-factor": ("/account/two-factor",),
}
"""Those of a console with its own login."""

OF_CAMPAIGNS: Final[Mapping[str, tuple[str, ...]]] = {
    "home": ("/",),
    "look": ("/account/look",),
    "overview": ("",),
    "campaigns": ("campaigns", "campaigns?status=ready"),
    "campaigns-many": ("campaigns/many",),
    "new": ("campaigns/new",),
    "campaign": ("campaigns/{campaign}",),
    "contacts": (
        *("campaigns/{campaign}/contacts", "campaigns/{campaign}/contacts?status=failed"),
        "campaigns/{campaign}/contacts?q=%2B13035550001",
    ),
    "contact": ("campaigns/{campaign}/contacts/{position}",),
    "report": ("campaigns/{campaign}/report", "campaigns/{campaign}/report?with={ended}"),
    "edit": ("campaigns/{campaign}/edit",),
    "follow-up": ("campaigns/{campaign}/follow-up",),
    "person": ("contacts/{phone}",),
    "inbox": ("inbox", "inbox?folder=held", "inbox?folder=all"),
    "thread": ("inbox/{phone}",),
    "calls": ("calls",),
    "call": ("calls/{call}",),
    "register": ("register", "register?q=%2B{phone}"),
    "register-import": ("register/import",),
    "unknown": ("unknown", "unknown?decide=retry"),
    "search": ("search", "search?q={name}", "search?q=%2B13035550001", "search?q=A1"),
}
"""Those of campaigns, of what comes back, and of everybody."""

OF_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "new-audience": ("campaigns/new/audience?upload={upload}&name=Visits&channel=sms",),
    "new-text": ("campaigns/new/text?campaign={draft}",),
    "new-when": ("campaigns/new/when?campaign={draft}",),
    "new-check": ("campaigns/new/check?campaign={draft}",),
    "register-import": ("register/import?upload={upload}", "register/import?import={import}&added=1"),
}
"""Those that judge a whole list, or every contact of a draft."""

OF_SET_UP: Final[Mapping[str, tuple[str, ...]]] = {
    "settings": ("settings",),
    "agents": ("agents",),
    "agents-one": ("agents/{agents}",),
    "trunks": ("trunks",),
    "trunks-one": ("trunks/{trunks}",),
    "numbers": ("numbers",),
    "numbers-one": ("numbers/{numbers}",),
    "flows": ("flows",),
    "flows-one": ("flows/{flows}",),
    "schedules": ("schedules", "schedules?q={name}", "schedules?like={draft}"),
    "schedules-one": ("schedules/{schedules}",),
    "webhooks": ("webhooks",),
    "webhooks-one": ("webhooks/{webhooks}",),
    "accounts": ("accounts",),
    "accounts-one": ("accounts/{accounts}",),
    "prices": ("prices",),
    "keys": ("keys",),
    "keys-one": ("keys/{keys}",),
    "users": ("users",),
    "users-one": ("users/{users}",),
    "invitations": ("invitations",),
    "invitations-one": ("invitations/{invitations}",),
    "audit": ("audit",),
    "system-workspaces": ("/system/workspaces",),
    "system-workspaces-one": ("/system/workspaces/{workspace}",),
    "system-server": ("/system/server",),
    "system-users": ("/system/users",),
    "system-users-one": ("/system/users/{users}",),
    "system-audit": ("/system/audit",),
}
"""Those of the set-up, whose rights `test_set_up` tries."""

GROUPS: Final = (OF_LOGIN, OF_CAMPAIGNS, OF_LISTS, OF_SET_UP)
"""Everything that people see who are signed in."""

TAKES: Final[Mapping[str, Right]] = {
    **dict.fromkeys(("new", "edit", "follow-up"), Right.DRAFT),
    **dict.fromkeys(("inbox", "thread"), Right.REPLY),
    **dict.fromkeys(("register", "register-import", "unknown"), Right.DECIDE),
}
"""The rights that pages of campaigns take which take more than to see."""


def every_page(*, files: bool = False) -> list[tuple[str, str]]:
    """Return the addresses of all pages of `GROUPS`, and of files if wanted, each with the name of its route."""
    groups = (*GROUPS, FILES) if files else GROUPS
    return [(name, path) for name, paths in chain.from_iterable(group.items() for group in groups) for path in paths]
