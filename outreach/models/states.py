"""The states of campaigns, recipients, dispatches, calls and messages, with one table of transitions for each.

A transition that a table lacks raises `IllegalTransition`. Nothing else in the package decides whether one is legal.
The decision trail has what happened to each contact, when, why, and by which rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal, Self

import attrs

from outreach.errors import IllegalTransition
from outreach.models.settings import PlaceHours


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
        unschedule: an operator takes it back, or its approval ends (docs/users.md#approval-of-starts); of a paused one,
            only that, and only before it has begun
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


UNSTARTED_STATUSES: Final = frozenset({CampaignStatus.DRAFT, CampaignStatus.READY})
"""Nothing of it is sent before a person starts it."""

APPROVAL_ENDED: Final = "approval_ended"
"""Detail of a move: what was approved has changed before it began."""

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
        (_S.PAUSED, _M.UNSCHEDULE): _S.READY,
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
"""The advice to a person who wants to pause or cancel a completed campaign."""


_ASKED_FOR: Final = (_M.START, _M.UNSCHEDULE, _M.PAUSE, _M.RESUME, _M.CANCEL)


_NOT_ASKED_FOR: Final = frozenset({(_S.SCHEDULED, _M.START), (_S.PAUSED, _M.UNSCHEDULE)})


def operator_actions(status: CampaignStatus) -> tuple[CampaignAction, ...]:
    """Return the transitions that an operator can request; the clock or the campaign's setup causes the others.

    A scheduled campaign is started by the clock alone, and only the end of its approval takes a paused one back.
    """
    return tuple(
        move for move in _ASKED_FOR if (status, move) in CAMPAIGN_TRANSITIONS and (status, move) not in _NOT_ASKED_FOR
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
"""No request is on its way: closed at once when the campaign is cancelled or expires."""

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


HeldBackRule = Literal["contact_hours", "frequency_cap", "unclear_reply"]
"""Why a contact is not contacted at its turn, but later; `outreach.rules.deciding` has the rules."""

ZoneSource = Literal["own", "zip", "state", "number"]
"""The source of a contact's time zones: its own one, its ZIP code, its state or its number, the first that is known."""


