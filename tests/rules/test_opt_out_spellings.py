from __future__ import annotations

import string
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from outreach.rules.opt_out import keywords
from outreach.rules.opt_out.keywords import keyword_of, may_mean_stop

TEXTS = tomllib.loads((Path(__file__).parent / "opt_outs.toml").read_text("utf-8"))
OPT_OUTS = TEXTS["recognised"]
SLIPS = TEXTS["slips"]

ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def recognised(text: str) -> bool:
    """Return whether a message opts out at once, or is held until a person has read it."""
    keyword = keyword_of(text)
    return may_mean_stop(text) if keyword is None else keyword.keyword == "stop"


def slips(word: str) -> set[str]:
    """Return a word with two letters exchanged, one missing or doubled, or the key on its left or right."""
    found = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    for at, letter in enumerate(word):
        row = next(row for row in ROWS if letter in row)
        place = row.index(letter)
        beside = (*row[max(place - 1, 0) : place], *row[place + 1 : place + 2])
        found |= {word[:at] + other + word[at + 1 :] for other in ("", letter * 2, *beside)}
    return found - {word}


@pytest.mark.parametrize("language", OPT_OUTS)
def test_what_people_write_to_opt_out_is_recognised(language: str) -> None:
    """It is obeyed at once, or its number is contacted by no campaign until a person has read it."""
    assert [text for text in OPT_OUTS[language] if not recognised(text)] == []


def test_the_table_has_many_spellings_and_the_plain_words_are_obeyed_at_once() -> None:
    """A table of a few words, or one that is held for a person as a whole, would show little."""
    all_texts = list(chain(*OPT_OUTS.values()))
    obeyed = [text for text in all_texts if keyword_of(text) is not None]
    assert len(all_texts) > 750
    assert len(obeyed) > 350


@pytest.mark.parametrize("word", SLIPS["of"])
def test_a_slip_of_an_opt_out_is_recognised(word: str) -> None:
    """Every one, but where it makes another word."""
    assert {slip for slip in slips(word) if not recognised(slip)} <= set(SLIPS["words_of_their_own"])


@pytest.mark.parametrize("word", SLIPS["any_letter"])
def test_any_wrong_letter_of_a_longer_word_is_recognised(word: str) -> None:
    """Also one that is not beside the right one."""
    places, letters = range(len(word) + 1), ("", *string.ascii_lowercase)
    replaced = {word[:at] + letter + word[at + 1 :] for at in places[:-1] for letter in letters}
    added = {word[:at] + letter + word[at:] for at in places for letter in letters}
    assert {slip for slip in replaced | added if not recognised(slip)} == set(SLIPS["any_letter"][word])


@pytest.mark.parametrize("word", SLIPS["few"])
def test_letters_of_a_short_word_that_are_exchanged_left_out_or_doubled_are_recognised(word: str) -> None:
    """Where they make no other word."""
    places = range(len(word))
    found = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places[:-1]}
    found |= {word[:at] + letter + word[at + 1 :] for at in places for letter in ("", word[at] * 2)}
    assert {slip for slip in found if not recognised(slip)} == set(SLIPS["few"][word])


@pytest.mark.parametrize("phrase", ["{} texting me", "please {}", "I said {}", "ok {} now", "{}, I told you twice"])
@pytest.mark.parametrize("slip", ["stpo", "sotp", "stopp", "syop", "stope", "unsbu", "qiut", "unsubscirbe"])
def test_a_slip_in_a_phrase_is_recognised_as_the_right_word_is(phrase: str, slip: str) -> None:
    """At least it is held for a person."""
    assert recognised(phrase.format(slip))


def test_a_message_of_many_slips_takes_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few words are tried, however long the message is."""
    asked: list[str] = []

    def none(text: str) -> None:
        asked.append(text)

    monkeypatch.setattr(keywords, "keyword_of", none)
    assert not may_mean_stop("hello stpo " * 200)
    assert 0 < len(asked) < 30


def test_ordinary_answers_are_no_opt_out() -> None:
    """They are not even held for a person."""
    ordinary = TEXTS["answers"]["ordinary"]
    assert len(ordinary) > 200
    assert [text for text in ordinary if recognised(text)] == []


def test_an_opt_out_word_with_another_meaning_puts_nobody_on_the_register() -> None:
    """A person may have to read it."""
    assert [text for text in TEXTS["answers"]["with_a_word"] if keyword_of(text) is not None] == []


@pytest.mark.parametrize(
    "text", ["\u00e7\u0131k", "\u00c7IK", "c\u0131k", "cik", "WYPISZ", "\u0111\u1eebng g\u1eedi", "dung gui"]
)
def test_letters_with_a_stroke_or_without_a_dot_are_read_without_accents(text: str) -> None:
    """Unicode separates no accent of them, and many people write the plain letter."""
    assert recognised(text)
