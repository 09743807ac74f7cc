"""How long the first paint of each page of the console takes, while a campaign sends."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import attrs

from benchmarks.load import Client, request
from benchmarks.people import phone
from benchmarks.processes import serve_outreach
from benchmarks.results import Results, Sample, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import Settings, installed
from benchmarks.tenants import Tenant, kept_tenant, tenant
from outreach import CampaignStatus, CampaignUpdate, Outreach
from outreach.models import NewUser

_NEEDS: Final = ("jinja2", "python_multipart", "segno")
_COOKIE: Final = "outreach-session"
_PAUSE_SECONDS: Final = 0.06
"""A session may send 20 requests a second."""

_SET_UP: Final = (
    *("agents", "trunks", "numbers", "flows", "schedules", "webhooks", "accounts", "prices", "keys", "users"),
    "invitations",
)
_STEPS: Final = ("text", "when", "check")
_RATE: Final = 600
_WARMING_SECONDS: Final = 3.0
_LARGE: Final = 10_000


@attrs.frozen(kw_only=True)
class _Place:
    """A database with a campaign that sends, and a person who is signed in.

    Attributes:
        token: What the person's browser keeps.
        campaign: The campaign.
        draft: Another one, which is not started.
    """

    database: Path
    workspace: str
    campaign: str
    draft: str
    token: str = attrs.field(repr=False)

    def pages(self) -> Mapping[str, str]:
        """Return the path of each page, by its name."""
        begin = f"/console/w/{self.workspace}"
        campaign = f"{begin}/campaigns/{self.campaign}"
        number = phone(7).replace("+", "%2B")
        return {
            "workspaces": "/console/",
            "overview": f"{begin}/",
            "campaigns": f"{begin}/campaigns",
            "campaigns by name": f"{begin}/campaigns?q=spring",
            "a campaign that sends": campaign,
            "its contacts": f"{campaign}/contacts",
            "its contacts by state": f"{campaign}/contacts?status=completed",
            "its failed contacts": f"{campaign}/contacts?status=failed",
            "its report": f"{campaign}/report",
            "a contact": f"{campaign}/contacts/0",
            "search of a number": f"{begin}/search?q={number}",
            "search of a name": f"{begin}/search?q=spring",
            "a number": f"{begin}/contacts/{phone(7)[1:]}",
            "replies": f"{begin}/inbox",
            "register": f"{begin}/register",
            "unknown requests": f"{begin}/unknown",
            "calls": f"{begin}/calls",
            "settings": f"{begin}/settings",
            "audit": f"{begin}/audit",
            **{f"settings: {name}": f"{begin}/{name}" for name in _SET_UP},
            "a new campaign": f"{begin}/campaigns/new",
            **{f"{step} of a draft": f"{begin}/campaigns/new/{step}?campaign={self.draft}" for step in _STEPS},
            "change of a campaign": f"{campaign}/edit",
            "follow-up of a campaign": f"{campaign}/follow-up",
            "import of opt-outs": f"{begin}/register/import",
            "account": "/console/account",
        }


def measure(settings: Settings) -> Results:
    """Measure it: the whole page has come when the first byte is counted, since pages are sent at once."""
    results = Results()
    if not installed(*_NEEDS):
        results.notes.append("The console is not installed here, and was not measured: see `make bench`.")
        return results
    campaigns, contacts = settings.sized(1000, 10), settings.sized(1_000_000, 500)
    settings.say(f"console: {campaigns} campaigns and {contacts} contacts")
    samples = alternate({"outreach": partial(_once, settings, campaigns, contacts)}, settings.rounds)["outreach"]
    case = f"{contacts:,} contacts, {_RATE} a minute"
    for name in samples[0]:
        results.figure(samples, name, row="console", case=case, wanted=at_most(50))
    return results


def _once(settings: Settings, campaigns: int, contacts: int) -> Sample:
    with settings.scratch("console") as directory:
        of = (
            kept_tenant(settings, campaigns=campaigns, contacts=contacts)
            if contacts >= _LARGE
            else tenant(directory, campaigns=campaigns, contacts=contacts)
        )
        place = anyio.run(_begin, of)
        taken: dict[str, float] = {}
        with serve_outreach(place.database) as server, Client(server.address) as client:
            time.sleep(settings.sized(_WARMING_SECONDS, 0.5))
            for name, path in place.pages().items():
                asked = request("GET", path, headers={"Cookie": f"{_COOKIE}={place.token}"})
                seconds = []
                for _ in range(settings.sized(60, 3)):
                    # The kept status and figures are as old as they are when people look now and then.
                    time.sleep(_PAUSE_SECONDS)
                    seconds.append(client.ask(asked, expect=200).seconds)
                taken[f"ms, {name}"] = statistics.median(seconds) * 1000
    return taken


async def _begin(of: Tenant) -> _Place:
    """Start the large campaign, and sign somebody in."""
    async with Outreach.open(of.url) as engine:
        user = await engine.users.create(NewUser(email="ann@acme.example", name="Ann", operator=True))
        signed_in = await engine.sessions.begin(user.id)
        campaign = (await engine.campaigns.list(of.workspace_id, search="Everybody")).items[0]
        await engine.campaigns.update(of.workspace_id, campaign.id, CampaignUpdate(rate_per_minute=_RATE))
        await engine.campaigns.start(of.workspace_id, campaign.id)
        draft = (await engine.campaigns.list(of.workspace_id, status=CampaignStatus.READY)).items[0]
    return _Place(
        database=of.database,
        workspace=of.workspace_id,
        campaign=campaign.id,
        draft=draft.id,
        token=signed_in.token,
    )
