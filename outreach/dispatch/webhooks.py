"""Delivers the events of all endpoints, in a process that dispatches."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Protocol

import anyio
import attrs
from anyio.abc import TaskGroup

from outreach.core.clock import Clock
from outreach.core.log_throttle import LogThrottle
from outreach.dispatch.webhook_endpoint import (
    MAX_CONNECTIONS,
    STOP_SECONDS,
    EndpointDeliveries,
    EndpointRecords,
    Sender,
)
from outreach.errors import ConfigError, StorageError
from outreach.protocols.instrumentation import Instrumentation
from outreach.providers.http.request_gate import FairLimiter
from outreach.rules.webhooks import DELIVERED_PER_SECOND, Pace

_FIRST_BACKOFF_SECONDS: Final = 1.0
_MAX_BACKOFF_SECONDS: Final = 60.0


@attrs.frozen
class EndpointPlace:
    """An endpoint, by its workspace and id."""

    workspace_id: str
    id: str


class WebhookRecords(Protocol):
    """The records of all endpoints in the database."""

    async def due(self, running: frozenset[EndpointPlace]) -> Sequence[EndpointPlace]:
        """Return endpoints for which something may be due now, beside those that this process works on.

        Raises:
            StorageError: The database failed.
        """
        ...

    def of(self, place: EndpointPlace) -> EndpointRecords:
        """Return the records of one endpoint."""
        ...

    def ended(self, place: EndpointPlace, next_at: datetime | None) -> None:
        """Take note that nothing is due for an endpoint before a moment, or before its next event."""
        ...


class WebhookPump:
    """Delivers to each endpoint in a task of its own, so that a slow one delays none.

    Args:
        records: The records in the database.
        make_sender: Returns the sender of the requests; called when something is due for the first time.
        clock: The source of time.
        rng: Where the jitter comes from.
        poll_seconds: How often events are looked for.
        log_throttle: The engine's log.
        instrumentation: Observes the results of requests; none by default.
    """

    def __init__(
        self,
        *,
        records: WebhookRecords,
        make_sender: Callable[[], Sender],
        clock: Clock,
        rng: random.Random,
        poll_seconds: float,
        log_throttle: LogThrottle,
        instrumentation: Instrumentation | None = None,
    ) -> None:
        self._instrumentation = instrumentation or Instrumentation()
        self._records = records
        self._make_sender = make_sender
        self._sender: Sender | None = None
        self._clock = clock
        self._rng = rng
        self._poll_seconds = poll_seconds
        self._log_throttle = log_throttle
        self._permits = FairLimiter(MAX_CONNECTIONS)
        self._pace = Pace(DELIVERED_PER_SECOND)
        self._closing = anyio.Event()
        self._running: dict[EndpointPlace, EndpointDeliveries] = {}
        self._failures: dict[EndpointPlace, int] = {}
        self._not_before: dict[EndpointPlace, float] = {}

    async def run(self) -> None:
        """Deliver until stopped."""
        try:
            await self._run()
        finally:
            if self._sender is not None:
                with anyio.CancelScope(shield=True):
                    await self._sender.aclose()

    async def _run(self) -> None:
        async with anyio.create_task_group() as tasks:
            while not self._closing.is_set():
                try:
                    await self._look(tasks)
                except (StorageError, ConfigError) as error:
                    self._log_throttle.failure("webhooks_failed", error, "Could not look for webhooks to deliver.")
                with anyio.move_on_after(self._poll_seconds):
                    await self._closing.wait()
            # Each ends by itself within a moment.
            tasks.cancel_scope.deadline = anyio.current_time() + 2 * STOP_SECONDS

    def stop(self) -> None:
        """Start nothing new, and have `run` end once requests in flight have, or a moment has passed."""
        self._closing.set()
        for deliveries in self._running.values():
            deliveries.wake()

    async def _look(self, tasks: TaskGroup) -> None:
        now = self._clock.monotonic()
        for place in await self._records.due(frozenset(self._running)):
            if place in self._running or self._not_before.get(place, now) > now:
                continue
            if self._sender is None:
                self._sender = self._make_sender()
            self._running[place] = EndpointDeliveries(
                records=self._records.of(place),
                sender=self._sender,
                permits=self._permits,
                pace=self._pace,
                clock=self._clock,
                rng=self._rng,
                poll_seconds=self._poll_seconds,
                closing=self._closing,
                instrumentation=self._instrumentation,
            )
            tasks.start_soon(self._deliver, place, self._running[place])

    async def _deliver(self, place: EndpointPlace, deliveries: EndpointDeliveries) -> None:
        try:
            self._records.ended(place, await deliveries.run())
        except Exception as error:
            # Its lease expires meanwhile; other endpoints go on.
            failures = self._failures[place] = self._failures.get(place, 0) + 1
            wait = min(_FIRST_BACKOFF_SECONDS * 2 ** min(failures - 1, 10), _MAX_BACKOFF_SECONDS)
            self._not_before[place] = self._clock.monotonic() + wait
            self._log_throttle.failure("webhooks_failed", error, "Deliveries to webhook %s stopped.", place.id)
        else:
            self._failures.pop(place, None)
            self._not_before.pop(place, None)
            if deliveries.given_up:
                self._log_throttle.problem(
                    ("webhook", place.id),
                    "given_up",
                    "Webhook %s has refused an event for 75 hours, which is given up.",
                    place.id,
                    action="webhook_given_up",
                    workspace_id=place.workspace_id,
                )
            if deliveries.unwanted:
                self._log_throttle.log(
                    logging.INFO,
                    "%d events that webhook %s had refused are dropped: it gets other types now.",
                    deliveries.unwanted,
                    place.id,
                    action="webhook_dropped",
                    workspace_id=place.workspace_id,
                )
        finally:
            self._running.pop(place, None)
