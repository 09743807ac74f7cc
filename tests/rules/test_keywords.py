from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.opt_out.keywords import KeywordMatch, carrier_replies_to, keyword_of, may_mean_stop
from outreach.rules.opt_out.words import words_of

STOP = KeywordMatch("stop", "exact")
UNDERSTOOD = KeywordMatch("stop", "phrase")
START = KeywordMatch("start", "exact")
HELP = KeywordMatch("help", "exact")

TEXTS = tomllib.loads((Path(__file__).parent / "opt_outs.toml").read_text("utf-8"))
THE_LAWS_WORDS = TEXTS["words"]["the_laws"]
LONGER = TEXTS["understood"]["longer"]


@pytest.mark.parametrize("text", [*chain(*TEXTS["words"].values())])
def test_a_word_of_the_list_is_an_opt_out_however_it_is_written(text: str) -> None:
    """Case, punctuation, quotes, emoji, accents, width and spacing do not matter (CTIA, 5.1.3)."""
    assert keyword_of(text) == STOP


@pytest.mark.parametrize("text", TEXTS["understood"]["short"])
def test_a_short_message_that_a_reasonable_person_understands_is_an_opt_out(text: str) -> None:
    """47 CFR 64.1200(a)(10): not only the words of a list."""
    assert keyword_of(text) == UNDERSTOOD


@pytest.mark.parametrize("text", LONGER)
def test_a_sentence_that_says_so_is_an_opt_out_however_long_the_message_is(text: str) -> None:
    """47 CFR 64.1200(a)(10): any wording that a reasonable person understands; politeness and reasons add nothing."""
    assert keyword_of(text) == UNDERSTOOD


@pytest.mark.parametrize("text", [*chain(*TEXTS["unclear"].values())])
def test_what_holds_a_word_of_opting_out_and_says_something_else_is_for_a_person(text: str) -> None:
    """Providers, F.1: what is ambiguous is no opt-out, and is not overlooked either."""
    assert keyword_of(text) is None
    assert may_mean_stop(text)


@pytest.mark.parametrize("text", TEXTS["slips"]["short"])
def test_a_word_with_a_wrong_letter_is_for_a_person(text: str) -> None:
    """Where it is short, and so may be another word: it is not missed, and nobody is put on the register by it."""
    assert keyword_of(text) is None
    assert may_mean_stop(text)


@pytest.mark.parametrize("text", TEXTS["ordinary"]["look_alikes"])
def test_ordinary_words_that_look_like_an_opt_out_are_none(text: str) -> None:
    """Nobody is held back for them."""
    assert keyword_of(text) is None
    assert not may_mean_stop(text)


@given(
    st.sampled_from(LONGER),
    st.sampled_from(["", "Hi, ", "hello there! ", "please ", "Good morning. ", "Sorry, ", "Can you please ", "OK - "]),
    st.sampled_from(
        ["", " please", ", thank you so much", "! Thanks a lot.", " Have a nice day", " 🙏", "\nBest regards"]
    ),
)
def test_politeness_around_a_sentence_changes_nothing(text: str, before: str, after: str) -> None:
    """However much of it."""
    assert keyword_of(f"{before}{text}{after}") == UNDERSTOOD


@given(st.sampled_from(["Liked", "Loved", "Laughed at", "Emphasized", "Removed a heart from"]), st.sampled_from(LONGER))
def test_a_reaction_to_our_own_message_is_none_whatever_it_quotes(kind: str, text: str) -> None:
    """A telephone writes it; the quote is ours, `Reply STOP to opt out` with it."""
    for quote in (f"{kind} “{text}. Reply STOP to opt out”", f'{kind} "Stop"'):
        assert keyword_of(quote) is None
        assert not may_mean_stop(quote)


@pytest.mark.parametrize("text", TEXTS["ordinary"]["reactions"])
def test_a_reaction_is_known_in_other_forms_and_languages(text: str) -> None:
    """An emoji that leads to a quotation, and what telephones write that speak another language."""
    assert keyword_of(text) is None
    assert not may_mean_stop(text)


