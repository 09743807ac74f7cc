"""One of each thing that is set up in a workspace, and the address of every page of a console."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Final

from starlette.applications import Starlette
from starlette.routing import Route

from outreach import FlowStep, NewAgent, NewFlow, NewTrunk, Outreach
from outreach.models import NewSchedule, NewUser, NewWebhook, Role, Webhook, WebhookAttempt
from outreach.storage.unit_of_work import Transaction
from tests.fake_provider import CREDENTIALS

NO_PAGES: Final = frozenset({"live", "export", "register-file", "audit-file", "system-audit-file", "static"})
GUESTS: Final = frozenset({"login", "two-factor", "logout", "setup", "invitation"})
"""Pages of the console's own login, for people who are not signed in, and for those who leave."""


_ERRORS: Final = ("target_refused", "certificate: Hostname mismatch", "not_connected", "timeout", "dropped")


async def webhook(engine: Outreach, workspace: str, *, answer: str = "no such hook") -> Webhook:
    """Create an endpoint with a delivery of each kind; it is paused, so that nothing is sent."""
    made = (await engine.webhooks.create(workspace, NewWebhook(url="https://app.example/hook"))).webhook
    came = [(204, None), (404, None), (410, None), (302, None), (299, None), *((None, one) for one in _ERRORS)]

    def deliver(tx: Transaction) -> None:
        for number, (status, error) in enumerate(came):
            tx.webhook_attempts.insert(
                WebhookAttempt(
                    id=f"{made.id}-{number:02}",
                    workspace_id=workspace,
                    webhook_id=made.id,
                    number=number,
                    type="contact.opted_out" if number else "webhook.test",
                    at=made.created_at,
                    duration_ms=1500 * number,
                    status=status,
                    error=error,
                    answer=answer if status else "",
                )
            )

    await engine.webhooks._context.storage.write(deliver)
    return await engine.webhooks.pause(workspace, made.id)


def recurring(campaign: str, name: str = "Recalls") -> NewSchedule:
    """Return a schedule of each Monday, like a campaign."""
    return NewSchedule(
        name=name, template_id=campaign, rule="FREQ=WEEKLY;BYDAY=MO", zone="UTC", starts_on=date(2027, 1, 4), at="09:00"
    )


async def furnish(engine: Outreach, workspace: str) -> Mapping[str, str]:
    """Set up one of each thing, with a carrier of the engine's own; return their ids by the names of their pages."""
    user = await engine.users.create(NewUser(email="ann@acme.example", name="Ann Miller"))
    await engine.users.set_role(workspace, user.id, Role.OWNER)
    invited = await engine.users.invite(workspace, "ben@acme.example", Role.VIEWER, actor=f"user:{user.id}")
    steps = [FlowStep(kind="send", body="Hi"), FlowStep(kind="wait", wait_minutes=90)]
    await engine.accounts.connect(workspace, "mycarrier", CREDENTIALS)
    [account] = (await engine.accounts.list(workspace)).items
    [campaign, *_] = (await engine.campaigns.list(workspace)).items
    [number, *_] = (await engine.numbers.list(workspace)).items
    hook = await webhook(engine, workspace)
    return {
        "users": user.id,
        "system-users": user.id,
        "invitations": invited.invitation.id,
        "accounts": account.id,
        "numbers": number.id,
        "agents": (await engine.agents.create(workspace, NewAgent(name="Ida"))).id,
        "trunks": (await engine.trunks.create(workspace, NewTrunk(name="Office", address="sip.example"))).id,
        "webhooks": hook.id,
        "schedules": (await engine.schedules.create(workspace, recurring(campaign.id))).id,
        "flows": (await engine.flows.create(workspace, NewFlow(name="Welcome", steps=steps))).id,
        "keys": (await engine.api_keys.create(workspace, name="Shop", actor=f"user:{user.id}")).id,
        "system-workspaces": workspace,
    }


def addresses(console: Starlette, things: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name of every page that people see who are signed in, and its path below the console.

    Args:
        console: The console.
        things: What a parameter of a path names, and the ids of `furnish`. A page whose parameter is missing is new.
    """
    for one in console.routes:
        assert isinstance(one, Route)
        if one.name in {*NO_PAGES, *GUESTS}:
            continue
        kind = one.name.removesuffix("-one")
        values = {name: things[kind if name == "id" else name] for name in one.param_convertors}
        query = f"?campaign={things['campaign']}" if one.name.startswith("new-") else ""
        path = re.sub(r"\{(\w+)[^}]*\}", lambda found, of=values: of[found[1]], one.path)  # type: ignore[misc]
        yield one.name, path + query
