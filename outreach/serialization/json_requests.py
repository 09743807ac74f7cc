"""Readers of single calls, single messages and updates of settings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from outreach.models.base import CARRIERS
from outreach.models.call import DIALABLE_NUMBER, NewCall
from outreach.models.fields import OneOf, check_value
from outreach.models.message import NewMessage
from outreach.models.metadata import METADATA
from outreach.models.settings import SmsSettingsUpdate
from outreach.serialization.field_rules import uuid, variables
from outreach.serialization.request_converter import json_rule, make_request_converter, read_object

_read_call: Final = make_request_converter(NewCall, {"agent_id": uuid, "variables": variables})


@functools.lru_cache(maxsize=4)
def _message_reader(carriers: tuple[str, ...]) -> Callable[[Any], NewMessage]:
    return make_request_converter(NewMessage, {"to": DIALABLE_NUMBER, "carrier": OneOf((*CARRIERS, *carriers))})


_read_settings: Final = make_request_converter(SmsSettingsUpdate, closed="the SMS settings")


def read_new_call(data: Any) -> NewCall:
    """Return the call of a body of POST /calls; unknown fields are ignored.

    Raises:
        InvalidRequest: A rule of docs/interface.md#4.1 is broken; the details name each place.
    """
    return read_object(_read_call, data)


def read_new_message(data: Any, *, carriers: Sequence[str] = ()) -> NewMessage:
    """Return the message of a body of POST /sms; unknown fields are ignored.

    Args:
        data: The parsed JSON, see `parse_json`.
        carriers: Carriers that are accepted beside those of the interface.

    Raises:
        InvalidRequest: A rule is broken; the details name each place.
    """
    return read_object(_message_reader(tuple(carriers)), data)


def read_metadata(data: Any) -> dict[str, Any]:
    """Return metadata, a JSON object of at most 4,096 bytes.

    Args:
        data: The parsed JSON, see `parse_json`.

    Raises:
        InvalidRequest: It is no such object, or holds a number of more than 64 bits.
    """
    found: dict[str, Any] = check_value("metadata", data, json_rule(METADATA))
    return found


def read_sms_settings_update(data: Any) -> SmsSettingsUpdate:
    """Return the update of a body of PATCH /sms/settings; unknown fields are refused.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_settings, data)
