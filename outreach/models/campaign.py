"""Campaigns (docs/interface.md#2.2), and their contacts: as supplied, as prepared, as stored."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypedDict, get_args

import attrs

from outreach.core.clock import is_contact_zone
from outreach.errors import Problem
from outreach.models.audience import AudienceCounts, LeaveOut
from outreach.models.base import (
    UNSET,
    CarrierName,
    Channel,
    CliMode,
    ScheduleType,
    SmsMessageSource,
    SmsMode,
    Unset,
)
from outreach.models.fields import Checked, ListOf, OneOf, Refused, Text, bounded, ruled, sized, zone
from outreach.models.metadata import METADATA
from outreach.models.settings import DEFAULT_CONCURRENCY, BusinessHours, HolidayCalendar
from outreach.models.states import OPEN_RECIPIENT_STATUSES, TERMINAL_CAMPAIGN_STATUSES, CampaignStatus, RecipientStatus
from outreach.models.text_warning import TextWarning

MAX_EXTERNAL_ID: Final = 255

_ZONE_NAME: Final = Text(0, 64)


def own_zone(value: Any) -> str:
    """Return the name of a contact's time zone; raise `Refused`."""
    name = zone(_ZONE_NAME(value))
    if not is_contact_zone(name):
        from outreach.core.meant import did_you_mean, zones_like

        meant = did_you_mean(zones_like(name))
        raise Refused(f"has no summer time: use the name of a place, such as America/New_York{meant}")
    return name


@attrs.frozen(kw_only=True)
class NewRecipient:
    """A contact as supplied (docs/interface.md#2.3).

    It does not check itself, because a campaign may have hundreds of thousands: its reader does.

    Attributes:
        custom_variables: Any JSON values; the keys are template variables.
        external_id: The application's own name of the contact, 1 to 255 characters; need not be unique.
        time_zone: Its own time zone, such as `America/Denver`; it wins over what follows.
        zip_code: Its ZIP code in the United States; any other text says nothing.
        state: Its state there, as a code or a name; any other text says nothing. The zones of the number come last.
    """

    phone_number: str = ruled(Text(1))
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    company: str | None = None
    custom_variables: Mapping[str, Any] = attrs.field(factory=dict)
    external_id: str | None = sized(1, MAX_EXTERNAL_ID, default=None)
    time_zone: str | None = ruled(own_zone, default=None)
    zip_code: str | None = None
    state: str | None = None


@attrs.frozen(kw_only=True)
class RecipientSkip(Checked):
    """Why a person leaves a contact out of a campaign.

    Attributes:
        reason: In the person's words; kept in the audit trail.
    """

    reason: str | None = sized(1, 200, default=None)


class PreparedRecipient(NamedTuple):
    """A contact ready to be written; a tuple, because hundreds of thousands travel between processes.

    Attributes:
        phone_number: As supplied.
        phone: E.164; None for an invalid number.
        custom_variables: Compact JSON object; None for an empty one.
        external_id: The application's own name of the contact, if any.
        time_zone: Its own time zone, if any.
        us_place: Its place in the United States: the first three digits of its ZIP code, or else its state's code.
        caller_id: The number of a sender pool that sent to it in an earlier campaign, if this one follows that up.
    """

    phone_number: str
    phone: str | None
    first_name: str | None
    last_name: str | None
    email: str | None
    company: str | None
    custom_variables: str | None
    external_id: str | None = None
    time_zone: str | None = None
    us_place: str | None = None
    caller_id: str | None = None


