"""What `webhooks list` and `webhooks show` say of deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import anyio
import pytest

from outreach import Outreach
from outreach.models.webhook import WebhookAttempt, WebhookProgress
from outreach.services.tenants.webhooks import Webhooks
from tests.cli.conftest import Cli

URL = "https://app.example/hook"


def test_the_list_says_how_many_events_wait_and_since_when(cli: Cli, workspace_id: str) -> None:
    """For each endpoint, by its types."""
    for types in ("contact.opted_out", "call.ended"):
        cli.ask("webhooks", "add", workspace_id, URL, "--type", types)
    cli.ask("unsubscribes", "add", workspace_id, "+14155550101")
    listed = cli.ask("webhooks", "list", workspace_id)
    assert {one["types"][0]: one["waiting"] for one in listed} == {"contact.opted_out": 1, "call.ended": 0}
    for one in listed:
        shown = cli.ask("webhooks", "show", workspace_id, one["id"])
        assert (one["waiting"], one["waiting_since"]) == (shown["waiting"], shown["waiting_since"])
        assert (one["waiting_since"] is not None) is bool(one["waiting"])
    assert "waiting_since" in cli.run("webhooks", "list", workspace_id).stdout


def test_the_list_leaves_out_what_is_removed_while_it_is_read(
    cli: Cli, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may remove it between the two reads."""
    gone, kept = [cli.ask("webhooks", "add", workspace_id, f"{URL}{number}")["id"] for number in range(2)]
    progress = Webhooks.progress

    async def late(webhooks: Webhooks, *args: str) -> Sequence[WebhookProgress]:
        await webhooks.remove(workspace_id, gone)
        return await progress(webhooks, *args)

    monkeypatch.setattr(Webhooks, "progress", late)
    assert [one["id"] for one in cli.ask("webhooks", "list", workspace_id)] == [kept]


def test_the_last_attempt_is_shown_in_words(cli: Cli, workspace_id: str) -> None:
    """With --json it stays an object."""
    hook = cli.ask("webhooks", "add", workspace_id, URL)["id"]
    attempt = WebhookAttempt(
        id="a1",
        workspace_id=workspace_id,
        webhook_id=hook,
        number=7,
        type="call.ended",
        at=datetime(2026, 3, 2, 15, 0, tzinfo=UTC),
        duration_ms=12,
        status=404,
        error=None,
        answer="no such hook",
    )

    async def deliver() -> None:
        async with Outreach.open(cli.database) as engine:
            await engine.webhooks._context.storage.write(lambda tx: tx.webhook_attempts.insert(attempt))

    anyio.run(deliver)
    text = cli.run("webhooks", "show", workspace_id, hook).stdout
    assert "2026-03-02 15:00:00 UTC: event 7, call.ended: 404, after 12 ms" in text
    assert "{" not in text
    assert cli.ask("webhooks", "show", workspace_id, hook)["last"]["answer"] == "no such hook"
