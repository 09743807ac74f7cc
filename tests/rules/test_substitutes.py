from __future__ import annotations

import pytest

from outreach.rules.segments import _SUBSTITUTES, character_name, is_gsm, substitute


@pytest.mark.parametrize(
    ("character", "text"),
    [
        ("\u2019", "'"),
        ("\u201c", '"'),
        ("\u2013", "-"),
        ("\u2026", "..."),
        ("\u00a0", " "),
        ("\u200b", ""),
        ("\u00e1", "a"),
        ("\u00e7", "c"),
        ("\u0301", ""),
        ("\u0142", "l"),
        ("\ufb01", "fi"),
        ("\u044f", None),
        ("\u4f60", None),
        ("\U0001f600", None),
    ],
)
def test_what_gsm_7_has_in_its_place(character: str, text: str | None) -> None:
    """Punctuation of word processors, letters without their accents; nothing for other alphabets."""
    assert substitute(character) == text


def test_every_substitute_is_gsm_7_and_stands_for_what_is_not() -> None:
    """Else it would save nothing."""
    for character, text in _SUBSTITUTES.items():
        assert not is_gsm(character), character_name(character)
        assert is_gsm(text)
    assert character_name("\u2013") == "en dash"
    assert character_name("\x07") == "u+0007"
