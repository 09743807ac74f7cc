"""What people say around what they want: greetings, thanks, haste. It changes nothing of what a message wants."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from outreach.policy.words import Words, phrases

_COURTESIES: Final = phrases(
    *("please", "pls", "plz", "thanks", "thank", "thx", "you", "ty", "hi", "hello", "hey", "ok", "okay", "sorry"),
    *("sir", "madam", "ma'am", "kindly", "bitte", "danke", "merci", "svp", "gracias", "hola", "por favor"),
    *("hi there", "hello there", "hey there", "good morning", "good afternoon", "good evening"),
)
"""At either end."""

_REQUESTS: Final = phrases(
    *("can you", "could you", "would you", "will you", "can u", "could u", "would u", "will u", "you need to"),
    *("i want you to", "i need you to", "i would like you to", "i'd like you to", "i asked you to", "i told you to"),
    *("i am asking you to", "i'm asking you to", "you have to", "you must", "u need to", "just", "again", "so"),
)
"""Before what somebody is to do."""

WISHES: Final = phrases(
    *("i want to", "i would like to", "i'd like to", "i wish to", "i need to", "i have to", "i am going to"),
    *("i'm going to", "we want to", "we would like to", "we'd like to", "we wish to", "let me"),
    *("i just want to", "i only want to", "we just want to"),
    *("how do i", "how can i", "where do i", "where can i"),
)
"""Before what somebody wants to do themselves; of `stop` that may be smoking."""

_THANKS: Final = phrases(
    *("so much", "very much", "a lot", "in advance", "much appreciated", "i appreciate it", "appreciate it", "cheers"),
    *("have a nice day", "have a good day", "have a great day", "have a good one", "god bless", "god bless you"),
    *("regards", "best regards", "kind regards", "if possible", "if you can", "if you could", "if you don't mind"),
    *("right now", "right away", "immediately", "asap", "at once", "now", "already", "today", "for good", "forever"),
    *("anymore", "any more", "again", "altogether", "completely"),
)
"""After what somebody wants."""

_BEFORE: Final = _COURTESIES | _REQUESTS
_AFTER: Final = _COURTESIES | _THANKS


def without_courtesies(words: Words) -> Words:
    """Return a message without its single words of courtesy, and nothing else, at both ends."""
    return _stripped(words, _COURTESIES, _COURTESIES)


def without_politeness(words: Words) -> Words:
    """Return a message without what is said before and after what somebody wants."""
    return _stripped(words, _BEFORE, _AFTER)


def skipped(words: Words, start: int) -> int:
    """Return where, from a word on, what somebody wants begins: after courtesies, requests and wishes."""
    return _skip(words, start, len(words), _BEFORE | WISHES)


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


_MOST: Final = max(len(phrase) for phrase in _BEFORE | _AFTER | WISHES)


def _longest(words: Words, known: Collection[Words], *, at_end: bool) -> int:
    """Return how many words the longest known phrase at one end has; 0 for none."""
    for length in range(min(_MOST, len(words)), 0, -1):
        if (words[-length:] if at_end else words[:length]) in known:
            return length
    return 0
