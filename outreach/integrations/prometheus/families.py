"""The names, units and labels of all metrics; docs/reference/metrics.md has them as a table."""

from __future__ import annotations

from typing import Final, Literal

import attrs

QUICK: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Bounds in seconds of what should take milliseconds."""

SLOW: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds in seconds of requests to providers."""

LONG: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
"""Bounds in seconds of reports."""

SIZES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Bounds of operations that share a transaction."""


@attrs.frozen
class Family:
    """A metric.

    Attributes:
        name: Its name; counters end in `_total`, units are those of Prometheus.
        kind: Its type.
        help: What it shows.
        labels: The names of its labels.
        buckets: The upper bounds of a histogram, none below zero.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def _counter(name: str, shows: str, *labels: str) -> Family:
    return Family(name, "counter", shows, labels)


def _gauge(name: str, shows: str, *labels: str) -> Family:
    return Family(name, "gauge", shows, labels)


def _histogram(name: str, shows: str, *labels: str, buckets: tuple[float, ...]) -> Family:
    return Family(name, "histogram", shows, labels, buckets)


BUILD: Final = _gauge("outreach_build_info", "The version that runs; always 1.", "version")
DISPATCHES: Final = _counter(
    "outreach_dispatches_total",
    "Messages and calls by what the request for them came to.",
    "channel",
    "provider",
    "outcome",
)
FAILURES: Final = _counter(
    "outreach_dispatch_failures_total",
    "Requests that were refused, deferred, not sent or left unknown, by reason.",
    "channel",
    "provider",
    "reason",
)
DURATION: Final = _histogram(
    "outreach_dispatch_duration_seconds",
    "How long providers took to answer a request.",
    "channel",
    "provider",
    buckets=SLOW,
)
PACE_LAG: Final = _histogram(
    "outreach_pace_lag_seconds", "How long after its slot in the pace a request started.", "channel", buckets=QUICK
)
IN_FLIGHT: Final = _gauge("outreach_requests_in_flight", "Requests to providers without an outcome yet.")
INTENTS: Final = _gauge("outreach_intents_waiting", "Committed dispatches that wait for their slot.")
REPORTS: Final = _counter(
    "outreach_reports_total",
    "Receipts and call events that providers sent, by the status that they report.",
    "channel",
    "provider",
    "status",
)
REPORT_DELAY: Final = _histogram(
    "outreach_report_delay_seconds",
    "How long after its request a receipt or call event came.",
    "channel",
    "provider",
    buckets=LONG,
)
CALLBACKS_REFUSED: Final = _counter(
    "outreach_callbacks_refused_total", "Callbacks to addresses of accounts that were refused.", "provider"
)
OPT_OUTS: Final = _counter(
    "outreach_opt_outs_total", "Numbers that came onto the unsubscribe register, by source.", "source"
)
CAMPAIGNS: Final = _gauge("outreach_campaigns", "Campaigns that have not ended, by status.", "status")
PAUSED: Final = _gauge("outreach_campaigns_paused", "Paused campaigns, by the reason of the pause.", "reason")
OPEN: Final = _gauge("outreach_recipients_open", "Recipients of active campaigns that have not ended.")
PENDING: Final = _gauge("outreach_recipients_pending", "Recipients of active campaigns not attempted yet.")
WAITING: Final = _gauge(
    "outreach_recipients_waiting",
    "Recipients of active campaigns that wait, by reason; at most 100000 are counted.",
    "reason",
)
UNKNOWN: Final = _gauge("outreach_dispatches_unknown", "Dispatches with an unknown outcome; at most 10000 are counted.")
UNKNOWN_AGE: Final = _gauge(
    "outreach_dispatches_unknown_age_seconds", "The age of the oldest dispatch with an unknown outcome."
)
THROTTLED: Final = _gauge("outreach_accounts_throttled", "Accounts that their provider throttles now.", "provider")
SILENT: Final = _gauge(
    "outreach_accounts_without_receipts",
    "Accounts whose messages are accepted and that get no receipts for longer than usual.",
    "provider",
)
HELD: Final = _gauge("outreach_numbers_held", "Numbers that wait for a person's decision, at most 100.")
STATE: Final = _gauge("outreach_dispatcher_state", "1 for the dispatcher's state, 0 for others.", "state")
LEASE: Final = _gauge("outreach_lease_remaining_seconds", "How long the lease lasts without a heartbeat.")
HEARTBEAT: Final = _gauge("outreach_heartbeat_age_seconds", "The age of this process's last heartbeat.")
EPOCH: Final = _gauge("outreach_lease_epoch", "The epoch of this process's lease.")
LEASES_LOST: Final = _counter("outreach_leases_lost_total", "Leases that this process lost while it worked.")
UNITS: Final = _gauge("outreach_units_active", "Campaigns, messages and calls that are worked on now.")
ERRORS: Final = _counter("outreach_dispatcher_errors_total", "Unexpected errors of the dispatcher.")
COMMITS: Final = _histogram(
    "outreach_transaction_duration_seconds",
    "How long a transaction of the database took, its commit included.",
    buckets=QUICK,
)
GROUPS: Final = _histogram("outreach_transaction_operations", "Operations that shared a transaction.", buckets=SIZES)
QUEUED: Final = _gauge("outreach_operations_queued", "Operations that waited for the next transaction.")
WRITE_FAILURES: Final = _counter("outreach_transaction_failures_total", "Transactions that failed, by error.", "error")
FILES: Final = _gauge("outreach_database_file_bytes", "The size of the database's files.", "file")
DISK_FREE: Final = _gauge("outreach_disk_free_bytes", "Free bytes of the database's disk.")
DISK_SIZE: Final = _gauge("outreach_disk_size_bytes", "The size of the database's disk.")
LOOP_LAG: Final = _histogram(
    "outreach_event_loop_lag_seconds", "How late the event loop woke a task that slept.", buckets=QUICK
)
CLOCK_STEPS: Final = _counter("outreach_clock_steps_total", "Steps of the wall clock by a second or more.", "direction")
SCHEDULES_PAUSED: Final = _gauge(
    "outreach_schedules_paused", "Schedules that the engine has paused; at most a hundred are counted."
)
WEBHOOKS_DISABLED: Final = _gauge(
    "outreach_webhooks_disabled", "Webhooks that the engine has disabled; at most a hundred are counted."
)
WEBHOOK_ATTEMPTS: Final = _counter(
    "outreach_webhook_attempts_total", "Requests to webhooks, by what came of them.", "result"
)
WEBHOOK_LAG_EVENTS: Final = _gauge(
    "outreach_webhook_lag_events",
    "Events that the active webhook that is furthest behind has not taken; a hundred webhooks are looked at.",
)
WEBHOOK_LAG: Final = _gauge(
    "outreach_webhook_lag_seconds",
    "The age of the oldest event that an active webhook has not taken; a hundred webhooks are looked at.",
)
FIGURES_AGE: Final = _gauge("outreach_figures_age_seconds", "The age of the figures read from the database.")
FIGURES_FAILURES: Final = _counter(
    "outreach_figures_failures_total", "Times that the figures could not be read from the database."
)

ENGINE_FAMILIES: Final = tuple(value for value in list(globals().values()) if isinstance(value, Family))
"""Every metric of an engine."""
