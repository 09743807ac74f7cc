"""Message templates with `{{name}}` and `{{name|fallback}}`, replies to keywords, and mistakes in placeholders.

Mistakes are names of columns, spellings of other programs, and missing values.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from outreach.core.meant.date_formats import date_format, format_meant, read_date, read_time, text_like_a_code
from outreach.models.campaign import Campaign, NewRecipient, Recipient
from outreach.models.preflight import ContactExample, PlaceholderProblem
from outreach.models.resources import Agent
from outreach.models.settings import ReplyPurpose, ReplySettings, ReplyText
from outreach.models.text_warning import TextWarning
from outreach.rules.column_names import REPLACED, Field, decoded_once, fields_of_headers, usual_field
from outreach.rules.segments import JSON, as_text, composed, count_segments, is_blank, name_spellings, plain_form

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
    """A placeholder: the text between the braces.

    Attributes:
        whole: All of it, in the spellings that it is compared by.
        name: The part before the first bar, in the same spellings; the whole without a bar.
        fallback: The text in place of a missing value; None without one.
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


def values_of(recipient: Recipient | NewRecipient) -> dict[str, str]:
    """Return a contact's values for a template."""
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


Problem = Literal["no_value", "no_date", "no_time"]

MAX_EXAMPLES: Final = 5
MAX_WARNINGS: Final = 50


def with_field_names(template: str, headers: Sequence[str], variables: Sequence[str] | None) -> str:
    """Return a text whose placeholders name a contact's fields, where they named the columns that the fields came from.

    `{{Vorname}}` becomes `{{first_name}}` if the list had that column and the contacts have no variable of this name.

    Args:
        template: The text.
        headers: The columns of the list.
        variables: The names of the contacts' variables; None if they are unknown.
    """
    if not headers or variables is None or "{{" not in template:
        return template
    return _renamed(template, tuple(headers), tuple(variables))


def template_of(campaign: Campaign, text: str | None) -> str:
    """Return a text of a campaign with the names of fields in its placeholders."""
    return with_field_names(text or "", campaign.csv_column_headers, campaign.variable_names)


def field_columns(campaign: Campaign) -> Mapping[str, Field]:
    """Return which columns of a campaign's list are fields of its contacts, by the spellings of their names."""
    if campaign.variable_names is None:
        # They are too many to be known, and the columns may be among them.
        return {}
    return _field_columns(tuple(campaign.csv_column_headers), campaign.variable_names)


def expected_names(agent: Agent | None) -> Sequence[str]:
    """Return the variables that an agent expects, without the engine's own.

    The engine's own begin with an underscore (`docs/voice-variables.md`).
    """
    expected = (agent.placeholders if agent is not None else None) or ()
    return tuple(name for name in dict.fromkeys(expected) if not name.startswith("_"))


def values_for(campaign: Campaign, agent: Agent | None, recipient: Recipient) -> dict[str, str]:
    """Return a contact's values for a template or an agent, also by the names of columns that the agent expects."""
    values = values_of(recipient)
    columns = field_columns(campaign) if agent is not None and agent.placeholders else {}
    for name in agent.placeholders or () if agent is not None and columns else ():
        field = next((columns[one] for one in name_spellings(name) if one in columns), None)
        if field is not None and field in values:
            values.setdefault(name, values[field])
    return values


# Asked for with each contact.
@functools.lru_cache(maxsize=512)
def _renamed(template: str, headers: tuple[str, ...], variables: tuple[str, ...]) -> str:
    fields = _field_columns(headers, variables)

    def name(found: re.Match[str]) -> str:
        inner = found[1]
        column, bar, rest = inner.partition("|")
        for whole, more in ((inner, ""), (column, bar + rest)):
            field = next((fields[one] for one in name_spellings(whole) if one in fields), None)
            if field is not None:
                return f"{{{{{field}{more}}}}}"
        return found[0]

    return PLACEHOLDER.sub(name, template)


@functools.lru_cache(maxsize=64)
def _field_columns(headers: tuple[str, ...], variables: tuple[str, ...]) -> Mapping[str, Field]:
    taken = {spelling for name in variables for spelling in name_spellings(name)}
    found = {
        spelling: field for header, field in fields_of_headers(headers).items() for spelling in name_spellings(header)
    }
    return {spelling: field for spelling, field in found.items() if spelling not in taken}


