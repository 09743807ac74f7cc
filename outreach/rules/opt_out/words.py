"""The words of a message, in the form in which they are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final

MAX_CHARACTERS: Final = 2000
"""No carrier delivers longer messages."""

_WORD: Final = re.compile(r"[^\W_]+")
_LETTERS_OR_DIGITS: Final = re.compile(r"\d+|\D+")
_APOSTROPHES: Final = dict.fromkeys(map(ord, "'\u2019\u2018\u02bc`\u00b4"))
"""Removed first: `don't` is one word."""

_UNDECOMPOSED: Final = str.maketrans("\u0131\u0142\u0111\u00f8", "ildo")
"""Letters with a stroke, and the Turkish I without a dot: Unicode does not decompose them."""

_INVISIBLE: Final = frozenset({"Mn", "Me", "Cf"})
"""Accents, emoji marks and characters without width, which do not separate words."""

Words = tuple[str, ...]


def words_of(text: str) -> Words:
    """Return the words of a message.

    Compatibility forms (full width, mathematical letters) become plain letters, case and accents are removed, and
    everything except letters and digits separates.
    """
    plain = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS]).translate(_APOSTROPHES).casefold()
    letters = unicodedata.normalize("NFKD", plain).translate(_UNDECOMPOSED)
    bare = (letter for letter in letters if unicodedata.category(letter) not in _INVISIBLE)
    return tuple(_WORD.findall("".join(bare)))


_LOOK_ALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0432\u043a\u043c\u043d"  # Cyrillic
    "\u03b1\u03b2\u03b5\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c3\u03c2\u03c4\u03c5\u03c7",  # Greek
    "aeopctyxsibkmh" + "abeikmvopsstux",
)
"""Lower-case letters of other scripts by the Latin ones that they look like."""

_LATIN: Final = re.compile(r"[a-z]")


def to_latin(word: str) -> str:
    """Return a word with Latin letters for their look-alikes in other scripts."""
    return word.translate(_LOOK_ALIKES)


def split_digits(words: Words) -> Words:
    """Return words with letters and digits separated: `stop`, `2`, `end` of `stop2end`."""
    return tuple(part for word in words for part in _LETTERS_OR_DIGITS.findall(word))


def phrases(*texts: str) -> frozenset[Words]:
    """Return phrases as words."""
    return frozenset(words_of(text) for text in texts)


MAX_QUOTED_WORDS: Final = 5
"""Longer quotations are taken for a message of ours; `I said “stop texting me”` is not one."""

_OPENING: Final = re.compile(r"[\"\u201c\u201d\u201e\u00ab\u00bb\u2039\u300c\u300e]|\s['\u2018\u2019]")

_QUOTED: Final = re.compile(
    r"[\"\u201c\u201d\u201e\u00ab\u00bb\u300c][^\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]*"
    r"[\"\u201c\u201d\u00ab\u00bb\u300d]"
)
"""No mark may stand inside, so that the match takes linear time."""

_SIGN: Final = re.compile(r"\s*[^\w\s]\W*(?:to|a|\u00e0|zu|auf|su|sur|em|op|p\u00e5|til)\W*", re.IGNORECASE)
"""An emoji and the word before a quotation: `👍 to “…”`."""

_REACTION: Final = re.compile(
    "|".join(
        (
            r"liked|loved|disliked|laughed at|emphasi[sz]ed|questioned",
            r"reacted (?:\w+ ){0,4}to|removed an? (?:\w+ ){0,4}from|removed from",
            r"gefallt(?: mir)?(?: nicht)?|liebt|lacht uber|betont|hinterfragt|reagierte mit auf",  # German
            r"a (?:aime|adore|ri de|souligne|reagi avec a)|na pas aime|a mis laccent sur|a mis en doute",  # French
            r"(?:no )?le gusto|le encanto|se rio de|enfatizo|cuestiono|reacciono con a",  # Spanish
            r"(?:nao )?gostou de|amou|adorou|riu de|enfatizou|questionou|reagiu com a",  # Portuguese
            r"ha (?:messo mi piace a|adorato|riso (?:a|di|per)|enfatizzato|reagito con a)|(?:non )?piace",  # Italian
        )
    )
)
"""How phones report a reaction to a message, before the quotation marks and without accents and emoji."""


def is_reaction(text: str) -> bool:
    """Return whether a message is a phone's report of a reaction to a message of ours, which it quotes."""
    text = text[:MAX_CHARACTERS]
    opening = _OPENING.search(text)
    if opening is None:
        return False
    lead = text[: opening.start()]
    return _SIGN.fullmatch(lead) is not None or _REACTION.fullmatch(" ".join(words_of(lead))) is not None