class TrailRule(StrEnum):
    """The rule that decided a step: a closed list, whose names do not change.

    Attributes:
        text: What the rule says, and where it comes from; `docs/reference/trail.md` has all of them.
    """

    text: str

    def __new__(cls, name: str, text: str) -> Self:
        """Return a rule with its text."""
        rule = str.__new__(cls, name)
        rule._value_ = name
        rule.text = text
        return rule

    LOAD = "load", "A contact becomes a recipient with its campaign, or when it is added (docs/rules.md#loading)."
    DUPLICATE = (
        "duplicate",
        "A number that occurs twice in a campaign is contacted once (docs/interface.md#duplicates).",
    )
    INVALID_NUMBER = (
        "invalid_number",
        "An invalid number is never passed to a carrier (docs/interface.md#invalid-numbers).",
    )
    REGISTER = (
        "register",
        "A number on the unsubscribe register is not contacted (docs/interface.md#register; 47 CFR 64.1200(a)(10)).",
    )
    WEBHOOK = (
        "webhook",
        "An endpoint that answers 410, or takes nothing for three days, is disabled (docs/webhooks.md#webhooks).",
    )
    UNREACHABLE = (
        "unreachable",
        "A number that a provider has reported as unreachable is left out, if the workspace says so "
        "(docs/rules.md#unreachable-numbers).",
    )
    SCHEDULE = (
        "schedule",
        "A scheduled campaign starts by the clock; one that missed its start is paused (docs/states.md#campaigns).",
    )
    BUSINESS_HOURS = "business_hours", "A campaign contacts nobody outside its business hours (docs/interface.md#2.2)."
    HOLIDAYS = "holidays", "A campaign contacts nobody on its holidays (docs/interface.md#2.2)."
    CONTACT_HOURS = (
        "contact_hours",
        "Nobody is contacted before 8 or after 21, or outside narrower hours, in any time zone of the contact "
        "(docs/rules.md#contact-hours; 47 CFR 64.1200(c)(1)).",
    )
    FREQUENCY_CAP = (
        "frequency_cap",
        "At most so many requests go to a number in 24 hours (docs/rules.md#frequency-cap).",
    )
    PACE = "pace", "Each message takes a slot of its campaign's rate, and of its sending number's (docs/rules.md#pace)."
    CONCURRENCY = (
        "concurrency",
        "A call takes one of the campaign's `batch_concurrency` places (docs/rules.md#concurrency).",
    )
    RENDERING = "rendering", "An empty text is not sent (docs/rules.md#rendering)."
    SEGMENT_CAP = "segment_cap", "A text over the segment cap is not sent, and never cut (docs/rules.md#rendering)."
    AGENT = "agent", "A calling campaign needs an agent that may place calls (docs/interface.md#campaigns)."
    FLOW = "flow", "The steps of an automation flow follow each other (docs/rules.md#flows)."
    VALID_UNTIL = (
        "valid_until",
        "No request starts after its intent's `valid_until` or its worker's lease (docs/delivery-contract.md#rule-4).",
    )
    STALE = (
        "stale",
        "A single call or message that could not be dispatched for 10 minutes is canceled "
        "(docs/delivery-contract.md#rule-14).",
    )
    STOP = "stop", "After a stop has committed, no request starts (docs/delivery-contract.md#rule-3 and #rule-4)."
    ONCE = (
        "once",
        "A request is sent once; without a response its outcome is unknown (docs/delivery-contract.md#rule-5).",
    )
    DEFERRAL = (
        "deferral",
        "Deferral is not failure: no attempt is spent, the next try backs off (docs/delivery-contract.md#rule-7).",
    )
    PROVIDER_THROTTLE = (
        "provider_throttle",
        "While a provider throttles a workspace, nothing is sent to it (docs/delivery-contract.md#rule-7).",
    )
    PROVIDER_ANSWER = "provider_answer", "The provider's response to the request (docs/delivery-contract.md#rule-5)."
    PROVIDER_REPORT = (
        "provider_report",
        "The provider's later report on an accepted request (docs/delivery-contract.md#rule-8).",
    )
    RECEIPT_WAIT = (
        "receipt_wait",
        "An accepted message whose receipt does not come in 4 hours counts as done "
        "(docs/delivery-contract.md#rule-13).",
    )
    RECONCILIATION = (
        "reconciliation",
        "An unknown request is looked up at its provider until there is evidence, or a deadline "
        "(docs/delivery-contract.md#rule-6).",
    )
    CALL_SILENCE = (
        "call_silence",
        "A placed call without a report for 4 hours ends as unconfirmed (docs/delivery-contract.md#rule-6).",
    )
    RETRY_BUDGET = (
        "retry_budget",
        "A temporary failure is retried while attempts are left; then it is final (docs/rules.md#retry).",
    )
    DOUBLE_DIAL = (
        "double_dial",
        "A second call follows a known no answer within 10 seconds, or is dropped, never postponed "
        "(docs/rules.md#double-dial).",
    )
    ERROR_BUDGET = (
        "error_budget",
        "Too many failures that are not the contacts' pause the campaign (docs/rules.md#error-budget).",
    )
    COPIED_FILE = (
        "copied_file",
        "A copied or restored database does not start sending (docs/delivery-contract.md#rule-10).",
    )
    WORKSPACE = "workspace", "A workspace that is not active sends nothing (docs/interface.md#5)."
    OPERATOR = "operator", "A person decided it, by the library or the command line (docs/states.md#campaigns)."
    CANCELLATION = (
        "cancellation",
        "Open recipients of a cancelled campaign are not contacted (docs/states.md#campaigns).",
    )
    EXPIRY = "expiry", "Open recipients of an expired campaign are not contacted (docs/states.md#campaigns)."
    LEDGER = "ledger", "A campaign is complete when its ledger has nothing open (docs/states.md#campaigns)."


