"""The forecasts that are kept with campaigns."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.core.clock import format_timestamp
from outreach.models.forecast import KeptForecast
from outreach.serialization.kept_forecasts import forecast_text, read_forecast_text
from outreach.storage.unit_of_work.tables.base import Table


class Forecasts(Table):
    """Forecasts as they were at the start of campaigns and after changes; not cached."""

    def keep(self, workspace_id: str, basis: str, forecast: KeptForecast, *, most: int) -> bool:
        """Keep a forecast, unless there is one about the same; return whether there was none.

        Args:
            workspace_id: The workspace.
            basis: What it is about.
            forecast: The forecast.
            most: Of more of the campaign, those between the first and the latest ones are deleted.
        """
        number = self._rows.number(workspace_id, forecast.campaign_id)
        if number is None:
            return False
        written = self._rows.execute(
            "campaigns.keep_forecast",
            number=number,
            basis=basis,
            made_at=format_timestamp(forecast.at),
            content=forecast_text(forecast),
        )
        if written:
            self._rows.execute("campaigns.delete_forecasts", number=number, latest=most - 1)
        return bool(written)

    def has(self, workspace_id: str, campaign_id: str, basis: str) -> bool:
        """Return whether a forecast about this is kept."""
        number = self._rows.number(workspace_id, campaign_id)
        return bool(self._rows.query("campaigns.has_forecast", number=number, basis=basis))

    def of_campaign(self, workspace_id: str, campaign_id: str) -> Sequence[KeptForecast]:
        """Return a campaign's forecasts, by (made_at, basis)."""
        number = self._rows.number(workspace_id, campaign_id)
        rows = self._rows.query("campaigns.forecasts", number=number)
        return [read_forecast_text(content, campaign_id=campaign_id) for (content,) in rows]
