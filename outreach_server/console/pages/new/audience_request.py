"""How the list of a new campaign is to be read, as it stands in the address of its page."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import attrs

from outreach import InvalidRequest, NewCallCampaign, NewSmsCampaign
from outreach.models import LeaveOut
from outreach_server.console.context import Visit
from outreach_server.lists.requests import MAX_CORRECTIONS, ListRequest, is_row, read_list_request

FIELDS: Final[Mapping[str, str]] = {
    "phone": "Phone number",
    "first_name": "First name",
    "last_name": "Last name",
    "email": "E-mail address",
    "company": "Company",
    "external_id": "Your id",
    "country": "Country of the number",
    "time_zone": "Time zone",
    "zip_code": "US ZIP code",
    "state": "US state",
}
"""The fields of a contact that a column can have, with their words."""

NO_COLUMN: Final = "-"
MOST_LEFT_OUT: Final = 20
_CORRECTION: Final = "fix_"

_SHOWN_SHEET: Final = "shown_sheet"
"""The field with the sheet whose columns and rows the form has."""


@attrs.frozen(kw_only=True)
class AudienceRequest:
    """The choices of a person for a list of contacts.

    Attributes:
        columns: The number of a column by field; `NO_COLUMN` for none. Without an entry, a field has the column of its
            name.
        corrections: Phone numbers in the place of those of the file, by the number of the row.
        leave: The campaigns whose contacts are left out.
        days: The number of days whose contacts are left out, as it was typed.
    """

    upload: str
    name: str
    channel: str
    agent: str
    region: str
    sheet: str
    columns: Mapping[str, str]
    corrections: Mapping[str, str]
    leave: tuple[str, ...]
    days: str

    def query(self) -> dict[str, object]:
        """Return it as the query of an address."""
        return {
            "upload": self.upload,
            "name": self.name,
            "channel": self.channel,
            "agent": self.agent,
            "region": self.region,
            "sheet": self.sheet,
            **{f"map_{name}": value for name, value in self.columns.items()},
            **{f"{_CORRECTION}{row}": number for row, number in self.corrections.items()},
            "leave": ",".join(self.leave),
            "days": self.days,
        }

    def reading(self, visit: Visit) -> ListRequest:
        """Return how the list is read.

        Raises:
            InvalidRequest: The region or the number of days is none.
        """
        mapped = {name: "" if value == NO_COLUMN else value for name, value in self.columns.items()}
        data: dict[str, Any] = {"map": mapped, "corrections": self.corrections}
        if self.region:
            data["region"] = self.region
        if self.sheet:
            data["sheet"] = self.sheet
        wanted = read_list_request(data, this_year=visit.now.year, carriers=())
        return attrs.evolve(wanted, leave_out=self._leave_out())

    def _leave_out(self) -> LeaveOut:
        days = self.days.strip()
        if days and not (days.isascii() and days.isdecimal() and len(days) <= 4):
            raise InvalidRequest.at("days", "must be a whole number of days")
        return LeaveOut(campaigns=self.leave, contacted_within_days=int(days) if days else None)

    async def new_campaign(self, visit: Visit, *, body: str = "") -> NewSmsCampaign | NewCallCampaign:
        """Return the draft that the contacts are loaded into; messages go out by the workspace's first number.

        Raises:
            InvalidRequest: The name is too long, or empty.
        """
        if self.channel == "call":
            return NewCallCampaign(name=self.name, agent_id=self.agent)
        numbers = (await visit.engine.numbers.list(visit.place.id, limit=100)).items
        first = next((one for one in numbers if one.carrier is not None), None)
        return NewSmsCampaign(
            name=self.name,
            body=body,
            carrier=None if first is None else first.carrier,
            from_number=None if first is None else first.phone,
        )


def request_of(given: Mapping[str, str]) -> AudienceRequest:
    """Return the choices of an address or a form; checked boxes of campaigns are named `leave_` and the id.

    Columns and rows that were chosen in one sheet are not those of another one.
    """
    sheet = given.get("sheet", "").strip()
    is_other_sheet = given.get(_SHOWN_SHEET, sheet).strip() != sheet
    leave = [one for one in given.get("leave", "").split(",") if one]
    leave += [name.removeprefix("leave_") for name in given if name.startswith("leave_") and given[name]]
    columns = {name: value for name in FIELDS if (value := given.get(f"map_{name}", "").strip())}
    corrections = {
        row: number.strip()
        for name, number in given.items()
        if name.startswith(_CORRECTION) and is_row(row := name.removeprefix(_CORRECTION)) and number.strip()
    }
    return AudienceRequest(
        upload=given.get("upload", ""),
        name=given.get("name", "").strip(),
        channel="call" if given.get("channel") == "call" else "sms",
        agent=given.get("agent", ""),
        region=given.get("region", "").strip(),
        sheet=sheet,
        columns={} if is_other_sheet else columns,
        corrections={} if is_other_sheet else dict(islice(corrections.items(), MAX_CORRECTIONS)),
        leave=tuple(dict.fromkeys(leave))[:MOST_LEFT_OUT],
        days=given.get("days", ""),
    )
