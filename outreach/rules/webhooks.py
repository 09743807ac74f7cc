"""When a webhook is delivered again, when its endpoint counts as down, and when it is disabled."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

STEPS: Final = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1800, 7200, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
"""The waits after the first failure, the second, and so on: those of Standard Webhooks 1.0, 75 hours together."""

JITTER: Final = 0.2

DOWN_AFTER: Final = 5
"""So many failures in a row, each of an event with another key, mean that the endpoint is down, not the event."""

GIVEN_UP_AFTER: Final = timedelta(hours=75)
DISABLED_AFTER: Final = timedelta(days=3)
MAX_HELD_KEYS: Final = 1_000
DRAIN_PER_SECOND: Final = 50
"""So many events of a backlog are delivered to one endpoint in a second."""

DELIVERED_PER_SECOND: Final = 200
"""So many events are delivered to all endpoints by one process: each takes 1 to 1.7 ms of the loop that sends messages,
which has priority."""

BACKLOG_AFTER: Final = timedelta(minutes=1)
"""An event that is older when its deliveries begin has waited for a server, an endpoint or a replay."""

GONE: Final = 410

DISABLED_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gone": "its endpoint has answered 410, so it wants nothing any more",
        "failing": "no delivery has succeeded for three days",
    }
)
"""Why the engine disables endpoints, in words: parts of a sentence."""


FAILING_AFTER: Final = timedelta(hours=1)
"""An endpoint that has taken nothing for so long is shown to a person: it was tried four times at least."""

_ERRORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "target_refused": "its address is not a public one, nor one that is allowed",
        "certificate": "its certificate was not accepted",
        "not_connected": "no connection to it could be made",
        "timeout": "it did not answer in time",
        "dropped": "it broke the connection off before it answered",
    }
)


def is_success(status: int | None) -> bool:
    """Return whether an answer says that an event was taken: its status is 200 to 299; None is no answer."""
    return status is not None and HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def failure_words(status: int | None, error: str | None) -> str:
    """Return what came of a delivery that failed: a part of a sentence.

    Args:
        status: The HTTP status of the answer; None where none came.
        error: Why no answer came (`DeliveryAnswer.error`).
    """
    if status is not None:
        return f"it answered with the status {status}"
    code, _, detail = (error or "").partition(": ")
    return _ERRORS.get(code, "it gave no answer") + (f" ({detail})" if detail else "")


def next_wait(failures: int, *, draw: float, retry_after: float | None = None) -> timedelta:
    """Return how long to wait after a failure.

    Args:
        failures: How many there were in a row, this one included; at least 1.
        draw: A random number of 0 to 1.
        retry_after: How many seconds the receiver wants; it counts between one and two times the step.
    """
    step = STEPS[min(max(failures, 1), len(STEPS)) - 1]
    if retry_after is not None:
        return min(max(timedelta(seconds=min(retry_after, 2 * step.total_seconds())), step), 2 * step)
    return step * (1 - JITTER + 2 * JITTER * draw)


def retry_after_seconds(header: str | None, now: datetime) -> float | None:
    """Return what `Retry-After` says, in seconds from now; None if it says nothing that can be read."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max((moment - now).total_seconds(), 0.0) if moment.tzinfo is not None else None


def is_down(failed_keys: int) -> bool:
    """Return whether an endpoint is down.

    Args:
        failed_keys: The keys of the events that failed since the last success.
    """
    return failed_keys >= DOWN_AFTER


def is_given_up(first_at: datetime, failing_since: datetime | None, now: datetime) -> bool:
    """Return whether an event is given up: its endpoint has refused it for 75 hours, and taken others meanwhile.

    Args:
        first_at: When it was refused first.
        failing_since: When the endpoint's first failure after its last success was; None after a success.
        now: The present moment.
    """
    return now - first_at >= GIVEN_UP_AFTER and (failing_since is None or failing_since > first_at)


def disabling_reason(status: int | None, failing_since: datetime | None, now: datetime) -> str | None:
    """Return why an endpoint is to be disabled after a failure; None if it is not.

    Args:
        status: The status of the answer; None where none came.
        failing_since: When the first failure after the last success was.
        now: The present moment.
    """
    if status == GONE:
        return "gone"
    if failing_since is not None and now - failing_since >= DISABLED_AFTER:
        return "failing"
    return None


def message_id(workspace_id: str, number: int, at: datetime) -> str:
    """Return the value of `webhook-id`: the same for each delivery of an event, and without a full stop."""
    return f"evt_{workspace_id}_{number}_{int(at.timestamp() * 1000)}"


def gap_id(workspace_id: str, first: int, last: int) -> str:
    """Return the value of `webhook-id` for a notice of a gap: no event of the feed gives it a time."""
    return f"evt_{workspace_id}_gap_{first}_{last}"


class Pace:
    """Deliveries that begin one after the other, at most so many a second."""

    def __init__(self, per_second: int) -> None:
        self._spacing = 1 / per_second
        self._next = float("-inf")

    def wait(self, monotonic: float) -> float:
        """Return after how many seconds the next delivery may begin, and count it."""
        at = max(self._next, monotonic)
        self._next = at + self._spacing
        return at - monotonic
