"""The endpoints by path."""

from __future__ import annotations

from itertools import product
from typing import Final

from starlette.routing import Route

from outreach_server.endpoints.callbacks.receiving import ProviderCallbacks
from outreach_server.endpoints.calls import Calls, OneCall
from outreach_server.endpoints.campaigns import Campaigns, SmsCampaigns
from outreach_server.endpoints.documents import Contract, Docs, DocsFile
from outreach_server.endpoints.health import Health, Ready
from outreach_server.endpoints.manage.routes import MANAGE_ROUTES
from outreach_server.endpoints.sms import Messages, SmsSettings

ROUTES: Final = (
    Route("/calls", Calls),
    Route("/calls/{id:path}", OneCall),
    Route("/sms-campaigns", SmsCampaigns),
    Route("/campaigns", Campaigns),
    Route("/sms/settings", SmsSettings),
    Route("/sms", Messages),
    *MANAGE_ROUTES,
    Route("/healthz", Health),
    Route("/readyz", Ready),
    Route("/openapi.yaml", Contract),
    Route("/docs", Docs),
    Route("/docs/{name}", DocsFile),
    # With further slashes, as people enter it at a provider, which then signs it so.
    *(
        Route(f"{before}/webhooks/{between}{{account}}{after}", ProviderCallbacks)
        for before, between, after in product(("", "/"), repeat=3)
    ),
)
"""The operations of openapi.yaml, paths without a key, and providers' callbacks."""
