"""The steps of the demonstration, over HTTP like a client, and like an operator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib import resources
from typing import Any, Final

import anyio
import attrs
import click
import httpx
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from outreach import NewRecipient, NewSmsCampaign, Outreach
from outreach.reasons import describe_reason
from outreach_server.cli import documents
from outreach_server.cli.base import actor
from outreach_server.cli.campaigns.panel import STYLES, groups_table
from outreach_server.cli.campaigns.picture import Snapshot
from outreach_server.cli.output import cell, program
from outreach_server.cli.progress import follow, view_for
from outreach_server.cli.serving.sandbox import Tenant
from outreach_server.lists.contacts import ContactFile
from outreach_server.lists.csv_lines import Source
from outreach_server.lists.rejects import Rejects
from outreach_server.lists.tables import open_csv
from outreach_server.sandboxes import CARRIER, SENDER

SAMPLE: Final = "sample.csv"
OPTED_OUT: Final = "+12125550199"
CALLED: Final = "+14155550142"
MESSAGE: Final = "Hi {{first_name}}, your check-up is on {{Slot}}. See you at the Demo clinic!"
RATE: Final = 600
REMINDER: Final = "Hi {{first_name}}, see you tomorrow at the Demo clinic!"
REMINDERS: Final = 600
REMINDERS_RATE: Final = 120
NAMES: Final = ("Ada", "Grace", "Alan", "Edsger", "Barbara")

_POLL_SECONDS: Final = 0.2
_CALL_SECONDS: Final = 120.0
_LINE_SECONDS: Final = 1.0


@attrs.frozen(kw_only=True)
class Story:
    """The state of a demonstration.

    Attributes:
        out: The console.
        silent: Whether nothing is printed.
        stays: Whether the server keeps running afterwards.
        link_to: Makes a link that opens a page of the console, by its path below it; None without a console.
    """

    engine: Outreach
    tenant: Tenant
    url: str
    database: str
    out: Console
    silent: bool
    stays: bool
    link_to: Callable[[str], Awaitable[str]] | None = None

    def say(self, *parts: str | tuple[str, str]) -> None:
        """Print one line; a part is text, or text with its style."""
        if not self.silent:
            # Not wrapped, so that commands can be copied.
            self.out.print(Text.assemble(*parts), soft_wrap=True)

    def chapter(self, number: int, title: str) -> None:
        """Begin a step."""
        self.say()
        self.say((f"{number}  ", "bold cyan"), (title, "bold"))


async def run_story(story: Story) -> dict[str, Any]:
    """Run the whole demonstration; return its result as one document."""
    headers = {"Authorization": f"Bearer {story.tenant.api_key}"}
    async with httpx.AsyncClient(base_url=story.url, headers=headers, timeout=30.0, trust_env=False) as client:
        story.say(
            ("outreach", "bold cyan"), "  A campaign and a call. All of it is simulated: nothing leaves this machine."
        )
        _show_introduction(story)
        created, rows = await _import(story, client)
        end = await _run(story, created["id"])
        await _account(story, end, created)
        call = await _call(story, client)
        link = await _watch(story)
        _show_commands(story, created["id"])
    return {
        "url": story.url,
        "database": story.database,
        "api_key": story.tenant.api_key,
        "workspace_id": story.tenant.workspace_id,
        "agent_id": story.tenant.agent_id,
        "rows": rows,
        "sms_opted_out_excluded": created["sms_opted_out_excluded"],
        "campaign": documents.campaign(end.campaign),
        "groups": end.documents,
        "call": call,
        "console_url": link,
    }


def sample() -> tuple[Sequence[NewRecipient], Sequence[str]]:
    """Return the sample contacts that ship with the package, and their column headers."""
    with resources.files(__package__).joinpath(SAMPLE).open("rb") as file, Rejects() as rejects:
        contacts = ContactFile.open(open_csv(Source(file, name=SAMPLE, encoding=None)))
        # With invalid numbers too: over HTTP they are loaded and skipped, which the demonstration shows.
        return [contact for _, contact in contacts.contacts(rejects)], contacts.columns.headers


def _show_introduction(story: Story) -> None:
    story.chapter(1, "A sandbox workspace, with an API key, a voice agent and a sending number")
    story.say("   server     ", (story.url, "cyan"))
    story.say("   workspace  ", story.tenant.workspace_id)
    story.say("   agent      ", story.tenant.agent_id)
    story.say("   key        ", story.tenant.api_key)


async def _import(story: Story, client: httpx.AsyncClient) -> tuple[dict[str, Any], int]:
    contacts, headers = sample()
    # Somebody wrote STOP some time ago.
    await story.engine.unsubscribes.add(story.tenant.workspace_id, OPTED_OUT, source="operator", actor=actor())
    body = {
        "name": "Check-ups",
        "message_body": MESSAGE,
        "sms_carrier": CARRIER,
        "sms_from_number": SENDER,
        "sms_rate_per_minute": RATE,
        "csv_column_headers": list(headers),
        "recipients": [attrs.asdict(contact) for contact in contacts],
    }
    created = await _ask(client, "POST", "/sms-campaigns", body)
    story.chapter(2, f"{len(contacts)} people from {SAMPLE}, over POST /sms-campaigns")
    story.say("   loaded     ", str(created["total_recipients"]))
    story.say("   excluded   ", str(created["sms_opted_out_excluded"]), "   on the unsubscribe register")
    story.say("   status     ", created["status"], "   nothing is sent before it is started")
    return created, len(contacts)


async def _run(story: Story, campaign_id: str) -> Snapshot:
    workspace_id = story.tenant.workspace_id
    story.chapter(3, f"Started: at most {RATE} messages a minute, a slot each")
    await story.engine.campaigns.start(workspace_id, campaign_id, actor=actor())
    view, screen = view_for(story.out, silent=story.silent, transient=True)
    poll_seconds = _POLL_SECONDS if story.out.is_terminal else _LINE_SECONDS
    with screen:
        end = await follow(story.engine, workspace_id, campaign_id, view, poll_seconds=poll_seconds)
    story.say(
        "   ", (end.campaign.status.value, "green"), f"   {end.ended} of {end.campaign.counters.total} have ended"
    )
    return end


async def _account(story: Story, end: Snapshot, created: dict[str, Any]) -> None:
    if story.silent:
        return
    story.chapter(4, "What happened to everybody, and why")
    left_out = {"status": "left out", "reason": "opted_out", "count": created["sms_opted_out_excluded"]}
    why = describe_reason("left out", "opted_out")
    groups = groups_table([*end.documents, {**left_out, "why": why, "until": None}], end.campaign.timezone)
    story.out.print(Padding(groups, (0, 0, 0, 3)))
    sent = await story.engine.campaigns.list_dispatches(story.tenant.workspace_id, end.campaign.id, 0)
    for dispatch in sent.items[-1:]:
        story.say("   The first message, as it went out:")
        for line in (dispatch.body or "").splitlines():
            story.say("   │ ", (cell(line), "green"))


async def _call(story: Story, client: httpx.AsyncClient) -> dict[str, Any]:
    story.chapter(5, "One call, over POST /calls, polled to its end with GET /calls/{id}")
    body = {"agent_id": story.tenant.agent_id, "to": CALLED, "variables": {"first_name": "Ada"}}
    response = await client.post("/calls", json=body)
    _check(response)
    path = response.headers["Location"]
    last: str | None = None
    with anyio.move_on_after(_CALL_SECONDS):
        while True:
            call = await _ask(client, "GET", path)
            if call["status"] != last:
                last = call["status"]
                story.say("   ", (str(last), STYLES.get(str(last), "")))
            if call["ended_at"] is not None:
                took = call["duration_seconds"]
                story.say(
                    f"   answered by {cell(call['answered_by'])}, outcome {cell(call['outcome'])}"
                    f"{f', {took} s' if took is not None else ''}"
                )
                return call
            await anyio.sleep(_POLL_SECONDS)
    raise click.ClickException("The simulated call did not end.")


async def _watch(story: Story) -> str | None:
    """Start a campaign that takes some minutes; return a link that opens it in the console, if there is one."""
    if story.link_to is None:
        return None
    new = NewSmsCampaign(
        name="Reminders", body=REMINDER, carrier=CARRIER, from_number=SENDER, rate_per_minute=REMINDERS_RATE
    )
    people = [
        NewRecipient(phone_number=f"+1303555{number:04}", first_name=NAMES[number % len(NAMES)])
        for number in range(REMINDERS)
    ]
    campaigns, workspace_id = story.engine.campaigns, story.tenant.workspace_id
    created = await campaigns.create_sms(workspace_id, new, people, actor=actor())
    await campaigns.start(workspace_id, created.campaign.id, actor=actor())
    link = await story.link_to(f"/w/{workspace_id}/campaigns/{created.campaign.id}")
    story.chapter(6, f"{REMINDERS} reminders, {REMINDERS_RATE} a minute: watch them in the console")
    story.say("   This link signs you in, once, within 15 minutes:")
    story.say("   ", (link, "cyan"))
    return link


def _show_commands(story: Story, campaign_id: str) -> None:
    tenant = story.tenant
    number = 6 if story.link_to is None else 7
    story.chapter(number, "Try it" if story.stays else "Try it: without --exit the server stays, for lines like these")
    for line in (
        f"export KEY={tenant.api_key}",
        f'curl -s {story.url}/sms-campaigns -H "Authorization: Bearer $KEY"',
        f'curl -s {story.url}/calls -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" '
        f'-d \'{{"agent_id": "{tenant.agent_id}", "to": "{CALLED}"}}\'',
        f'curl -s -X PATCH {story.url}/sms/settings -H "Authorization: Bearer $KEY" '
        '-H "Content-Type: application/json" '
        '-d \'{"footer_text": "Text STOP to end"}\'',
        f"{program()} --database {story.database} campaigns recipients {campaign_id}",
    ):
        story.say("   ", (line, "cyan"))
    story.say()


async def _ask(client: httpx.AsyncClient, method: str, path: str, body: object = None) -> dict[str, Any]:
    response = await client.request(method, path, json=body)
    _check(response)
    answer: dict[str, Any] = response.json()
    return answer


def _check(response: httpx.Response) -> None:
    if response.is_error:
        problem = response.json().get("error", {}).get("message", response.text)
        raise click.ClickException(f"The server answered {response.status_code}: {problem}")
