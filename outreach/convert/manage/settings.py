"""The settings of a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from outreach.convert.field_rules import Integer, OrNull, Text, boolean
from outreach.convert.json_responses import write_sms_settings
from outreach.convert.manage.bodies import read_object
from outreach.convert.manage.documents import document_of
from outreach.convert.request_converter import make_request_converter
from outreach.models.message import ReplyPurpose
from outreach.models.settings import (
    CallSettings,
    CallSettingsUpdate,
    ReplySettings,
    ReplySettingsUpdate,
    ReplyText,
    SmsSettings,
)
from outreach.models.workspace import Workspace

_REPLIES: Final[dict[ReplyPurpose, str]] = {
    "opt_out_confirmation": "stop",
    "opt_in_confirmation": "start",
    "help": "help",
}
_REPLY: Final = OrNull(Text(maximum=320))

_read_calls: Final = make_request_converter(
    CallSettingsUpdate,
    {"retry_max_attempts": Integer(1, 10), "retry_delay_minutes": Integer(1, 1440)},
    closed="the settings of calls",
)
_read_replies: Final = make_request_converter(
    ReplySettingsUpdate,
    {
        "enabled": boolean,
        "stop_text": _REPLY,
        "start_text": _REPLY,
        "help_text": _REPLY,
        "help_when_opted_out": boolean,
    },
    closed="the settings of replies",
)


def read_call_settings_update(data: Any) -> CallSettingsUpdate:
    """Return the update of a body of PATCH /manage/settings/calls.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_calls, data)


def read_reply_settings_update(data: Any) -> ReplySettingsUpdate:
    """Return the update of a body of PATCH /manage/settings/replies.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_replies, data)


def write_settings(
    workspace: Workspace,
    messages: SmsSettings,
    calls: CallSettings,
    replies: ReplySettings,
    texts: Sequence[ReplyText],
) -> dict[str, Any]:
    """Return all settings of a workspace."""
    return {
        "workspace": document_of(workspace, "revision"),
        "sms": write_sms_settings(messages),
        "calls": write_call_settings(calls),
        "replies": write_reply_settings(replies, texts),
    }


def write_call_settings(settings: CallSettings) -> dict[str, Any]:
    """Return the settings of calling campaigns."""
    return document_of(settings)


def write_reply_settings(settings: ReplySettings, texts: Sequence[ReplyText]) -> dict[str, Any]:
    """Return the settings of replies to keywords, with the texts and segments as they are sent."""
    sent = {_REPLIES[one.purpose]: one for one in texts}
    return {
        **document_of(settings),
        "effective": {name: {"text": one.text, "segments": one.segments} for name, one in sent.items()},
    }
