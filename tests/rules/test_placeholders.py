"""Placeholders that name columns, that other programs write, and that nothing fills."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.rendering import (
    CONTACT_FIELDS,
    PlaceholderTally,
    compose,
    recipient_values,
    render,
    text_warnings,
    unfilled,
    with_field_names,
)
from outreach.rules.segments import count_segments

NAMES = (*CONTACT_FIELDS, "Slot")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{first_name}", "{{first_name}}"),
        ("((first_name))", "{{first_name}}"),
        ("*|FNAME|*", "{{first_name}}"),
        ("{{first_name", "{{first_name}}"),
        ("{{first_name}", "{{first_name}}"),
        ("{first_name}}", "{{first_name}}"),
        ("first_name}}", "{{first_name}}"),
        ("{{{first_name}}}", "{{first_name}}"),
        ("[[First Name]]", "{{first_name}}"),
        ("<<company>>", "{{company}}"),
        ("\u00abVorname\u00bb", "{{first_name}}"),
        ("%%lname%%", "{{last_name}}"),
        ("${email}", "{{email}}"),
        ("#{email}", "{{email}}"),
        ("%first_name%", "{{first_name}}"),
        ("[SLOT]", "{{Slot}}"),
        ("<slot>", "{{Slot}}"),
        ("{{contact.first_name}}", "{{first_name}}"),
        ("{{First_Name}}", "{{first_name}}"),
        ("{{slot|date:d mmm}}", "{{Slot|date:d mmm}}"),
        ('{{first_name | default: "there"}}', "{{first_name|there}}"),
        ("{plan}", "{{plan}}"),
        ("{{slot|date:%d.%m}}", "{{Slot|date:dd.mm}}"),
        ("{{Slot|date:%-d. %B %Y at %H:%M|soon}}", '{{Slot|date:d. mmmm yyyy "at" hh:mm|soon}}'),
        ("{{Slot|date:[de]%d. %B}}", "{{Slot|date:[de]dd. mmmm}}"),
        ('{{ Slot | date: "%F" }}', "{{Slot|date:yyyy-mm-dd}}"),
        ("{{Slot|date:'%I:%M %p'}}", "{{Slot|date:hh:mm AM/PM}}"),
        ('{{Slot|date:"d.m."}}', "{{Slot|date:d.m.}}"),
        ("{{Slot|date:TT.MM.JJJJ}}", "{{Slot|date:dd.mm.yyyy}}"),
        ('{{Slot|date:[de]TT. MMMM "um" h:mm|bald}}', '{{Slot|date:[de]dd. mmmm "um" h:mm|bald}}'),
        ("{{Slot|date:TT.JJJJ}}", "{{Slot|date:dd.yyyy}}"),
        ("{{Slot|date:JJ/MM/AAAA}}", "{{Slot|date:dd/mm/yyyy}}"),
        ("{{Slot|date:gg/mm/aaaa}}", "{{Slot|date:dd/mm/yyyy}}"),
        ("{{Slot|date:dd-mm-jj}}", "{{Slot|date:dd-mm-yy}}"),
        ("{{Slot|date:h:mm a}}", "{{Slot|date:h:mm AM/PM}}"),
        ("{{Slot|date:mmmm do}}", "{{Slot|date:mmmm d}}"),
        ("{{Slot|date:d 'de' mmmm}}", '{{Slot|date:d "de" mmmm}}'),
    ],
)
def test_a_placeholder_of_another_program_is_named_with_the_right_spelling(written: str, meant: str) -> None:
    """It would be sent as it is, or as a blank."""
    found = text_warnings(f"Hi {written}, see you", NAMES)
    assert [(one.written, one.meant) for one in found] == [(written, meant)]
    assert written in found[0].message
    assert meant in found[0].message


@pytest.mark.parametrize(
    "text",
    [
        "Hi {{first_name}}, {{Slot|soon}} {{Slot|date:d mmm yyyy|soon}}",
        "{{Slot|date:D.M.YYYY at h:mm AM/PM}} {{Slot|date:yyyy-mm-ddThh:mm}} {{Slot|date:h o'clock}}",
        '{{Slot|date:d "a" mmmm "l\'heure d\'été"}}',
        "Only 5 < 7 and 20 % off, (see below) [here] <3 100% sure #1 #sale :-)",
        "Hi {{sl\u200bot}}",
        "50% of them, 60% of us",
        "",
    ],
)
def test_an_ordinary_text_gives_no_warning(text: str) -> None:
    """Signs that people use are not taken for placeholders."""
    names = (*NAMES, "slot") if "\u200b" in text else NAMES
    assert text_warnings(text, names) == ()


def test_tags_and_formats_that_are_not_understood_are_named() -> None:
    """Without a spelling, because nothing is like them."""
    found = text_warnings("{% if vip %}Hi{% endif %} {{Slot|date:ggge}} {{Slot|date:%j}} {{Slot|date:%M}}", NAMES)
    assert [one.meant for one in found] == [None] * 5


@given(text=st.text(alphabet="{}()[]<>*|%#$ \nab_.-\"'", max_size=200))
def test_any_text_is_looked_through_without_an_error(text: str) -> None:
    """What is found is a part of the text."""
    assert all(one.written in text for one in text_warnings(text, NAMES))


HEADERS = ("Telefon", "Vorname", "Name", "Termin")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hallo {{Vorname}}!", "Hallo {{first_name}}!"),
        ("{{ Vorname | du }} {{Name}}", "{{first_name| du }} {{last_name}}"),
        ("{{Vorname\u00a0}}{{Vor\u200bname}}", "{{first_name}}{{first_name}}"),
        ("{{Telefon}} {{Termin}} {{vorname}}", "{{phone_number}} {{Termin}} {{vorname}}"),
    ],
)
def test_a_column_that_became_a_field_keeps_its_name_in_texts(text: str, expected: str) -> None:
    """`{{Vorname}}` is `{{first_name}}`; other names and other case stay."""
    assert with_field_names(text, HEADERS, ("Termin",)) == expected


def test_a_variable_of_the_contacts_wins_over_a_column_of_its_name() -> None:
    """Where another column was chosen for the field, that column is a variable."""
    assert with_field_names("{{Vorname}}", HEADERS, ("Vorname",)) == "{{Vorname}}"
    assert with_field_names("{{Vorname}}", HEADERS, None) == "{{Vorname}}"
    assert with_field_names("{{Vorname}}", (), ()) == "{{Vorname}}"


def test_contacts_without_a_value_are_counted_with_examples() -> None:
    """Spaces of any width are no value; a fallback is one."""
    tally = PlaceholderTally(["Hi {{first_name}} {{last_name|there}} {{Slot|date:d mmm|soon}} {{first_name}}"])
    for position, name in enumerate(["Ada", "", " ", "\u200b\u00a0", "Bo"]):
        values = recipient_values(phone_number=f"+1{position}", first_name=name, custom_variables={"Slot": "12/8/2026"})
        tally.see(values, position, f"+1{position}")
    blank, undated = sorted(tally.problems(), key=lambda one: one.name, reverse=True)
    assert (blank.name, blank.problem, blank.count) == ("first_name", "no_value", 3)
    assert [one.phone_number for one in blank.examples] == ["+11", "+12", "+13"]
    assert (undated.name, undated.problem, undated.count) == ("Slot", "no_date", 5)
    assert undated.examples[0].detail == "'12/8/2026'"


def problems(template: str, *slots: str) -> list[tuple[str, str, int, list[str | None]]]:
    """Return what is counted for contacts with these values."""
    tally = PlaceholderTally([template])
    for position, slot in enumerate(slots):
        tally.see(recipient_values(phone_number="+1", custom_variables={"slot": slot}), position, "+1")
    return [(one.name, one.problem, one.count, [each.detail for each in one.examples]) for one in tally.problems()]


def test_a_contact_is_counted_once_for_a_name_whatever_its_placeholders() -> None:
    """A value that one of the formats cannot write is no date, once."""
    template = "{{slot|date:d.m.}} {{slot|date:h:mm}} {{slot}} {{slot|date:d.m.yyyy|soon}}"
    assert problems(template, "2026-12-08 08:00", "morgen", "14:05", "") == [
        ("slot", "no_date", 2, ["'morgen'", "'14:05'"]),
        ("slot", "no_value", 1, [None]),
    ]


@pytest.mark.parametrize("code", ["h:mm", "d. mmmm, h:mm", "hh", "yyyy-mm-ddThh:mm:ss", "h AM/PM", "[h]:mm"])
def test_a_date_without_a_time_is_counted_where_the_format_shows_one(code: str) -> None:
    """It is sent as it is, because a midnight would be invented; one that is written is none."""
    template = f"{{{{slot|date:{code}}}}}"
    assert problems(template, "2026-12-08", "2026-12-08 00:00", "8.12.2026") == [
        ("slot", "no_time", 2, ["'2026-12-08'", "'8.12.2026'"])
    ]
    assert render(template, {"slot": "2026-12-08"}) == "2026-12-08"


def test_a_format_that_is_not_understood_makes_no_value_a_bad_date() -> None:
    """The format is named itself; another format of the same name still counts."""
    assert problems("{{slot|date:foo}}", "2026-12-08", "morgen") == []
    assert problems("{{slot|date:foo}} {{slot|date:d.m.}}", "2026-12-08", "morgen") == [
        ("slot", "no_date", 1, ["'morgen'"])
    ]


@pytest.mark.parametrize(
    ("template", "date"),
    [("{{slot}}", None), ("{{slot|date:h:mm}}", "h:mm"), ("{{slot|date:d.m.|soon}} {{slot|date: h:mm }}", "h:mm")],
)
def test_a_missing_value_is_named_with_the_format_of_its_placeholder(template: str, date: str | None) -> None:
    """That of the placeholder without a fallback."""
    tally = PlaceholderTally([template])
    tally.see({}, 0, "+1")
    assert [(one.name, one.problem, one.date) for one in tally.problems()] == [("slot", "no_value", date)]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{slot|date:d. mmmm, h:mm}}", "8. December, 8:00"),
        ("{{slot|date:[de]d. mmmm|bald}}", "8. Dezember"),
        ("{{ slot | date: d/m }}", "8/12"),
        ("{{time|date:h:mm AM/PM}}", "2:05 PM"),
        ("{{time|date:d. mmmm}}", "14:05"),
        ("{{none|date:d. mmmm|soon}}", "soon"),
        ("{{none|date:d. mmmm}}", ""),
        ("{{text|date:d. mmmm}}", "on Monday"),
        ("{{slot|date:ggge}}", "2026-12-08 08:00"),
        ("{{slot|date:%d.%m}}", "2026-12-08 08:00"),
        ("{{day|date:d.m.}} {{day|date:h:mm}}", "8.12. 2026-12-08"),
    ],
)
def test_a_date_takes_a_format_beside_its_fallback(template: str, expected: str) -> None:
    """A value that is no date, and a format that is not understood, leave the value as it is."""
    assert (
        render(template, {"slot": "2026-12-08 08:00", "day": "2026-12-08", "time": "14:05", "text": "on Monday"})
        == expected
    )


@pytest.mark.parametrize(
    ("key", "placeholder"),
    [
        ("Größe", "Gro\u0308ße"),
        ("Gro\u0308ße", "Größe"),
        ("Slot", "Sl\u200bot\ufeff"),
        ("\u00a0Slot\u200b", "Slot"),
        ("first name", "first\u00a0name"),
        ("first\u00a0name", "first name"),
        ("first\u202fname", "firstname"),
        ("firstname", "first\u00a0name"),
    ],
)
def test_names_compare_in_nfc_and_without_spaces_that_nobody_sees(key: str, placeholder: str) -> None:
    """Non-breaking spaces are spaces or nothing, zero-width spaces nothing."""
    values = recipient_values(phone_number="+1", custom_variables={key: "x"})
    assert render(f"{{{{{placeholder}}}}}", values) == "x"
    assert unfilled(f"{{{{{placeholder}}}}}", {key}) == ()


def test_a_name_in_two_characters_a_letter_costs_no_second_segment() -> None:
    """José Peña as a Mac writes it: GSM-7, as it is with one character a letter."""
    body = "Hi {{first_name}}, " + "x" * 130
    text = compose(body, {"first_name": "Jose\u0301 Pen\u0303a"}, None)
    assert text.startswith("Hi José Peña,")
    assert count_segments(text)[:2] == count_segments(compose(body, {"first_name": "José Peña"}, None))[:2]
    assert count_segments(text).segments == 1
