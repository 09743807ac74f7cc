"""The decision trail: what happened to each contact, when, why, and by which rule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, Self

import attrs

from outreach.models.hours import PlaceHours
from outreach.models.states import RecipientStatus

HeldBackRule = Literal["contact_hours", "frequency_cap", "unclear_reply"]
"""Why a contact is not contacted at its turn, but later; `outreach.rules.holding` has the rules."""

ZoneSource = Literal["own", "zip", "state", "number"]
"""What tells a contact's time zones: its own one, its ZIP code, its state, or its number; the first that is known."""


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
        workspace: The workspace was suspended, may work again, has other rules of contact (the reason), or was paused
            as a whole (`stop`).
        held: The contact waits, until when. Repeated holds for one reason are one step: `repeats` says how often,
            `until` is the last. With the campaign's state: everybody waits, for its hours, a holiday, or a provider's
            throttle of 5 seconds or more.
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
    WORKSPACE = "workspace"
    HELD = "held"
    INTENT = "intent"
    OUTCOME = "outcome"
    REPORTED = "reported"
    CALL_ENDED = "call_ended"
    ENDED = "ended"


UNCLEAR: Final = "unclear"
"""Reason of an inbound message that has a word of opting out but is not a keyword."""


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
    """What happened to one contact of a campaign, and why.

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
        zone_source: What tells them; None if nothing does.
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
