"""Message templates with `{{name}}` and `{{name|fallback}}`, and the replies to keywords."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from outreach.models.message import ReplyPurpose
from outreach.models.recipient import Recipient
from outreach.models.settings import ReplySettings, ReplyText
from outreach.policy.segments import count_segments
from outreach.policy.texts import JSON, as_text

_PLACEHOLDER: Final = re.compile(r"\{\{([^{}]*+)\}\}")
"""Any text without braces is a name, because keys come from spreadsheets; matching takes linear time."""


CONTACT_FIELDS: Final = ("first_name", "last_name", "email", "company", "phone_number")
"""The names of a contact's own fields in templates (docs/interface.md#4.3)."""


def render(template: str, values: Mapping[str, str]) -> str:
    """Return a template with each `{{name}}` and `{{name|fallback}}` replaced.

    Spaces around name and fallback are ignored, case matters. A missing value renders as its fallback or as nothing, a
    blank one as its fallback. Placeholders in values are not replaced. A value for the whole text between the braces,
    bar included, takes precedence.
    """
    return _PLACEHOLDER.sub(lambda match: _value(match[1].strip(), values), template)


def _value(inner: str, values: Mapping[str, str]) -> str:
    if inner in values:
        return values[inner]
    name, bar, fallback = inner.partition("|")
    value = values.get(name.strip(), "") if bar else ""
    return value if value.strip() else fallback.strip()


def unfilled(template: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the unknown names that a template uses without a fallback, in order; `{{}}` counts as an empty name."""
    names = (match[1].strip() for match in _PLACEHOLDER.finditer(template))
    return tuple(dict.fromkeys(name for name in names if name not in known and "|" not in name))


def recipient_values(
    *,
    phone_number: str,
    first_name: str | None = None,
    last_name: str | None = None,
    email: str | None = None,
    company: str | None = None,
    custom_variables: Mapping[str, JSON] | None = None,
) -> dict[str, str]:
    """Return a contact's values for a template.

    Its own fields take precedence over custom variables of the same name; empty fields are left out. Spaces around the
    names of custom variables are ignored.
    """
    values: dict[str, str] = {}
    for key, value in (custom_variables or {}).items():
        name = key.strip()
        # Of names that differ only in spaces the exact one takes precedence.
        if key == name or name not in values:
            values[name] = value if type(value) is str else as_text(value)
    fields = {
        "first_name": first_name,
        "last_name": last_name,
        "email": email,
        "company": company,
        "phone_number": phone_number,
    }
    values.update((name, field) for name, field in fields.items() if field)
    return values


def values_of(recipient: Recipient) -> dict[str, str]:
    """Return a recipient's values for a template."""
    return recipient_values(
        phone_number=recipient.phone_number,
        first_name=recipient.first_name,
        last_name=recipient.last_name,
        email=recipient.email,
        company=recipient.company,
        custom_variables=recipient.custom_variables,
    )


def compose(template: str, values: Mapping[str, str], footer: str | None) -> str:
    """Return the text to send: the rendered template, then the footer on its own line.

    A blank footer adds nothing. The result is empty if the template renders blank, and must not be sent.
    """
    text = render(template, values)
    if not text.strip():
        return ""
    if footer is None or not footer.strip():
        return text
    return f"{text}\n{footer}"


CONFIRMATION_DEADLINE: Final = timedelta(minutes=5)
"""A confirmation is sent within this time or never (47 CFR 64.1200(a)(12))."""

HELP_INTERVAL: Final = timedelta(hours=1)
"""A number gets one reply to HELP in this time, which ends loops between two machines."""

_DEFAULTS: Final[Mapping[ReplyPurpose, str]] = MappingProxyType(
    {
        "opt_out_confirmation": "{name}: You are unsubscribed and will get no more messages. "
        "Reply START to subscribe again.",
        "opt_in_confirmation": "{name}: You are subscribed again. Msg & data rates may apply. "
        "Reply HELP for help, STOP to opt out.",
        "help": "{name}: Msg frequency varies. Msg & data rates may apply. Reply STOP to opt out.",
    }
)
"""Brand, rates and opt-out, as carriers require; only the sender can add how to reach them."""


def reply_text(settings: ReplySettings, purpose: ReplyPurpose, workspace_name: str) -> ReplyText:
    """Return a workspace's own reply, or the default, which begins with the workspace's name."""
    own = {
        "opt_out_confirmation": settings.stop_text,
        "opt_in_confirmation": settings.start_text,
        "help": settings.help_text,
    }
    # Not `format`: a name may contain braces.
    text = own[purpose] or _DEFAULTS[purpose].replace("{name}", workspace_name)
    return ReplyText(purpose=purpose, text=text, segments=count_segments(text).segments)
