"""Valid models for tests: each function takes the fields that matter to the test and fills in the others."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import attrs

from outreach.models.account import ProviderThrottle, StoredAccount
from outreach.models.approval import Approval, StartFigures
from outreach.models.call import Call
from outreach.models.campaign import Campaign, PreparedRecipient, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.forecast import ForecastHour, KeptForecast
from outreach.models.message import InboundMessage, Message
from outreach.models.reports import CallbackRecord, CallReport, MessageReport
from outreach.models.resources import (
    Agent,
    Flow,
    FlowStep,
    Number,
    Trunk,
)
from outreach.models.schedule import Occurrence, Schedule
from outreach.models.settings import DAYS, BusinessHours, Holiday, HolidayCalendar, TimeWindow
from outreach.models.states import (
    CallStatus,
    CampaignStatus,
    MessageStatus,
    RecipientStatus,
    TrailEntry,
    TrailRule,
    TrailStepKind,
    WorkspaceMode,
    WorkspaceStatus,
)
from outreach.models.subscription import StoredSubscription
from outreach.models.unsubscribe import Unsubscribe
from outreach.models.user import Invitation, Membership, Role, Session, StoredUser
from outreach.models.webhook import Webhook, WebhookAttempt, WebhookCursor, WebhookHold
from outreach.models.work import AuditEntry, CampaignRunState, IdempotencyRecord, Lease, RequestWindow, WorkerLease
from outreach.models.workspace import ApiKey, Workspace

__all__ = [
    "NOW",
    "WORKSPACE_ID",
    "make_account",
    "make_agent",
    "make_approval",
    "make_audit_entry",
    "make_business_hours",
    "make_call",
    "make_call_campaign",
    "make_call_report",
    "make_callback",
    "make_campaign",
    "make_dispatch",
    "make_flow",
    "make_holidays",
    "make_inbound",
    "make_kept_forecast",
    "make_key",
    "make_lease",
    "make_message",
    "make_message_report",
    "make_number",
    "make_occurrence",
    "make_prepared",
    "make_provider_throttle",
    "make_recipient",
    "make_run",
    "make_schedule",
    "make_stored_request",
    "make_subscription",
    "make_trail_entry",
    "make_trunk",
    "make_unsubscribe",
    "make_window",
    "make_worker",
    "make_workspace",
    "new_id",
    "new_phone",
]

NOW: Final = datetime(2026, 3, 2, 9, 30, 15, 123456, tzinfo=UTC)
"""A Monday; the moment at which everything was made, unless a test says otherwise."""

WORKSPACE_ID: Final = "0195554e-0000-7000-8000-00000000cafe"
"""The workspace of everything, unless a test says otherwise."""

_numbers = itertools.count(1)


def new_id() -> str:
    """Return an identifier that this process has not returned yet; identifiers sort in the order of their making."""
    return f"0195554e-0000-7000-9000-{next(_numbers):012x}"


def new_phone() -> str:
    """Return an E.164 number that this process has not returned yet."""
    return f"+1415{next(_numbers):07d}"


def make_workspace(**changes: Any) -> Workspace:
    """Return an active sandbox workspace that may run SMS campaigns; its id is `WORKSPACE_ID`."""
    workspace = Workspace(
        id=WORKSPACE_ID,
        name="Acme",
        mode=WorkspaceMode.SANDBOX,
        status=WorkspaceStatus.ACTIVE,
        sms_campaigns_enabled=True,
        request_limit=600,
        default_region="US",
        revision=0,
        created_at=NOW,
        updated_at=NOW,
    )
    return attrs.evolve(workspace, **changes)


def make_key(**changes: Any) -> ApiKey:
    """Return a key that is not revoked."""
    key_id = new_id()
    key = ApiKey(
        id=key_id,
        workspace_id=WORKSPACE_ID,
        name="default",
        digest=f"digest of {key_id}",
        hint="ok_1234",
        created_at=NOW,
        revoked_at=None,
    )
    return attrs.evolve(key, **changes)


def make_agent(**changes: Any) -> Agent:
    """Return an active outbound agent of the simulator."""
    agent = Agent(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        name="Ada",
        provider="simulator",
        provider_agent_id=None,
        direction="outbound",
        allow_outbound=False,
        is_active=True,
        placeholders=None,
        from_number=None,
        revision=0,
        created_at=NOW,
        updated_at=NOW,
    )
    return attrs.evolve(agent, **changes)


def make_trunk(**changes: Any) -> Trunk:
    """Return a SIP trunk."""
    trunk = Trunk(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        name="Main trunk",
        address="sip.example.com",
        provider_trunk_id=None,
        created_at=NOW,
    )
    return attrs.evolve(trunk, **changes)


def make_number(**changes: Any) -> Number:
    """Return a sending number of twilio."""
    number = Number(
        id=new_id(), workspace_id=WORKSPACE_ID, phone=new_phone(), carrier="twilio", trunk_id=None, created_at=NOW
    )
    return attrs.evolve(number, **changes)


def make_flow(**changes: Any) -> Flow:
    """Return a flow that sends, waits and sends to those who have not replied."""
    steps = (
        FlowStep(kind="send", body="Hello {{first_name}}"),
        FlowStep(kind="wait", wait_minutes=60),
        FlowStep(kind="stop_if_replied"),
        FlowStep(kind="send", body="Are you there?"),
    )
    flow = Flow(id=new_id(), workspace_id=WORKSPACE_ID, name="Reminder", steps=steps, created_at=NOW)
    return attrs.evolve(flow, **changes)


def make_unsubscribe(**changes: Any) -> Unsubscribe:
    """Return a register entry that stops every channel."""
    entry = Unsubscribe(
        workspace_id=WORKSPACE_ID, phone=new_phone(), scope="all", source="operator", evidence=None, created_at=NOW
    )
    return attrs.evolve(entry, **changes)


def make_business_hours(**changes: Any) -> BusinessHours:
    """Return hours from Monday to Friday, 9 to 17 in New York."""
    office = (TimeWindow(start_minute=9 * 60, end_minute=17 * 60),)
    hours = BusinessHours(
        enabled=True,
        timezone="America/New_York",
        schedule=dict.fromkeys(DAYS[:5], office),
        batch_concurrency=10,
    )
    return attrs.evolve(hours, **changes)


def make_holidays(**changes: Any) -> HolidayCalendar:
    """Return a calendar with one holiday that is observed and one that is not."""
    calendar = HolidayCalendar(
        country="US",
        holidays=(
            Holiday(date=date(2026, 12, 25), name="Christmas Day", enabled=True),
            Holiday(date=date(2027, 1, 1), name="", enabled=False),
        ),
    )
    return attrs.evolve(calendar, **changes)


def make_campaign(**changes: Any) -> Campaign:
    """Return an SMS campaign that is ready."""
    campaign = Campaign(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        channel="sms",
        name="Spring offer",
        status=CampaignStatus.READY,
        message_mode="one_way",
        message_source="custom",
        body="Hello {{first_name}}",
        carrier="twilio",
        from_number="+14155550100",
        rate_per_minute=60,
        replace_characters=False,
        created_at=NOW,
        updated_at=NOW,
    )
    return attrs.evolve(campaign, **changes)


def make_call_campaign(**changes: Any) -> Campaign:
    """Return a calling campaign that is ready; give it the `agent_id` of an agent that is there."""
    campaign = Campaign(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        channel="call",
        name="Spring calls",
        status=CampaignStatus.READY,
        cli_mode="default",
        ivr_enabled=False,
        call_screen_enabled=False,
        double_dial=False,
        retry_voicemail=False,
        created_at=NOW,
        updated_at=NOW,
    )
    return attrs.evolve(campaign, **changes)


def make_prepared(**changes: Any) -> PreparedRecipient:
    """Return a contact that is ready to be written, with a number of its own."""
    phone = new_phone()
    contact = PreparedRecipient(
        phone_number=phone,
        phone=phone,
        first_name="Ann",
        last_name=None,
        email=None,
        company=None,
        custom_variables=None,
    )
    return contact._replace(**changes)


def make_recipient(**changes: Any) -> Recipient:
    """Return a pending recipient at position 0 of a campaign of its own."""
    phone = new_phone()
    recipient = Recipient(
        campaign_id=new_id(),
        position=0,
        phone_number=phone,
        phone=phone,
        first_name="Ann",
        last_name=None,
        email=None,
        company=None,
        custom_variables={},
        status=RecipientStatus.PENDING,
    )
    return attrs.evolve(recipient, **changes)


def make_dispatch(**changes: Any) -> Dispatch:
    """Return the intent of an SMS; say what it is for: `campaign_id` and `position`, `message_id` or `call_id`."""
    dispatch = Dispatch(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        channel="sms",
        provider="twilio",
        from_number="+14155550100",
        to=new_phone(),
        body="Hello Ann",
        segments=1,
        slot_at=NOW,
        valid_until=NOW + timedelta(seconds=5),
        epoch=1,
        created_at=NOW,
    )
    return attrs.evolve(dispatch, **changes)


def make_call(**changes: Any) -> Call:
    """Return a queued single call; give it the `agent_id` of an agent that is there."""
    call = Call(
        id=new_id(), workspace_id=WORKSPACE_ID, agent_id=new_id(), provider="simulator", to=new_phone(), created_at=NOW
    )
    return attrs.evolve(call, **changes)


def make_message(**changes: Any) -> Message:
    """Return a queued single message."""
    message = Message(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        to=new_phone(),
        from_number="+14155550100",
        carrier="twilio",
        body="Your code is 1234",
        segments=1,
        status=MessageStatus.QUEUED,
        created_at=NOW,
    )
    return attrs.evolve(message, **changes)


def make_inbound(**changes: Any) -> InboundMessage:
    """Return a reply of a contact."""
    message = InboundMessage(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        from_number=new_phone(),
        to="+14155550100",
        body="Yes, please",
        provider="twilio",
        provider_id=new_id(),
        written_at=NOW,
        received_at=NOW,
    )
    return attrs.evolve(message, **changes)


def make_account(**changes: Any) -> StoredAccount:
    """Return an account at twilio whose credentials cannot be decrypted."""
    account = StoredAccount(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        provider="twilio",
        sealed="sealed",
        replies_to_keywords=True,
        revision=0,
        created_at=NOW,
        updated_at=NOW,
    )
    return attrs.evolve(account, **changes)


def make_subscription(**changes: Any) -> StoredSubscription:
    """Return a named subscription that has read nothing."""
    row = StoredSubscription(name="billing", workspace_id=None, position=0, gap_until=0, created_at=NOW, updated_at=NOW)
    return attrs.evolve(row, **changes)


def make_provider_throttle(**changes: Any) -> ProviderThrottle:
    """Return the first throttle of twilio, for half a minute."""
    throttle = ProviderThrottle(
        workspace_id=WORKSPACE_ID, provider="twilio", since=NOW, until=NOW + timedelta(seconds=30), refusals=1
    )
    return attrs.evolve(throttle, **changes)


def make_callback(**changes: Any) -> CallbackRecord:
    """Return the record of a callback event that changed nothing."""
    record = CallbackRecord(
        workspace_id=WORKSPACE_ID,
        account_id=WORKSPACE_ID,
        event_id=new_id(),
        result="unchanged",
        body=b"{}",
        received_at=NOW,
    )
    return attrs.evolve(record, **changes)


def make_message_report(**changes: Any) -> MessageReport:
    """Return the receipt of a delivered message, with the carrier's identifier only."""
    report = MessageReport(
        workspace_id=WORKSPACE_ID,
        provider="twilio",
        dispatch_id=None,
        provider_id=new_id(),
        status=MessageStatus.DELIVERED,
        at=NOW,
    )
    return attrs.evolve(report, **changes)