class PlaceholderTally:
    """Counts, for each name, the contacts without a value, and those whose value is no date, or has no time, as wanted.

    A date format that is not understood counts nothing: `text_warnings` names it.

    Args:
        templates: The texts.
        expected: Names that a voice agent expects.
    """

    def __init__(self, templates: Iterable[str], expected: Iterable[str] = ()) -> None:
        found = [one for template in templates for one in placeholders_of(template)]
        found += [Placeholder(name_spellings(name), name_spellings(name), None, None) for name in expected]
        self._needed: dict[str, Placeholder] = {}
        self._dates: dict[str, list[Placeholder]] = {}
        for one in dict.fromkeys(found):
            if one.fallback is None:
                self._needed.setdefault(one.written, one)
            if one.date is not None and date_format(one.date) is not None:
                self._dates.setdefault(one.written, []).append(one)
        self._counts: dict[tuple[Problem, str], int] = {}
        self._examples: dict[tuple[Problem, str], list[ContactExample]] = {}

    def see(self, values: Mapping[str, str], position: int, phone_number: str, detail: str | None = None) -> None:
        """Count a contact.

        Args:
            values: The values that replace its placeholders.
            position: Its place in the list, from 0.
            phone_number: Its number as supplied.
            detail: Where it is, in words.
        """
        for name, placeholder in self._needed.items():
            if value_of(placeholder, values) is None:
                self._add("no_value", name, position, phone_number, detail)
        for name, placeholders in self._dates.items():
            found = ((value_of(one, values), one.date or "") for one in placeholders)
            wrong = next((value for value, code in found if value and in_date_format(value, code) is None), None)
            if wrong is not None:
                shown = repr(wrong[:40])
                more = shown if detail is None else f"{detail}: {shown}"
                # A date that the format cannot write lacks the time of day.
                problem: Problem = "no_date" if read_date(wrong) is None else "no_time"
                self._add(problem, name, position, phone_number, more)

    def _add(self, problem: Problem, name: str, position: int, phone_number: str, detail: str | None) -> None:
        key = problem, name
        self._counts[key] = self._counts.get(key, 0) + 1
        examples = self._examples.setdefault(key, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(ContactExample(position=position, phone_number=phone_number, detail=detail))

    def problems(self) -> tuple[PlaceholderProblem, ...]:
        """Return what was counted, the most frequent first."""
        found = [
            PlaceholderProblem(
                name=name,
                problem=problem,
                date=self._needed[name].date if problem == "no_value" else self._dates[name][0].date,
                count=count,
                examples=tuple(self._examples[problem, name]),
            )
            for (problem, name), count in self._counts.items()
        ]
        return tuple(sorted(found, key=lambda one: -one.count))


_NAME: Final = r"[^\W\d][\w .\-]{0,59}"
_TRIPLE: Final = re.compile(rf"\{{\{{\{{\s*(?P<name>{_NAME}?)\s*\}}\}}\}}")
_FOREIGN: Final = re.compile(
    rf"\*\|\s*(?P<star>{_NAME}?)\s*\|\*"
    rf"|\{{\{{\s*(?P<open>[^\W\d][\w.\-]{{0,59}})(?:\s*\}})?"
    rf"|[$#]?\{{\s*(?P<brace>{_NAME}?)\s*\}}\}}?"
    rf"|(?P<tag>\{{%.{{0,200}}?%\}})"
    rf"|\(\(\s*(?P<round>{_NAME}?)\s*\)\)"
    rf"|\[\[\s*(?P<square>{_NAME}?)\s*\]\]"
    rf"|<<\s*(?P<angle>{_NAME}?)\s*>>"
    rf"|\u00ab\s*(?P<quote>{_NAME}?)\s*\u00bb"
    rf"|%%\s*(?P<percent>{_NAME}?)\s*%%"
    rf"|(?P<close>[^\W\d][\w.\-]{{0,59}})\s*\}}\}}"
    # Characters that a text may hold for their own sake: only with a name that is known.
    rf"|\[\s*(?P<weak_square>{_NAME}?)\s*\]"
    rf"|<\s*(?P<weak_angle>{_NAME}?)\s*>"
    rf"|%\s*(?P<weak_percent>{_NAME}?)\s*%"
    rf"|#\s*(?P<weak_hash>{_NAME}?)\s*#"
)
_QUOTES: Final = "[\"'\u201c\u201d\u2018\u2019()]*"
_DEFAULT: Final = re.compile(rf"default\s*:?\s*{_QUOTES}(?P<fallback>.*?){_QUOTES}")
_LETTERS: Final = re.compile(r"[\W_]+")


def text_warnings(template: str, names: Sequence[str]) -> tuple[TextWarning, ...]:
    """Return what a text most likely means otherwise but is sent as it is, each with the right spelling if it is known.

    That is what looks like a placeholder of another program, and words whose characters are damaged.

    Args:
        template: The text.
        names: The names that have values.
    """
    known = {_loose(name): name_spellings(name)[0] for name in reversed(names)}
    found: dict[str, TextWarning] = {}
    rest = template
    for triple in _TRIPLE.finditer(template):
        _note(found, triple[0], _right(triple["name"], known), "keeps its outer braces")
        rest = rest.replace(triple[0], " ")
    exact = {spelling for name in names for spelling in name_spellings(name)}
    for own in PLACEHOLDER.finditer(rest):
        _check_own(found, own[0], known, exact)
    for foreign in _FOREIGN.finditer(PLACEHOLDER.sub("\0", rest)):
        kind = foreign.lastgroup or ""
        if kind == "tag":
            _note(found, foreign[0], None, "is sent as it is: there are no tags")
        elif not kind.startswith("weak") or _is_known(foreign[kind], known):
            _note(found, foreign[0], _right(foreign[kind], known), "is sent as it is")
    _check_letters(found, template)
    return tuple(found.values())[:MAX_WARNINGS]


def footer_warnings(footer: str) -> tuple[TextWarning, ...]:
    """Return the placeholders of a footer, which are sent as they are."""
    found: dict[str, TextWarning] = {}
    for own in PLACEHOLDER.finditer(footer):
        _note(found, own[0], None, "is sent as it is: a footer has no placeholders")
    return tuple(found.values())


def _check_letters(found: dict[str, TextWarning], template: str) -> None:
    """Note the words of a text whose characters were replaced or encoded twice."""
    for word in () if template.isascii() else template.split():
        once = decoded_once(word)
        if REPLACED in word:
            _note(found, word, None, f"has a character that was lost ({REPLACED}), and is sent as it is")
        elif once is not None:
            _note(found, word, once, "was probably encoded twice, and is sent as it is")


def _check_own(found: dict[str, TextWarning], written: str, known: Mapping[str, str], exact: AbstractSet[str]) -> None:
    """Note a placeholder of this program with a filter, a name or a date format that it does not have."""
    _, bar, rest = written.removeprefix("{{").removesuffix("}}").partition("|")
    default = _DEFAULT.fullmatch(rest.strip()) if bar else None
    (parsed,) = placeholders_of(written)
    if default is not None:
        _note(found, written, f"{{{{{parsed.written}|{default['fallback']}}}}}", f"falls back to {rest.strip()!r}")
    elif parsed.date is not None and (doubt := _doubt(parsed.date)) is not None:
        code = format_meant(parsed.date)
        fallback = "" if parsed.fallback is None else f"|{parsed.fallback}"
        meant = None if code is None else _right(parsed.written, known, f"|date:{code}{fallback}")
        _note(found, written, meant, f"has a date format {doubt}")
    elif exact.isdisjoint((*parsed.whole, *parsed.name)) and _is_known(parsed.written, known):
        _note(found, written, _right(parsed.written, known, bar + rest), "names no value")


def _doubt(code: str) -> str | None:
    """Return why a date format most likely means otherwise; None if it does not."""
    if date_format(code) is None:
        return f"that is not understood, {code!r}: values stay as they are"
    text = text_like_a_code(code)
    return None if text is None else f"with {text!r}, which is no code and is sent as it is"


def _note(found: dict[str, TextWarning], written: str, meant: str | None, what: str) -> None:
    advice = "" if meant is None else f"; write {meant}"
    found.setdefault(written, TextWarning(written=written, meant=meant, message=f"{written} {what}{advice}."))


def _loose(name: str) -> str:
    """Return a name without case and signs, and without what stands before its last full stop."""
    return _LETTERS.sub("", name.rpartition(".")[2]).casefold()


def _is_known(name: str, known: Mapping[str, str]) -> bool:
    return _loose(name) in known or usual_field(name.rpartition(".")[2]) is not None


def _right(name: str, known: Mapping[str, str], rest: str = "") -> str:
    """Return the placeholder that a name stands for."""
    meant = known.get(_loose(name)) or usual_field(name.rpartition(".")[2]) or name.strip()
    return f"{{{{{meant}{rest}}}}}"
