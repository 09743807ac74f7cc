"""Message templates with `{{name}}` and `{{name|fallback}}`, and the replies to keywords."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

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
    texts, placeholders = _parsed(template)
    pieces = list(texts)
    pieces[1::2] = [_value(one, values) for one in placeholders]
    return "".join(pieces)


class _Placeholder(NamedTuple):
    """The text between the braces, and its two sides; `name` is None without a bar."""

    whole: str
    name: str | None
    fallback: str


# A template is rendered for each of many contacts.
@functools.lru_cache(maxsize=512)
def _parsed(template: str) -> tuple[tuple[str, ...], tuple[_Placeholder, ...]]:
    """Return a template's texts and placeholders by turns, and the placeholders."""
    texts = tuple(_PLACEHOLDER.split(template))
    return texts, tuple(_placeholder(inner.strip()) for inner in texts[1::2])


def _placeholder(whole: str) -> _Placeholder:
    name, bar, fallback = whole.partition("|")
    return _Placeholder(whole, name.strip() if bar else None, fallback.strip())


def _value(placeholder: _Placeholder, values: Mapping[str, str]) -> str:
    value = values.get(placeholder.whole)
    if value is not None:
        return value
    value = values.get(placeholder.name, "") if placeholder.name is not None else ""
    return value if value.strip() else placeholder.fallback


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
    if custom_variables:
        for key, value in custom_variables.items():
            name = key.strip()
            # Of names that differ only in spaces the exact one takes precedence.
            if key == name or name not in values:
                values[name] = value if type(value) is str else as_text(value)
    # One by one: this runs for every contact, and a loop over pairs takes twice as long.
    if first_name:
        values["first_name"] = first_name
    if last_name:
        values["last_name"] = last_name
    if email:
        values["email"] = email
    if company:
        values["company"] = company
    if phone_number:
        values["phone_number"] = phone_number
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