def make_call_report(**changes: Any) -> CallReport:
    """Return the end of a call, with the provider's identifier only."""
    report = CallReport(
        workspace_id=WORKSPACE_ID,
        provider="vapi",
        dispatch_id=None,
        provider_id=new_id(),
        status=CallStatus.COMPLETED,
        at=NOW,
    )
    return attrs.evolve(report, **changes)


def make_lease(**changes: Any) -> Lease:
    """Return the first lease of a database without a home."""
    return attrs.evolve(Lease(epoch=1, home=None, renewed_at=NOW), **changes)


def make_kept_forecast(**changes: Any) -> KeptForecast:
    """Return the forecast of a start, with a curve of two steps."""
    forecast = KeptForecast(
        campaign_id=new_id(),
        at=NOW,
        reason="start",
        revision=1,
        starts_at=NOW + timedelta(seconds=1),
        ends_at=None,
        contacts=2,
        requests=3,
        unreached=1,
        held=0,
        expires=True,
        step_hours=2,
        hours=[
            ForecastHour(at=NOW, requests=3, bound_by="pace"),
            ForecastHour(at=NOW + timedelta(hours=2), requests=0, bound_by="holidays"),
        ],
    )
    return attrs.evolve(forecast, **changes)


def make_approval(**changes: Any) -> Approval:
    """Return the approval of the first revision."""
    figures = StartFigures(
        contacts=3,
        contacted=2,
        messages=2,
        segments=4,
        amount=Decimal("0.0316"),
        currency="USD",
        ends_at=NOW + timedelta(hours=1),
    )
    approval = Approval(revision=1, approved_by="user:ann", approved_at=NOW, figures=figures)
    return attrs.evolve(approval, **changes)


