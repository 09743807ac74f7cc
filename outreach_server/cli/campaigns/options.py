"""The options of a new campaign of either channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

import attrs
import click

from outreach import BusinessHours, NewCallCampaign, NewRecipient, NewSmsCampaign, Outreach, Workspace
from outreach.models import CallerIdAllocation, CarrierName, Channel
from outreach.server_support import DEFAULT_CONCURRENCY, fields_of, prepare_recipient
from outreach_server.cli.campaigns.times import TIMES, business_hours, check_zone, holiday_calendar, read_schedule
from outreach_server.cli.durations import UTC_NAME
from outreach_server.cli.values import AGENT, CARRIER, FLOW, METADATA, TRUNK, OneOf, integer_of, text_of
from outreach_server.hours import Opening

_FIELDS: Final = {
    "message": "body",
    "senders": "from_number",
    "rate": "rate_per_minute",
    "caller_ids": "cli_group",
    "ivr": "ivr_enabled",
    "call_screen": "call_screen_enabled",
}
"""The fields of a campaign that options with another name set."""

_MODELS: Final[Mapping[Channel, type[Any]]] = {"sms": NewSmsCampaign, "call": NewCallCampaign}

SENDERS: Final = click.option(
    "--from",
    "senders",
    metavar="NUMBER",
    multiple=True,
    help="The sending number; repeat for a pool, from which each contact gets one.",
)

CALLER_ID: Final = ("--caller-id", "caller_ids")
OPTIONS: Final = (
    click.option("--name", type=text_of(NewSmsCampaign, "name"), required=True, help="The campaign's name."),
    click.option(
        "--channel", type=OneOf(["sms", "call"]), default="sms", show_default=True, help="Messages, or calls."
    ),
    click.option(
        "--message", type=text_of(NewSmsCampaign, "body"), help="The text; {{first_name}} or {{any column}} in it."
    ),
    click.option("--flow", "flow_id", type=FLOW, help="The automation flow to run, instead of one text."),
    SENDERS,
    click.option("--carrier", type=CARRIER, help="The carrier; by default that of the sending number."),
    click.option(
        "--rate",
        type=integer_of(NewSmsCampaign, "rate_per_minute"),
        default=60,
        show_default=True,
        help="Messages a minute.",
    ),
    click.option(
        "--replace-characters", is_flag=True, help="Send curly quotes, dashes and the like in plain characters."
    ),
    click.option("--agent", "agent_id", type=AGENT, help="Calls: the agent that places them."),
    click.option("--trunk", "trunk_id", type=TRUNK, help="Calls: the SIP trunk to use."),
    click.option(
        *CALLER_ID,
        metavar="NUMBER[=COUNT]",
        multiple=True,
        help="Calls: a number to call from, for so many contacts in turn; repeat for a rotation.",
    ),
    click.option("--double-dial", is_flag=True, help="Calls: dial a second time at once if nobody answers."),
    click.option("--retry-voicemail", is_flag=True, help="Calls: call a voicemail again that got the agent's message."),
    click.option("--ivr", is_flag=True, help="Calls: let the agent navigate phone menus."),
    click.option("--call-screen", is_flag=True, help="Calls: let the agent answer call screening."),
    click.option(
        "--batch-concurrency",
        type=integer_of(NewCallCampaign, "batch_concurrency"),
        help=f"Calls: so many at a time; by default {DEFAULT_CONCURRENCY}.",
    ),
    click.option("--stay-open", is_flag=True, help="Complete only once it is closed: campaigns add, campaigns close."),
    click.option(
        "--external-id",
        type=text_of(NewSmsCampaign, "external_id"),
        metavar="ID",
        help="The id by which your application knows the campaign.",
    ),
    click.option(
        "--metadata",
        type=METADATA,
        metavar="JSON",
        help="A JSON object to keep with the campaign, such as '{\"team\": 7}'.",
    ),
    click.option("--description", type=text_of(NewSmsCampaign, "description"), help="For people."),
    *TIMES,
)
"""Those of `campaigns import`."""


@attrs.frozen(kw_only=True)
class CampaignOptions:
    """The values of the options, with the options' names; `_field_of` names the field of the campaign that one sets."""

    name: str
    channel: Channel
    message: str | None
    flow_id: str | None
    senders: Sequence[str]
    carrier: CarrierName | None
    rate: int
    replace_characters: bool
    agent_id: str | None
    trunk_id: str | None
    caller_ids: Sequence[str]
    double_dial: bool
    retry_voicemail: bool
    ivr: bool
    call_screen: bool
    batch_concurrency: int | None
    stay_open: bool
    external_id: str | None
    metadata: Mapping[str, Any] | None
    description: str | None
    schedule_at: datetime | None
    expires_at: datetime | None
    hours: Sequence[Opening]
    timezone: str | None
    country: str | None
    dates: Sequence[date]

    def check(self, ctx: click.Context) -> None:
        """Check what can be checked without a database.

        Raises:
            click.UsageError: Options exclude or require each other.
        """
        applicable, other = _MODELS[self.channel], _MODELS["sms" if self.channel == "call" else "call"]
        foreign = fields_of(other).keys() - fields_of(applicable).keys()
        for param in ctx.command.params:
            named = ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
            if named and _field_of(param.name or "") in foreign:
                raise click.UsageError(f"{param.opts[0]} does not apply to campaigns of channel {self.channel}.")
        if self.channel == "call" and self.agent_id is None:
            raise click.UsageError("A calling campaign needs an --agent.")
        if self.channel == "sms" and (self.message is None) == (self.flow_id is None):
            raise click.UsageError("Give either a --message or a --flow.")
        holidays = holiday_calendar(self.country, self.dates) is not None
        check_zone(self.timezone, self.hours, (self.schedule_at, self.expires_at), holidays)
        read_schedule(self.schedule_at, self.expires_at, self.zone)

    async def campaign(self, engine: Outreach, workspace: Workspace) -> NewSmsCampaign | NewCallCampaign:
        """Return the campaign to create."""
        if self.channel == "call":
            return NewCallCampaign(
                **self._fields(NewCallCampaign)
                | {"cli_group": await caller_ids_of(engine, workspace, self.caller_ids) or None},
                **self._times(),
                cli_mode="group" if self.caller_ids else "default",
            )
        return NewSmsCampaign(
            **self._fields(NewSmsCampaign)
            | {"from_number": None}
            | sender_fields(self.senders)
            | {"carrier": self.carrier or await carrier_of(engine, workspace, next(iter(self.senders), None))},
            **self._times(),
            message_source="custom" if self.flow_id is None else "flow",
        )

    @property
    def zone(self) -> str:
        """The zone of the campaign's times."""
        return self.timezone or UTC_NAME

    def _fields(self, model: type[Any]) -> dict[str, Any]:
        """Return the values of those options that set a field of the model, by field."""
        given = {_field_of(option): value for option, value in attrs.asdict(self, recurse=False).items()}
        return {field: given[field] for field in fields_of(model) if field in given}

    def _times(self) -> dict[str, Any]:
        schedule = read_schedule(self.schedule_at, self.expires_at, self.zone)
        return {
            "schedule_type": "scheduled" if self.schedule_at is not None else "immediate",
            "scheduled_start_at": schedule.begins_at,
            "scheduled_expires_at": schedule.expires_at,
            "business_hours": self._hours(),
            "holidays": holiday_calendar(self.country, self.dates),
        }

    def _hours(self) -> BusinessHours | None:
        return business_hours(self.hours, self.timezone, self.batch_concurrency or DEFAULT_CONCURRENCY)


