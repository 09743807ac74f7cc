"""What somebody who writes to us wants: STOP, START, HELP, or something else.

Two tiers. *Exact*: the whole message is one of the words, whatever its case, punctuation, quotes, emoji, accents,
width and spacing; so a carrier reads it (CTIA messaging principles, 5.1.3; 47 CFR 64.1200(a)(10) names the words).
*Phrase*: a message of at most five words, courtesies not counted, that begins or ends with such a word or holds a
phrase such as "do not text me"; any wording that a reasonable person understands has to be honoured (the same rule),
and one contact too few costs less than one too many. Only an opt-out is read from a phrase: START and HELP are exact.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, Literal

import attrs

from outreach.models.message import Keyword

Tier = Literal["exact", "phrase"]

MOST_WORDS: Final = 5
"""Longer messages are somebody's own words, for a person to read."""

_LONGEST: Final = 2000
"""Characters that are looked at: no carrier delivers a longer message, and reading stays cheap."""

_WORD: Final = re.compile(r"[^\W_]+")
_APOSTROPHES: Final = dict.fromkeys(map(ord, "'\u2019\u2018\u02bc`\u00b4"))
"""Left out before anything else: `don't` is one word."""


@attrs.frozen
class Reading:
    """What a message was taken for.

    Attributes:
        keyword: What is wanted.
        tier: Whether the whole message says just that, or was understood so.
    """

    keyword: Keyword
    tier: Tier


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a message in the one form in which they are compared.

    Compatibility forms (full width, mathematical letters) become plain letters, case and accents go, and everything
    that is neither letter nor digit only separates: quotes, hyphens, emoji.
    """
    plain = unicodedata.normalize("NFKC", text[:_LONGEST]).translate(_APOSTROPHES).casefold()
    bare = (letter for letter in unicodedata.normalize("NFKD", plain) if unicodedata.category(letter) not in _INVISIBLE)
    return tuple(_WORD.findall("".join(bare)))


_INVISIBLE: Final = frozenset({"Mn", "Me", "Cf"})
"""Accents, the marks that make a sign an emoji, and what has no width: they part no word."""


def _phrases(*texts: str) -> frozenset[tuple[str, ...]]:
    return frozenset(words_of(text) for text in texts)


_STOP: Final = _phrases(
    # 47 CFR 64.1200(a)(10), and what Twilio, Telnyx, Vonage and AWS take for it by themselves.
    *("stop", "stop all", "unsubscribe", "cancel", "end", "quit", "revoke", "opt out", "remove", "remove me", "td"),
    *("unsub", "stop it", "stop now", "no more"),
    *("arret", "arrêter", "arrêtez", "désabonner", "désinscription"),  # French
    *("alto", "pare", "parar", "baja", "dar de baja", "cancelar"),  # Spanish, Portuguese
    *("sair", "remover", "descadastrar"),  # Portuguese
    *("stopp", "abmelden", "abbestellen", "abbestellung"),  # German; the first Swedish and Norwegian too
    *("annulla", "cancella", "disiscrivi"),  # Italian
    *("afmelden", "uitschrijven", "stoppen"),  # Dutch
    *("avsluta", "afmeld", "avmeld"),  # Swedish, Danish, Norwegian
    *("стоп", "отписаться", "отписка"),  # Russian
    *("停止", "配信停止", "ストップ"),  # Japanese
    *("退订", "退訂"),  # Chinese
)

_STOP_JOINED: Final = frozenset("".join(words) for words in _STOP)
"""Spaces and punctuation inside do not matter for an opt-out: `opt-out`, `STOPALL`, `S.T.O.P.`"""

_START: Final = _phrases("start", "unstop", "subscribe", "join")
_START_WHEN_STOPPED: Final = _phrases("yes")
"""An ordinary answer of anybody but who has opted out by keyword."""

_HELP: Final = _phrases("help", "info", "aide", "ayuda", "ajuda", "hilfe", "aiuto")

_TELLING: Final = frozenset(
    {"stop", "stopp", "stopall", "unsubscribe", "unsub", "quit", "revoke", "optout", "arret", "arretez", "стоп"}
)
"""Words that make a short message an opt-out when it begins or ends with one; `end` and `cancel` have other uses."""

_INSIDE: Final = _phrases(
    *("stop texting", "stop messaging", "stop calling", "stop sending", "stop contacting", "stop these", "stop this"),
    *("do not text", "do not message", "do not contact", "do not call", "do not send me", "do not write"),
    *("don't text", "don't message", "don't contact", "don't call", "don't send me", "don't write"),
    *("no more texts", "no more messages", "no more calls", "no more sms"),
    *("take me off", "remove me", "remove my number", "delete my number", "lose my number", "leave me alone"),
    *("opt out", "opt me out", "revoke my", "revoke consent", "unsubscribe me"),
    *("darme de baja", "dar de baja", "no me escriban", "no mas mensajes", "no más mensajes"),
    *("ne plus recevoir", "keine sms mehr", "keine nachrichten mehr"),
)

_LONGEST_PHRASE: Final = max(len(phrase) for phrase in _INSIDE)

_COURTESIES: Final = frozenset(
    {"please", "pls", "plz", "thanks", "thank", "thx", "you", "ty", "hi", "hello", "hey", "ok", "okay", "sorry", "sir"}
    | {"bitte", "danke", "merci", "svp", "gracias", "hola"}
)
"""Words that change nothing of what a short message wants, at its beginning and at its end."""

_NEGATIONS: Final = frozenset({("dont",), ("do", "not"), ("never",)})
"""Right before a word they turn it round: `don't stop`, `do not remove me`."""


def keyword_of(text: str, *, opted_out_by_keyword: bool = False) -> Reading | None:
    """Return what a message wants; None when it is no keyword.

    Args:
        text: The message as it came.
        opted_out_by_keyword: Whether its sender has opted out by a keyword: then `yes` takes that back.
    """
    words = words_of(text)
    if words in _STOP or "".join(words) in _STOP_JOINED:
        return Reading("stop", "exact")
    if words in _START or (opted_out_by_keyword and words in _START_WHEN_STOPPED):
        return Reading("start", "exact")
    if words in _HELP:
        return Reading("help", "exact")
    return Reading("stop", "phrase") if _asks_to_stop(_without_courtesies(words)) else None


def _without_courtesies(words: tuple[str, ...]) -> tuple[str, ...]:
    first, last = 0, len(words)
    while first < last and words[first] in _COURTESIES:
        first += 1
    while last > first and words[last - 1] in _COURTESIES:
        last -= 1
    return words[first:last]


def _asks_to_stop(words: tuple[str, ...]) -> bool:
    if not 0 < len(words) <= MOST_WORDS:
        return False
    if "".join(words) in _STOP_JOINED:
        # `Please cancel`: the word stands alone but for courtesies.
        return True
    ends = {0, len(words) - 1}
    if any(words[at] in _TELLING and not _negated(words, at) for at in ends):
        return True
    return any(phrase in _INSIDE and not _negated(words, at) for at, phrase in _runs(words))


def _runs(words: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    for at in range(len(words)):
        for length in range(1, min(_LONGEST_PHRASE, len(words) - at) + 1):
            yield at, words[at : at + length]


def _negated(words: tuple[str, ...], at: int) -> bool:
    return any(words[max(at - len(before), 0) : at] == before for before in _NEGATIONS)