def make_worker(**changes: Any) -> WorkerLease:
    """Return the lease of the first worker."""
    lease = WorkerLease(epoch=1, place=1, renewed_at=NOW, until=NOW + timedelta(seconds=15))
    return attrs.evolve(lease, **changes)


def make_run(**changes: Any) -> CampaignRunState:
    """Return the run state of a campaign that has not sent yet."""
    run = CampaignRunState(workspace_id=WORKSPACE_ID, campaign_id=new_id(), owner_epoch=1, next_slot_at=None)
    return attrs.evolve(run, **changes)


def make_window(**changes: Any) -> RequestWindow:
    """Return a window of the request limit with one request."""
    return attrs.evolve(RequestWindow(workspace_id=WORKSPACE_ID, started_at=NOW, count=1), **changes)


def make_stored_request(**changes: Any) -> IdempotencyRecord:
    """Return the idempotency record of a request that still runs."""
    request = IdempotencyRecord(
        workspace_id=WORKSPACE_ID,
        operation="create_call",
        key=new_id(),
        fingerprint="0" * 64,
        token=new_id(),
        answer=None,
        location=None,
        locked_until=NOW + timedelta(seconds=30),
        expires_at=NOW + timedelta(hours=24),
    )
    return attrs.evolve(request, **changes)


