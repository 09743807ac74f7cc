"""The forms of schedules, in which people choose rules in words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import chain
from typing import Any, Final

from outreach import Campaign, InvalidRequest, NotFound
from outreach.models import Schedule
from outreach.server_support import WEEKDAYS, Recurrence, read_recurrence
from outreach_server.console.context import Visit
from outreach_server.console.pages.set_up.inputs import Input, inputs_of
from outreach_server.console.pages.set_up.nouns import On
from outreach_server.console.recurrence_words import RULE_DAYS, is_same_rule

LIKE: Final = "like"
"""The campaign that an address chooses for a new schedule."""

HOLIDAYS: Final = {
    "skip": "Leave the run out",
    "next_day": "Run on the next day that is none",
    "ignore": "Run all the same",
}
OVERLAP: Final = {"skip": "Leave the run out", "allow": "Run beside it"}

_MOST_CAMPAIGNS: Final = 50
_CAMPAIGNS: Final = ("template_id", "audience_id")
_RULE: Final = "rule"
_REPEATS: Final = {
    "DAILY": "Days",
    "WEEKLY": "Weeks",
    "MONTHLY": "Months",
    "YEARLY": "Years",
    _RULE: "By the rule below",
}
_WHICH: Final = {"": "Each", "1": "First", "2": "Second", "3": "Third", "4": "Fourth", "-1": "Last"}
_LAST: Final = "last"
_CHOSEN: Final = frozenset({"repeats", "every", "weekdays", "which", "month_days", "count", _RULE})
_LONGEST_NAME: Final = 80
_A_DAY: Final = "must be a day such as 2027-01-31"


async def fields_of_schedule(on: On, model: type[Any]) -> Sequence[Input]:
    """Return the fields of the form of a schedule, which is changed where there is one."""
    one: Schedule | None = on.one
    known = await _campaigns(on.visit, one)
    campaigns = [(each.id, _called(on.visit, each)) for each in known.values()]
    like = known.get(on.visit.request.query_params.get(LIKE, ""))
    name = one.name if one is not None else "" if like is None else like.name[:_LONGEST_NAME].strip()
    limits = ("overlap", "late_hours", "not_again_within_days", "max_cost")
    return [
        Input(name="name", label="Name", required=True, longest=_LONGEST_NAME, value=name),
        Input(
            name="template_id",
            label="Each run is like the campaign",
            hint=f"One of the last {_MOST_CAMPAIGNS}; others offer it in their own pages.",
            kind="choice",
            choices=campaigns,
            value=one.template_id if one is not None else "" if like is None else like.id,
        ),
        Input(
            name="audience_id",
            label="To the contacts of",
            hint="As they are at each run.",
            kind="choice",
            optional=True,
            choices=[("", "The same campaign"), *campaigns],
            value="" if one is None else one.audience_id or "",
        ),
        *_rule_fields(one),
        *_day_fields(on.visit, one),
        *inputs_of(model, one, names=("holidays",), choices={"holidays": list(HOLIDAYS.items())}),
        *inputs_of(model, one, names=limits, choices={"overlap": list(OVERLAP.items())}),
    ]


def schedule_values(values: Mapping[str, Any], held: Schedule | None = None) -> dict[str, Any]:
    """Return the values of a model for those of a form, in which the rule is in words.

    Raises:
        InvalidRequest: A day is none, or parts of the rule do not go together.
    """
    found = {name: value for name, value in values.items() if name not in _CHOSEN}
    found["starts_on"] = _day("starts_on", values["starts_on"])
    found["ends_on"] = _day("ends_on", values["ends_on"]) if values["ends_on"] else None
    found["except_dates"] = tuple(_day("except_dates", one) for one in values["except_dates"])
    rule = (values[_RULE] or "") if values["repeats"] == _RULE else _rule(values)
    # The same rule in another order of its days is no change.
    found["rule"] = held.rule if held is not None and _is_like(rule, held.rule) else rule
    return found


async def _campaigns(visit: Visit, one: Schedule | None) -> Mapping[str, Campaign]:
    """Return the campaigns that can be chosen: the latest, and those that are chosen already."""
    place = visit.place.id
    chosen = [visit.request.query_params.get(LIKE, ""), *(visit.form.get(name, "") for name in _CAMPAIGNS)]
    if one is not None:
        chosen += [one.template_id, one.audience_id or ""]

    async def latest() -> Sequence[Campaign]:
        page = await visit.engine.campaigns.list(place, limit=_MOST_CAMPAIGNS)
        return [each for each in page.items if each.erased_at is None]

    async def existing(identifier: str) -> Sequence[Campaign]:
        try:
            return [await visit.engine.campaigns.get(place, identifier)]
        except NotFound:
            return []

    # At once, so that they are read in one snapshot.
    found = await asyncio.gather(latest(), *map(existing, dict.fromkeys(filter(None, chosen))))
    return {each.id: each for each in chain(*found)}


def _called(visit: Visit, campaign: Campaign) -> str:
    """Return the name of a campaign, with its day: many have the same."""
    return f"{campaign.name} ({visit.clocks().moment(campaign.created_at, visit.now)})"


def _rule_fields(one: Schedule | None) -> Sequence[Input]:
    rule = Recurrence(frequency="WEEKLY") if one is None else read_recurrence(one.rule)
    in_words = _has_words(rule)
    if not in_words:
        rule = Recurrence(frequency="WEEKLY")
    named = [WEEKDAYS[day.weekday] for day in rule.weekdays]
    place = rule.weekdays[0].ordinal if rule.weekdays else None
    days = [_LAST if day == -1 else str(day) for day in rule.month_days]
    group = "When it repeats"
    return [
        Input(name="every", label="Every", kind="number", longest=4, value=str(rule.interval), group=group),
        Input(
            name="repeats",
            label="Unit",
            kind="choice",
            choices=list(_REPEATS.items()),
            value=rule.frequency if in_words else _RULE,
            group=group,
        ),
        Input(
            name="weekdays",
            label="Only on",
            kind="ticks",
            choices=list(RULE_DAYS.items()),
            value="\n".join(named),
            group=group,
        ),
        Input(
            name="which",
            label="Which of these weekdays",
            hint="Of a month, where it repeats in months.",
            kind="choice",
            optional=True,
            choices=list(_WHICH.items()),
            value="" if place is None else str(place),
            group=group,
        ),
        Input(
            name="month_days",
            label="Days of the month",
            hint="Such as 1, 15, last. A month without such a day has no run.",
            optional=True,
            longest=120,
            value=", ".join(days),
            group=group,
        ),
        Input(
            name="count",
            label="How many runs",
            hint="Empty: no such end.",
            kind="number",
            optional=True,
            longest=5,
            value="" if rule.count is None else str(rule.count),
            group=group,
        ),
        Input(
            name=_RULE,
            label="Rule",
            hint="RRULE of RFC 5545, where the fields above do not do.",
            optional=True,
            longest=300,
            value="" if in_words or one is None else one.rule,
            group=group,
        ),
    ]


def _day_fields(visit: Visit, one: Schedule | None) -> Sequence[Input]:
    group = "From when, and at what time"
    without = [] if one is None else [str(day) for day in one.except_dates]
    return [
        Input(
            name="starts_on",
            label="First day",
            kind="date",
            required=True,
            longest=10,
            value="" if one is None else str(one.starts_on),
            group=group,
        ),
        Input(
            name="ends_on",
            label="Last day",
            hint="Empty: no end.",
            kind="date",
            optional=True,
            longest=10,
            value=str(one.ends_on) if one is not None and one.ends_on is not None else "",
            group=group,
        ),
        Input(
            name="at",
            label="Time",
            kind="time",
            required=True,
            longest=5,
            value="" if one is None else one.at,
            group=group,
        ),
        Input(
            name="zone",
            label="Time zone",
            hint="Such as America/New_York.",
            required=True,
            longest=64,
            value=visit.zone() if one is None else one.zone,
            group=group,
        ),
        Input(
            name="except_dates",
            label="Days without a run",
            hint="One a line, such as 2027-01-31.",
            kind="lines",
            longest=2400,
            value="\n".join(without),
        ),
    ]


def _has_words(rule: Recurrence) -> bool:
    """Return whether the form has fields for all that a rule says."""
    places = {day.ordinal for day in rule.weekdays}
    if rule.months or rule.until is not None or len(places) > 1 or any(day < -1 for day in rule.month_days):
        return False
    return places <= {None} or (rule.frequency == "MONTHLY" and {str(place) for place in places} <= _WHICH.keys())


def _rule(values: Mapping[str, Any]) -> str:
    parts = [f"FREQ={values['repeats']}"]
    if values["every"] != 1:
        parts.append(f"INTERVAL={values['every']}")
    which = values["which"] or ""
    if which and not (values["repeats"] == "MONTHLY" and values["weekdays"]):
        raise InvalidRequest.at("which", "can be chosen where it repeats in months, with weekdays")
    if values["weekdays"]:
        parts.append(f"BYDAY={','.join(f'{which}{day}' for day in values['weekdays'])}")
    if values["month_days"]:
        if values["repeats"] == "WEEKLY":
            raise InvalidRequest.at("month_days", "do not go with weeks")
        parts.append(f"BYMONTHDAY={','.join(_month_day(one) for one in values['month_days'].split(','))}")
    if values["count"] is not None:
        parts.append(f"COUNT={values['count']}")
    return ";".join(parts)


def _month_day(text: str) -> str:
    word = text.strip().lower()
    if word == _LAST:
        return "-1"
    if not (word.isascii() and word.isdecimal() and 1 <= int(word) <= 31):
        raise InvalidRequest.at("month_days", "must be 1 to 31 or last, with commas between them")
    return word


def _is_like(rule: str, held: str) -> bool:
    try:
        return is_same_rule(rule, held)
    except ValueError:
        # The model says what is wrong with it.
        return False


def _day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidRequest.at(name, _A_DAY) from None