@attrs.frozen(kw_only=True)
class Recipient:
    """A contact of a campaign in the ledger.

    Attributes:
        position: Place in the campaign's list, from 0.
        phone_number: As supplied.
        phone: E.164; None for an invalid number.
        custom_variables: JSON values by name.
        status: Its state.
        reason: Why it waits or how it ended; None if there is nothing to say.
        due_at: When a waiting recipient is decided again.
        step: Index of the flow's next step; 0 outside flows.
        attempts: Attempts spent on this step, without deferred and withdrawn dispatches.
        tries: Dispatches opened for this attempt, deferred ones included; the backoff grows with it.
        leg: The next call of a double dial, 1 or 2; 1 outside double dials.
        caller_id: Its number of the caller-ID group or sender pool, or the one that a Messaging Service chose, if any.
        dispatched: Whether at least one request was sent, for any step.
        successful: SMS: accepted and not failed. Call: answered and marked positive.
        ended_at: When it ended.
        external_id: The application's own name of the contact, if any.
        added_at: When it was added to a campaign that existed; None if it was loaded with its campaign.
        time_zone: Its own time zone, if any.
        us_place: Its place in the United States: the first three digits of its ZIP code, or else its state's code.
    """

    campaign_id: str
    position: int
    phone_number: str
    phone: str | None
    first_name: str | None
    last_name: str | None
    email: str | None
    company: str | None
    custom_variables: Mapping[str, Any]
    status: RecipientStatus
    reason: str | None = None
    due_at: datetime | None = None
    step: int = 0
    attempts: int = 0
    tries: int = 0
    leg: int = 1
    caller_id: str | None = None
    dispatched: bool = False
    successful: bool = False
    ended_at: datetime | None = None
    external_id: str | None = None
    added_at: datetime | None = None
    time_zone: str | None = None
    us_place: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.status in OPEN_RECIPIENT_STATUSES


@attrs.frozen(kw_only=True)
class RecipientCount:
    """The number of a campaign's recipients in one state for one reason."""

    status: RecipientStatus
    reason: str | None
    count: int


PauseReason = Literal[
    "operator",
    "missed_start",
    "agent_unavailable",
    "provider_auth",
    "provider_funds",
    "error_budget",
    "moved",
    "restored",
]
"""Why a campaign is paused; an operator resumes it:

    operator: an operator paused it
    missed_start: nothing dispatched at its start, nor within the hour after
    agent_unavailable: the agent of a calling campaign was switched off, or may no longer call out
    provider_auth: the provider refuses the account: all its campaigns pause
    provider_funds: the provider account is out of funds: all its campaigns pause
    error_budget: too many failures that are not the contacts'
    moved: the database is a copy, used on another machine or path
    restored: the database was restored, or its server has taken over
"""


MAX_POOL: Final = 100
"""The most numbers of a sender pool."""

_POOLED: Final = Text(
    pattern=re.compile(r"[+(0-9][0-9 ().-]{2,39}"),
    meaning="must be a phone number; a name or a Messaging Service is a from_number of its own",
)


@attrs.frozen(kw_only=True)
class CallerIdAllocation:
    """One number of a caller-ID group and how many recipients in turn it gets."""

    number_id: str = ruled(Text(1))
    phone: str
    count: int = bounded(1, 1_000_000)


@attrs.frozen(kw_only=True, cache_hash=True)
class Counters:
    """The counters of a campaign; they always equal a recount of its recipients (docs/delivery-contract.md#rule-9).

    Attributes:
        total: Recipients loaded.
        pending: Never attempted and not ended.
        completed: Ended after at least one dispatch.
        successful: SMS accepted and not failed; calls answered and marked positive.
        failed: Recipients in state failed.
        open: Not ended; at zero an active campaign is complete.
    """

    total: int = 0
    pending: int = 0
    completed: int = 0
    successful: int = 0
    failed: int = 0
    open: int = 0

    def __add__(self, other: Counters) -> Counters:
        """Return the sum, field by field."""
        return Counters(
            total=self.total + other.total,
            pending=self.pending + other.pending,
            completed=self.completed + other.completed,
            successful=self.successful + other.successful,
            failed=self.failed + other.failed,
            open=self.open + other.open,
        )

    def __sub__(self, other: Counters) -> Counters:
        """Return the difference, field by field."""
        return Counters(
            total=self.total - other.total,
            pending=self.pending - other.pending,
            completed=self.completed - other.completed,
            successful=self.successful - other.successful,
            failed=self.failed - other.failed,
            open=self.open - other.open,
        )


