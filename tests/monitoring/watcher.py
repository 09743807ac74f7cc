"""Prometheus in a test: it reads metrics at intervals, and evaluates the alert rules over what it has read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from outreach_server import ServerMetrics
from tests.monitoring.exposition import Sample, samples
from tests.monitoring.promql import Labels, Scrape, evaluate, names_in, seconds_of

RULES: Final = Path(__file__).resolve().parents[2] / "examples" / "monitoring" / "outreach.rules.yaml"

EVERY_SECONDS: Final = 30.0
"""The interval of the scrapes."""

TARGET: Final = {"job": "outreach", "instance": "here:9464"}


def rules() -> Mapping[str, Mapping[str, Any]]:
    """Return the alert rules by their names."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


class Watcher:
    """Reads a server's metrics.

    Attributes:
        metrics: What it reads.
        up: Whether the server answers.
    """

    def __init__(self, metrics: ServerMetrics) -> None:
        self.metrics = metrics
        self.up = True
        self._registry: CollectorRegistry = metrics.registry
        self._scrapes: list[Scrape] = []
        self._now = 0.0
        self._rules = rules()
        self._names = tuple({name for rule in self._rules.values() for name in names_in(rule["expr"])})
        self._held_since: dict[str, dict[Labels, float]] = {}

    def scrape(self) -> None:
        """Read once, an interval after the last time."""
        self._now += EVERY_SECONDS
        text = generate_latest(self._registry).decode() if self.up else ""
        # Only what a rule asks for, and that quickly: there are hundreds of lines.
        read = samples("\n".join(line for line in text.splitlines() if line.startswith(self._names)))
        # Prometheus adds which target it has read.
        found = (Sample(one.name, {**one.labels, **TARGET}, one.value) for one in read)
        self._scrapes.append(Scrape(self._now, [Sample("up", TARGET, float(self.up)), *found]))
        for name, rule in self._rules.items():
            before = self._held_since.get(name, {})
            holds = evaluate(rule["expr"], self._scrapes, self._now)
            self._held_since[name] = {labels: before.get(labels, self._now) for labels in holds}

    def value(self, name: str, **labels: str) -> float:
        """Return the value of a series, as last read."""
        wanted = {**labels, **TARGET}
        [found] = [one.value for one in self._scrapes[-1].samples if one.name == name and one.labels == wanted]
        return found

    async def follow(self, *, minutes: float, sleep: bool = False) -> set[str]:
        """Read for some minutes, of the clock of Prometheus alone, or of the loop's; return all alerts that fired."""
        fired: set[str] = set()
        for _ in range(int(minutes * 60 / EVERY_SECONDS)):
            if sleep:
                await anyio.sleep(EVERY_SECONDS)
            await self.metrics.engine.refresh()
            self.scrape()
            fired |= self.firing()
        return fired

    def firing(self) -> set[str]:
        """Return the alerts whose expression has held for as long as their rule wants."""
        return {
            name
            for name, held in self._held_since.items()
            if any(self._now - since >= seconds_of(self._rules[name].get("for", "0s")) for since in held.values())
        }
