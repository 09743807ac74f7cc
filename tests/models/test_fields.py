from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, ClassVar, get_type_hints

import attrs
import pytest

import outreach.models
from outreach import (
    UNSET,
    AgentUpdate,
    BusinessHours,
    CampaignUpdate,
    FlowStep,
    InvalidRequest,
    NewAgent,
    NewCall,
    NewCallCampaign,
    NewFlow,
    NewMessage,
    NewNumber,
    NewSmsCampaign,
    NewTrunk,
    NewWorkspace,
    SmsSettingsUpdate,
    WorkspaceMode,
    WorkspaceUpdate,
)
from outreach.models import CallerIdAllocation, Holiday, HolidayCalendar, NewFollowUp, NewUnsubscribes, TimeWindow
from outreach.models.base import Unset, hidden_fields
from outreach.models.fields import MAX_DETAILS, Checked, bounded, check_field, fields_of

START = datetime(2026, 12, 1, 9, tzinfo=UTC)
NEVER: dict[str, Any] = {"timezone": "UTC", "schedule": {}}

MODELS = [
    found
    for found in vars(outreach.models).values()
    if isinstance(found, type) and found.__name__.startswith("New") | found.__name__.endswith("Update")
]


def paths(model: type[Any], **fields: Any) -> list[str]:
    """Return the places that are wrong."""
    with pytest.raises(InvalidRequest) as caught:
        model(**fields)
    return [detail.path for detail in caught.value.details]


@pytest.mark.parametrize("model", MODELS)
def test_every_request_checks_itself(model: type[Any]) -> None:
    """All but contacts, of which a campaign may have hundreds of thousands: their reader checks them."""
    assert issubclass(model, Checked) is (model.__name__ != "NewRecipient")
    assert list(fields_of(model)) == [field.name for field in attrs.fields(model)]


def test_all_problems_are_reported_at_once_in_the_order_of_the_fields() -> None:
    """By their places, also inside of what a field holds."""
    flow = {"steps": [FlowStep(kind="send", body="x" * 1601), FlowStep(kind="wait", wait_minutes=0), "stop"]}
    assert paths(NewFlow, name="", **flow) == ["name", "steps[0].body", "steps[1].wait_minutes", "steps[2]"]


def test_a_list_names_no_more_places_than_an_error_may_have() -> None:
    """However long it is."""
    assert len(paths(SmsSettingsUpdate, custom_variables=["-"] * 100)) == MAX_DETAILS


@pytest.mark.parametrize(
    ("model", "fields", "path"),
    [
        (NewAgent, {"name": "Ada", "direction": "sideways"}, "direction"),
        (NewAgent, {"name": "Ada", "is_active": 1}, "is_active"),
        (NewAgent, {"name": "Ada", "max_call_seconds": True}, "max_call_seconds"),
        (NewAgent, {"name": "Ada", "placeholders": "name"}, "placeholders"),
        (NewAgent, {"name": "Ada", "placeholders": ["name", 7]}, "placeholders[1]"),
        (NewAgent, {"name": "Ada", "placeholders": {"name": 1}}, "placeholders"),
        (NewAgent, {"name": "A\x00da"}, "name"),
        (NewAgent, {"name": "\ud83d"}, "name"),
        (NewAgent, {"name": "Ada", "voicemail": "leave_message"}, "voicemail_message"),
        (NewAgent, {"name": "Ada", "voicemail": "leave_message", "voicemail_message": " "}, "voicemail_message"),
        (NewCall, {"agent_id": "a", "to": "+1 415 555 0101"}, "to"),
        (NewCall, {"agent_id": "a", "to": "+14155550101", "variables": 7}, "variables"),
        (NewMessage, {"to": "+14155550101", "body": " "}, "body"),
        (NewNumber, {"phone": 4155550101}, "phone"),
        (NewTrunk, {"name": "Main", "address": ""}, "address"),
        (NewFlow, {"name": "F", "steps": []}, "steps"),
        (NewFlow, {"name": "F", "steps": [FlowStep(kind="stop_if_replied")]}, "steps"),
        (NewWorkspace, {"name": "A", "mode": "pretend"}, "mode"),
        (WorkspaceUpdate, {"status": "unknown"}, "status"),
        (NewUnsubscribes, {"phone_numbers": ["+14155550101"], "scope": "fax"}, "scope"),
        (NewFollowUp, {"results": []}, "results"),
        (NewFollowUp, {"results": ["failed"], "include": {"everybody"}}, "include[0]"),
        (NewSmsCampaign, {"name": "S", "body": "Hi", "scheduled_start_at": START}, "scheduled_start_at"),
        (NewSmsCampaign, {"name": "S", "body": "Hi", "scheduled_expires_at": "soon"}, "scheduled_expires_at"),
        (NewSmsCampaign, {"name": "S", "message_source": "flow"}, "flow_id"),
        (NewSmsCampaign, {"name": "S"}, "body"),
        (NewSmsCampaign, {"name": "S", "body": "Hi", "business_hours": "9 to 5"}, "business_hours"),
        (
            NewSmsCampaign,
            {"name": "S", "body": "Hi", "business_hours": BusinessHours(**NEVER | {"timezone": "Berlin"})},
            "business_hours.timezone",
        ),
        (
            NewSmsCampaign,
            {"name": "S", "body": "Hi", "business_hours": BusinessHours(**NEVER | {"schedule": {"Montag": ()}})},
            "business_hours.schedule.Montag",
        ),
        (
            NewSmsCampaign,
            {"name": "S", "body": "Hi", "business_hours": BusinessHours(**NEVER | {"schedule": {"monday": "9-17"}})},
            "business_hours.schedule.monday",
        ),
        (
            NewSmsCampaign,
            {"name": "S", "body": "Hi", "holidays": HolidayCalendar(country=None, holidays=("Easter",))},  # type: ignore[arg-type]
            "holidays.holidays[0]",
        ),
        (NewCallCampaign, {"name": "C", "agent_id": "a", "cli_mode": "group"}, "cli_group"),
        (
            NewCallCampaign,
            {"name": "C", "agent_id": "a", "cli_group": [CallerIdAllocation(number_id="n", phone="+1", count=0)]},
            "cli_group[0].count",
        ),
        (CampaignUpdate, {"body": "Hi", "flow_id": "f"}, "flow_id"),
        (CampaignUpdate, {"name": None}, "name"),
        (SmsSettingsUpdate, {"custom_variables": ["a"] * 1001}, "custom_variables"),
    ],
)
def test_a_request_that_is_wrong_cannot_be_constructed(model: type[Any], fields: Mapping[str, Any], path: str) -> None:
    """The error names the place."""
    assert paths(model, **fields) == [path]


