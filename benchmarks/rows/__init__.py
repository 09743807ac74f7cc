"""The parts of the benchmark: each returns its comparisons and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.results import Results
from benchmarks.rows import (
    asking,
    browsing,
    calling,
    creating,
    delivering,
    dispatching,
    growing,
    indexing,
    listing,
    memory,
    messaging,
    neighbour,
    planning,
    postgres,
    postgres_serving,
    receiving,
    remembering,
    reporting,
    scraping,
    starting,
)
from benchmarks.settings import Settings

ROWS: Final[Mapping[str, Callable[[Settings], Results]]] = {
    "create": creating.measure,
    "list": listing.measure,
    "call": calling.measure,
    "requests": asking.measure,
    "dispatch": dispatching.measure,
    "message": messaging.measure,
    "receipts": receiving.measure,
    "indexes": indexing.measure,
    "growth": growing.measure,
    "neighbour": neighbour.measure,
    "memory": memory.measure,
    "scraping": scraping.measure,
    "webhooks": delivering.measure,
    "reports": reporting.measure,
    "history": remembering.measure,
    "preflight": planning.measure,
    "console": browsing.measure,
    "postgres": postgres.measure,
    "postgres-load": postgres_serving.measure_loading,
    "postgres-list": postgres_serving.measure_listing,
    "start": starting.measure,
}
