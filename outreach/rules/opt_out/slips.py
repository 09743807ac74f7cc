"""Opt-out words with one wrong letter, as thumbs write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from outreach.rules.opt_out.words import Words, without_courtesies

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

_AS_HEARD: Final = frozenset(
    {
        *("cansel", "cansell", "kancel", "kansel", "canselar", "edn", "ebd", "ehd", "offf", "ooff"),
        *("stap", "fof", "ff", "nd"),
    }
)
"""Words as they sound, with letters that are not beside the right ones, and slips of short words that are no others."""

_BY_ANY_LETTER: Final = (
    *("stop", "stopp", "stopall", "unsub", "cancel", "remove", "revoke", "optout", "cease", "delete", "discontinue"),
    *("deregister", "unregister", "unenroll", "desist", "withdraw", "disable", "deactivate", "terminate", "unfollow"),
    *("abmelden", "abbestellen", "abbestellung", "stoppen", "aufhoren", "loschen", "abbrechen", "beenden"),
    *("arret", "arrete", "arreter", "arretez", "annuler", "desabonner", "desabonnement", "desinscription"),
    *("desinscrire", "stoppez", "stopper", "supprimer", "basta", "parar", "cancelar", "detener", "eliminar"),
    *("desuscribir", "remover", "descadastrar", "chega", "annulla", "cancella", "rimuovi", "smettila", "disiscrivi"),
    *("fermati", "cancellare", "annullare", "annuleren", "opzeggen", "afmelden", "uitschrijven", "wypisz"),
    *("przestan", "zatrzymaj", "rezygnuje", "berhenti", "hentikan"),
)
"""Words of which any letter may be wrong, missing or too many, or two exchanged."""

_BY_FEW: Final = ("end", "off", "exit", "quit", "mute", "alto", "baja", "sair", "halt", "pare", "opt")
"""Shorter words, of which two letters may be exchanged, one missing or doubled: more would make many other words."""

_PART_ONLY: Final = frozenset({"opt"})
"""Words that ask for nothing alone."""

_FIGURES: Final = str.maketrans("013457", "oieast")
"""Figures by the letters that they look like."""

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

_EVERYDAY: Final = frozenset(
    {
        *("aalto", "air", "aja", "alo", "alot", "alt", "anmelden", "anneler", "annullate", "apre", "arar", "arbete"),
        *("are", "aret", "arete", "ariete", "arre", "arrest", "arreta", "arrets", "arvet", "asta", "ato", "atop"),
        *("aufholen", "avrete", "bafta", "baita", "balta", "barret", "basa", "basata", "basla", "bassa", "bast"),
        *("bastam", "bastan", "bastao", "baste", "basti", "bastia", "basto", "bastu", "bata", "batta", "beelden"),
        *("beende", "beendet", "bekenden", "benden", "beneden", "besta", "blenden", "boenden", "bosta", "busta"),
        *("cancela", "cancelan", "cancellate", "cancelli", "cancello", "cancelo", "cancels", "cancer", "cannella"),
        *("carcel", "carrete", "case", "casta", "ceas", "ceased", "ceases", "cega", "cese", "cesse"),
        *("chase", "checa", "chegam", "chegar", "chego", "cheia", "chema", "ciega", "clase", "crease", "deactivated"),
        *("degete", "delate", "deleite", "delejte", "delene", "deleted", "delte", "desista", "desiste", "desisti"),
        *("desisto", "detenere", "detenir", "devlete", "diable", "disabile", "disabled", "discontinued", "ease"),
        *("ed", "eend", "eenden", "eit", "eliminan", "eliminare", "eliminat", "eliminer", "en", "evoke", "ext"),
        *("farar", "fasta", "fermarti", "fermata", "fermate", "fermato", "ff", "firmati", "formati", "fremover"),
        *("garret", "gasta", "haalt", "hal", "hallt", "hasta", "hat", "hoschen", "iasta", "kancelar", "karar"),
        *("kasta", "lasta", "lato", "lease", "liminar", "losche", "lto", "mue", "muet", "mut", "nasta", "nd", "ned"),
        *("of", "op", "opleggen", "optou", "ot", "paar", "paare", "pacar", "pagar", "pahar", "pakar", "pannulla"),
        *("par", "para", "parah", "param", "paran", "parare", "paras", "parat", "parer", "parir", "parlar", "parr"),
        *("parra", "parret", "pasar", "pasta", "pazar", "pirar", "pot", "pre", "przestac", "przestana", "pt", "qui"),
        *("rarete", "rasta", "recover", "remore", "remote", "removed", "removes", "removeu", "renove"),
        *("renover", "resist", "retener", "revoked", "rimuove", "sai", "sar", "sarar", "sari", "scop"),
        *("sease", "shop", "shoppen", "shopper", "sir", "slop", "sop", "sopp", "sparar", "stappen", "step", "stip"),
        *("stippen", "sto", "stoa", "stob", "stod", "stoep", "stof", "stoi", "stok", "stol", "stom", "stomp"),
        *("stoop", "stopa", "stoper", "stopfen", "stopien", "stopni", "stopo", "stopped", "stops", "stopten"),
        *("stopu", "stopy", "stor", "stoup", "stow", "strop", "stup", "supprime", "supprimee", "supprimes", "swop"),
        *("tarar", "tasta", "tease", "terhenti", "terminale", "terminare", "terminaste", "terminat", "terminata"),
        *("terminated", "terminati", "terminato", "top", "topp", "toppen", "topper", "uit", "unsur", "ute", "varar"),
        *("vasta", "vease", "withdrawn", "withdraws", "withdrew", "wpisz", "yarar", "yasta", "zarar", "zatrzyma"),
        *("zatrzymac"),
    }
)
"""Everyday words of sixteen languages that are one slip from an opt-out word, without those that only misspell it."""


def _slips(word: str, beside: Mapping[str, str]) -> set[str]:
    """Return a word with two letters exchanged, one left out, one doubled, or a neighbouring key in place or beside."""
    places = range(len(word))
    found = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places[:-1]}
    found |= {word[:at] + word[at + 1 :] for at in places}
    for at in places:
        for key in beside.get(word[at], "") + word[at]:
            found |= {
                word[:at] + key + word[at + 1 :],
                word[:at] + key + word[at:],
                word[: at + 1] + key + word[at + 1 :],
            }
    return found


_HELD: Final = frozenset().union(*(_slips(word, _BESIDE) for word in _SHORT), _AS_HEARD) - _ORDINARY - set(_SHORT)

_OF_FEW: Final = {slip: word for word in _BY_FEW for slip in _slips(word, {}) if slip != word}


def _parts(word: str) -> set[str]:
    """Return a word, and it without each of its letters: words that are one slip apart share one of these."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def _by_part() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in _BY_ANY_LETTER:
        for part in _parts(word):
            found.setdefault(part, []).append(word)
    return found


