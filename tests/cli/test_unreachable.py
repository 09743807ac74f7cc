"""`unreachable`: numbers that providers have reported as unreachable."""

from __future__ import annotations

import anyio

from outreach import Outreach
from outreach.core.clock import SystemClock
from outreach.models.unreachable import UnreachableNumber
from tests.cli.conftest import Cli


def test_reported_numbers_are_listed_and_taken_off(cli: Cli, workspace_id: str) -> None:
    """In any notation; a number that was not reported takes nothing off."""
    assert "No number is unreachable." in cli.tell("unreachable", "list", workspace_id)
    anyio.run(report, cli.database, workspace_id, "+14155550101", "+14155550102")
    listed = cli.ask("unreachable", "list", workspace_id)
    assert [(one["phone"], one["channel"], one["error_code"]) for one in listed] == [
        ("+14155550101", "sms", "30006"),
        ("+14155550102", "sms", "30006"),
    ]
    assert len(cli.ask("unreachable", "list", workspace_id, "--limit", "1")) == 1
    assert cli.tell("unreachable", "remove", workspace_id, "(415) 555-0101", "+14155550109") == "Removed 1 of 2.\n"
    assert [one["phone"] for one in cli.ask("unreachable", "list", workspace_id)] == ["+14155550102"]


async def report(database: str, workspace_id: str, *phones: str) -> None:
    """Write down that numbers take no messages, as a carrier's report does."""
    now = SystemClock().now()
    async with Outreach.open(database) as engine:
        for phone in phones:
            number = UnreachableNumber(
                workspace_id=workspace_id,
                phone=phone,
                channel="sms",
                provider="twilio",
                error_code="30006",
                reported_at=now,
            )
            await engine._storage.write(lambda tx, number=number: tx.unreachable_numbers.put(number))  # type: ignore[misc]
