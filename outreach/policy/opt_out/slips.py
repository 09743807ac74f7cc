"""Opt-out words with one wrong letter, as thumbs write them."""

from __future__ import annotations

from typing import Final

from outreach.policy.opt_out.words import Words, without_courtesies

_LONG: Final = "unsubscribe"
"""So long that no other word is one letter from it; a person has to read what is two letters from it."""

_OWN_FORMS: Final = frozenset({"unsubscribed", "unsubscribes"})
"""Forms of it that say something else."""

_SHORT: Final = (
    *("stop", "stopall", "unsub", "cancel", "quit", "revoke", "optout", "remove", "cease", "discontinue", "exit"),
    *("mute", "cancelar", "abmelden", "abbestellen", "annulla", "cancella", "afmelden", "uitschrijven", "stoppen"),
    *("alto", "baja", "parar", "arret", "delete"),
)
"""Words whose misspellings a person must read."""

_AS_HEARD: Final = frozenset({"cansel", "cansell", "kancel", "kansel", "canselar", "edn", "ebd", "ehd", "offf", "ooff"})
"""Words as they sound, with letters that are not beside the right ones, and slips of short words that are no others."""

_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def _neighbours() -> dict[str, str]:
    """Return the keys beside each key of a keyboard."""
    places = {letter: (x + y * 0.5, y) for y, row in enumerate(_ROWS) for x, letter in enumerate(row)}
    return {
        one: "".join(
            other
            for other, (across, down) in places.items()
            if other != one and abs(across - x) <= 1 and abs(down - y) <= 1
        )
        for one, (x, y) in places.items()
    }


_BESIDE: Final = _neighbours()

_ORDINARY: Final = frozenset(
    {
        *(
            "top",
            "atop",
            "strop",
            "sop",
            "stol",
            "case",
            "ease",
            "crease",
            "cesar",
            "evoke",
            "edit",
            "ext",
            "exif",
        ),
        *("mite", "jute", "ute", "qui", "quot", "quoit", "anmelden", "remover"),
        *("algo", "alo", "alt", "alot", "salto", "lato", "bajas", "baia", "haja", "parra", "arrest"),
    }
)
"""Words of their own among the slips."""


def _slips(word: str) -> set[str]:
    """Return a word with two letters exchanged, one left out, one doubled, or a neighbouring key in place or beside."""
    places = range(len(word))
    found = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places[:-1]}
    found |= {word[:at] + word[at + 1 :] for at in places}
    for at in places:
        for key in _BESIDE[word[at]] + word[at]:
            found |= {
                word[:at] + key + word[at + 1 :],
                word[:at] + key + word[at:],
                word[: at + 1] + key + word[at + 1 :],
            }
    return found


_HELD: Final = frozenset().union(*map(_slips, _SHORT), _AS_HEARD) - _ORDINARY - set(_SHORT)


def corrected(words: Words) -> Words:
    """Return words, with each misspelling of `unsubscribe` replaced by it."""
    return tuple(_LONG if _is_meant(word) else word for word in words)


def is_slip(words: Words) -> bool:
    """Return whether a message may be an opt-out word with a wrong letter, and is for a person to read."""
    own = without_courtesies(words) or words
    if len(own) == 1 and own[0] in _HELD:
        return True
    joined = "".join(own)
    return joined.startswith(("u", "nu")) and joined not in _OWN_FORMS and _is_near(joined, most=2)


def _is_meant(word: str) -> bool:
    return word.isalpha() and word not in _OWN_FORMS and _is_near(word, most=1)


def _is_near(word: str, *, most: int) -> bool:
    """Return whether so many changes, of a letter or of two that stand side by side, make a word the long one."""
    if abs(len(word) - len(_LONG)) > most:
        return False
    before: list[int] = []
    last = list(range(len(_LONG) + 1))
    for at, letter in enumerate(word, 1):
        row = [at]
        for place, other in enumerate(_LONG, 1):
            costs = [last[place] + 1, row[-1] + 1, last[place - 1] + (letter != other)]
            if at > 1 and place > 1 and letter == _LONG[place - 2] and word[at - 2] == other:
                costs.append(before[place - 2] + 1)
            row.append(min(costs))
        before, last = last, row
    return last[-1] <= most