def _field_of(option: str) -> str:
    return _FIELDS.get(option, option)


def sender_fields(senders: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a campaign that `--from` sets: one number, name or service, or several numbers."""
    if len(senders) > 1:
        return {"from_numbers": senders}
    return {"from_number": senders[0]} if senders else {}


async def carrier_of(engine: Outreach, workspace: Workspace, written: str | None) -> CarrierName | None:
    """Return the carrier of a sending number; None if unknown."""
    if written is None:
        return None
    sender = prepare_recipient(NewRecipient(phone_number=written), workspace.default_region).phone
    owned = [number async for number in engine.numbers.iter_all(workspace.id) if number.phone == sender]
    return owned[0].carrier if owned else None


async def caller_ids_of(engine: Outreach, workspace: Workspace, given: Sequence[str]) -> list[CallerIdAllocation]:
    """Return the caller IDs of the options, such as `+14155550100=20`.

    Raises:
        click.ClickException: One is no number of the workspace, or has no count.
    """
    owned = {number.phone: number.id async for number in engine.numbers.iter_all(workspace.id)}
    entries = []
    for written in given:
        phone, _, count = written.partition("=")
        if count and not (count.isascii() and count.isdecimal() and 0 < int(count) <= 1_000_000):
            raise click.UsageError(f"--caller-id {written!r}: {count!r} is not a number of contacts, such as 20.")
        number = prepare_recipient(NewRecipient(phone_number=phone.strip() or "-"), workspace.default_region).phone
        if number is None or number not in owned:
            raise click.ClickException(
                f"{phone!r} is not a number of the workspace. Create it: outreach-server numbers create "
                f"{workspace.id} PHONE"
            )
        entries.append(CallerIdAllocation(number_id=owned[number], phone=number, count=int(count or 1)))
    return entries
