"""The unsubscribe register."""

from __future__ import annotations

from typing import Any, Final, get_args

import attrs

from outreach.convert.field_rules import Array, OneOf, OrNull, Refused, Text, boolean
from outreach.convert.manage.bodies import read_object
from outreach.convert.manage.documents import document_of
from outreach.convert.request_converter import make_request_converter
from outreach.models.unsubscribe import NewUnsubscribes, Unsubscribe, UnsubscribeScope

_MAX_NUMBERS: Final = 1000
_MAX_EVIDENCE: Final = 1000
_MAX_NUMBER_LENGTH: Final = 64


@attrs.frozen(kw_only=True)
class Decision:
    """What a person has decided about a held number.

    Attributes:
        opted_out: Whether its message was an opt-out.
    """

    opted_out: bool


def _numbers(value: Any) -> tuple[str, ...]:
    if type(value) is list and len(value) > _MAX_NUMBERS:
        raise Refused(f"must have at most {_MAX_NUMBERS} elements, has {len(value)}")
    return Array(Text(minimum=1, maximum=_MAX_NUMBER_LENGTH), minimum=1)(value)


_read_new: Final = make_request_converter(
    NewUnsubscribes,
    {
        "phone_numbers": _numbers,
        "scope": OneOf(get_args(UnsubscribeScope)),
        "evidence": OrNull(Text(maximum=_MAX_EVIDENCE)),
    },
    closed="an addition to the register",
)
_read_decision: Final = make_request_converter(Decision, {"opted_out": boolean}, closed="a decision")


def read_new_unsubscribes(data: Any) -> NewUnsubscribes:
    """Return the numbers of a body of POST /manage/unsubscribes.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_new, data)


def read_decision(data: Any) -> bool:
    """Return whether a body of POST /manage/unsubscribes/{phone}/resolve says that it was an opt-out.

    Raises:
        InvalidRequest: A field is unknown or of another type; the details name each place.
    """
    return read_object(_read_decision, data).opted_out


def write_unsubscribe(entry: Unsubscribe) -> dict[str, Any]:
    """Return an entry of the register."""
    return document_of(entry, "workspace_id")
