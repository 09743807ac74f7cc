"""`webhooks`: endpoints that the events of a workspace are delivered to."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import click

from outreach import Outreach
from outreach.http import write_webhook_progress
from outreach.models import CreatedWebhook, NewWebhook, WebhookReplay, WebhookRotation, WebhookUpdate
from outreach_server.cli import documents
from outreach_server.cli.base import Command, Group, actor, state, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.model_options import ClearOption, given_fields, options_of
from outreach_server.cli.output import note, show, show_list
from outreach_server.cli.resources import ResourceCommands, workspace_argument
from outreach_server.cli.setup.webhook_listening import listen_command
from outreach_server.cli.values import MOMENT, integer_of

_WEBHOOKS: Final = ResourceCommands("webhooks")

_ONCE: Final = "Keep the secret now: it is stored encrypted, and cannot be shown again."


def _show_created(made: CreatedWebhook) -> None:
    show({**documents.resource(made.webhook), "secret": made.secret})
    note(_ONCE)


def _add(workspace_id: str, **values: Any) -> None:
    new = NewWebhook(**given_fields(values))
    _show_created(with_engine(lambda engine: engine.webhooks.create(workspace_id, new, actor=actor())))


def _list(workspace_id: str) -> None:
    async def work(engine: Outreach) -> list[dict[str, Any]]:
        found = await collect(engine.webhooks.iter_all(workspace_id))
        known = {one.cursor.webhook_id: one for one in await engine.webhooks.progress(workspace_id)}
        # One that was removed between the two reads is left out.
        return [
            {**documents.resource(one), "waiting": written["waiting"], "waiting_since": written["waiting_since"]}
            for one, written in ((one, write_webhook_progress(known[one.id])) for one in found if one.id in known)
        ]

    show_list(
        with_engine(work),
        ("id", "url", "types", "state", "reason", "waiting", "waiting_since"),
        empty=f"The workspace has no webhooks. Add one: outreach-server webhooks add {workspace_id} URL",
    )


def _show(workspace_id: str, webhook_id: str) -> None:
    async def work(engine: Outreach) -> dict[str, Any]:
        found = await engine.webhooks.get(workspace_id, webhook_id)
        [known] = await engine.webhooks.progress(workspace_id, webhook_id)
        return {**documents.resource(found), **write_webhook_progress(known)}

    document = with_engine(work)
    if not state().as_json and document["last"] is not None:
        document["last"] = _attempt_text(document["last"])
    show(document)


def _attempt_text(attempt: documents.Document) -> str:
    what = attempt["type"] if attempt["number"] <= 0 else f"event {attempt['number']}, {attempt['type']}"
    answer = attempt["error"] if attempt["status"] is None else attempt["status"]
    return f"{attempt['at']}: {what}: {answer}, after {attempt['duration_ms']} ms"


def _rotate(workspace_id: str, webhook_id: str, overlap_hours: int) -> None:
    how = WebhookRotation(overlap_hours=overlap_hours)
    _show_created(with_engine(lambda engine: engine.webhooks.rotate(workspace_id, webhook_id, how, actor=actor())))


def _replay(workspace_id: str, webhook_id: str, number: int | None, at: datetime | None, only: int | None) -> None:
    if sum(one is not None for one in (number, at, only)) != 1:
        raise click.UsageError(
            "Give --from with the number of the first event, --since with a time, or --only with a number."
        )
    start = WebhookReplay(number=number if only is None else only, at=at, only=only is not None)
    _WEBHOOKS.show(lambda engine: engine.webhooks.replay(workspace_id, webhook_id, start, actor=actor()))


def _attempts(workspace_id: str, webhook_id: str, failed: bool | None) -> None:
    found = with_engine(lambda engine: collect(engine.webhooks.iter_attempts(workspace_id, webhook_id, failed=failed)))
    show_list(
        [documents.resource(one) for one in found],
        ("at", "number", "type", "status", "error", "duration_ms"),
        empty="Nothing was delivered to it yet.",
    )


webhooks = Group(
    "webhooks",
    commands=[
        Command(
            "add",
            help="Add an endpoint, which gets the events of the workspace from now on; show its secret, once.",
            callback=_add,
            params=[workspace_argument(), click.Argument(["url"]), *options_of(NewWebhook)],
        ),
        Command(
            "list",
            help="List a workspace's webhooks, with how many events wait for each, and since when.",
            callback=_list,
            params=[workspace_argument()],
        ),
        _WEBHOOKS.command(
            "show", "Show an endpoint, how far its deliveries have come, and since when they fail.", _show
        ),
        _WEBHOOKS.update(
            "Change an endpoint; a new URL is tried at once.",
            click.Option(["--url"], help="Where deliveries go."),
            *options_of(WebhookUpdate),
            ClearOption("types", "Have events of all types.", word="types", value=()),
        ),
        _WEBHOOKS.move("pause", "Deliver nothing until it is enabled; its position stays, so that nothing is lost."),
        _WEBHOOKS.move("test", "Have a test delivered; `attempts` shows what came of it."),
        _WEBHOOKS.move("enable", "Go on with an endpoint from its position; one that fails is tried at once."),
        _WEBHOOKS.command(
            "rotate",
            "Give an endpoint a new secret; the one before signs too for a while.",
            _rotate,
            click.Option(
                ["--overlap-hours"],
                type=integer_of(WebhookRotation, "overlap_hours"),
                default=24,
                show_default=True,
                help="How long the one before signs too.",
            ),
        ),
        _WEBHOOKS.command(
            "replay",
            "Deliver events again, from a number or a time on or a single one, with the ids that they had.",
            _replay,
            click.Option(
                ["--from", "number"], type=integer_of(WebhookReplay, "number"), help="The number of the first event."
            ),
            click.Option(["--since", "at"], type=MOMENT, help="The time from which on."),
            click.Option(["--only"], type=integer_of(WebhookReplay, "number"), help="The number of a single event."),
        ),
        _WEBHOOKS.command(
            "attempts",
            "List the deliveries to an endpoint, the latest first.",
            _attempts,
            click.Option(["--failed/--succeeded"], default=None, help="Only those that failed, or that did not."),
        ),
        listen_command,
        _WEBHOOKS.remove("Remove an endpoint; what it was to get is not delivered."),
    ],
)
