"""Which page of the docs explains what a page of the console is for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

DOCS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accounts": "hosting.md#from-an-empty-machine-to-the-first-live-message",
        "agents": "voice/vapi.md#here",
        "audit": "rules.md#audit-trail",
        "calls": "reports.md#what-the-figures-count",
        "campaigns": "importing.md",
        "contact": "decision-trail.md",
        "contacts": "decision-trail.md",
        "flows": "rules.md#flows",
        "follow-up": "reports.md",
        "home": "console.md#roles",
        "inbox": "opt-out.md#messages-that-a-person-has-to-read",
        "invitations": "users.md",
        "keys": "managing.md#scopes-of-a-key",
        "numbers": "rules.md#sender-pools",
        "overview": "console.md#pages",
        "person": "decision-trail.md",
        "prices": "preflight.md#cost",
        "register": "opt-out.md",
        "report": "reports.md#what-the-figures-count",
        "schedules": "schedules.md",
        "search": "console.md#pages",
        "settings": "users.md#approval-of-starts",
        "system-audit": "rules.md#audit-trail",
        "system-server": "operations.md#watching-it",
        "system-users": "users.md",
        "system-workspaces": "rules.md#sandbox",
        "thread": "opt-out.md#answers",
        "trunks": "voice/vapi.md#here",
        "unknown": "delivery-contract.md#rule-6-unknown-stays-unknown",
        "users": "users.md",
        "webhooks": "webhooks.md",
    }
)
"""The page of `docs`, and the place on it, by the name of the console's page."""


@attrs.frozen(kw_only=True)
class DocsLink:
    """A page of the docs.

    Attributes:
        path: Its file and the place in it.
        url: Where it can be read; empty where nobody has said where the docs are served.
    """

    path: str
    url: str


def docs_link(page: str, docs_url: str) -> DocsLink:
    """Return the page of the docs that explains a page of the console.

    Args:
        page: The name of the console's page.
        docs_url: The address of the site that `make docs` builds; empty without one.
    """
    file, mark, place = DOCS[page].partition("#")
    url = f"{docs_url.rstrip('/')}/docs/{file.removesuffix('.md')}.html{mark}{place}" if docs_url else ""
    return DocsLink(path=f"docs/{DOCS[page]}", url=url)