_BY_PART: Final = _by_part()
_MAX_LENGTH: Final = max(map(len, _BY_ANY_LETTER)) + 1


def corrected(words: Words) -> Words:
    """Return words, with each misspelling of `unsubscribe` replaced by it."""
    return tuple(_LONG if _is_meant(word) else word for word in words)


def meant_by(word: str) -> Sequence[str]:
    """Return the opt-out words that a word may be a slip of; none for one of them, and for an everyday word."""
    if len(word) > _MAX_LENGTH:
        return []
    plain = word if word.isdecimal() else word.translate(_FIGURES)
    if plain in _BY_ANY_LETTER or plain in _BY_FEW:
        return [plain] if plain != word else []
    if plain in _EVERYDAY or plain in _ORDINARY:
        return []
    near = {one for part in _parts(plain) for one in _BY_PART.get(part, ()) if _is_one_slip(plain, one)}
    return sorted(near | {_OF_FEW[plain]} if plain in _OF_FEW else near)


def _is_one_slip(word: str, right: str) -> bool:
    """Return whether a word is one slip away from the right one; the caller has found that they share a part."""
    if len(word) != len(right):
        return True
    at, *others = [at for at, letter in enumerate(word) if letter != right[at]]
    return not others or (others == [at + 1] and word[at] == right[at + 1] and word[at + 1] == right[at])


def is_slip(words: Words) -> bool:
    """Return whether a message may be an opt-out word with a wrong letter, and is for a person to read."""
    own = without_courtesies(words) or words
    if len(own) == 1 and (own[0] in _HELD or not _PART_ONLY.issuperset(meant_by(own[0]))):
        return True
    joined = "".join(own)
    return joined.startswith(("u", "nu")) and joined not in _OWN_FORMS and _is_near(joined, most=2)


def _is_meant(word: str) -> bool:
    word = word.translate(_FIGURES)
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
