"""Rendering: placeholders become values, and nothing else happens."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.rendering import compose, recipient_values, render, unfilled


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Hi {{first_name}}!", "Hi Ada!"),
        ("Hi {{ first_name }}!", "Hi Ada!"),
        ("{{first_name}}{{first_name}}", "AdaAda"),
        ("{{unknown}}", ""),
        ("a{{unknown}}b", "ab"),
        ("{{First_Name}}", ""),
        ("{{empty}}", ""),
        ("{{}}", ""),
        ("{{ }}", ""),
        ("{{favourite colour}}", "blue"),
        ("{{größe}}", "XL"),
        ("{{a.b-c}}", "dotted"),
        ("{{{first_name}}}", "{Ada}"),
        ("{first_name}", "{first_name}"),
        ("{{first_name}", "{{first_name}"),
        ("{{first_{{first_name}}", "{{first_Ada"),
        ("}}{{", "}}{{"),
        ("", ""),
        (r"\1 \g<0> {{regex}}", r"\1 \g<0> \1\g<0>"),
    ],
)
def test_a_placeholder_becomes_its_value(template: str, expected: str) -> None:
    """Unknown and empty render as nothing; what is no placeholder stays."""
    values = {
        "first_name": "Ada",
        "empty": "",
        "favourite colour": "blue",
        "größe": "XL",
        "a.b-c": "dotted",
        "regex": r"\1\g<0>",
    }
    assert render(template, values) == expected


def test_a_value_is_never_a_template() -> None:
    """A contact who is called `{{last_name}}` gets that name."""
    values = {"first_name": "{{last_name}}", "last_name": "secret", "open": "{{", "name": "last_name", "close": "}}"}
    assert render("{{first_name}}", values) == "{{last_name}}"
    assert render("{{open}}{{name}}{{close}}", values) == "{{last_name}}"


@given(text=st.text(), values=st.dictionaries(st.text(), st.text()))
def test_text_without_double_braces_is_left_alone(text: str, values: dict[str, str]) -> None:
    """Rendering touches placeholders only."""
    plain = text.replace("{{", "{ {")
    assert render(plain, values) == plain


@given(parts=st.lists(st.tuples(st.text(st.characters(exclude_characters="{}")), st.text(min_size=1))))
def test_each_value_stands_in_its_place(parts: list[tuple[str, str]]) -> None:
    """The rendered text is the plain text with the values between, whatever they hold."""
    template = "".join(f"{plain}{{{{ key{index} }}}}" for index, (plain, _) in enumerate(parts))
    values = {f"key{index}": value for index, (_, value) in enumerate(parts)}
    assert render(template, values) == "".join(plain + value for plain, value in parts)
    assert unfilled(template, ()) == tuple(values)


@pytest.mark.parametrize("piece", ["{", "{{", "{{a", "{{ ", "}}", "{{}", "{{a}", "{ {{"])
def test_a_hostile_template_takes_linear_time(piece: str) -> None:
    """A megabyte of braces is rendered without going over it again and again."""
    template = piece * (1_000_000 // len(piece))
    started = time.perf_counter()
    assert render(template, {}) == template
    assert unfilled(template, ()) == ()
    assert time.perf_counter() - started < 5


def test_a_long_name_takes_linear_time() -> None:
    """An unclosed name that runs to the end is looked at once."""
    template = "{{" + "a " * 500_000
    started = time.perf_counter()
    assert render(template, {}) == template
    assert time.perf_counter() - started < 5


def test_placeholders_are_named_once_in_order() -> None:
    """The names a template uses; an empty one is sent as a blank like any other that nothing fills."""
    assert unfilled("{{b}} {{ a }} {{b}} {{}} {{ }} {c}", ()) == ("b", "a", "")
    assert unfilled("{{}} {{ | }}", {""}) == ()


def test_what_is_known_or_has_a_fallback_is_filled() -> None:
    """By the whole name, whose case counts; an empty fallback says that a blank is meant."""
    template = "{{first_name}} {{First_Name}} {{slot|soon}} {{nick|}} {{a|b}} {{ c }}"
    assert unfilled(template, {"first_name", "a|b"}) == ("First_Name", "c")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Hi {{first_name|there}}!", "Hi Ada!"),
        ("Hi {{ nobody | there, friend }}!", "Hi there, friend!"),
        ("Hi {{empty|there}}!", "Hi there!"),
        ("Hi {{blank|there}}!", "Hi there!"),
        ("Hi {{blank}}!", "Hi  !"),
        ("Hi{{nobody|}}!", "Hi!"),
        ("{{nobody|a|b}}", "a|b"),
        ("{{Slot|Time}}", "noon"),
        ("{{nobody|{{first_name}}}}", "{{nobody|Ada}}"),
    ],
)
def test_a_fallback_stands_in_for_what_is_missing(template: str, expected: str) -> None:
    """For no value, an empty and a blank one; a column whose name holds a bar keeps its own value."""
    values = {"first_name": "Ada", "empty": "", "blank": " ", "Slot|Time": "noon"}
    assert render(template, values) == expected


def test_a_contact_gives_its_fields_and_its_variables() -> None:
    """Any JSON is text; fields that are null or empty are no values."""
    values = recipient_values(
        phone_number="+14155550102",
        first_name="Ada",
        last_name=None,
        email="",
        company="Engines",
        custom_variables={"visits": 3, "vip": True, "note": None, "tags": ["a", 1], " colour ": "blue"},
    )
    assert values == {
        "phone_number": "+14155550102",
        "first_name": "Ada",
        "company": "Engines",
        "visits": "3",
        "vip": "true",
        "note": "",
        "tags": '["a",1]',
        "colour": "blue",
    }


def test_the_contacts_fields_win_over_its_variables() -> None:
    """A variable of the same name speaks only where the field is silent."""
    values = recipient_values(
        phone_number="+14155550102",
        first_name="Ada",
        custom_variables={"first_name": "Eve", "last_name": "Lovelace", "phone_number": "+19"},
    )
    assert values == {"first_name": "Ada", "last_name": "Lovelace", "phone_number": "+14155550102"}


@pytest.mark.parametrize("keys", [(" city", "city"), ("city", " city")])
def test_the_name_written_exactly_wins_over_one_with_spaces(keys: tuple[str, str]) -> None:
    """The order of the keys decides nothing."""
    values = recipient_values(phone_number="1", custom_variables={key: key for key in keys})
    assert values["city"] == "city"


def test_the_footer_stands_on_a_line_of_its_own() -> None:
    """The text first, then the way out; the footer is no template."""
    assert compose("Hi {{name}}", {"name": "Ada"}, "Reply STOP {{name}}") == "Hi Ada\nReply STOP {{name}}"


@pytest.mark.parametrize("footer", [None, "", "  \n"])
def test_no_footer_adds_nothing(footer: str | None) -> None:
    """Not even an empty line."""
    assert compose("Hi", {}, footer) == "Hi"


@pytest.mark.parametrize("template", ["", "  ", "{{name}}", "{{name}}\n{{other}}"])
def test_a_footer_alone_is_no_message(template: str) -> None:
    """Nobody gets a message that says only how to end messages."""
    assert compose(template, {}, "Reply STOP") == ""
