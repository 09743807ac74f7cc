"""Numbers that a provider has reported as unreachable are left out of later campaigns, if the workspace says so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from outreach import InvalidRequest, NotFound, WorkspaceUpdate
from outreach.models import Channel, UnreachableNumber
from outreach.models.states import MessageStatus, TrailRule
from outreach.models.workspace import Workspace
from outreach.reasons import describe_reason
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, new_id
from outreach.testing.scripted import ScriptedCarrier, accept, refuse
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import (
    Rig,
    dispatching,
    given_workspace,
    people,
    reaches,
    reported,
    start_campaign,
    until,
)

pytestmark = pytest.mark.virtual_time

LANDLINE = "+14155550001"


async def sent(rig: Rig, workspace: Workspace, **changes: Any) -> list[tuple[str, str | None]]:
    """Send a campaign to three contacts, and return how each has ended."""
    campaign = await start_campaign(rig.engine, workspace, **changes)
    await reaches(rig.engine, campaign, "completed")
    return [(one.status.value, one.reason) for one in await people(rig.engine, campaign)]


async def numbers(rig: Rig, workspace: Workspace) -> list[tuple[str, str, str, str | None]]:
    """Return a workspace's unreachable numbers."""
    found = rig.engine.unreachable_numbers.iter_all(workspace.id)
    return [(one.phone, one.channel, one.provider, one.error_code) async for one in found]


async def test_a_refused_number_is_left_out_of_later_campaigns(open_storage: OpenStorage) -> None:
    """With the setting, until somebody takes it off; preflight, forecast, trail and explanation name the rule."""
    carrier = ScriptedCarrier([accept(), refuse("invalid_number", error_code="30006")])
    async with dispatching(open_storage(clock_of_loop()), carrier=carrier) as rig:
        engine, workspace = rig.engine, await given_workspace(rig.engine)
        assert await sent(rig, workspace) == [("completed", None), ("failed", "invalid_number"), ("completed", None)]
        assert await numbers(rig, workspace) == [(LANDLINE, "sms", "twilio", "30006")]
        # Off by default.
        assert await sent(rig, workspace) == [("completed", None)] * 3
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(skip_unreachable=True))
        campaign = await start_campaign(engine, workspace)
        (left_out,) = (await engine.campaigns.preflight(workspace.id, campaign.id)).left_out
        assert (left_out.rule, left_out.count) == ("unreachable_before", 1)
        await reaches(engine, campaign, "completed")
        found = [(one.status.value, one.reason) for one in await people(engine, campaign)]
        assert found == [("completed", None), ("skipped", "unreachable_before"), ("completed", None)]
        history = await engine.campaigns.recipient_history(workspace.id, campaign.id, 1)
        assert (history.steps[-1].rule, history.reason) == (TrailRule.UNREACHABLE, "unreachable_before")
        assert describe_reason("skipped", "unreachable_before")
        report = await engine.campaigns.report(workspace.id, campaign.id)
        assert ("skipped", "unreachable_before", 1) in [
            (one.status, one.reason, one.contacts) for one in report.results
        ]
        assert await engine.unreachable_numbers.remove(workspace.id, "(415) 555-0001", actor="cli:ann")
        assert not await engine.unreachable_numbers.remove(workspace.id, LANDLINE)
        assert await sent(rig, workspace) == [("completed", None)] * 3
        entries = [one async for one in engine.audit.iter_all(workspace.id) if one.action == "unreachable.remove"]
        assert [one.actor for one in entries] == ["cli:ann"]


@pytest.mark.parametrize(("reason", "kept"), [("invalid_number", True), ("unreachable", False), ("filtered", False)])
async def test_a_receipt_reports_it_too(open_storage: OpenStorage, reason: str, kept: bool) -> None:
    """Only a failure of a class that lasts counts: a handset that is switched off is reached later."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        await sent(rig, workspace)
        request = rig.carrier.requests[1]
        rig.carrier.report(reported(request, MessageStatus.FAILED, reason=reason, error_code="30005"))

        async def merged() -> bool:
            campaigns = await rig.engine.campaigns.list(workspace.id)
            return (await people(rig.engine, campaigns.items[0]))[1].reason == reason

        await until(merged)
        assert await numbers(rig, workspace) == ([(LANDLINE, "sms", "twilio", "30005")] if kept else [])


def numbered(workspace_id: str, channel: Channel, phone: str = LANDLINE) -> UnreachableNumber:
    """Return a number."""
    return UnreachableNumber(
        workspace_id=workspace_id, phone=phone, channel=channel, provider="twilio", error_code=None, reported_at=NOW
    )


async def test_a_number_counts_in_its_workspace_and_channel(open_storage: OpenStorage) -> None:
    """A landline takes calls; another workspace knows nothing of it. A list is paged, a removal is for all channels."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        first, second = await given_workspace(rig.engine), await given_workspace(rig.engine)

        def operation(tx: Transaction) -> None:
            for channel in ("sms", "call"):
                tx.unreachable_numbers.put(numbered(first.id, channel))
            tx.unreachable_numbers.put(numbered(second.id, "call"))

        await rig.storage.write(operation)
        await rig.engine.workspaces.update(second.id, WorkspaceUpdate(skip_unreachable=True))
        assert await sent(rig, second) == [("completed", None)] * 3
        page = await rig.engine.unreachable_numbers.list(first.id, limit=1)
        rest = await rig.engine.unreachable_numbers.list(first.id, after=page.next, limit=1)
        assert [one.channel for one in (*page.items, *rest.items)] == ["call", "sms"]
        assert rest.next is None
        assert await rig.engine.unreachable_numbers.remove(first.id, LANDLINE)
        assert (await numbers(rig, first), len(await numbers(rig, second))) == ([], 1)
        with pytest.raises(InvalidRequest, match="not a phone number"):
            await rig.engine.unreachable_numbers.remove(first.id, "nobody")
        with pytest.raises(NotFound):
            await rig.engine.unreachable_numbers.list(new_id())


async def test_an_erased_person_is_on_no_list(open_storage: OpenStorage) -> None:
    """The list has numbers: a purge removes one, retention removes old ones."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        await rig.storage.write(lambda tx: tx.unreachable_numbers.put(numbered(workspace.id, "sms")))
        await rig.engine.erasure.purge(workspace.id, LANDLINE)
        assert await numbers(rig, workspace) == []
        old = attrs.evolve(numbered(workspace.id, "sms"), reported_at=rig.engine.now() - timedelta(days=2))
        await rig.storage.write(lambda tx: tx.unreachable_numbers.put(old))
        await rig.engine.workspaces.update(workspace.id, WorkspaceUpdate(retention_days=1))
        await rig.engine.erasure.apply_retention(workspace.id)
        assert await numbers(rig, workspace) == []
