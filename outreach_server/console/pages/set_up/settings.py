"""Settings of a workspace: itself, its messages, its calls and its replies; and its prices."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import attrs

from outreach import CallSettingsUpdate, InvalidRequest, ReplySettingsUpdate, SmsSettingsUpdate, WorkspaceUpdate
from outreach.models import Price, PriceTable
from outreach.server_support import JoinedReads
from outreach_server.console.access import Right, roles_with
from outreach_server.console.context import Visit
from outreach_server.console.pages.set_up import place_hours
from outreach_server.console.pages.set_up.inputs import Input, changed, inputs_of
from outreach_server.console.pages.set_up.nouns import Cell, Fields, Noun, On, Result, Sent, SetUpAction

OF_OPERATORS: Final = ("status", "request_limit")
"""Fields of a workspace that operators change."""

_ERASING: Final = ("retention_days",)
"""Fields of a workspace that erase something."""

_APPROVING: Final = ("approve_over_contacts", "approve_over_amount")
"""Fields of a workspace that decide which starts a second person approves."""

_APPROVAL: Final = (
    "People start a campaign over a limit once a second person has approved it. Who may approve: each {roles} of the "
    "workspace, but for the person who changed the campaign last. API keys and commands need no approval."
)

_HOURS: Final = (
    "They hold where people are contacted from 8 to 21 only, which is set above. Running campaigns go by them at once."
)


@attrs.frozen(kw_only=True)
class AllSettings:
    """The settings of a workspace."""

    workspace: Any
    sms: Any
    calls: Any
    replies: Any


class SettingsNoun(Noun):
    """The settings, each part with its form."""

    name, title, one, right = "settings", "Settings", "settings", Right.FLOWS
    shape = "single"

    def __init__(self) -> None:
        def action(
            part: str, title: str, command: str, fields: Fields, operation: str = "", **more: Any
        ) -> SetUpAction:
            async def do(sent: Sent) -> Result:
                await _update(sent.visit, part, getattr(sent.one, part), sent.values)
                return Result()

            return SetUpAction(
                name=more.pop("name", part),
                label="Save",
                title=title,
                right=Right.SET_UP,
                command=command,
                operation=operation,
                fields=fields,
                do=do,
                changes=True,
                **more,
            )

        elsewhere = {*OF_OPERATORS, *_APPROVING, *_ERASING, place_hours.NAME}
        usual = [one for one in attrs.fields_dict(WorkspaceUpdate) if one not in elsewhere]
        self.on_one = (
            action("workspace", "Workspace", "workspaces update", _fields("workspace", usual)),
            action(
                "workspace",
                "Approval of starts",
                "workspaces update",
                _fields("workspace", _APPROVING),
                name="approval",
                effect=_APPROVAL.format(roles=" or ".join(roles_with(Right.START))),
            ),
            SetUpAction(
                name="hours",
                label="Save",
                title="Narrower contact hours",
                right=Right.SET_UP,
                command="workspaces set-hours",
                operation="setContactHours",
                fields=place_hours.fields,
                do=place_hours.save,
                changes=True,
                effect=_HOURS,
            ),
            action("sms", "Messages", "settings set", _fields("sms"), "updateSmsSettings"),
            action("calls", "Calls", "settings set", _fields("calls"), "updateCallSettings"),
            action("replies", "Replies to keywords", "settings set", _fields("replies"), "updateReplySettings"),
            action(
                "workspace",
                "Retention",
                "workspaces update",
                _fields("workspace", _ERASING),
                name="retention",
                proof=True,
            ),
        )

    async def get(self, visit: Visit, identifier: str) -> AllSettings:
        """Return all settings."""
        engine, workspace = visit.engine, visit.place
        async with JoinedReads() as reads:
            sms = reads.start(engine.sms_settings.get(workspace.id))
            calls = reads.start(engine.call_settings.get(workspace.id))
            replies = reads.start(engine.reply_settings.get(workspace.id))
        return AllSettings(workspace=workspace, sms=sms.result(), calls=calls.result(), replies=replies.result())

    def called(self, one: AllSettings) -> str:
        """Return the name of the workspace."""
        return str(one.workspace.name)

    async def facts(self, visit: Visit, one: AllSettings) -> Sequence[tuple[str, Cell]]:
        """Return what cannot be changed here; all, where the person may change nothing."""
        workspace = one.workspace
        found: list[tuple[str, Cell]] = [
            ("Identifier", workspace.id),
            ("Mode", workspace.mode.value.capitalize()),
            ("Status", workspace.status.value.capitalize()),
            (
                "Requests of programs a minute",
                "No limit" if workspace.request_limit is None else f"{workspace.request_limit:,}",
            ),
        ]
        if not visit.may(Right.SET_UP):
            for action in self.on_one:
                for field in await action.fields(On(visit=visit, one=one)):
                    value = field.value.replace("\n", ", ")
                    found.append(
                        (field.label, {"yes": "Yes", "": "No"}.get(value, value) if field.kind == "tick" else value)
                    )
        return found


_MODELS: Final[Mapping[str, tuple[type[Any], str]]] = {
    "workspace": (WorkspaceUpdate, "workspaces"),
    "sms": (SmsSettingsUpdate, "sms_settings"),
    "calls": (CallSettingsUpdate, "call_settings"),
    "replies": (ReplySettingsUpdate, "reply_settings"),
}
"""Of each part, the model of its change, and the engine's service."""