@pytest.mark.parametrize("text", TEXTS["understood"]["resembling_a_reaction"])
def test_what_only_resembles_a_reaction_is_somebodys_own(text: str) -> None:
    """Nothing but such words and a quotation is one."""
    assert keyword_of(text) == UNDERSTOOD


@pytest.mark.parametrize("text", LONGER)
def test_a_message_that_is_one_quotation_is_somebodys_own(text: str) -> None:
    """There is nobody else in it."""
    assert keyword_of(f"“{text.replace('“', '').replace('”', '')}”.") == UNDERSTOOD


@pytest.mark.parametrize("text", TEXTS["understood"]["in_doubt"])
def test_in_doubt_a_short_message_is_an_opt_out(text: str) -> None:
    """One contact lost costs less than one who is contacted against the law: decided, and so documented."""
    assert keyword_of(text) == UNDERSTOOD


@pytest.mark.parametrize("text", TEXTS["ordinary"]["other"])
def test_what_people_write_otherwise_is_no_keyword(text: str) -> None:
    """Neither an opt-out, nor a START or HELP that is not exact; `yes` is an ordinary answer."""
    assert keyword_of(text) is None
    assert not may_mean_stop(text)


@pytest.mark.parametrize(
    "text", ["start", "START!", " Unstop ", "un stop", "Un-Stop!", '"subscribe"', "Join 👍", "ＳＴＡＲＴ"]
)
def test_a_start_is_exact(text: str) -> None:
    """The words of Twilio, Telnyx and Vonage, however they are written; nobody is opted in by a phrase."""
    assert keyword_of(text) == START


@pytest.mark.parametrize("text", ["help", "HELP?", "info", "Info!", "ayuda", "Hilfe", "aide"])
def test_a_call_for_help_is_exact(text: str) -> None:
    """HELP and INFO, and the same in other languages."""
    assert keyword_of(text) == HELP


def test_yes_is_a_start_for_who_has_opted_out_by_keyword() -> None:
    """Twilio takes it for a START always; here it is an answer like any other before a STOP."""
    assert keyword_of("Yes!", opted_out_by_keyword=True) == START
    assert keyword_of("Yes!") is None
    assert keyword_of("yes please", opted_out_by_keyword=True) is None
    assert keyword_of("thanks", opted_out_by_keyword=True) is None


DECORATION = st.text(alphabet=" \t\n.,;:!?\"'“”«»()[]*_-–—…\u200b\ufe0f👍🛑🙏❤✅", max_size=6)


@given(st.sampled_from(THE_LAWS_WORDS), DECORATION, DECORATION, st.sampled_from([str.upper, str.lower, str.title]))
def test_what_stands_around_a_word_does_not_matter(word: str, before: str, after: str, case: object) -> None:
    """Any punctuation, white space and emoji at both ends, in any case."""
    assert callable(case)
    assert keyword_of(f"{before}{case(word)}{after}") == STOP


@given(st.text(max_size=80))
def test_every_text_can_be_read_and_reads_the_same_again(text: str) -> None:
    """Lone surrogates, controls and every script: no error; words stay words when they are read again."""
    words = words_of(text)
    assert words_of(" ".join(words)) == words
    assert may_mean_stop(text) in {True, False}
    assert keyword_of(text) in {None, STOP, UNDERSTOOD, START, HELP}


@given(
    st.sampled_from(THE_LAWS_WORDS), st.lists(st.sampled_from(["we", "were", "told", "order", "of", "May"]), min_size=5)
)
def test_a_word_within_a_long_message_is_for_a_person(word: str, words: list[str]) -> None:
    """Beyond five words a word alone says nothing, wherever it stands."""
    for text in (" ".join([*words, word]), " ".join([words[0], word, *words])):
        assert keyword_of(text) is None
        assert may_mean_stop(text)