def make_audit_entry(**changes: Any) -> AuditEntry:
    """Return the audit entry of a campaign that an operator paused."""
    entry = AuditEntry(at=NOW, workspace_id=WORKSPACE_ID, actor="cli:ann", action="campaign.pause", subject=new_id())
    return attrs.evolve(entry, **changes)


def make_user(**changes: Any) -> StoredUser:
    """Return an enabled user without a password."""
    user_id = new_id()
    user = StoredUser(id=user_id, email=f"{user_id}@acme.example", name="Ann", operator=False, created_at=NOW)
    return attrs.evolve(user, **changes)


def make_membership(**changes: Any) -> Membership:
    """Return the role of an agent."""
    made = Membership(workspace_id=WORKSPACE_ID, user_id=new_id(), role=Role.AGENT, created_at=NOW)
    return attrs.evolve(made, **changes)


def make_session(**changes: Any) -> Session:
    """Return an open session without a second factor."""
    session_id = new_id()
    session = Session(
        id=session_id,
        digest=f"digest of {session_id}",
        user_id=new_id(),
        created_at=NOW,
        seen_at=NOW,
        expires_at=NOW + timedelta(days=30),
        verified_at=NOW,
        address="192.0.2.7",
        agent="Firefox",
        second_factor="none",
    )
    return attrs.evolve(session, **changes)


