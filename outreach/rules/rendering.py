"""Message templates with `{{name}}` and `{{name|fallback}}`, and the replies to keywords."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from outreach.core.meant.date_formats import date_format, read_date, read_time
from outreach.models.message import ReplyPurpose
from outreach.models.recipient import Recipient
from outreach.models.settings import ReplySettings, ReplyText
from outreach.rules.segments import count_segments, plain_form
from outreach.rules.texts import JSON, as_text, composed, is_blank, name_spellings

PLACEHOLDER: Final = re.compile(r"\{\{([^{}]*+)\}\}")
"""Any text without braces is a name, because keys come from spreadsheets; matching takes linear time."""


_DATE: Final = "date:"

CONTACT_FIELDS: Final = ("first_name", "last_name", "email", "company", "phone_number")
"""The names of a contact's own fields in templates (docs/interface.md#4.3)."""


def render(template: str, values: Mapping[str, str]) -> str:
    """Return a template with each `{{name}}`, `{{name|fallback}}` and `{{name|date:FORMAT|fallback}}` replaced.

    Spaces around name and fallback are ignored, case matters. A missing value renders as its fallback or as nothing, a
    blank one as its fallback. Placeholders in values are not replaced. A value for the whole text between the braces,
    bar included, takes precedence. A value that is no date, or has no time of day for its format, renders as it is.
    """
    texts, placeholders = _parsed(template)
    pieces = list(texts)
    pieces[1::2] = [_value(one, values) for one in placeholders]
    return "".join(pieces)


class Placeholder(NamedTuple):
    """What stands between the braces.

    Attributes:
        whole: All of it, in the spellings that it is compared by.
        name: The part before the first bar, in the same spellings; the whole without a bar.
        fallback: What stands for a missing value; None without one.
        date: The format of a date; None without one.
        moment: The names of the date itself (`moment_name`); none without a format.
    """

    whole: tuple[str, ...]
    name: tuple[str, ...]
    fallback: str | None
    date: str | None
    moment: tuple[str, ...] = ()

    @property
    def written(self) -> str:
        """The name as it is shown."""
        return self.name[0]


def placeholders_of(template: str) -> tuple[Placeholder, ...]:
    """Return the placeholders of a template, in order."""
    return _parsed(template)[1]


# A template is rendered for each of many contacts.
@functools.lru_cache(maxsize=512)
def _parsed(template: str) -> tuple[tuple[str, ...], tuple[Placeholder, ...]]:
    """Return a template's texts and placeholders by turns, and the placeholders."""
    texts = tuple(PLACEHOLDER.split(template))
    return texts, tuple(_placeholder(inner.strip()) for inner in texts[1::2])


def _placeholder(inner: str) -> Placeholder:
    name, bar, rest = inner.partition("|")
    date = None
    moment: tuple[str, ...] = ()
    if rest.lstrip().startswith(_DATE):
        moment = tuple(map(moment_name, name_spellings(name)))
        date, bar, rest = rest.lstrip().removeprefix(_DATE).partition("|")
    return Placeholder(
        name_spellings(inner),
        name_spellings(name),
        rest.strip() if bar else None,
        None if date is None else date.strip(),
        moment,
    )


def moment_name(name: str) -> str:
    """Return the name of the variable that keeps a date as ISO 8601 beside the value of `name`, which shows it.

    A placeholder with a date format takes it first; `{{name}}` takes the value as it is shown.
    """
    return f"{name}|{_DATE}"


def _value(placeholder: Placeholder, values: Mapping[str, str]) -> str:
    value = _first(placeholder.whole, values)
    if value is not None:
        # Also a blank one: a name without a fallback shows what the contact has.
        return value
    value = _first(placeholder.moment + placeholder.name, values)
    if value is None or is_blank(value):
        return placeholder.fallback or ""
    return value if placeholder.date is None else in_date_format(value, placeholder.date) or value


def _first(names: tuple[str, ...], values: Mapping[str, str]) -> str | None:
    for name in names:
        if name in values:
            return values[name]
    return None


def in_date_format(value: str, code: str) -> str | None:
    """Return a date, or a time for a format of times, in the format.

    None if the value is none, has no time of day where the format writes one, or the format is not understood.
    """
    wanted = date_format(code)
    if wanted is None:
        return None
    moment = read_date(value, with_time=wanted.has_time) or (read_time(value) if wanted.is_of_time else None)
    return None if moment is None else wanted.write(moment)


def value_of(placeholder: Placeholder, values: Mapping[str, str]) -> str | None:
    """Return the contact's value of a placeholder; None if it has none that shows."""
    value = _first(placeholder.whole, values)
    if value is None:
        value = _first(placeholder.moment + placeholder.name, values)
    return None if value is None or is_blank(value) else value


def unfilled(template: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the unknown names that a template uses without a fallback, in order; `{{}}` counts as an empty name."""
    spellings = {spelling for name in known for spelling in name_spellings(name)}
    found = (
        one.written
        for one in placeholders_of(template)
        if one.fallback is None and spellings.isdisjoint((*one.whole, *one.name))
    )
    return tuple(dict.fromkeys(found))


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
            for name in (key.strip(),) if key.isascii() else name_spellings(key):
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


def compose(template: str, values: Mapping[str, str], footer: str | None, *, replaces: bool | None = False) -> str:
    """Return the text to send: the rendered template, then the footer on its own line.

    With `replaces` its typographic characters have their plain forms (`Campaign.replace_characters`).

    A blank footer adds nothing. The result is empty if the template renders blank, and must not be sent.
    """
    # Composed here too: contacts and texts that an older version stored may not be.
    text = composed(render(template, values))
    if is_blank(text):
        return ""
    if footer is not None and not is_blank(footer):
        text = f"{text}\n{composed(footer)}"
    return plain_form(text) if replaces else text


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
    text = composed(text)
    return ReplyText(purpose=purpose, text=text, segments=count_segments(text).segments)
