from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import anyio
import attrs
import pytest

from outreach import Campaign, CampaignStatus, CampaignUpdate, EngineConfig, NotFound, Outreach
from outreach.models import Forecast, KeptForecast
from outreach.models.account import ProviderThrottle
from outreach.rules.kept_forecasts import MAX_KEPT
from outreach.storage.unit_of_work import Transaction
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, given_campaign, given_workspace, until

pytestmark = pytest.mark.virtual_time


@attrs.define
class Scene:
    """An engine that dispatches to simulators, with a campaign of an hour that has not started."""

    engine: Outreach
    campaign: Campaign

    @property
    def place(self) -> tuple[str, str]:
        """The workspace and the campaign."""
        return self.campaign.workspace_id, self.campaign.id

    async def kept(self, count: int) -> Sequence[KeptForecast]:
        """Wait until so many forecasts are kept, and return them; a while later there are no more."""

        async def there() -> bool:
            return len(await self.engine.campaigns.forecasts(*self.place)) >= count

        # The runner looks at the campaign at its next slot, in half a minute.
        await until(there, timeout_seconds=90)
        await anyio.sleep(35)
        found = await self.engine.campaigns.forecasts(*self.place)
        assert len(found) == count
        return found


@pytest.fixture
async def here(open_storage: OpenStorage) -> AsyncIterator[Scene]:
    """Open an engine that dispatches."""
    clock = clock_of_loop()
    async with Outreach(open_storage(clock), dispatch=True, clock=clock, config=EngineConfig()) as engine:
        workspace = await given_workspace(engine)
        yield Scene(engine, await given_campaign(engine, workspace, contacts(120), rate_per_minute=2))


async def test_the_forecast_of_the_start_is_kept_and_one_after_each_change(here: Scene) -> None:
    """Each with the revision that it is about, what was left then, and the curve with the rule that binds."""
    campaigns = here.engine.campaigns
    assert await campaigns.forecasts(*here.place) == []
    started = await campaigns.start(*here.place)
    (first,) = await here.kept(1)
    assert (first.reason, first.revision, first.step_hours) == ("start", started.revision, 1)
    assert abs(first.at - (started.started_at or first.at)) < timedelta(seconds=2)
    # Of 120 messages one is with the carrier already.
    assert 118 <= first.contacts <= 120
    # The message before the forecast counts.
    assert sum(hour.requests for hour in first.hours) == first.requests == 120
    assert {hour.bound_by for hour in first.hours} == {"pace"}
    await campaigns.pause(*here.place)
    await anyio.sleep(5)
    await campaigns.resume(*here.place)
    _, second = await here.kept(2)
    assert second.reason == "change"
    changed = await campaigns.update(*here.place, CampaignUpdate(rate_per_minute=4))
    *_, third = await here.kept(3)
    assert (third.reason, third.revision) == ("change", changed.revision)
    assert first.ends_at is not None
    assert third.ends_at is not None
    assert third.ends_at < first.ends_at - timedelta(minutes=20)


async def test_a_throttle_of_the_provider_brings_a_new_forecast_once(here: Scene) -> None:
    """Many follow each other: the next one brings another forecast after ten minutes at the earliest."""
    await here.engine.campaigns.start(*here.place)
    await here.kept(1)

    async def throttle() -> None:
        now = here.engine.now()
        made = ProviderThrottle(
            workspace_id=here.campaign.workspace_id,
            provider="twilio",
            since=now,
            until=now + timedelta(minutes=1),
            refusals=1,
        )
        await here.engine._storage.write(lambda tx: tx.provider_throttles.put(made))

    await throttle()
    _, second = await here.kept(2)
    assert second.reason == "throttle"
    await anyio.sleep(60)
    await throttle()
    await here.kept(2)
    await anyio.sleep(600)
    await throttle()
    await here.kept(3)


async def test_a_forecast_that_fails_neither_stops_nor_delays_the_campaign(
    here: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged; the next change brings another one."""
    making = here.engine._dispatcher._runner._forecasts  # type: ignore[union-attr]
    inner, failing = making._forecast, True

    async def forecast(*place: str) -> Forecast:
        if failing:
            raise RuntimeError("It cannot be foreseen.")
        made: Forecast = await inner(*place)
        return made

    monkeypatch.setattr(making, "_forecast", forecast)
    await here.engine.campaigns.start(*here.place)
    await anyio.sleep(65)
    counters = (await here.engine.campaigns.get(*here.place)).counters
    assert counters.total - counters.pending >= 2
    assert await here.engine.campaigns.forecasts(*here.place) == []
    assert [one.action for one in caplog.records if hasattr(one, "action")].count("forecast_failed") == 1
    failing = False
    await here.engine.campaigns.update(*here.place, CampaignUpdate(name="Again"))
    (first,) = await here.kept(1)
    assert first.reason == "start"


async def test_the_start_waits_for_no_forecast(here: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do its first requests."""
    making = here.engine._dispatcher._runner._forecasts  # type: ignore[union-attr]
    asked = anyio.Event()

    async def forecast(*_: str) -> Any:
        asked.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(making, "_forecast", forecast)
    before = here.engine.now()
    await here.engine.campaigns.start(*here.place)
    assert here.engine.now() - before < timedelta(seconds=0.1)
    await until(lambda: here.engine.campaigns.get(*here.place), lambda found: found.counters.pending < 120)
    assert here.engine.now() - before < timedelta(seconds=2)
    await asked.wait()


async def test_a_campaign_keeps_its_first_forecast_and_the_latest(here: Scene) -> None:
    """However many there are; those of others stay."""
    await here.engine.campaigns.start(*here.place)
    (first,) = await here.kept(1)

    def keep(tx: Transaction) -> None:
        for number in range(1, MAX_KEPT + 3):
            made = attrs.evolve(first, at=first.at + timedelta(seconds=number), reason="change", revision=100 + number)
            assert tx.forecasts.keep(here.campaign.workspace_id, str(100 + number), made, most=MAX_KEPT)
            assert not tx.forecasts.keep(here.campaign.workspace_id, str(100 + number), made, most=MAX_KEPT)

    await here.engine._storage.write(keep)
    found = await here.engine.campaigns.forecasts(*here.place)
    assert len(found) == MAX_KEPT
    assert found[0] == first
    assert [one.revision for one in found[1:]] == list(range(104, 100 + MAX_KEPT + 3))


async def test_forecasts_of_another_workspace_are_not_shown_and_go_with_their_campaign(here: Scene) -> None:
    """A campaign that has made no request can be deleted, though it was active."""
    other = await given_workspace(here.engine)
    with pytest.raises(NotFound):
        await here.engine.campaigns.forecasts(other.id, here.campaign.id)
    workspace = await here.engine.workspaces.get(here.campaign.workspace_id)
    never = await given_campaign(here.engine, workspace, contacts(2, first=500))
    await here.engine.campaigns.start(*here.place)
    (first,) = await here.kept(1)
    copied = attrs.evolve(first, campaign_id=never.id)
    await here.engine._storage.write(lambda tx: tx.forecasts.keep(workspace.id, "1", copied, most=MAX_KEPT))
    await here.engine.campaigns.delete(workspace.id, never.id)
    with pytest.raises(NotFound):
        await here.engine.campaigns.forecasts(workspace.id, never.id)
    assert (await here.engine.campaigns.get(*here.place)).status is CampaignStatus.ACTIVE
