"""The plain forms of typographic characters."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.rendering import compose
from outreach.rules.segments import _PLAIN_FORMS, character_name, count_segments, is_gsm, plain_form


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\u201cIt\u2019s\u201d", '"It\'s"'),
        ("\u00abOui\u00bb, \u201aja\u2018, \u02bbOkina", "\"Oui\", 'ja', 'Okina"),
        ("10\u201312 \u2014 \u22125", "10-12 - -5"),
        ("\u2022 more\u2026", "- more..."),
        ("5\u202f\u20ac,\u00a0p.\u2009m.\u3000\t.", "5 \u20ac, p. m.  ."),
        ("soft\u00adhyphen\u200b, \u202a+1\u202c", "softhyphen, +1"),
        ("\ufb01ne o\ufb03ce", "fine office"),
        ("\uff21\uff22\uff0d\uff11\uff12", "AB-12"),
        ("4\u00d74\u2028x", "4x4\nx"),
        ("Ren\u00e9 \u2013 \u00c5sa", "Ren\u00e9 - \u00c5sa"),
    ],
)
def test_typographic_characters_have_plain_forms(text: str, plain: str) -> None:
    """Quotes, dashes, bullets, spaces, ligatures and full-width forms; the letters of GSM-7 stay."""
    assert plain_form(text) == plain
    assert count_segments(plain).encoding == "GSM-7"


@pytest.mark.parametrize(
    "kept",
    [
        *("\u0142", "\u00e1", "\u00e7", "\u0153", "\u0131", "\u0111", "l\u00b7l"),
        *("m\u00b2", "1\u00bd", "\u2460", "\u2122", "\u00a9", "20\u00b0", "\u2116", "\U0001d400"),
        *("\u4f60", "\U0001f600", "\u2764\ufe0f", "\U0001f469\u200d\U0001f467", "\u0645\u06cc\u200c\u0631"),
    ],
)
def test_a_text_that_needs_ucs2_anyway_stays_as_it_is_written(kept: str) -> None:
    """Letters of names, signs, raised digits and fractions have no plain form; the rest would save nothing."""
    assert plain_form(kept) == kept
    assert plain_form(f"It\u2019s {kept} \u2013") == f"It\u2019s {kept} \u2013"


def test_a_plain_form_never_takes_more_segments() -> None:
    """An ellipsis is three characters."""
    dots = "\u2026" * 60
    assert (count_segments(dots).segments, count_segments(dots.replace("\u2026", "...")).segments) == (1, 2)
    assert plain_form(dots) == dots


@given(st.text(st.sampled_from(["a", "\u20ac", "\u0142", *_PLAIN_FORMS]), max_size=200))
def test_a_plain_form_is_gsm_7_or_the_text_itself(text: str) -> None:
    """It has no more segments, and replacing once more changes nothing."""
    plain = plain_form(text)
    assert plain == text or is_gsm(plain)
    assert count_segments(plain).segments <= count_segments(text).segments
    assert plain_form(plain) == plain


def test_no_letter_with_a_sound_of_its_own_is_replaced() -> None:
    """Those of Latin script are ligatures, or full-width forms of the same letter."""
    for character, plain in _PLAIN_FORMS.items():
        letter = unicodedata.category(character) in {"Ll", "Lu", "Lo"}
        assert not letter or unicodedata.normalize("NFKC", character) == plain, character_name(character)


def test_the_whole_text_is_replaced_or_none_of_it() -> None:
    """Template, values and footer; the names of placeholders are read first."""
    template = "{{it\u2019s}} \u2013 {{name}}"
    values = {"it\u2019s": "\u201cA\u201d", "name": "Ann"}
    assert compose(template, values, "Reply \u2018STOP\u2019", replaces=True) == "\"A\" - Ann\nReply 'STOP'"
    assert compose(template, values, "Reply \u2018STOP\u2019") == "\u201cA\u201d \u2013 Ann\nReply \u2018STOP\u2019"
    named = values | {"name": "\u0141ukasz"}
    assert compose(template, named, None, replaces=True) == "\u201cA\u201d \u2013 \u0141ukasz"
