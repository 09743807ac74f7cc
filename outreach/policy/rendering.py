"""Message templates: `{{name}}` and `{{name|fallback}}` are replaced by a value, and nothing else happens."""

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
"""A name is whatever stands between the braces and holds none itself: keys come from people's spreadsheets.

No part of a text is scanned more than a few times, whatever braces it is made of."""


CONTACT_FIELDS: Final = ("first_name", "last_name", "email", "company", "phone_number")
"""The names that a contact's own fields have in a template (docs/interface.md#4.3)."""


def render(template: str, values: Mapping[str, str]) -> str:
    """Return a template with each `{{name}}` and `{{name|fallback}}` replaced.

    Spaces around name and fallback do not matter, the name's case does. A name without a value renders as its fallback,
    or as nothing; so does a blank value where there is a fallback. A value is text: placeholders in it stay as they
    are. A name may hold a bar itself: where there is a value for all of what stands between the braces, it counts.
    """
    return _PLACEHOLDER.sub(lambda match: _value(match[1].strip(), values), template)


def _value(inner: str, values: Mapping[str, str]) -> str:
    if inner in values:
        return values[inner]
    name, bar, fallback = inner.partition("|")
    value = values.get(name.strip(), "") if bar else ""
    return value if value.strip() else fallback.strip()


def unfilled(template: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the names that a template uses without a fallback and that are not known, in the order of first use.

    An empty name, as of `{{}}`, is one: a blank is sent for it too.
    """
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
    """Return the values that a contact gives to a template.

    The contact's own fields win over custom variables of the same name; a field that is null or empty does not
    take part. Spaces around a custom variable's name do not matter, as in the template.
    """
    values: dict[str, str] = {}
    for key, value in (custom_variables or {}).items():
        name = key.strip()
        # Of two names that differ in the spaces around them the one written exactly so wins.
        if key == name or name not in values:
            values[name] = as_text(value)
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
    """Return the values that a recipient gives to a template."""
    return recipient_values(
        phone_number=recipient.phone_number,
        first_name=recipient.first_name,
        last_name=recipient.last_name,
        email=recipient.email,
        company=recipient.company,
        custom_variables=recipient.custom_variables,
    )


def compose(template: str, values: Mapping[str, str], footer: str | None) -> str:
    """Return the text that is sent: the rendered template, then the footer on a line of its own.

    A blank footer adds nothing. Where the template renders to nothing but white space there is no message to
    put a footer under: the result is empty, and the caller must not send it.
    """
    text = render(template, values)
    if not text.strip():
        return ""
    if footer is None or not footer.strip():
        return text
    return f"{text}\n{footer}"


CONFIRMATION_DEADLINE: Final = timedelta(minutes=5)
"""A confirmation goes out within this of what it confirms, or never (47 CFR 64.1200(a)(12))."""

HELP_INTERVAL: Final = timedelta(hours=1)
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