def own_text(text: str) -> str:
    """Return a message without quoted lines (`> …`) and longer passages in quotation marks, unless it is all quoted."""
    lines = "\n".join(line for line in text[:MAX_CHARACTERS].splitlines() if not line.lstrip().startswith(">"))
    rest = _QUOTED.sub(lambda quoted: quoted[0] if len(words_of(quoted[0])) <= MAX_QUOTED_WORDS else " ", lines)
    return rest if rest.strip(" .,!?\n") else lines


_COURTESIES: Final = phrases(
    *("please", "pls", "plz", "thanks", "thank", "thx", "you", "ty", "hi", "hello", "hey", "ok", "okay", "sorry"),
    *("sir", "madam", "ma'am", "kindly", "bitte", "danke", "merci", "svp", "gracias", "hola", "por favor"),
    *("s'il vous plaît", "s'il te plaît", "obrigado", "obrigada", "per favore", "grazie", "aub", "alstublieft"),
    *("bedankt", "proszę", "dziękuję", "lütfen", "teşekkürler", "пожалуйста", "спасибо", "בבקשה", "נא", "אנא", "תודה"),
    *("من فضلك", "لو سمحت", "رجاء", "الرجاء", "شكرا"),
    *("hi there", "hello there", "hey there", "good morning", "good afternoon", "good evening"),
)
"""Courtesies at either end."""

_REQUESTS: Final = phrases(
    *("can you", "could you", "would you", "will you", "can u", "could u", "would u", "will u", "you need to"),
    *("i want you to", "i need you to", "i would like you to", "i'd like you to", "i asked you to", "i told you to"),
    *("i am asking you to", "i'm asking you to", "you have to", "you must", "u need to", "just", "again", "so"),
)
"""Requests, before the verb."""

WISH_PHRASES: Final = phrases(
    *("i want to", "i would like to", "i'd like to", "i wish to", "i need to", "i have to", "i am going to"),
    *("i'm going to", "we want to", "we would like to", "we'd like to", "we wish to", "let me"),
    *("i just want to", "i only want to", "we just want to"),
    *("how do i", "how can i", "where do i", "where can i"),
)
"""Wishes about oneself, before the verb; `stop` after them may mean smoking."""

_THANKS: Final = phrases(
    *("so much", "very much", "a lot", "in advance", "much appreciated", "i appreciate it", "appreciate it", "cheers"),
    *("have a nice day", "have a good day", "have a great day", "have a good one", "god bless", "god bless you"),
    *("regards", "best regards", "kind regards", "if possible", "if you can", "if you could", "if you don't mind"),
    *("right now", "right away", "immediately", "asap", "at once", "now", "already", "today", "for good", "forever"),
    *("anymore", "any more", "again", "altogether", "completely"),
)
"""Phrases after the request."""

_BEFORE: Final = _COURTESIES | _REQUESTS
_AFTER: Final = _COURTESIES | _THANKS


def without_courtesies(words: Words) -> Words:
    """Return a message without single words of courtesy at both ends."""
    return _stripped(words, _COURTESIES, _COURTESIES)


def without_politeness(words: Words) -> Words:
    """Return a message without the polite phrases at both ends."""
    return _stripped(words, _BEFORE, _AFTER)


def skip_courtesies(words: Words, start: int) -> int:
    """Return the index after courtesies, requests and wishes from `start` on."""
    return _skip(words, start, len(words), _BEFORE | WISH_PHRASES)


def _stripped(words: Words, before: Collection[Words], after: Collection[Words]) -> Words:
    first = _skip(words, 0, len(words), before)
    last = len(words)
    while length := _longest(words[first:last], after, at_end=True):
        last -= length
    return words[first:last]


def _skip(words: Words, start: int, end: int, before: Collection[Words]) -> int:
    while length := _longest(words[start:end], before, at_end=False):
        start += length
    return start


_MOST: Final = max(len(phrase) for phrase in _BEFORE | _AFTER | WISH_PHRASES)


def _longest(words: Words, known: Collection[Words], *, at_end: bool) -> int:
    """Return the length of the longest known phrase at one end; 0 for none."""
    for length in range(min(_MOST, len(words)), 0, -1):
        if (words[-length:] if at_end else words[:length]) in known:
            return length
    return 0