def test_a_very_long_text_is_read_as_far_as_a_message_goes() -> None:
    """A megabyte of anything costs no more than a message."""
    assert keyword_of("stop" + "!" * 1_000_000) == STOP
    assert keyword_of("x " * 500_000 + "stop") is None
    assert not may_mean_stop("x " * 500_000 + "stop")
    assert keyword_of("please " * 500_000) is None


@pytest.mark.parametrize(
    "piece",
    [
        *(
            '"',
            "“x",
            "(1",
            "' ",
            "x or ",
            "no thanks ",
            "i want your ",
            "so many ",
            "take me off 1 1 1 1 1 1 1 ",
            "- ",
            ">\n",
        ),
        *("removed a ", "👍", "stop getting your ", "i would like to ", "a", "\ufdfa"),
    ],
)
def test_no_text_makes_reading_long(piece: str) -> None:
    """Beginnings of everything that is looked for, again and again and never complete."""
    for text in (piece * 100_000, f"x {piece * 100_000}", f"no i want {piece * 100_000}"):
        assert keyword_of(text) is None


def page_between(beginning: str, end: str) -> str:
    """Return a passage of the documentation, on one line."""
    page = (Path(__file__).parents[2] / "docs" / "opt-out.md").read_text(encoding="utf-8")
    return page.partition(beginning)[2].partition(end)[0].replace("\n", " ").strip()


def _documented(beginning: str, end: str) -> list[str]:
    return re.split(r"[,;]\s+", page_between(beginning, end))


def test_the_words_that_are_documented_are_those_that_are_read() -> None:
    """docs/opt-out.md names them, and what it gives as an example is so."""
    stop = _documented("The whole message is one of:", "; and a few more")
    start, help_ = _documented("**START, exact only.**", "; and `yes`"), _documented("**HELP, exact only.**", ".\n")
    assert len(stop) > 30
    assert {keyword_of(word) for word in stop} == {STOP}
    assert (len(start), {keyword_of(word) for word in start}) == (4, {START})
    assert (len(help_), {keyword_of(word) for word in help_}) == (7, {HELP})
    begins = _documented("- begins or ends with ", ": `stop")
    assert {keyword_of(f"we want {word}") for word in re.split(r", | or ", ", ".join(begins))} == {UNDERSTOOD}
    for text in ("stop texting me", "I want to unsubscribe", "please cancel", "they won't stop"):
        assert keyword_of(text) == UNDERSTOOD
    carriers = _documented("words that carriers take for STOP:", ". Every")
    assert {carrier_replies_to(word) for word in carriers} == {True}
    assert [
        word for word in (*carriers, *stop, "please stop") if carrier_replies_to(word) and word not in carriers
    ] == []
    sentences = re.findall(r"`([^`]+)`", page_between("where that part begins:", "(`outreach/rules"))
    assert len(sentences) > 5
    assert {keyword_of(text) for text in sentences} == {UNDERSTOOD}
    unclear = re.findall(r"`([^`]+)`", page_between("is stored as `unclear`:", "`outreach-server"))
    assert len(unclear) > 3
    assert {(keyword_of(text), may_mean_stop(text)) for text in unclear} == {(None, True)}
    repeated = re.findall(r"`([^`]+)`", page_between("or repeats such a word:", "."))
    assert {keyword_of(text) for text in repeated} == {UNDERSTOOD}
    numbered = re.findall(r"`([^`]+)`", page_between("written to it:", "."))
    assert len(numbered) > 1
    assert {keyword_of(text) for text in numbered} == {UNDERSTOOD}
    negated = re.findall(r"`([^`]+)`", page_between("A negation right before turns it round", ": a person"))
    assert len(negated) > 1
    assert {(keyword_of(text), may_mean_stop(text)) for text in negated} == {(None, True)}
    reactions = re.findall(r"`([^`]+)`", page_between("which quotes our own message\n(", ")"))
    assert len(reactions) > 1
    assert {(keyword_of(text), may_mean_stop(text)) for text in reactions} == {(None, False)}
    assert keyword_of("“S.T.O.P.” 🛑") == STOP
