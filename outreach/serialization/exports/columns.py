"""The columns of an export as a table: one row a contact, what happened several times on lines of one cell.

Times are by the clocks of the campaign's zone, which a column names, with their offset from UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from outreach.core.clock import is_zone
from outreach.models.base import Channel
from outreach.models.call import Call
from outreach.models.campaign_report import ExportedContact
from outreach.models.dispatch import Dispatch
from outreach.rules.opening import load_zone
from outreach.serialization.documents import json_text

Cell = str | int | float | bool | None

_Column = Callable[[ExportedContact], Cell | datetime]


def _lines(parts: Sequence[str]) -> str | None:
    return "\n".join(parts) or None


def _field_of(find: Callable[[ExportedContact], Any], name: str) -> _Column:
    """Return a field of what belongs to a contact; None where nothing does."""
    return lambda contact: None if (found := find(contact)) is None else getattr(found, name)


def _last_request(contact: ExportedContact) -> Dispatch | None:
    return contact.dispatches[-1] if contact.dispatches else None


def _last_call(contact: ExportedContact) -> Call | None:
    return contact.calls[-1] if contact.calls else None


_RECIPIENT: Final = attrgetter("recipient")
_FAILURE: Final = attrgetter("failure")
CONTACT_FIELDS: Final = (
    *("position", "phone_number", "phone", "first_name", "last_name", "email", "company", "external_id"),
)
"""The fields of a contact that every export begins with."""

_CONTACT: Final[Mapping[str, _Column]] = {name: _field_of(_RECIPIENT, name) for name in CONTACT_FIELDS}
_RESULT: Final[Mapping[str, _Column]] = {
    "status": _field_of(_RECIPIENT, "status"),
    "reason": _field_of(_RECIPIENT, "reason"),
    "meaning": attrgetter("meaning"),
    "attempts": _field_of(_RECIPIENT, "attempts"),
    "contacted": _field_of(_RECIPIENT, "dispatched"),
    "successful": _field_of(_RECIPIENT, "successful"),
    "due_at": _field_of(_RECIPIENT, "due_at"),
    "ended_at": _field_of(_RECIPIENT, "ended_at"),
}
_PROVIDER: Final[Mapping[str, _Column]] = {
    "provider": _field_of(_last_request, "provider"),
    "provider_id": _field_of(_last_request, "provider_id"),
    "from_number": _field_of(_last_request, "from_number"),
    "provider_reason": _field_of(_FAILURE, "reason"),
    "error_code": _field_of(_FAILURE, "error_code"),
    "error_message": _field_of(_FAILURE, "error_message"),
    "explanation": _field_of(_FAILURE, "meaning"),
}
_SMS: Final[Mapping[str, _Column]] = {
    "text": lambda contact: _lines(contact.texts),
    "segments": attrgetter("segments"),
    "report": _field_of(_last_request, "report"),
}
_CALLS: Final[Mapping[str, _Column]] = {
    "call_id": _field_of(_last_call, "id"),
    "call_status": _field_of(_last_call, "status"),
    "call_outcome": _field_of(_last_call, "outcome"),
    "answered_by": _field_of(_last_call, "answered_by"),
    "dialed_at": _field_of(_last_call, "dialed_at"),
    "answered_at": _field_of(_last_call, "answered_at"),
    "call_ended_at": _field_of(_last_call, "ended_at"),
    "duration_seconds": _field_of(_last_call, "duration_seconds"),
    "summary": _field_of(_last_call, "summary"),
    "transcript": lambda contact: contact.transcripts.get(contact.calls[-1].id) if contact.calls else None,
    "cost": lambda contact: None if contact.cost is None else float(contact.cost[0]),
    "cost_currency": lambda contact: None if contact.cost is None else contact.cost[1],
}
_ANSWERS: Final[Mapping[str, _Column]] = {
    "reply_count": lambda contact: len(contact.replies),
    "opted_out_at": attrgetter("opted_out_at"),
}


class Table:
    """The columns of one campaign's export.

    Args:
        channel: The campaign's.
        variables: The names of the contacts' custom variables; None for all of them in one column, as JSON.
        zone: By whose clocks times are written; UTC where this machine does not know it.

    Attributes:
        header: The names of the columns.
    """

    def __init__(self, channel: Channel, variables: Sequence[str] | None, zone: str = "UTC") -> None:
        zone = zone if is_zone(zone) else "UTC"
        self._clocks = load_zone(zone)
        own: dict[str, _Column] = {
            **_RESULT,
            "timezone": lambda _: zone,
            **(_SMS if channel == "sms" else {**_CALLS, "calls": self._calls}),
            **_PROVIDER,
            "requests": self._requests,
            "replies": self._replies,
            **_ANSWERS,
        }
        found: dict[str, _Column] = {}
        if variables is None:
            found["custom_variables"] = _variables_as_json
        for name in variables or ():
            column = name
            while column in _CONTACT or column in own or column in found:
                column = f"custom_variables.{column}"
            found[column] = _variable(name)
        self._columns = {**_CONTACT, **found, **own}
        self.header = tuple(self._columns)

    def row(self, contact: ExportedContact) -> list[Cell]:
        """Return the cells of one contact."""
        cells = (column(contact) for column in self._columns.values())
        return [self._time(cell) if isinstance(cell, datetime) else cell for cell in cells]

    def _time(self, at: datetime) -> str:
        return at.astimezone(self._clocks).isoformat(timespec="seconds")

    def _requests(self, contact: ExportedContact) -> Cell:
        return _lines([self._request(one) for one in contact.dispatches])

    def _calls(self, contact: ExportedContact) -> Cell:
        return _lines([self._call(one) for one in contact.calls])

    def _replies(self, contact: ExportedContact) -> Cell:
        return _lines([f"{self._time(one.received_at)} {one.body}" for one in contact.replies])

    def _request(self, one: Dispatch) -> str:
        """Return one request with every status and time that it had."""
        report = "" if one.report is None else one.report.value
        known = (self._time(one.created_at), one.state.value, report, one.reason or "", one.error_code or "")
        settled = "" if one.settled_at is None else f"(settled {self._time(one.settled_at)})"
        return " ".join(part for part in (*known, settled) if part)

    def _call(self, one: Call) -> str:
        cost = "" if one.cost is None else f"{one.cost:f} {one.cost_currency}"
        known = (self._time(one.created_at), one.status.value, one.outcome or "", one.error or "", cost)
        return " ".join(part for part in known if part)


def _variable(name: str) -> _Column:
    def value(contact: ExportedContact) -> Cell:
        variables = contact.recipient.custom_variables
        found: Any = variables.get(name)
        if name not in variables:
            # The campaign knows the name without the spaces around it, as templates do.
            found = next((value for key, value in variables.items() if key.strip() == name), None)
        return found if found is None or isinstance(found, str | int) else json_text(found)

    return value


def _variables_as_json(contact: ExportedContact) -> str | None:
    variables = contact.recipient.custom_variables
    return json_text(dict(variables)) if variables else None
