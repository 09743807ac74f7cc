from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.policy.keywords import MOST_WORDS, Reading, keyword_of, words_of

STOP = Reading("stop", "exact")
UNDERSTOOD = Reading("stop", "phrase")
START = Reading("start", "exact")
HELP = Reading("help", "exact")

THE_LAWS_WORDS = ["stop", "quit", "end", "revoke", "opt out", "cancel", "unsubscribe"]
"""47 CFR 64.1200(a)(10)."""

CARRIERS_WORDS = ["STOPALL", "STOP ALL", "OPTOUT", "OPT-OUT", "REMOVE", "remove me", "TD"]
OTHER_LANGUAGES = ["ARRET", "Arrêt", "alto", "Pare", "baja", "Stopp", "abmelden", "СТОП", "退订", "停止", "ストップ"]
VARIED = [
    *("Stop.", "STOP!!!", " stop\n", "'stop'", "“STOP”", "«stop»", "*stop*", "stop 🙏🏽", "🛑STOP🛑", "stop❤️"),
    *("ＳＴＯＰ", "𝐒𝐓𝐎𝐏", "s.t.o.p.", "S T O P", "st\u200bop", "sto\u0301p", "opt_out", "un-subscribe", "(quit)"),
]


@pytest.mark.parametrize("text", THE_LAWS_WORDS + CARRIERS_WORDS + OTHER_LANGUAGES + VARIED)
def test_a_word_of_the_list_is_an_opt_out_however_it_is_written(text: str) -> None:
    """Case, punctuation, quotes, emoji, accents, width and spacing do not matter (CTIA, 5.1.3)."""
    assert keyword_of(text) == STOP


@pytest.mark.parametrize(
    "text",
    [
        *("stop please", "Please stop", "please STOP!", "pls stop thx", "Stop, thank you", "hi please stop"),
        *("stop texting me", "STOP TEXTING ME", "Hi, please stop texting me, thank you", "can you stop texting me"),
        *("do not text me", "don't text me", "dont text me anymore", "Don’t call me again", "do not contact me"),
        *("take me off", "take me off your list", "please take me off your list", "remove me please"),
        *("opt me out", "I want to opt out", "unsubscribe me", "I want to unsubscribe", "unsubscribe from this"),
        *("i revoke my consent", "revoke consent", "I quit", "no more texts", "leave me alone", "lose my number"),
        *("please cancel", "cancel, thanks", "please end", "stop now please", "Stop messaging"),
        *("quiero darme de baja", "keine SMS mehr", "bitte abmelden", "stop svp"),
    ],
)
def test_a_short_message_that_a_reasonable_person_understands_is_an_opt_out(text: str) -> None:
    """47 CFR 64.1200(a)(10): not only the words of a list."""
    assert keyword_of(text) == UNDERSTOOD


@pytest.mark.parametrize(
    "text", ["stop by tomorrow", "I am at the stop", "bus stop", "they won't stop", "quit smoking"]
)
def test_in_doubt_a_short_message_is_an_opt_out(text: str) -> None:
    """One contact lost costs less than one who is contacted against the law: decided, and so documented."""
    assert keyword_of(text) == UNDERSTOOD


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n", "🛑", "...", "thanks", "Thank you!", "ok", "no", "who is this?", "wrong number"),
        *("cancel my appointment", "please cancel my appointment", "can I cancel", "end of story", "the end of May"),
        *("stop by my house tomorrow at 5", "I will stop at the shop on my way home", "unstoppable", "stopover"),
        *("don't stop", "please don't stop", "do not stop", "never stop", "do not remove me", "don't take me off"),
        *("Does it end?", "remove the second one", "alto ahí amigo", "pare o carro", "non-stop flights to Rome please"),
        *("Liked “Hi Ann, reply STOP to opt out”", "yes please", "yes", "YES", "help me", "more info", "start now"),
        *("please start", "join us", "i want to subscribe", "s t a r t", "h e l p"),
    ],
)
def test_what_people_write_otherwise_is_no_keyword(text: str) -> None:
    """Neither an opt-out, nor a START or HELP that is not exact; `yes` is an ordinary answer."""
    assert keyword_of(text) is None


@pytest.mark.parametrize("text", ["start", "START!", " Unstop ", '"subscribe"', "Join 👍", "ＳＴＡＲＴ"])
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
    assert keyword_of(" ".join(words)) == keyword_of(text)


@given(
    st.lists(st.sampled_from(["stop", "remove", "text", "my", "end", "order", "list", "me", "opt", "out"]), min_size=6)
)
def test_a_long_message_is_never_an_opt_out(words: list[str]) -> None:
    """Beyond five words it is somebody's own words, for a person to read."""
    assert len(words) > MOST_WORDS
    assert keyword_of(" ".join(words)) is None


def test_a_very_long_text_is_read_as_far_as_a_message_goes() -> None:
    """A megabyte of anything costs no more than a message."""
    assert keyword_of("stop" + "!" * 1_000_000) == STOP
    assert keyword_of("x " * 500_000 + "stop") is None


def _documented(beginning: str, end: str) -> list[str]:
    page = (Path(__file__).parents[2] / "docs" / "opt-out.md").read_text(encoding="utf-8")
    return re.split(r"[,;]\s+", page.partition(beginning)[2].partition(end)[0].replace("\n", " ").strip())


def test_the_words_that_are_documented_are_those_that_are_read() -> None:
    """docs/opt-out.md names them, and what it gives as an example is so."""
    stop = _documented("The whole message is one of:", "; and a few more")
    start, help_ = _documented("**START, exact only.**", "; and `yes`"), _documented("**HELP, exact only.**", ".\n")
    assert len(stop) > 40
    assert {keyword_of(word) for word in stop} == {STOP}
    assert (len(start), {keyword_of(word) for word in start}) == (4, {START})
    assert (len(help_), {keyword_of(word) for word in help_}) == (7, {HELP})
    begins = _documented("- begins or ends with ", ": `stop")
    assert {keyword_of(f"we want {word}") for word in re.split(r", | or ", ", ".join(begins))} == {UNDERSTOOD}
    for text in ("stop texting me", "I want to unsubscribe", "please cancel", "stop by tomorrow"):
        assert keyword_of(text) == UNDERSTOOD
    assert keyword_of("“S.T.O.P.” 🛑") == STOP
