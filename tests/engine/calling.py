"""What the tests of calling campaigns begin with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final

import attrs

from outreach import EngineConfig, NewAgent, NewRecipient, Outreach
from outreach.core.clock import Clock
from outreach.models.call import Call
from outreach.models.campaign import Campaign, NewCallCampaign
from outreach.models.dispatch import Dispatch
from outreach.models.reports import CallReport
from outreach.models.settings import CallSettings
from outreach.models.states import CallStatus
from outreach.models.workspace import Workspace
from outreach.protocols.storage import Storage
from outreach.protocols.voice import CallRequest
from outreach.testing.scripted import ScriptedVoice
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.rig import QUICK, Rig, contacts, dispatching, given_workspace

CALLS = attrs.evolve(QUICK, call_poll_seconds=0.05, call_status_seconds=0.2)
"""Polls quickly; nothing of the rules is different."""

NO_ANSWER: Final[dict[str, Any]] = {"status": CallStatus.NO_ANSWER}
BUSY: Final[dict[str, Any]] = {"status": CallStatus.BUSY}
VOICEMAIL: Final[dict[str, Any]] = {"status": CallStatus.COMPLETED, "answered_by": "machine"}
DECLINED: Final[dict[str, Any]] = {"status": CallStatus.COMPLETED, "outcome": "declined"}
POSITIVE: Final[dict[str, Any]] = {
    "status": CallStatus.COMPLETED,
    "outcome": "positive",
    "answered_by": "human",
    "summary": "Will come.",
}
NEGATIVE: Final[dict[str, Any]] = {"status": CallStatus.COMPLETED, "outcome": "negative", "answered_by": "human"}
FAILED: Final[dict[str, Any]] = {"status": CallStatus.FAILED, "error": "No route."}


async def given_agent(engine: Outreach, workspace: Workspace, **changes: Any) -> str:
    """Make an agent that may call out."""
    fields: dict[str, Any] = {"provider": "simulator", "direction": "outbound", **changes}
    return (await engine.agents.create(workspace.id, NewAgent(name="Ada", **fields))).id


async def given_calls(
    engine: Outreach, workspace: Workspace, recipients: int | Sequence[NewRecipient] = 3, **changes: Any
) -> Campaign:
    """Create a calling campaign that is ready."""
    if "agent_id" not in changes:
        changes["agent_id"] = await given_agent(engine, workspace)
    people = contacts(recipients) if isinstance(recipients, int) else recipients
    return (await engine.campaigns.create_call(workspace.id, NewCallCampaign(name="Calls", **changes), people)).campaign


async def given_call_settings(rig: Rig, workspace: Workspace, attempts: int, minutes: int = 0) -> None:
    """Write call settings that try again at once: the bounds are the service's, not the rules'."""
    settings = CallSettings(retry_max_attempts=attempts, retry_delay_minutes=minutes)
    await rig.storage.write(lambda tx: tx.call_settings.put(workspace.id, settings))


async def start_calls(engine: Outreach, workspace: Workspace, *args: Any, **changes: Any) -> Campaign:
    """Make a calling campaign, as `given_calls` does, and start it."""
    campaign = await given_calls(engine, workspace, *args, **changes)
    return await engine.campaigns.start(workspace.id, campaign.id)


@asynccontextmanager
async def calling(
    storage: Storage,
    recipients: int | Sequence[NewRecipient] = 3,
    *,
    voice: ScriptedVoice | None = None,
    config: EngineConfig = CALLS,
    clock: Clock | None = None,
    attempts: int | None = None,
    minutes: int = 0,
    workspace: Mapping[str, Any] = MappingProxyType({}),
    **changes: Any,
) -> AsyncIterator[tuple[Rig, Campaign]]:
    """Dispatch from a storage, in which a calling campaign of a new workspace has just been started."""
    async with dispatching(storage, voice=voice, config=config, clock=clock) as rig:
        owner = await given_workspace(rig.engine, **workspace)
        if attempts is not None:
            await given_call_settings(rig, owner, attempts, minutes)
        yield rig, await start_calls(rig.engine, owner, recipients, **changes)


async def dispatches_of(rig: Rig, campaign: Campaign, position: int = 0) -> Sequence[Dispatch]:
    """Return all that was asked of the provider for a recipient, oldest first."""
    return await rig.storage.read(lambda tx: tx.dispatches.of_recipient(campaign.workspace_id, campaign.id, position))


async def calls_of(rig: Rig, campaign: Campaign, position: int = 0) -> list[Call]:
    """Return the call records of a recipient, oldest first."""
    found = await dispatches_of(rig, campaign, position)
    return [await rig.engine.calls.get(campaign.workspace_id, one.call_id or "") for one in found]


def event(request: CallRequest, status: CallStatus, **changes: Any) -> CallReport:
    """Return an event of a call, by our identifier."""
    report = CallReport(
        workspace_id=request.workspace_id,
        provider="simulator",
        dispatch_id=request.dispatch_id,
        provider_id=None,
        status=status,
        at=clock_of_loop().now(),
    )
    return attrs.evolve(report, **changes)


def hear(voice: ScriptedVoice, request: CallRequest, **ending: Any) -> None:
    """Have the provider report the end of a call."""
    voice.report(event(request, **ending))


def ends(voice: ScriptedVoice, choose: Callable[[CallRequest, int], dict[str, Any]]) -> None:
    """Have `status` tell at once how each call ended; calls to one number are counted from 0."""
    asked: dict[str, int] = {}
    known: dict[str, CallReport] = {}

    async def status(*, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        if dispatch_id not in known:
            request = next(one for one in voice.requests if one.dispatch_id == dispatch_id)
            count = asked.get(request.to, 0)
            asked[request.to] = count + 1
            known[dispatch_id] = event(request, **choose(request, count))
        return known[dispatch_id]

    voice.status = status  # type: ignore[method-assign]
