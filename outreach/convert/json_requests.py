"""Readers of single calls, single messages and updates of settings."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from outreach.convert.field_rules import (
    Array,
    OneOf,
    OrNull,
    Refused,
    Text,
    uuid,
    variables,
)
from outreach.convert.request_converter import make_request_converter
from outreach.errors import InvalidRequest
from outreach.models.base import CARRIERS
from outreach.models.call import NewCall
from outreach.models.message import NewMessage
from outreach.models.settings import SmsSettings, SmsSettingsUpdate

T = TypeVar("T")

_DIALABLE: Final = Text(
    pattern=re.compile(r"\+?[1-9][0-9]{6,14}"),
    meaning="must be 7 to 15 digits with an optional leading +, like +14155550102",
)
_VARIABLE_NAME: Final = Text(
    pattern=re.compile(r"[A-Za-z0-9_]{1,40}"), meaning="must be 1 to 40 letters, digits and underscores"
)

_read_call = make_request_converter(NewCall, {"agent_id": uuid, "to": _DIALABLE, "variables": variables})


@functools.lru_cache(maxsize=4)
def _message_reader(carriers: tuple[str, ...]) -> Callable[[Any], NewMessage]:
    return make_request_converter(
        NewMessage,
        {
            "to": _DIALABLE,
            "from_number": OrNull(Text()),
            "carrier": OrNull(OneOf((*CARRIERS, *carriers))),
        },
    )


_read_settings = make_request_converter(
    SmsSettingsUpdate,
    {"custom_variables": Array(_VARIABLE_NAME)},
    bounds=SmsSettings,
    closed="the SMS settings",
)


def read_new_call(data: Any) -> NewCall:
    """Return the call of a body of POST /calls; unknown fields are ignored.

    Raises:
        InvalidRequest: A rule of docs/interface.md#4.1 is broken; the details name each place.
    """
    return _read(_read_call, data)


def read_new_message(data: Any, *, carriers: Sequence[str] = ()) -> NewMessage:
    """Return the message of a body of POST /sms; unknown fields are ignored.

    Args:
        data: The parsed JSON, see `parse_json`.
        carriers: Carriers that are accepted beside those of the interface.

    Raises:
        InvalidRequest: A rule is broken; the details name each place.
    """
    return _read(_message_reader(tuple(carriers)), data)


def read_sms_settings_update(data: Any) -> SmsSettingsUpdate:
    """Return the update of a body of PATCH /sms/settings; unknown fields are refused.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return _read(_read_settings, data)


def _read(reader: Callable[[Any], T], data: Any) -> T:
    if type(data) is not dict:
        raise InvalidRequest.at("", "The body must be a JSON object.")
    try:
        return reader(data)
    except Refused as refused:
        raise InvalidRequest(details=refused.details) from None
