"""The body that says how to read an uploaded list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from outreach import InvalidRequest, NewCallCampaign, NewSmsCampaign
from outreach.errors import Problem
from outreach.http import read_campaign_of_upload, read_leave_out
from outreach.models import LeaveOut
from outreach.server_support import region_of_country, require_object
from outreach_server.lists.contact_columns import FIELDS, field_of
from outreach_server.lists.csv_lines import is_encoding
from outreach_server.lists.csv_records import DELIMITERS, delimiter_of
from outreach_server.lists.reading import ListOptions

_MAX_TEXT: Final = 4_000
MAX_CORRECTIONS: Final = 100
_ROW: Final = re.compile(r"[1-9][0-9]{0,8}")


@attrs.frozen(kw_only=True)
class ListRequest:
    """How to read an uploaded list, and what its contacts are to get.

    Attributes:
        options: How to read it, without the file's name and the texts.
        campaign: The campaign; None if there is none yet.
        leave_out: Which contacts to leave out; None for none.
        campaign_id: The campaign that is to get them, of an addition.
    """

    options: Mapping[str, Any]
    campaign: NewSmsCampaign | NewCallCampaign | None
    leave_out: LeaveOut | None = None
    campaign_id: str = ""

    def reading(self, **more: Any) -> ListOptions:
        """Return how to read the list, given the rest."""
        return ListOptions(**{**self.options, **more})


def read_list_request(data: Any, *, this_year: int, carriers: Sequence[str], needs: str | None = None) -> ListRequest:
    """Return the request of a body of POST /manage/uploads/{id}/check, rejects, load or add.

    Args:
        data: The body.
        this_year: The year of times without one.
        carriers: The names of carriers.
        needs: The field that must be there: `campaign` for a load, `campaign_id` for an addition.

    Raises:
        InvalidRequest: A field is unknown or invalid; the details name each place.
    """
    require_object(data)
    details: list[Problem] = []
    options: dict[str, Any] = {}
    campaign, leave_out, campaign_id = None, None, ""
    fields = (*_READERS, "leave_out", "campaign_id" if needs == "campaign_id" else "campaign")
    for name, value in data.items():
        try:
            if value is None and name in fields:
                continue
            if name not in fields:
                raise InvalidRequest.at(name, f"is not a field of this operation; it has {', '.join(fields)}")
            if name == "campaign":
                campaign = _read_campaign(value, this_year, carriers)
            elif name == "leave_out":
                leave_out = read_leave_out({"leave_out": value})
            elif name == "campaign_id":
                campaign_id = _identifier(value)
            else:
                option, read = _READERS[name]
                options[option] = read(value)
        except InvalidRequest as error:
            details += error.details
    if needs is not None and data.get(needs) is None:
        details.append(Problem(path=needs, message="is required"))
    if details:
        raise InvalidRequest(details=details)
    return ListRequest(options=options, campaign=campaign, leave_out=leave_out, campaign_id=campaign_id)


def is_row(text: str) -> bool:
    """Return whether a text is the number of a row, from 1."""
    return _ROW.fullmatch(text) is not None


def in_campaign(error: InvalidRequest) -> InvalidRequest:
    """Return an error about a campaign as one about the field `campaign`, if it names places.

    `leave_out` and the headers stay.
    """
    return error if not error.details else InvalidRequest(details=list(_under("campaign", error.details)))


def _under(field: str, details: Sequence[Problem]) -> Iterator[Problem]:
    for one in details:
        if one.path.startswith(("leave_out", "Idempotency-")):
            yield one
        else:
            yield attrs.evolve(one, path=f"{field}.{one.path}" if one.path else field)


def _read_campaign(value: Any, this_year: int, carriers: Sequence[str]) -> NewSmsCampaign | NewCallCampaign:
    try:
        return read_campaign_of_upload(value, this_year=this_year, carriers=carriers)
    except InvalidRequest as error:
        raise in_campaign(error) from None


def _text(path: str, value: Any) -> str:
    if type(value) is not str or len(value) > _MAX_TEXT or "\0" in value:
        raise InvalidRequest.at(path, f"must be a text of at most {_MAX_TEXT} characters, without NUL")
    return value


def _identifier(value: Any) -> str:
    if not (text := _text("campaign_id", value)):
        raise InvalidRequest.at("campaign_id", "must name a campaign")
    return text


def _mapping(value: Any) -> Mapping[str, str]:
    if type(value) is not dict:
        raise InvalidRequest.at("map", "must be an object: the name or number of a column by field")
    found: dict[str, str] = {}
    for name, column in value.items():
        field = field_of(name)
        if field is None or field in found:
            raise InvalidRequest.at("map", f"has {name[:40]!r}, but each field is one of {', '.join(FIELDS)}, once")
        found[field] = _text(f"map.{name}", column).strip()
    if found.get("phone_number") == "":
        raise InvalidRequest.at("map", "must name a column for phone_number, or leave it out")
    return found


def _region(value: Any) -> str:
    region = region_of_country(_text("region", value))
    if region is None:
        raise InvalidRequest.at("region", "must be the two-letter code of a region of phone numbers, such as US")
    return region


def _encoding(value: Any) -> str:
    if not is_encoding(name := _text("encoding", value)):
        raise InvalidRequest.at("encoding", "must be a text encoding, such as utf-8, cp1252 or utf-16")
    return name


def _delimiter(value: Any) -> str:
    character = delimiter_of(_text("delimiter", value))
    if character is None:
        raise InvalidRequest.at("delimiter", f"must be auto, one character, or one of {', '.join(DELIMITERS)}")
    return character


def _corrections(value: Any) -> Mapping[str, str]:
    if type(value) is not dict or len(value) > MAX_CORRECTIONS:
        raise InvalidRequest.at(
            "corrections", f"must be an object with at most {MAX_CORRECTIONS} numbers by the number of their row"
        )
    for row in value:
        if not is_row(row):
            raise InvalidRequest.at("corrections", f"has {row[:40]!r}, which is not the number of a row")
    return {row: _text(f"corrections.{row}", number) for row, number in value.items()}


def _sheet(value: Any) -> str:
    return _text("sheet", value)


_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "map": ("mapped", _mapping),
    "region": ("region", _region),
    "sheet": ("sheet", _sheet),
    "encoding": ("encoding", _encoding),
    "delimiter": ("delimiter", _delimiter),
    "corrections": ("corrections", _corrections),
}
"""The option and the reader of each field."""
