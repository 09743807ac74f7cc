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


BUILD: Final = Family("outreach_build_info", "gauge", "The version that runs; always 1.", ("version",))
DISPATCHES: Final = Family(
    "outreach_dispatches_total",
    "counter",
    "Messages and calls by what the request for them came to.",
    ("channel", "provider", "outcome"),
)
FAILURES: Final = Family(
    "outreach_dispatch_failures_total",
    "counter",
    "Requests that were refused, deferred, not sent or left unknown, by reason.",
    ("channel", "provider", "reason"),
)
DURATION: Final = Family(
    "outreach_dispatch_duration_seconds",
    "histogram",
    "How long providers took to answer a request.",
    ("channel", "provider"),
    SLOW,
)
PACE_LAG: Final = Family(
    "outreach_pace_lag_seconds",
    "histogram",
    "How long after its slot in the pace a request started.",
    ("channel",),
    QUICK,
)
IN_FLIGHT: Final = Family("outreach_requests_in_flight", "gauge", "Requests to providers without an outcome yet.")
INTENTS: Final = Family("outreach_intents_waiting", "gauge", "Committed dispatches that wait for their slot.")
REPORTS: Final = Family(
    "outreach_reports_total",
    "counter",
    "Receipts and call events that providers sent, by the status that they report.",
    ("channel", "provider", "status"),
)
REPORT_DELAY: Final = Family(
    "outreach_report_delay_seconds",
    "histogram",
    "How long after its request a receipt or call event came.",
    ("channel", "provider"),
    LONG,
)
CALLBACKS_REFUSED: Final = Family(
    "outreach_callbacks_refused_total",
    "counter",
    "Callbacks to addresses of accounts that were refused.",
    ("provider",),
)
OPT_OUTS: Final = Family(
    "outreach_opt_outs_total", "counter", "Numbers that came onto the unsubscribe register, by source.", ("source",)
)
CAMPAIGNS: Final = Family("outreach_campaigns", "gauge", "Campaigns that have not ended, by status.", ("status",))
PAUSED: Final = Family(
    "outreach_campaigns_paused", "gauge", "Paused campaigns, by the reason of the pause.", ("reason",)
)
OPEN: Final = Family("outreach_recipients_open", "gauge", "Recipients of active campaigns that have not ended.")
PENDING: Final = Family("outreach_recipients_pending", "gauge", "Recipients of active campaigns not attempted yet.")
WAITING: Final = Family(
    "outreach_recipients_waiting",
    "gauge",
    "Recipients of active campaigns that wait, by reason; at most 100000 are counted.",
    ("reason",),
)
UNKNOWN: Final = Family(
    "outreach_dispatches_unknown", "gauge", "Dispatches with an unknown outcome; at most 10000 are counted."
)
UNKNOWN_AGE: Final = Family(
    "outreach_dispatches_unknown_age_seconds", "gauge", "The age of the oldest dispatch with an unknown outcome."
)
THROTTLED: Final = Family(
    "outreach_accounts_throttled", "gauge", "Accounts that their provider throttles now.", ("provider",)
)
SILENT: Final = Family(
    "outreach_accounts_without_receipts",
    "gauge",
    "Accounts whose messages are accepted and that get no receipts for longer than usual.",
    ("provider",),
)
HELD: Final = Family("outreach_numbers_held", "gauge", "Numbers that wait for a person's decision, at most 100.")
STATE: Final = Family("outreach_dispatcher_state", "gauge", "1 for the dispatcher's state, 0 for others.", ("state",))
LEASE: Final = Family("outreach_lease_remaining_seconds", "gauge", "How long the lease lasts without a heartbeat.")
HEARTBEAT: Final = Family("outreach_heartbeat_age_seconds", "gauge", "The age of this process's last heartbeat.")
EPOCH: Final = Family("outreach_lease_epoch", "gauge", "The epoch of this process's lease.")
LEASES_LOST: Final = Family("outreach_leases_lost_total", "counter", "Leases that this process lost while it worked.")
UNITS: Final = Family("outreach_units_active", "gauge", "Campaigns, messages and calls that are worked on now.")
ERRORS: Final = Family("outreach_dispatcher_errors_total", "counter", "Unexpected errors of the dispatcher.")
COMMITS: Final = Family(
    "outreach_transaction_duration_seconds",
    "histogram",
    "How long a transaction of the database took, its commit included.",
    (),
    QUICK,
)
GROUPS: Final = Family(
    "outreach_transaction_operations", "histogram", "Operations that shared a transaction.", (), SIZES
)
QUEUED: Final = Family("outreach_operations_queued", "gauge", "Operations that waited for the next transaction.")
WRITE_FAILURES: Final = Family(
    "outreach_transaction_failures_total", "counter", "Transactions that failed, by error.", ("error",)
)
FILES: Final = Family("outreach_database_file_bytes", "gauge", "The size of the database's files.", ("file",))
DISK_FREE: Final = Family("outreach_disk_free_bytes", "gauge", "Free bytes of the database's disk.")
DISK_SIZE: Final = Family("outreach_disk_size_bytes", "gauge", "The size of the database's disk.")
LOOP_LAG: Final = Family(
    "outreach_event_loop_lag_seconds", "histogram", "How late the event loop woke a task that slept.", (), QUICK
)
CLOCK_STEPS: Final = Family(
    "outreach_clock_steps_total", "counter", "Steps of the wall clock by a second or more.", ("direction",)
)
SCHEDULES_PAUSED: Final = Family(
    "outreach_schedules_paused", "gauge", "Schedules that the engine has paused; at most a hundred are counted."
)
WEBHOOKS_DISABLED: Final = Family(
    "outreach_webhooks_disabled", "gauge", "Webhooks that the engine has disabled; at most a hundred are counted."
)
WEBHOOK_ATTEMPTS: Final = Family(
    "outreach_webhook_attempts_total", "counter", "Requests to webhooks, by what came of them.", ("result",)
)
WEBHOOK_LAG_EVENTS: Final = Family(
    "outreach_webhook_lag_events",
    "gauge",
    "Events that the active webhook that is furthest behind has not taken; a hundred webhooks are looked at.",
)
WEBHOOK_LAG: Final = Family(
    "outreach_webhook_lag_seconds",
    "gauge",
    "The age of the oldest event that an active webhook has not taken; a hundred webhooks are looked at.",
)
FIGURES_AGE: Final = Family("outreach_figures_age_seconds", "gauge", "The age of the figures read from the database.")
FIGURES_FAILURES: Final = Family(
    "outreach_figures_failures_total", "counter", "Times that the figures could not be read from the database."
)

ENGINE_FAMILIES: Final = tuple(value for value in list(globals().values()) if isinstance(value, Family))
"""Every metric of an engine."""