def make_invitation(**changes: Any) -> Invitation:
    """Return an open invitation to be an agent."""
    invitation_id = new_id()
    invitation = Invitation(
        id=invitation_id,
        digest=f"digest of {invitation_id}",
        kind="invitation",
        email="ben@acme.example",
        workspace_id=WORKSPACE_ID,
        role=Role.AGENT,
        user_id=None,
        made_by="library",
        created_at=NOW,
        expires_at=NOW + timedelta(days=7),
    )
    return attrs.evolve(invitation, **changes)


def make_schedule(**changes: Any) -> Schedule:
    """Return an active schedule that runs each day."""
    schedule = Schedule(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        name="Daily",
        template_id=new_id(),
        audience_id=None,
        rule="FREQ=DAILY",
        zone="UTC",
        starts_on=NOW.date(),
        at="09:00",
        ends_on=None,
        except_dates=(),
        holidays="skip",
        overlap="skip",
        late_hours=None,
        not_again_within_days=None,
        max_cost=None,
        state="active",
        reason=None,
        next_at=NOW,
        run_now_at=None,
        last_at=None,
        blocked=0,
        known_contacts=None,
        revision=1,
        changed_by="library",
        approval=None,
        created_at=NOW,
        updated_at=NOW,
    )
    return attrs.evolve(schedule, **changes)


def make_occurrence(**changes: Any) -> Occurrence:
    """Return a run of a schedule that was started."""
    occurrence = Occurrence(
        workspace_id=WORKSPACE_ID,
        schedule_id=new_id(),
        at=NOW,
        run_id=new_id(),
        state="started",
        reason=None,
        detail=None,
        contacts=1,
        amount=None,
        decided_at=NOW,
    )
    return attrs.evolve(occurrence, **changes)


def make_webhook(**changes: Any) -> Webhook:
    """Return an active endpoint."""
    webhook = Webhook(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        url="https://app.example/hook",
        description="",
        types=(),
        payload="thin",
        concurrency=4,
        state="active",
        reason=None,
        created_at=NOW,
        updated_at=NOW,
    )
    return attrs.evolve(webhook, **changes)


def make_webhook_cursor(**changes: Any) -> WebhookCursor:
    """Return the cursor of an endpoint that is up."""
    cursor = WebhookCursor(
        workspace_id=WORKSPACE_ID, webhook_id=new_id(), sealed="sealed", position=0, gap_until=0, updated_at=NOW
    )
    return attrs.evolve(cursor, **changes)


def make_webhook_hold(**changes: Any) -> WebhookHold:
    """Return an event that was tried once."""
    hold = WebhookHold(
        workspace_id=WORKSPACE_ID,
        webhook_id=new_id(),
        number=1,
        key="campaign:1",
        attempts=1,
        next_at=NOW,
        first_at=NOW,
    )
    return attrs.evolve(hold, **changes)


def make_webhook_attempt(**changes: Any) -> WebhookAttempt:
    """Return a delivery that was accepted."""
    attempt = WebhookAttempt(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        webhook_id=new_id(),
        number=1,
        type="campaign.completed",
        at=NOW,
        duration_ms=12,
        status=204,
        error=None,
        answer="",
    )
    return attrs.evolve(attempt, **changes)


def make_trail_entry(**changes: Any) -> TrailEntry:
    """Return the trail entry of an opt-out."""
    entry = TrailEntry(at=NOW, workspace_id=WORKSPACE_ID, what=TrailStepKind.OPTED_OUT, rule=TrailRule.REGISTER)
    return attrs.evolve(entry, **changes)
