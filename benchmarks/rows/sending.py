"""Runs of the engine that sends, and of those that write the same ledger."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from benchmarks.processes import run_side
from benchmarks.results import Sample
from benchmarks.settings import Base, Settings

RATE: Final = 600
GROUP: Final = 200
"""Messages that share a transaction at the floor."""


@attrs.define(kw_only=True)
class Load:
    """What is sent, and the latest run of it, whose rows the other sides write.

    Attributes:
        settings: How the benchmark is run.
        campaigns: How many there are.
        recipients: Contacts of each.
        workspaces: How many the campaigns are in.
        rate: Messages a minute of each campaign.
        latency_ms: How long the carrier takes.
        receipts: Whether each message gets a receipt afterwards.
        ballast: Contacts of a campaign that is never started.
    """

    settings: Settings
    campaigns: int
    recipients: int
    workspaces: int = 1
    rate: int = RATE
    latency_ms: float = 0.0
    receipts: bool = False
    ballast: int = 0
    _latest: dict[str, Any] = attrs.field(factory=dict)
    _noted: dict[str, Any] = attrs.field(factory=dict)

    @property
    def messages(self) -> int:
        """How many messages there are."""
        return self.campaigns * self.recipients

    def engine(self) -> Sample:
        """Let this version send all of it."""
        if self._latest:
            shutil.rmtree(Path(self._latest["before"]).parent)
        self._latest = run_side("engine", self._told(self.settings.place("engine")))
        return _figures(self._latest)

    def counted(self) -> Mapping[str, Any]:
        """Let this version send all of it while its statements are counted."""
        self._noted = run_side("engine", {**self._told(self.settings.place("engine")), "count": True})
        return self._noted

    def base(self) -> Sample:
        """Let the earlier version send for as long as may be: what it does not come to does not count."""
        with self.settings.scratch("base") as directory:
            told = {**self._told(directory), "receipts": False}
            return _figures(run_side("engine", told, base=self.settings.base))

    def floor(self) -> Sample:
        """Write the rows of the latest run's sending in groups."""
        return self._floor("before", "after", "message")

    def floor_with_intents(self, *, without: Sequence[str] = ()) -> Sample:
        """Make all writes of the run whose statements were counted, in groups: intents, then outcomes.

        Args:
            without: Indexes that the file does not have.
        """
        return self._floor("before", "after", "message", self._noted, without)

    def receipts_floor(self) -> Sample:
        """Write the rows of the latest run's receipts in groups."""
        return self._floor("after", "received", "receipt")

    def delivered(self, *, embedded: bool, base: Base | None = None, url: str | None = None) -> Sample:
        """Let a version send all of it and take in the receipt of each message.

        Args:
            embedded: Whether as in an application that has tuned nothing, otherwise as in the server.
            base: The earlier version; None for this one.
            url: The empty database that it uses; None for a file.
        """
        with self.settings.scratch("messages") as directory:
            return run_side("messages", {**self._told(directory), "embedded": embedded, "url": url}, base=base)

    def huey(self, workers: int) -> Sample:
        """Run one Huey task a message, which writes the rows of the latest run: of its receipts too, if it has some."""
        with self.settings.scratch("huey") as directory:
            told = {
                "received": self._latest.get("received"),
                "before": self._latest["before"],
                "after": self._latest["after"],
                "database": str(directory / "huey.db"),
                "messages": self._latest["messages"],
                "latency_ms": self.latency_ms,
                "workers": workers,
                "most_seconds": self._most_seconds,
            }
            return run_side("huey_tasks", told)

    @property
    def _most_seconds(self) -> float:
        return self.settings.sized(120.0, 30.0)

    def _told(self, directory: Path) -> dict[str, Any]:
        return {
            "database": str(directory / "outreach.db"),
            "campaigns": self.campaigns,
            "recipients": self.recipients,
            "rate": self.rate,
            "latency_ms": self.latency_ms,
            "most_seconds": self._most_seconds,
            "receipts": self.receipts,
            "ballast": self.ballast,
        }

    def _floor(
        self, before: str, after: str, unit: str, run: Mapping[str, Any] | None = None, without: Sequence[str] = ()
    ) -> Sample:
        run = run or self._latest
        with self.settings.scratch("floor") as directory:
            told = {
                "before": run[before],
                "after": run[after],
                "writes": run.get("writes"),
                "database": str(directory / "floor.db"),
                "units": run["messages"],
                "group": GROUP,
                "unit": unit,
                "without": list(without),
            }
            return run_side("ledger_floor", told)


def _figures(document: Mapping[str, Any]) -> Sample:
    return {name: value for name, value in document.items() if isinstance(value, int | float)}