def test_an_update_cannot_clear_what_a_request_needs() -> None:
    """The annotation of a field says whether it may be None."""
    change = AgentUpdate(from_number=None)
    assert (change.from_number, change.name) == (None, UNSET)
    with pytest.raises(InvalidRequest, match="name: cannot be cleared: give a value, or leave it out"):
        AgentUpdate(name=None)  # type: ignore[arg-type]


def test_an_update_has_the_rules_of_what_it_changes() -> None:
    """They stand on the new object."""
    assert paths(AgentUpdate, name="", voicemail="shout", max_call_seconds=9) == [
        "name",
        "voicemail",
        "max_call_seconds",
    ]


def test_what_is_given_takes_the_form_that_is_kept() -> None:
    """Lists become tuples, words members of their enumeration, times those of UTC."""
    there = timezone(timedelta(hours=1))
    campaign = NewSmsCampaign(
        name="S",
        body="Hi",
        csv_column_headers=iter(["phone"]),  # type: ignore[arg-type]
        schedule_type="scheduled",
        scheduled_start_at=START.astimezone(there),
    )
    assert campaign.csv_column_headers == ("phone",)
    assert campaign.scheduled_start_at is not None
    assert (campaign.scheduled_start_at, campaign.scheduled_start_at.tzinfo) == (START, UTC)
    assert NewWorkspace(name="A", mode="live").mode is WorkspaceMode.LIVE  # type: ignore[arg-type]


def test_a_right_campaign_is_constructed_with_all_that_it_may_have() -> None:
    """And evolves only into another right one."""
    hours = BusinessHours(timezone="UTC", schedule={"monday": (TimeWindow(start_minute=0, end_minute=60),)})
    days = HolidayCalendar(country="US", holidays=(Holiday(date=date(2026, 12, 25), name="", enabled=True),))
    campaign = NewSmsCampaign(name="S", body="Hi", business_hours=hours, holidays=days)
    assert attrs.evolve(campaign, name="T").business_hours is hours
    with pytest.raises(InvalidRequest):
        attrs.evolve(campaign, name="")


@pytest.mark.parametrize(
    "at",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=9))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
    ],
)
def test_a_time_that_utc_does_not_have_is_refused(at: datetime) -> None:
    """Near the ends of the calendar."""
    with pytest.raises(InvalidRequest, match="scheduled_start_at: must be a time that exists in UTC"):
        CampaignUpdate(scheduled_start_at=at)


def test_an_argument_may_follow_a_field() -> None:
    """Where a method takes what a request has."""
    assert check_field(NewUnsubscribes, "evidence", None) is None
    with pytest.raises(InvalidRequest, match="evidence: must have at most 1000 characters, has 1001"):
        check_field(NewUnsubscribes, "evidence", "x" * 1001)


def test_a_field_whose_type_says_too_little_needs_a_rule() -> None:
    """An integer has bounds."""

    @attrs.frozen(kw_only=True)
    class Unbounded(Checked):
        size: int

    @attrs.frozen(kw_only=True)
    class Sized(Checked):
        size: int = bounded(1, 3)

    @attrs.frozen(kw_only=True)
    class Resized(Checked):
        _rules_from: ClassVar = (Sized,)

        size: int | Unset = UNSET

    with pytest.raises(TypeError, match="size needs a rule"):
        Unbounded(size=1)
    assert get_type_hints(Resized)["size"] == int | Unset
    assert paths(Resized, size=4) == ["size"]


def test_no_document_shows_a_digest() -> None:
    """That of a key, a session or an invitation: whatever a model names itself."""
    models = (outreach.models.ApiKey, outreach.models.Session, outreach.models.Invitation)
    for model in models:
        assert "digest" in attrs.fields_dict(model)
        assert "digest" in hidden_fields(model)
