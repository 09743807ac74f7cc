"""Search: case does not matter, in any script; accents do."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.segments import fold


@pytest.mark.parametrize(
    ("needle", "text"),
    [
        ("éTÉ", "Été"),
        ("e\u0301te\u0301", "Été"),
        ("été", "E\u0301TE\u0301 2026"),
        ("STRASSE", "Hauptstraße"),
        ("straße", "HAUPTSTRASSE"),
        ("ẞ", "ss"),
        ("ΟΔΟΣ", "οδος"),
        ("οδός", "ΟΔΌΣ"),
        ("σ", "ς"),
        ("istanbul", "İSTANBUL"),
        ("İstanbul", "istanbul"),
        ("İSTANBUL", "ISTANBUL"),
        ("i\u0307x", "İX"),
        ("ПРИВЕТ", "привет"),
        ("Ǆ", "ǆ"),
        ("ᾳ", "ΑΙ"),
        ("ﬁ", "FI"),
        ("α\u0345\u0301", "Ά\u0345"),
        ("\u212a", "k"),
        ("\u00c5", "\u212b"),
        ("Ꭰ", "ꭰ"),
        ("50%_\\", "only 50%_\\ off"),
        ("日本", "日本語"),
        ("각", "\u1100\u1161\u11a8"),
    ],
)
def test_case_and_spelling_do_not_matter(needle: str, text: str) -> None:
    """One folded text is found in the other."""
    assert fold(needle) in fold(text)


@pytest.mark.parametrize(
    ("needle", "text"),
    [
        ("cafe", "Café"),
        ("é", "e"),
        ("ı", "i"),
        ("tm", "™"),
        ("1", "①"),
        ("a", "ａ"),
        ("%", "x"),
        ("_", "x"),
        ("가", "각"),
    ],
)
def test_what_is_more_than_case_matters(needle: str, text: str) -> None:
    """An accent, a compatibility form and a wildcard are characters of their own."""
    assert fold(needle) not in fold(text)


@given(text=st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    """A stored folded text stays as it is."""
    assert fold(fold(text)) == fold(text)


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_upper_case_lower_case_and_decomposed_text_are_one(text: str) -> None:
    """All spellings of one text fold alike, as long as Python's own change of case loses nothing."""
    assert fold(unicodedata.normalize("NFD", text)) == fold(text)
    assert fold(unicodedata.normalize("NFC", text)) == fold(text)
    assert fold(text.casefold()) == fold(text)


@given(
    before=st.text(st.characters(categories=["L", "N", "P", "Z", "S"])),
    needle=st.text(st.characters(categories=["L", "N", "P", "Z", "S"])),
    after=st.text(st.characters(categories=["L", "N", "P", "Z", "S"])),
)
def test_a_part_is_found_in_the_whole(before: str, needle: str, after: str) -> None:
    """Matching keeps working after folding wherever no character joins the one before it."""
    if not any("\u1100" <= character <= "\u11ff" for character in before + needle + after):
        assert fold(needle) in fold(before + needle + after)
