"""The states of campaigns, recipients, dispatches, calls and messages, with one table of transitions for each.

A transition that a table lacks raises `IllegalTransition`. Nothing else in the package decides whether one is legal.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from outreach.errors import IllegalTransition


class CampaignStatus(StrEnum):
    """Raw stored status of a campaign (docs/interface.md#3)."""

    DRAFT = "draft"
    READY = "ready"
    SCHEDULED = "scheduled"
    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class CampaignAction(StrEnum):
    """The transitions of a campaign, by an operator or by the engine.

    Meanings:
        finish_setup: an update completes the set-up: an SMS campaign has a message, a sending number and a carrier; a
            calling campaign has an active agent that may call out
        reopen_setup: an update takes one of these away
        start: an operator starts it; of a scheduled one, the clock reaches its start
        schedule: an operator starts it, and its start is ahead
        unschedule: an operator takes it back
        pause: an operator pauses it, or the engine with a reason (docs/states.md#campaigns)
        resume: an operator resumes it
        resume_schedule: an operator resumes it, and its start is ahead: it has not started yet, or the clock was set
            back since
        cancel: an operator cancels it
        complete: the ledger: nothing is pending, waiting, in flight or unknown
        reopen: a receipt: a message failed at a limit, so that its contact waits again
        expire: the clock reaches `scheduled_expires_at`
    """

    FINISH_SETUP = "finish_setup"
    REOPEN_SETUP = "reopen_setup"
    START = "start"
    SCHEDULE = "schedule"
    UNSCHEDULE = "unschedule"
    PAUSE = "pause"
    RESUME = "resume"
    RESUME_SCHEDULE = "resume_schedule"
    CANCEL = "cancel"
    COMPLETE = "complete"
    REOPEN = "reopen"
    EXPIRE = "expire"


TERMINAL_CAMPAIGN_STATUSES: Final = frozenset(
    {CampaignStatus.COMPLETED, CampaignStatus.CANCELLED, CampaignStatus.EXPIRED}
)

_S, _M = CampaignStatus, CampaignAction

CAMPAIGN_TRANSITIONS: Final[Mapping[tuple[CampaignStatus, CampaignAction], CampaignStatus]] = MappingProxyType(
    {
        (_S.DRAFT, _M.FINISH_SETUP): _S.READY,
        (_S.READY, _M.REOPEN_SETUP): _S.DRAFT,
        (_S.READY, _M.START): _S.ACTIVE,
        (_S.READY, _M.SCHEDULE): _S.SCHEDULED,
        (_S.SCHEDULED, _M.UNSCHEDULE): _S.READY,
        (_S.SCHEDULED, _M.START): _S.ACTIVE,
        (_S.SCHEDULED, _M.PAUSE): _S.PAUSED,
        (_S.ACTIVE, _M.PAUSE): _S.PAUSED,
        (_S.PAUSED, _M.RESUME): _S.ACTIVE,
        (_S.PAUSED, _M.RESUME_SCHEDULE): _S.SCHEDULED,
        **{(state, _M.CANCEL): _S.CANCELLED for state in (_S.DRAFT, _S.READY, _S.SCHEDULED, _S.ACTIVE, _S.PAUSED)},
        (_S.ACTIVE, _M.COMPLETE): _S.COMPLETED,
        (_S.COMPLETED, _M.REOPEN): _S.ACTIVE,
        **{(state, _M.EXPIRE): _S.EXPIRED for state in (_S.SCHEDULED, _S.ACTIVE, _S.PAUSED)},
    }
)
"""Every legal transition of a campaign (docs/states.md#campaigns)."""


_COMPLETED_HINT: Final = (
    "For some hours the engine makes it active again where a message turns out to have failed at a carrier's limit. "
    "Pausing everything in its workspace prevents that (`outreach-server stop WORKSPACE_ID`, "
    "`engine.campaigns.pause_all(workspace_id)`)."
)
"""What remains to be done about a completed campaign that somebody wants to pause or cancel."""


_ASKED_FOR: Final = (_M.START, _M.UNSCHEDULE, _M.PAUSE, _M.RESUME, _M.CANCEL)


def operator_actions(status: CampaignStatus) -> tuple[CampaignAction, ...]:
    """Return the transitions that an operator can request; the clock or the campaign's setup causes the others.

    A scheduled campaign is started by the clock alone.
    """
    return tuple(
        move
        for move in _ASKED_FOR
        if (status, move) in CAMPAIGN_TRANSITIONS and (status, move) != (_S.SCHEDULED, _M.START)
    )


def next_campaign_status(status: CampaignStatus, move: CampaignAction) -> CampaignStatus:
    """Return the status after a transition.

    Raises:
        IllegalTransition: The table has no such transition from this status.
    """
    try:
        return CAMPAIGN_TRANSITIONS[status, move]
    except KeyError:
        hint = _COMPLETED_HINT if status is _S.COMPLETED and move in {_M.PAUSE, _M.CANCEL} else ""
        raise IllegalTransition("campaign", status, move, operator_actions(status), hint) from None


class RecipientStatus(StrEnum):
    """The state of a campaign's recipient (docs/states.md#recipients).

    Meanings:
        pending: not attempted yet
        waiting: for a retry, the next step of a flow, an opening hour or a throttled provider; with its reason and
            due time
        dispatching: an intent is committed, the request is about to start or on its way
        in_progress: a placed call has not ended, or an accepted message awaits its receipt
        unknown: nobody knows what became of the request
        completed: it was reached: a message was accepted, a call was held
        failed: attempts are used up, or the failure is for good; the reason says which
        skipped: never attempted, or not any more: `duplicate`, `invalid_number`, `opted_out`, `timezone_unknown`,
            `unreachable_before`, `erased`
        canceled: the campaign was cancelled before its turn
        expired: the campaign expired before its turn
        unconfirmed: whether it was reached cannot be known; it is never tried again
    """

    PENDING = "pending"
    WAITING = "waiting"
    DISPATCHING = "dispatching"
    IN_PROGRESS = "in_progress"
    UNKNOWN = "unknown"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELED = "canceled"
    EXPIRED = "expired"
    UNCONFIRMED = "unconfirmed"


OPEN_RECIPIENT_STATUSES: Final = frozenset(
    {
        RecipientStatus.PENDING,
        RecipientStatus.WAITING,
        RecipientStatus.DISPATCHING,
        RecipientStatus.IN_PROGRESS,
        RecipientStatus.UNKNOWN,
    }
)
"""Not ended: an active campaign with one of these is not complete."""

CLOSABLE_RECIPIENT_STATUSES: Final = frozenset({RecipientStatus.PENDING, RecipientStatus.WAITING})
"""Closed at once when the campaign is cancelled or expires; requests in flight keep their true outcome."""


IN_FLIGHT_RECIPIENT_STATUSES: Final = OPEN_RECIPIENT_STATUSES - CLOSABLE_RECIPIENT_STATUSES
"""At the provider, or perhaps there: each takes one of a calling campaign's places."""


class DispatchState(StrEnum):
    """The state of one request to a provider (docs/states.md#dispatches).

    Meanings:
        dispatching: the intent is committed; no outcome yet
        accepted: the provider took it and gave an identifier
        refused: the provider said no, with a failure class
        not_sent: it failed before the request was written
        withdrawn: the last check stopped it; no request was made
        deferred: not now; another dispatch follows
        unknown: no clear answer
        unconfirmed: no evidence came before the deadline
        given_up: an unknown one that an operator let be retried: its outcome stays unknown, beside a later dispatch
    """

    DISPATCHING = "dispatching"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_SENT = "not_sent"
    WITHDRAWN = "withdrawn"
    DEFERRED = "deferred"
    UNKNOWN = "unknown"
    UNCONFIRMED = "unconfirmed"
    GIVEN_UP = "given_up"


class CallStatus(StrEnum):
    """Status of one call, in the words that the carriers share."""

    QUEUED = "queued"
    DISPATCHING = "dispatching"
    UNKNOWN = "unknown"
    INITIATED = "initiated"
    RINGING = "ringing"
    IN_PROGRESS = "in-progress"
    COMPLETED = "completed"
    BUSY = "busy"
    NO_ANSWER = "no-answer"
    FAILED = "failed"
    CANCELED = "canceled"
    UNCONFIRMED = "unconfirmed"


CALL_STATUS_RANK: Final[Mapping[CallStatus, int]] = MappingProxyType(
    {
        CallStatus.QUEUED: 0,
        CallStatus.DISPATCHING: 1,
        CallStatus.UNKNOWN: 2,
        CallStatus.UNCONFIRMED: 3,
        CallStatus.INITIATED: 4,
        CallStatus.RINGING: 5,
        CallStatus.IN_PROGRESS: 6,
        CallStatus.COMPLETED: 7,
        CallStatus.BUSY: 7,
        CallStatus.NO_ANSWER: 7,
        CallStatus.FAILED: 7,
        CallStatus.CANCELED: 7,
    }
)
"""A call's status only moves to a higher rank, so that a late report changes nothing."""

ENDED_CALL_STATUSES: Final = frozenset(
    {
        CallStatus.COMPLETED,
        CallStatus.BUSY,
        CallStatus.NO_ANSWER,
        CallStatus.FAILED,
        CallStatus.CANCELED,
        CallStatus.UNCONFIRMED,
    }
)


class MessageStatus(StrEnum):
    """Status of one SMS: ours until the carrier accepts it, the carrier's from then on."""

    QUEUED = "queued"
    DISPATCHING = "dispatching"
    UNKNOWN = "unknown"
    UNCONFIRMED = "unconfirmed"
    ACCEPTED = "accepted"
    SENT = "sent"
    FAILED = "failed"
    DELIVERED = "delivered"
    CANCELED = "canceled"


MESSAGE_STATUS_RANK: Final[Mapping[MessageStatus, int]] = MappingProxyType(
    {
        MessageStatus.QUEUED: 0,
        MessageStatus.DISPATCHING: 1,
        MessageStatus.UNKNOWN: 2,
        MessageStatus.UNCONFIRMED: 3,
        MessageStatus.ACCEPTED: 4,
        MessageStatus.SENT: 5,
        MessageStatus.CANCELED: 6,
        MessageStatus.FAILED: 6,
        MessageStatus.DELIVERED: 7,
    }
)
"""A message's status only moves to a higher rank; `delivered` outranks `failed` (docs/delivery-contract.md#rule-12)."""


class WorkspaceStatus(StrEnum):
    """Whether a workspace may send (docs/interface.md#5).

    Meanings:
        active: it works
        suspended: it sends nothing, and its requests get 403; its campaigns keep their states, and the reason is shown
        paywalled: as suspended
        unavailable: as suspended
    """

    ACTIVE = "active"
    SUSPENDED = "suspended"
    PAYWALLED = "paywalled"
    UNAVAILABLE = "unavailable"


class WorkspaceMode(StrEnum):
    """Where a workspace's messages and calls go.

    Meanings:
        sandbox: to the simulators, whatever carrier or provider is named
        live: to real providers; a campaign whose provider has no account does not start
    """

    SANDBOX = "sandbox"
    LIVE = "live"
