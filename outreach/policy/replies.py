"""What a workspace answers to STOP, START and HELP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

import attrs

from outreach.models.message import ReplyPurpose
from outreach.models.settings import ReplySettings
from outreach.policy.segments import count_segments

CONFIRM_WITHIN: Final = timedelta(minutes=5)
"""A confirmation goes out within this of what it confirms, or never (47 CFR 64.1200(a)(12))."""

HELP_EVERY: Final = timedelta(hours=1)
"""A number gets one answer to HELP in this time: two machines that answer each other come to an end."""

_DEFAULTS: Final[Mapping[ReplyPurpose, str]] = MappingProxyType(
    {
        "opt_out_confirmation": "{name}: You are unsubscribed and will get no more messages. "
        "Reply START to subscribe again.",
        "opt_in_confirmation": "{name}: You are subscribed again. Msg & data rates may apply. "
        "Reply HELP for help, STOP to opt out.",
        "help": "{name}: Msg frequency varies. Msg & data rates may apply. Reply STOP to opt out.",
    }
)
"""Brand, rates and the way out, as the carriers ask for them; how to reach the sender only the sender can say."""


@attrs.frozen(kw_only=True)
class ReplyText:
    """One answer as it is sent.

    Attributes:
        segments: How many segments it takes.
    """

    purpose: ReplyPurpose
    text: str
    segments: int


def reply_text(settings: ReplySettings, purpose: ReplyPurpose, workspace_name: str) -> ReplyText:
    """Return what a workspace answers: its own text, else the default, which begins with the workspace's name."""
    own = {
        "opt_out_confirmation": settings.stop_text,
        "opt_in_confirmation": settings.start_text,
        "help": settings.help_text,
    }
    # Not `format`: a name may hold braces.
    text = own[purpose] or _DEFAULTS[purpose].replace("{name}", workspace_name)
    return ReplyText(purpose=purpose, text=text, segments=count_segments(text).segments)