def contribution(status: RecipientStatus, *, attempts: int, dispatched: bool, successful: bool) -> Counters:
    """Return what one recipient adds to its campaign's counters.

    The only definition of the counters: each change of a recipient moves them by the difference of two contributions.
    """
    return _contribution(status, dispatched or attempts > 0, dispatched, successful)


@cache
def _contribution(status: RecipientStatus, attempted: bool, dispatched: bool, successful: bool) -> Counters:
    is_open = status in OPEN_RECIPIENT_STATUSES
    return Counters(
        total=1,
        pending=int(is_open and not attempted),
        completed=int(not is_open and dispatched),
        successful=int(successful),
        failed=int(status is RecipientStatus.FAILED),
        open=int(is_open),
    )


@attrs.frozen(kw_only=True)
class AgentSnapshot:
    """A campaign's agent, in brief."""

    id: str
    name: str
    provider: str
    is_active: bool


@attrs.frozen(kw_only=True)
class Campaign:
    """A stored campaign.

    Attributes:
        pause_reason: Why it is paused; None while it is not.
        retry_voicemail: Whether a voicemail that got the agent's message is called again; None for messages.
        replace_characters: Whether typographic characters are sent in their plain forms; None for calls.
        from_number: The sending number, or a Messaging Service of the carrier; the first one of several.
        from_numbers: The numbers of a sender pool; empty without one. Each contact gets all its messages from one.
        stay_open: Whether it completes only once it is closed, so that contacts can be added while nothing is open.
        external_id: The application's own name of the campaign; need not be unique.
        metadata: What the application attached to it.
        revision: Increases with each change of state or content, not of counters.
        changed_by: Who has created it, changed it or added contacts last, as the audit trail names it; None if an
            earlier version did.
        agent: Snapshot of the assigned agent, if any.
        variable_names: The names of its contacts' custom variables; None if there are too many, or if an earlier
            version loaded them.
        archived_at: When it was put away, so that lists hide it; None if it was not.
        erased_at: When its contacts and texts were erased; None if they are there.
    """

    id: str
    workspace_id: str
    channel: Channel
    name: str
    description: str | None = None
    status: CampaignStatus
    pause_reason: PauseReason | None = None
    agent_id: str | None = None
    schedule_type: ScheduleType = "immediate"
    scheduled_start_at: datetime | None = None
    scheduled_expires_at: datetime | None = None
    business_hours: BusinessHours | None = None
    holidays: HolidayCalendar | None = None
    batch_concurrency: int = DEFAULT_CONCURRENCY
    trunk_id: str | None = None
    cli_mode: CliMode | None = None
    cli_group: tuple[CallerIdAllocation, ...] | None = None
    ivr_enabled: bool | None = None
    call_screen_enabled: bool | None = None
    double_dial: bool | None = None
    retry_voicemail: bool | None = None
    csv_column_headers: tuple[str, ...] = ()
    message_mode: SmsMode | None = None
    message_source: SmsMessageSource | None = None
    body: str | None = None
    flow_id: str | None = None
    carrier: CarrierName | None = None
    from_number: str | None = None
    from_numbers: tuple[str, ...] = ()
    rate_per_minute: int | None = None
    replace_characters: bool | None = None
    stay_open: bool = False
    external_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    variable_names: tuple[str, ...] | None = None
    counters: Counters = Counters()
    revision: int = 0
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    archived_at: datetime | None = None
    erased_at: datetime | None = None
    changed_by: str | None = None
    agent: AgentSnapshot | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether it can never change its state again."""
        return self.status in TERMINAL_CAMPAIGN_STATUSES

    @property
    def senders(self) -> tuple[str, ...]:
        """The senders of its messages, each as it was supplied: the pool, or the one number, name or service."""
        return self.from_numbers or (() if self.from_number is None else (self.from_number,))

    @property
    def timezone(self) -> str:
        """The IANA zone of its times: that of its business hours, observed or not; else UTC."""
        return (self.business_hours.timezone if self.business_hours is not None else "") or "UTC"

    def effective_status(self, now: datetime) -> CampaignStatus:
        """Return the user-visible status (docs/interface.md#3, rule 1); expired means now >= expiry."""
        expiry = self.scheduled_expires_at
        if not self.is_terminal and expiry is not None and now >= expiry:
            return CampaignStatus.EXPIRED
        return self.status


class CampaignFilters(TypedDict, total=False):
    """Which campaigns a list has: those for which all filters hold; None is no filter.

    Attributes:
        channel: Only campaigns of this channel.
        status: Only campaigns with this raw status.
        search: Part of the name, case-insensitive; an empty one is no filter.
        external_id: Only campaigns that the application knows by this id.
        metadata: Only campaigns with this pair in their metadata, such as `team=7` (`models.metadata.metadata_pair`).
        archived: True returns only archived campaigns, False leaves them out.
    """

    channel: Channel | None
    status: CampaignStatus | None
    search: str | None
    external_id: str | None
    metadata: str | None
    archived: bool | None


@attrs.frozen(kw_only=True)
class NewSmsCampaign(Checked):
    """An SMS campaign to create, without its contacts (docs/interface.md#4.3).

    `from_numbers`: a sender pool, instead of `from_number` (docs/rules.md#sender-pools).
    `replace_characters`: whether typographic characters are sent in their plain forms (docs/preflight.md#characters).
    `stay_open`: whether it completes only once it is closed (docs/states.md#campaigns).
    `external_id`, `metadata`: the application's own (docs/embedding.md#metadata).
    """

    name: str = sized(1, 100)
    description: str | None = sized(0, 500, default=None)
    message_mode: SmsMode = "one_way"
    message_source: SmsMessageSource = "custom"
    body: str | None = sized(0, 1600, default=None)
    flow_id: str | None = None
    carrier: CarrierName | None = None
    from_number: str | None = None
    from_numbers: Sequence[str] = ruled(ListOf(_POOLED, maximum=MAX_POOL), default=())
    rate_per_minute: int = bounded(1, 600, default=60)
    replace_characters: bool = False
    stay_open: bool = False
    external_id: str | None = sized(1, MAX_EXTERNAL_ID, default=None)
    metadata: Mapping[str, Any] | None = ruled(METADATA, default=None)
    csv_column_headers: Sequence[str] = ()
    schedule_type: ScheduleType = "immediate"
    scheduled_start_at: datetime | None = None
    scheduled_expires_at: datetime | None = None
    business_hours: BusinessHours | None = None
    holidays: HolidayCalendar | None = None

    def _problems(self) -> Sequence[Problem]:
        details = []
        if self.message_source == "custom" and self.body is None:
            details.append(Problem(path="body", message="is required when message_source is custom"))
        if self.message_source == "flow" and self.flow_id is None:
            details.append(Problem(path="flow_id", message="is required when message_source is flow"))
        return [*details, *_pool_problems(self), *schedule_problems(self)]


@attrs.frozen(kw_only=True)
class NewCallCampaign(Checked):
    """A calling campaign to create, without its contacts (docs/interface.md#campaigns).

    `retry_voicemail`: whether a voicemail that got the agent's message is called again (docs/rules.md#voicemail).
    `stay_open`: whether it completes only once it is closed (docs/states.md#campaigns).
    `external_id`, `metadata`: the application's own (docs/embedding.md#metadata).
    """

    name: str = sized(1, 100)
    agent_id: str
    description: str | None = sized(0, 500, default=None)
    csv_column_headers: Sequence[str] = ()
    schedule_type: ScheduleType = "immediate"
    scheduled_start_at: datetime | None = None
    scheduled_expires_at: datetime | None = None
    business_hours: BusinessHours | None = None
    holidays: HolidayCalendar | None = None
    batch_concurrency: int | None = bounded(1, 40, default=None)
    trunk_id: str | None = None
    cli_mode: CliMode = "default"
    cli_group: Sequence[CallerIdAllocation] | None = None
    ivr_enabled: bool = False
    call_screen_enabled: bool = False
    double_dial: bool = False
    retry_voicemail: bool = False
    stay_open: bool = False
    external_id: str | None = sized(1, MAX_EXTERNAL_ID, default=None)
    metadata: Mapping[str, Any] | None = ruled(METADATA, default=None)

    def _problems(self) -> Sequence[Problem]:
        details = []
        if self.cli_mode == "group" and not self.cli_group:
            details.append(Problem(path="cli_group", message="must have at least 1 element when cli_mode is group"))
        return details + schedule_problems(self)


def _pool_problems(campaign: NewSmsCampaign | CampaignUpdate) -> Sequence[Problem]:
    pool = () if isinstance(campaign.from_numbers, Unset) else campaign.from_numbers
    if not pool:
        return ()
    found = []
    if isinstance(campaign.from_number, str) and campaign.from_number.strip() not in {"", pool[0]}:
        words = "is the first of from_numbers: give from_number alone, or from_numbers alone"
        found.append(Problem(path="from_number", message=words))
    for index, one in enumerate(pool):
        if one in pool[:index]:
            found.append(Problem(path=f"from_numbers[{index}]", message="is in the pool already"))
    return found


def schedule_problems(campaign: NewSmsCampaign | NewCallCampaign | Campaign) -> list[Problem]:
    """Return what is wrong with the schedule of a campaign."""
    start, expiry = campaign.scheduled_start_at, campaign.scheduled_expires_at
    if campaign.schedule_type == "immediate":
        words = "has no effect with schedule_type='immediate', the default: set schedule_type='scheduled'"
        return [] if start is None else [Problem(path="scheduled_start_at", message=words)]
    if start is None:
        return [Problem(path="scheduled_start_at", message="is required when schedule_type is scheduled")]
    if expiry is not None and expiry <= start:
        return [Problem(path="scheduled_expires_at", message="must be later than scheduled_start_at")]
    return []


@attrs.frozen(kw_only=True)
class CampaignCreated:
    """A new campaign, and the result of loading its contacts.

    Attributes:
        opted_out_excluded: Contacts that were dropped because they are unsubscribed.
        missing: The parts that a draft lacks to be ready, each with its field; empty for a ready one.
        unknown_placeholders: Names in its text without a value: not a field of a contact, a variable of any of these
            contacts, or a variable of the workspace. A blank would be sent for them.
        text_warnings: Parts of its text that may be meant as placeholders, and are sent as they are.
        audience: How its list overlaps with other campaigns, and how many of it were left out before the register was
            looked at; None for a creation without `leave_out`.
    """

    campaign: Campaign
    opted_out_excluded: int
    missing: tuple[Problem, ...] = ()
    unknown_placeholders: tuple[str, ...] = ()
    text_warnings: tuple[TextWarning, ...] = ()
    audience: AudienceCounts | None = None


@attrs.frozen(kw_only=True)
class RecipientsAdded:
    """The result of adding contacts to a campaign.

    Attributes:
        campaign_id: The campaign.
        added: Contacts that it got, skipped ones included.
        skipped: Those of them who are not contacted: duplicates, also of contacts that the campaign had, and invalid
            numbers.
        opted_out_excluded: Contacts that were dropped because they are unsubscribed.
        audience: How the list overlaps with other campaigns, and how many of it were left out before the register was
            looked at; None without `leave_out`.
    """

    campaign_id: str
    added: int
    skipped: int
    opted_out_excluded: int
    audience: AudienceCounts | None = None


@attrs.frozen(kw_only=True)
class CampaignUpdate(Checked):
    """The fields of a campaign to change; `UNSET` leaves a field as it is.

    None clears description, times, hours and holidays, which a campaign does not need. It also clears the message, the
    carrier, the sending number, the flow and the agent of one that has not started: without them it becomes a draft.

    Once it has started, the changes apply to what has not been sent yet. Its carrier, sending number, flow, agent and
    start stay as they are.

    Attributes:
        from_number: Sends from this number from then on, instead of a pool.
        from_numbers: Sends from this pool from then on; empty for the first of it alone.
        body: Sends this text from then on, instead of a flow (`sms_message_source` becomes `custom`).
        flow_id: Runs this flow from then on (`sms_message_source` becomes `flow`).
        scheduled_start_at: When the started campaign begins (`schedule_type` becomes `scheduled`); None for at once
            (`immediate`).
        batch_concurrency: Calls at a time, 1 to 40; of calling campaigns only.
        cli_group: Calls from these numbers in turn (`cli_mode` becomes `group`); none, or None, for the usual number
            (`default`).
        retry_voicemail: Whether a voicemail that got the agent's message is called again; of calling campaigns only.
        stay_open: Whether it completes only once it is closed (`close`).
    """

    _rules_from: ClassVar = (NewSmsCampaign, NewCallCampaign)

    name: str | Unset = UNSET
    description: str | Unset | None = UNSET
    body: str | Unset | None = UNSET
    carrier: CarrierName | Unset | None = UNSET
    from_number: str | Unset | None = sized(0, 255, default=UNSET)
    from_numbers: Sequence[str] | Unset = UNSET
    rate_per_minute: int | Unset = UNSET
    replace_characters: bool | Unset = UNSET
    stay_open: bool | Unset = UNSET
    flow_id: str | Unset | None = UNSET
    agent_id: str | Unset | None = UNSET
    scheduled_start_at: datetime | Unset | None = UNSET
    scheduled_expires_at: datetime | Unset | None = UNSET
    business_hours: BusinessHours | Unset | None = UNSET
    holidays: HolidayCalendar | Unset | None = UNSET
    batch_concurrency: int | Unset = UNSET
    cli_group: Sequence[CallerIdAllocation] | Unset | None = UNSET
    retry_voicemail: bool | Unset = UNSET

    def _problems(self) -> Sequence[Problem]:
        if isinstance(self.body, str) and isinstance(self.flow_id, str):
            return (Problem(path="flow_id", message="excludes body: a campaign sends a text or runs a flow"),)
        return _pool_problems(self)


FollowUpExclusion = Literal["opted_out", "replied", "reached"]
"""Contacts that a follow-up leaves out by itself."""


@attrs.frozen(kw_only=True)
class NewFollowUp(Checked):
    """A follow-up to create.

    Attributes:
        results: States and reasons of the contacts to take, such as `failed`, `no_answer` or `unconfirmed`.
        include: Whom not to leave out.
        name: 1 to 100 characters; None for the earlier name with "(follow-up)".
        body: Another text; None for the same text or flow.
        leave_out: Whom to leave out besides, `include` notwithstanding.
    """

    _rules_from: ClassVar = (NewSmsCampaign,)

    results: Sequence[str] = ruled(ListOf(Text(1, 100), 1, 100))
    include: Collection[FollowUpExclusion] = ruled(ListOf(OneOf(get_args(FollowUpExclusion)), maximum=100), default=())
    name: str | None = None
    body: str | None = None
    leave_out: LeaveOut | None = None


@attrs.frozen(kw_only=True)
class FollowUpCreated:
    """A new campaign of those contacts of an earlier one who had given results.

    Attributes:
        created: The new campaign.
        selected: Contacts of the earlier campaign with these results.
        left_out: How many of them were left out because they had `opted_out`, `replied` or been `reached`, by the first
            of these that applies.
    """

    created: CampaignCreated
    selected: int
    left_out: Mapping[str, int]
