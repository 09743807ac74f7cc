"""Keeping forecasts of the campaigns that this worker drives, beside the sending and never in its way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import anyio

from outreach.core.clock import Clock, format_timestamp
from outreach.core.log_throttle import LogThrottle
from outreach.models.account import ProviderThrottle
from outreach.models.campaign import Campaign
from outreach.models.forecast import Forecast, ForecastReason
from outreach.models.states import CampaignStatus
from outreach.protocols.storage import Storage, Within
from outreach.rules.kept_forecasts import MAX_KEPT, kept
from outreach.storage.unit_of_work import Transaction

Forecaster = Callable[[str, str], Awaitable[Forecast]]
"""Returns the forecast of a campaign, by its workspace and id."""

_MAX_KNOWN: Final = 10_000
"""Campaigns whose latest forecast is kept in memory; for others the database is read."""

_PAUSE_SECONDS: Final = 0.5
"""Before each forecast, so that a campaign's first requests go out first."""

_THROTTLE_SECONDS: Final = 600.0
"""Between two forecasts of one campaign for a throttle: a provider may throttle again and again."""


class _Noted(NamedTuple):
    basis: ForecastBasis
    at: float


LEAST_THROTTLE: Final = timedelta(seconds=5)
"""Shorter throttles change a forecast by nothing that is seen."""


class ForecastBasis(NamedTuple):
    """The basis of a forecast: a revision of a campaign, and since when its provider throttles, if it does."""

    revision: int
    throttled_since: datetime | None = None

    @property
    def key(self) -> str:
        """Its name, unique in the campaign."""
        since = self.throttled_since
        return str(self.revision) if since is None else f"{self.revision}/{format_timestamp(since)}"


def basis_of(revision: int, throttle: ProviderThrottle | None) -> ForecastBasis:
    """Return what a forecast would be about now."""
    lasts = throttle is not None and throttle.until - throttle.since >= LEAST_THROTTLE
    return ForecastBasis(revision, throttle.since if throttle is not None and lasts else None)


class ForecastKeeper:
    """Has a forecast made and kept once a campaign is active, and after each change of it.

    Args:
        storage: The database.
        clock: The source of time.
        forecast: Makes forecasts; without it none is kept.
        log_throttle: Logs failures, which have no other effect.
    """

    def __init__(
        self, *, storage: Storage, clock: Clock, forecast: Forecaster | None, log_throttle: LogThrottle
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._forecast = forecast
        self._log_throttle = log_throttle
        self._noted: dict[str, _Noted] = {}
        self._waiting: dict[tuple[str, str], ForecastBasis] = {}
        self._changed = anyio.Event()

    def note(self, campaign: Campaign, throttle: ProviderThrottle | None) -> None:
        """Note what a running campaign is like now: if that is new, a forecast follows. Called at every wave."""
        if self._forecast is None or campaign.status is not CampaignStatus.ACTIVE:
            return
        basis, noted, now = basis_of(campaign.revision, throttle), self._noted.get(campaign.id), self._clock.monotonic()
        if noted is not None and noted.basis.revision == basis.revision:
            since, before = basis.throttled_since, noted.basis.throttled_since
            if since in {None, before} or (before is not None and now - noted.at < _THROTTLE_SECONDS):
                return
        if len(self._noted) >= _MAX_KNOWN:
            del self._noted[next(iter(self._noted))]
        self._noted[campaign.id] = _Noted(basis, now)
        # One that still waits is replaced: only the latest state of a campaign counts.
        self._waiting[campaign.workspace_id, campaign.id] = basis
        self._changed.set()

    async def serve(self) -> None:
        """Make one forecast after the other until cancelled."""
        while True:
            if not self._waiting:
                self._changed = anyio.Event()
                await self._changed.wait()
            await anyio.sleep(_PAUSE_SECONDS)
            place = next(iter(self._waiting))
            try:
                await self._keep(*place, self._waiting.pop(place))
            except Exception as error:
                # Nothing depends on it, and the next change of the campaign brings another one.
                self._log_throttle.failure(
                    "forecast_failed", error, "The forecast of campaign %s could not be kept.", place[1]
                )

    async def _keep(self, workspace_id: str, campaign_id: str, basis: ForecastBasis) -> None:
        if self._forecast is None or await self._storage.read(
            lambda tx: tx.forecasts.has(workspace_id, campaign_id, basis.key)
        ):
            return
        made = await self._forecast(workspace_id, campaign_id)

        def operation(tx: Transaction) -> None:
            campaign = tx.campaigns.get(workspace_id, campaign_id)
            if campaign is None or campaign.revision != basis.revision:
                # It has changed meanwhile, and gets another one.
                return
            reason: ForecastReason = "change"
            before = 0
            if not tx.forecasts.of_campaign(workspace_id, campaign_id):
                reason = "start"
                since = campaign.started_at or made.at
                [before] = tx.reports.requests_between(workspace_id, campaign_id, [since, max(since, made.at)])
            elif basis.throttled_since is not None:
                reason = "throttle"
            one = kept(made, campaign_id=campaign_id, reason=reason, revision=basis.revision, sent_before=before)
            tx.forecasts.keep(workspace_id, basis.key, one, most=MAX_KEPT)

        await self._storage.write(Within([workspace_id], operation))