class TrailStepKind(StrEnum):
    """The kind of a step; `loaded`, `left_out` and `intent` are derived from the ledger, not written to the trail.

    Meanings:
        loaded: The contact got its place in the campaign.
        left_out: The number was on the register when the campaign was created. Contacts that were left out are not
            stored, so it may not have been supplied.
        opted_out: The number came onto the register.
        opted_in: The number was taken off the register, by its START or by a person.
        replied: The contact wrote back, between the campaign's creation and the contact's end; `unclear` where a
            person has to read whether it is an opt-out. A flow that stops for it shows it by its end.
        campaign: The campaign was started, paused, resumed, cancelled, or has expired.
        schedule: A run of a schedule was started, or was not (the reason); `until` is the time that it was planned for.
        webhook: A webhook endpoint was disabled.
        workspace: The workspace was suspended, may work again, has other rules of contact (the reason), or was paused
            as a whole (`stop`).
        held: The contact waits, until when. Repeated holds for one reason are one step: `repeats` says how often,
            `until` is the last. With the campaign's state: everybody waits, for its hours, a holiday, or a provider's
            throttle of 5 seconds or more. An event alone where a number is held until a person has read its message.
        intent: A request was committed, before it was sent. `until` is its slot: it starts no earlier.
        outcome: The outcome of the request.
        reported: The provider's later report: sent, delivered, failed; ringing, in progress.
        call_ended: The call has ended.
        ended: The contact has ended. A later report may change the end.
    """

    LOADED = "loaded"
    LEFT_OUT = "left_out"
    OPTED_OUT = "opted_out"
    OPTED_IN = "opted_in"
    REPLIED = "replied"
    CAMPAIGN = "campaign"
    SCHEDULE = "schedule"
    WEBHOOK = "webhook"
    WORKSPACE = "workspace"
    HELD = "held"
    INTENT = "intent"
    OUTCOME = "outcome"
    REPORTED = "reported"
    CALL_ENDED = "call_ended"
    ENDED = "ended"


UNCLEAR: Final = "unclear"
"""Reason of an inbound message that has a word of opting out but is not a keyword; source of its number's entry."""


@attrs.frozen(kw_only=True)
class TrailEntry:
    """One entry of the trail, for what the ledger's other rows do not keep.

    Attributes:
        number: Position in the database's trail; assigned by the storage, never twice.
        state: The resulting state of the recipient, dispatch, message, call, campaign or workspace.
        reason: Why; None if there is nothing to say.
        campaign_id: The campaign; None outside campaigns.
        position: The recipient; None for a campaign as a whole.
        message_id: The single or inbound message.
        step: Index of the flow's step.
        due_at: Until when it postpones, if it does.
        repeats: How often it was decided again; `due_at` is then that of the last time.
        actor: Who did it, as in the audit trail; None for the engine.
        phone: E.164, for opt-outs, opt-ins and inbound messages; else None.
        schedule_id: The schedule of a run; else None.
        webhook_id: The webhook endpoint; else None.
    """

    number: int = 0
    at: datetime
    workspace_id: str
    what: TrailStepKind
    rule: TrailRule
    state: str | None = None
    reason: str | None = None
    campaign_id: str | None = None
    position: int | None = None
    call_id: str | None = None
    message_id: str | None = None
    dispatch_id: str | None = None
    step: int | None = None
    attempt: int | None = None
    leg: int | None = None
    due_at: datetime | None = None
    repeats: int = 0
    actor: str | None = None
    phone: str | None = None
    schedule_id: str | None = None
    webhook_id: str | None = None


@attrs.frozen(kw_only=True)
class TrailStep:
    """One step in a contact's history.

    Attributes:
        rule: The rule that decided.
        state: The resulting state of the recipient, dispatch, message, call, campaign or workspace.
        reason: Why; None if there is nothing to say.
        until: Until when it postpones; for an intent: its request starts no earlier.
        step: Index of the flow's step, if any.
        repeats: How often it was decided again in the same way; `until` is that of the last time.
        actor: Who did it; None for the engine.
    """

    at: datetime
    what: TrailStepKind
    rule: TrailRule
    state: str | None = None
    reason: str | None = None
    until: datetime | None = None
    dispatch_id: str | None = None
    call_id: str | None = None
    step: int | None = None
    attempt: int | None = None
    leg: int | None = None
    repeats: int = 0
    actor: str | None = None


@attrs.frozen(kw_only=True)
class ContactHistory:
    """The history of one contact of a campaign, with the reasons.

    Attributes:
        position: Place in the campaign's list; None for an excluded number.
        phone_number: As supplied; for an excluded number: as requested.
        phone: E.164; None for an invalid number.
        status: Its state; None for an excluded number.
        reason: Why it waits or how it ended.
        due_at: When a waiting recipient is decided again.
        steps: In the order in which they happened.
        external_id: The application's own name of the contact, if any.
        time_zones: The time zones that the contact hours go by; empty if none is known, or after an erasure.
        zone_source: Their source; None without one.
        narrower_hours: The hours of its country and states that the workspace has now.
    """

    campaign_id: str
    position: int | None
    phone_number: str
    phone: str | None
    status: RecipientStatus | None
    reason: str | None
    due_at: datetime | None
    steps: Sequence[TrailStep]
    external_id: str | None = None
    time_zones: Sequence[str] = ()
    zone_source: ZoneSource | None = None
    narrower_hours: Sequence[PlaceHours] = ()
