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
    """The transitions of a campaign, by an operator or by the engine."""

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
    """The state of a campaign's recipient (docs/states.md#recipients)."""

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

    `given_up` is an unknown one that an operator let be retried: its outcome stays unknown, beside a later dispatch.
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
    """Whether a workspace may send (docs/interface.md#5)."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    PAYWALLED = "paywalled"
    UNAVAILABLE = "unavailable"


class WorkspaceMode(StrEnum):
    """Where a workspace's messages and calls go."""

    SANDBOX = "sandbox"
    LIVE = "live"
