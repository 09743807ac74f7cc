"""One of each thing that is set up in a workspace, and the address of every page of a console."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import date
from typing import Final

from starlette.applications import Starlette
from starlette.routing import Route

from outreach import (
    FlowStep,
    NewAgent,
    NewFlow,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewTrunk,
    NewWorkspace,
    Outreach,
)
from outreach.models import NewSchedule, NewUpload, NewUser, NewWebhook, Role, Webhook, WebhookAttempt
from outreach.storage.unit_of_work import Transaction
from tests.console.places import every_page
from tests.console.story import ANN, SENDER, tell
from tests.fake_provider import CREDENTIALS

LIST: Final = b"phone,first_name\n+18145550100,Ann\n12,Ben\n+1 814 555 0101,Cleo\n"
"""A list with a row that is refused, and one that is corrected."""

LIST_NAME: Final = "visits.csv"

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


async def _listed(*phones: str) -> AsyncIterator[str]:
    for one in phones:
        yield one


def recurring(campaign: str, name: str = "Recalls") -> NewSchedule:
    """Return a schedule of each Monday, like a campaign."""
    return NewSchedule(
        name=name, template_id=campaign, rule="FREQ=WEEKLY;BYDAY=MO", zone="UTC", starts_on=date(2027, 1, 4), at="09:00"
    )


async def furnish(engine: Outreach, workspace: str, called: str = "") -> Mapping[str, str]:
    """Set up one of each thing, with a carrier of the engine's own; return what the braces of addresses name.

    Args:
        engine: The engine.
        workspace: The workspace, which has a campaign and a number.
        called: The name of everything, and each text; empty for some of their own.
    """
    user = await engine.users.create(NewUser(email="ann@acme.example", name=called or "Ann Miller"))
    await engine.users.set_role(workspace, user.id, Role.OWNER)
    invited = await engine.users.invite(workspace, "ben@acme.example", Role.VIEWER, actor=f"user:{user.id}")
    steps = [FlowStep(kind="send", body=called or "Hi"), FlowStep(kind="wait", wait_minutes=90)]
    await engine.accounts.connect(workspace, "mycarrier", CREDENTIALS)
    [account] = (await engine.accounts.list(workspace)).items
    [campaign, *_] = (await engine.campaigns.list(workspace)).items
    [number, *_] = (await engine.numbers.list(workspace)).items
    hook = await webhook(engine, workspace, answer=called * 10 or "no such hook")
    upload = await engine.uploads.create(workspace, NewUpload(file_name=LIST_NAME, size_bytes=len(LIST)))
    await engine.uploads.add_chunk(workspace, upload.id, 0, LIST)
    imported = await engine.unsubscribes.import_numbers(
        workspace, _listed("+18145550199"), file_name=called or LIST_NAME
    )
    agent = NewAgent(name=called or "Ida", placeholders=[called] if called else [])
    flow = NewFlow(name=called or "Welcome", steps=steps)
    schedule = recurring(campaign.id, called[:80] or "Recalls")
    trunk = NewTrunk(name=called or "Office", address=called or "sip.example")
    return {
        "workspace": workspace,
        "name": "re",
        "upload": upload.id,
        "import": imported.id,
        "users": user.id,
        "invitations": invited.invitation.id,
        "invitation": invited.token,
        "accounts": account.id,
        "numbers": number.id,
        "agents": (await engine.agents.create(workspace, agent)).id,
        "trunks": (await engine.trunks.create(workspace, trunk)).id,
        "webhooks": hook.id,
        "schedules": (await engine.schedules.create(workspace, schedule)).id,
        "flows": (await engine.flows.create(workspace, flow)).id,
        "keys": (await engine.api_keys.create(workspace, name=called or "Shop", actor=f"user:{user.id}")).id,
    }


async def furnished(engine: Outreach, called: str = "") -> Mapping[str, str]:
    """Fill a workspace; return what each parameter of a path names.

    Args:
        engine: The engine, with a carrier of its own.
        called: As in `furnish`.
    """
    workspace = (await engine.workspaces.create(NewWorkspace(name=called or "Acme"))).id
    await engine.numbers.create(workspace, NewNumber(phone=SENDER, carrier="twilio"))
    new = NewSmsCampaign(
        name=called or "Visits",
        description=called,
        body=f"Hi {called or '{{first_name}}'}",
        carrier="twilio",
        from_number=SENDER,
    )
    person = NewRecipient(
        phone_number="+13035550100",
        first_name=called or "Ana",
        company=called,
        external_id=called or None,
        custom_variables={called: called} if called else {},
    )
    campaign = (await engine.campaigns.create_sms(workspace, new, [person])).campaign.id
    call = (await tell(engine, workspace)).call.id
    if called:
        await engine.messages.receive(workspace, from_number=ANN, to=SENDER, body=called)
        await engine.unsubscribes.add(workspace, "+13035550101", evidence=called)
    furniture = await furnish(engine, workspace, called)
    return {
        "campaign": campaign,
        "draft": campaign,
        "ended": campaign,
        "position": "0",
        "phone": ANN[1:],
        "call": call,
        **furniture,
    }


def addresses(console: Starlette, things: Mapping[str, str], *, files: bool = False) -> Iterator[tuple[str, str]]:
    """Yield every page of a console that people see who are signed in: the name of its route, and its path.

    Args:
        console: The console; what is of a login it may not have.
        things: What the braces of an address name.
        files: Whether to yield those of files too.
    """
    here = {one.name for one in console.routes if isinstance(one, Route)}
    for name, path in every_page(files=files):
        if name in here:
            found = path.format_map(things)
            yield name, found if found.startswith("/") else f"/w/{things['workspace']}/{found}"
