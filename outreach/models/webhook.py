"""Webhooks: endpoints that events of a workspace are delivered to, and how far each has come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Final, Literal

import attrs

from outreach.errors import Problem
from outreach.models.base import UNSET, Unset
from outreach.models.fields import Checked, ListOf, Option, Text, bounded, moment, ruled, sized

WebhookState = Literal["active", "paused", "disabled"]
"""Whether events are delivered: paused by a person, or disabled by the engine. Its position stays in each state."""

WebhookPayload = Literal["thin", "full"]
"""The content of a delivery: ids, states and reasons; or numbers and texts too."""

MAX_TYPES: Final = 40
MAX_CONCURRENCY: Final = 16

ATTEMPTS_KEPT: Final = 10_000
"""So many attempts of an endpoint are kept, for at most `ATTEMPT_DAYS`."""

ATTEMPT_DAYS: Final = 30

MAX_ANSWER: Final = 1_000
"""Characters of an answer that are kept with an attempt."""


@attrs.frozen(kw_only=True)
class Webhook:
    """An endpoint of an application, to which the events of a workspace are delivered.

    Attributes:
        url: Where deliveries go.
        types: The types of events that it gets; none for all.
        concurrency: How many deliveries there are at a time, of events with different keys.
        reason: Why it is paused or disabled; else None.
    """

    id: str
    workspace_id: str
    url: str
    description: str
    types: tuple[str, ...]
    payload: WebhookPayload
    concurrency: int
    state: WebhookState
    reason: str | None
    created_at: datetime
    updated_at: datetime
    removed_at: datetime | None = None


@attrs.frozen(kw_only=True)
class NewWebhook(Checked):
    """An endpoint to create; the fields are those of `Webhook`.

    Attributes:
        url: At most 2,000 characters.
        description: At most 200 characters.
        types: At most 40.
        concurrency: 1 to 16.
    """

    url: str = sized(1, 2000)
    description: str = sized(0, 200, default="", option=Option("What it is for."))
    types: Sequence[str] = ruled(
        ListOf(Text(1, 60), maximum=MAX_TYPES),
        default=(),
        option=Option("A type of events that it gets; repeatable; all by default.", word="type"),
    )
    payload: WebhookPayload = ruled(
        None,
        default="thin",
        option=Option("Whether deliveries have ids and states (thin, the default), or numbers and texts too."),
    )
    concurrency: int = bounded(1, MAX_CONCURRENCY, default=4, option=Option("Deliveries at a time."))


@attrs.frozen(kw_only=True)
class WebhookUpdate(Checked):
    """The fields of an endpoint to change; `UNSET` leaves a field as it is.

    Events of added types from shortly before the change may be delivered too: while no event is of an endpoint's
    types, its position is stored once in a while.
    """

    _rules_from: ClassVar = (NewWebhook,)

    url: str | Unset = UNSET
    description: str | Unset = UNSET
    types: Sequence[str] | Unset = UNSET
    payload: WebhookPayload | Unset = UNSET
    concurrency: int | Unset = UNSET


@attrs.frozen(kw_only=True)
class WebhookReplay(Checked):
    """Which events are delivered again: from a number or a time on, or a single one.

    Attributes:
        number: The number of the first event.
        at: The time from which on; in place of a number.
        only: Whether the event with this number is delivered alone.
    """

    number: int | None = bounded(1, 2**53 - 1, default=None)
    at: datetime | None = ruled(moment, default=None)
    only: bool = False

    def _problems(self) -> Sequence[Problem]:
        if (self.number is None) == (self.at is None):
            return (Problem(path="number", message="give the number of the first event, or a time"),)
        if self.only and self.number is None:
            return (Problem(path="only", message="needs the number of an event"),)
        return ()


@attrs.frozen(kw_only=True)
class WebhookRotation(Checked):
    """How a secret is replaced.

    Attributes:
        overlap_hours: How long the one before signs too, 0 to 168.
    """

    overlap_hours: int = bounded(0, 168, default=24)


@attrs.frozen(kw_only=True)
class CreatedWebhook:
    """An endpoint, and its secret, which is shown once.

    Attributes:
        secret: `whsec_` and base64, as Standard Webhooks 1.0 has it; None where the request was made before.
    """

    webhook: Webhook
    secret: str | None = attrs.field(repr=False)

    def without_secret(self) -> CreatedWebhook:
        """Return what a repeated request is answered with."""
        return attrs.evolve(self, secret=None)


@attrs.frozen(kw_only=True)
class WebhookCursor:
    """How far the deliveries to an endpoint have come.

    Attributes:
        sealed: Its secret and those before it, encrypted (`vault.Vault`); empty once it is removed.
        position: Each event up to this number was delivered, given up, is held, or is of no type of the endpoint.
        gap_until: Up to this number the endpoint has got the notice of purged events.
        failures: How many deliveries in a row have failed.
        failing_since: When the first failure after the last success was; None after a success.
        probe_at: When an endpoint that is down gets its next request; None while it is up.
        holder: The process that delivers to it; None when none does.
        held_until: The holder's lease ends then.
    """

    workspace_id: str
    webhook_id: str
    sealed: str = attrs.field(repr=False)
    position: int
    gap_until: int
    failures: int = 0
    failing_since: datetime | None = None
    probe_at: datetime | None = None
    holder: str | None = None
    held_until: datetime | None = None
    updated_at: datetime


@attrs.frozen(kw_only=True)
class WebhookProgress:
    """How the deliveries to an endpoint go.

    Attributes:
        cursor: How far they have come.
        waiting: Events that it has not received yet, those included that wait for another delivery.
        is_all: Whether `waiting` counts all of them; else there may be more.
        waiting_since: When the oldest of them happened; None where none waits.
        last: The latest attempt; None before the first.
    """

    cursor: WebhookCursor
    waiting: int
    is_all: bool
    waiting_since: datetime | None
    last: WebhookAttempt | None


@attrs.frozen(kw_only=True)
class WebhookHold:
    """An event that waits for its next delivery, and holds back later ones with its key.

    Attributes:
        number: The number of the event.
        key: Such as `campaign:ID`.
        attempts: How often it was tried.
        next_at: When it is tried again.
        first_at: When it was tried first.
    """

    workspace_id: str
    webhook_id: str
    number: int
    key: str
    attempts: int
    next_at: datetime
    first_at: datetime


@attrs.frozen(kw_only=True)
class WebhookAttempt:
    """One delivery of an event to an endpoint.

    Attributes:
        number: The number of the event; 0 for a test.
        type: The type of the event.
        at: When the request was made.
        duration_ms: How long it took.
        status: The HTTP status of the answer; None where none came.
        error: Why no answer came: `target_refused`, `not_connected`, `timeout` or `dropped`; else None.
        answer: The beginning of the answer, at most 1,000 characters.
    """

    id: str
    workspace_id: str
    webhook_id: str
    number: int
    type: str
    at: datetime
    duration_ms: int
    status: int | None
    error: str | None
    answer: str