def _fields(part: str, names: Collection[str] | None = None) -> Fields:
    async def fields(on: On) -> Sequence[Input]:
        return inputs_of(_MODELS[part][0], getattr(on.one, part), names=names)

    return fields


async def _update(visit: Visit, part: str, held: Any, values: Mapping[str, Any]) -> None:
    """Change what differs."""
    model, service = _MODELS[part]
    if changes := changed(values, held):
        await getattr(visit.engine, service).update(visit.place.id, model(**changes), actor=visit.actor)


class PricesNoun(Noun):
    """The prices of messages and calls."""

    name, title, one, right = "prices", "Prices", "prices", Right.FLOWS
    shape = "single"

    def __init__(self) -> None:
        self.on_one = (
            SetUpAction(
                name="update",
                label="Save",
                title="Change the prices",
                right=Right.SET_UP,
                command="settings prices set",
                operation="setPrices",
                fields=_price_fields,
                do=_set_prices,
                changes=True,
                primary=True,
            ),
            SetUpAction(
                name="remove",
                label="Remove all prices",
                right=Right.SET_UP,
                command="settings prices remove",
                operation="removePrices",
                do=_remove_prices,
                typed=True,
                effect="Checks and reports of campaigns show no costs without them.",
                possible=lambda on: on.one is not None,
                done="There are no prices any more: checks of campaigns show no costs.",
            ),
        )

    async def get(self, visit: Visit, identifier: str) -> PriceTable | None:
        """Return the prices; None if there are none."""
        return await visit.engine.prices.get(visit.place.id)

    def called(self, one: PriceTable | None) -> str:
        """Return the currency."""
        return "" if one is None else one.currency

    async def facts(self, visit: Visit, one: PriceTable | None) -> Sequence[tuple[str, Cell]]:
        """Return the prices in words."""
        if one is None:
            return [("Prices", "None yet. With them, checks and reports of campaigns show what they cost.")]
        return [(_price_words(price), f"{price.amount:f} {one.currency}") for price in one.prices]


_UNITS: Final = {"sms": "A segment", "call": "A minute"}
_WRITTEN: Final = re.compile(r"(\w+)\s+(\S+)\s+(\S+)\s+(\S+)")
_NOTATION: Final = "must be lines such as `sms twilio US 0.0079`; line {place} is none"


def _price_words(price: Price) -> str:
    by = f" by {price.provider}" if price.provider else ""
    to = f" to {price.country}" if price.country else " to other countries"
    return f"{_UNITS[price.kind]}{by}{to}"


async def _price_fields(on: On) -> Sequence[Input]:
    lines = [
        f"{price.kind} {price.provider or '*'} {price.country or '*'} {price.amount:f}"
        for price in (on.one.prices if on.one is not None else ())
    ]
    return [
        Input(
            name="currency",
            label="Currency",
            hint="Three letters, such as USD.",
            required=True,
            longest=3,
            value=on.one.currency if on.one is not None else "",
        ),
        Input(
            name="prices",
            label="Prices",
            kind="area",
            hint="One a line: sms or call, provider, country, and the price of a segment or minute; * is any other. "
            "Such as: sms twilio US 0.0079",
            required=True,
            longest=60_000,
            value="\n".join(lines),
        ),
    ]


async def _set_prices(sent: Sent) -> Result:
    prices = []
    for place, line in enumerate(str(sent.values["prices"]).splitlines(), 1):
        if not line.strip():
            continue
        found = _WRITTEN.fullmatch(line.strip())
        try:
            amount = Decimal(found[4]) if found is not None else None
        except InvalidOperation:
            amount = None
        if found is None or amount is None or found[1] not in _UNITS:
            raise InvalidRequest.at("prices", _NOTATION.format(place=place))
        prices.append(
            Price(
                kind="sms" if found[1] == "sms" else "call",
                amount=amount,
                provider=None if found[2] == "*" else found[2],
                country=None if found[3] == "*" else found[3].upper(),
            )
        )
    table = PriceTable(currency=str(sent.values["currency"]).upper(), prices=tuple(prices))
    await sent.engine.prices.update(sent.place, table, actor=sent.actor)
    return Result()


async def _remove_prices(sent: Sent) -> Result:
    await sent.engine.prices.remove(sent.place, actor=sent.actor)
    return Result()
