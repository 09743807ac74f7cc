"""The words of a message as they are compared, slips of one letter, and sentences that ask for no more messages.

Sentences are matched only where a sentence or a part of it begins: `my ex won't stop texting me` is no opt-out. Each
names whom not to contact or what not to send: neither is `stop by the shop`. A sentence that is reversed or limited
(`instead`, `unless`, `until`, `except`) is left to a person.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
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
    return tuple(_SHORTENED.get(word, word) for word in _WORD.findall("".join(bare)))


_SHORTENED: Final = {"txt": "text", "txts": "texts", "txting": "texting", "dnt": "dont"}
"""How people shorten words of opt-outs."""

_LOOK_ALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0432\u043a\u043c\u043d"  # Cyrillic
    "\u03b1\u03b2\u03b5\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c3\u03c2\u03c4\u03c5\u03c7",  # Greek
    "aeopctyxsibkmh" + "abeikmvopsstux",
)
"""Lower-case letters of other scripts by the Latin ones that they look like."""


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
"""Words that may have one wrong, missing or extra letter, or two letters exchanged."""

_BY_FEW: Final = ("end", "off", "exit", "quit", "mute", "alto", "baja", "sair", "halt", "pare", "opt")
"""Shorter words that may have two letters exchanged, or one missing or doubled: more would make many other words."""

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


_ENDS_OF_PARTS: Final = re.compile(r"(?:[.!?;:,\n\r|\[\]\u2026\u2013\u2014\u3002\u3001]|\((?!\d)|(?<!\d)\))+|\s-+\s")
"""The separators of parts, in NFKC form; the brackets of `(415) 555-0100` do not separate."""

_BEGINNINGS: Final = phrases(
    *("please", "pls", "plz", "so", "just", "and", "kindly", "then", "or", "again", "now", "no", "yes", "omg", "dude"),
    *("who is this", "who's this", "who are you", "who dis", "wrong number", "wrong person", "wrong guy"),
    *("not interested", "no longer interested", "no thanks", "no thank you", "I said", "go away", "I don't know you"),
)
"""Phrases after which a part may begin without punctuation."""

_MAX_BEGINNING_WORDS: Final = max(len(phrase) for phrase in _BEGINNINGS)

_NEGATING: Final = frozenset({"dont", "not", "never"})
"""Negations that also reach across `or`: `do not cancel or stop these texts`."""

_LIMITS: Final = frozenset({"instead", "unless", "until", "except"})

_ALONE: Final = phrases(
    "stop", "stop all", "stopall", "stop it", "stop now", "unsubscribe", "unsub", "opt out", "optout", "remove me"
)
"""Parts of a longer message that opt out by themselves: `STOP. I have told you twice.`"""

_ON_A_WAY: Final = frozenset({"turn", "walk", "drive", "cross", "park"})
"""At the beginning of the next part they make it a direction: `go to 5th, stop, turn left`."""

_ME: Final = (
    r"(?:me|us|this (?:phone )?number|this phone|this line|my (?:\w+ )?(?:phone|number|cell|mobile|line|wife|husband|"
    r"mom|mother|dad|father|parents|kids?|son|daughter|family))"
)
_REACHING: Final = (
    r"(?:texting|messaging|msging|calling|contacting|spamming|bothering|harassing|emailing|writing|ringing|phoning|"
    r"pestering|annoying)"
)
_REACH: Final = r"(?:text|message|msg|call|contact|sms|spam|bother|harass|email|write|ring|phone|pester)"
_MESSAGES: Final = (
    r"(?:texts|text messages|messages|msgs|sms|calls|phone calls|spam|ads|advertisements|promos|promotions|offers|"
    r"notifications|alerts|communications?|marketing)"
)
_TEXTS: Final = r"(?:texts|text messages|messages|msgs|sms|text alerts|promos|spam)"
"""Messages only: calls that are cancelled may be appointments."""

_WHICH: Final = (
    r"(?:(?:all|any|more|these|those|this|the|your|of|such|unwanted|annoying|future|further|stupid|"
    r"damn|fucking|so many) )*"
)
_REMOVED: Final = r"(?:removed|deleted|erased|unsubscribed|opted out|taken off)"
_ASKED: Final = r"(?:(?<=please )|(?<=pls )|(?<=plz )|(?<=kindly ))"
_NO_WISH: Final = r"(?:i|we) (?:really )?(?:no longer|do not|dont|never)"
_NOT: Final = r"(?:do not|dont|never|do not ever|dont ever|dont you ever|never ever)"
_MINE: Final = (
    r"(?:me|us|my (?:\w+ )?(?:name|number|phone|cell|mobile|info|information|contact|details|data)|this number)"
)
_NUMBER: Final = r"\d[\d ]{5,15}\d"
"""A phone number as words."""
_LIST: Final = (
    r"(?:(?!wait|guest)\w+ ){0,3}?"
    r"(?:lists?|database|systems?|records?|contacts|mailings?|subscriptions?|texts|messages|calls|notifications|alerts|"
    r"campaigns?|marketing|everything|directory)"
)

_TO_SENDER: Final = (
    r"you (?:have|are|got|guys|people|keep|idiots?|morons?)|youre|youve|wrong (?:number|person)|"
    r"(?:i am|im|we are) not (?:interested|buying|the (?:person|one|right)|your|who)|"
    r"(?:i|we) (?:do not|dont) (?:want|need|care|know you)|(?:i|we) (?:said|told)|"
    r"(?:i|we) never (?:asked|signed|wanted|agreed|subscribed|gave|opted)|"
    r"(?:why|how) (?:do|did|are) (?:you|u)|who (?:is this|are you)|"
    r"(?:asking|pushing|begging|pressuring) (?:me|us) to|trying to (?:sell|make (?:me|us) buy)|"
    r"selling (?:my|our) (?:data|info|information|details|number|phone)|solicit(?:ing|ation|ations)|reaching out|"
    rf"contact (?:with )?(?:me|us)|{_MESSAGES} to {_ME}|or im"
)
"""Phrases after STOP at the beginning that address the sender."""

_SENTENCES: Final = "|".join(
    (
        rf"(?:stop|quit|cease) (?:the |all )?{_REACHING}(?: (?:and|or|n) {_REACHING})*(?: to)? {_ME}\b",
        rf"(?:stop|quit|cease) sending (?:me |us |out )?{_WHICH}"
        rf"(?:{_MESSAGES}\b|(?:this|these|those|anything|stuff)$)",
        r"(?:stop|quit|cease) (?:sending|texting|messaging|spamming|bothering|harassing) (?:me|us)\b"
        r"(?! (?:the wrong|a wrong|wrong|it|them|that|him|her|my)\b)",
        r"(?:stop|quit|cease) (?:bugging|hounding|disturbing|stalking|interrupting|blasting|flooding|scamming|"
        r"bombarding|hassling|irritating|trolling|troubling) (?:me|us)\b",
        r"(?:stop|quit|cease) wasting (?:my|our) (?:\w+ )?(?:time|data|money|battery|phone)\b",
        r"(?:stop|quit|cease) blowing up (?:my|our) (?:\w+ )?(?:phone|cell)\b",
        rf"stop(?: (?:it|this|now|please|pls|already))* (?:{_TO_SENDER})\b",
        r"stop (?:please|pls|plz) (?:i|we)\b",
        r"(?:stop|quit|cease) (?:it |already )?with (?:all )?(?:this|these|the|your|those)(?: \w+)? "
        rf"(?:{_MESSAGES}|nonsense|crap|shit|bs|garbage|junk|bullshit)\b",
        rf"(?:stop|quit|cease) (?:receiving|getting) {_WHICH}(?:\w+ )?(?:{_MESSAGES}\b|(?:this|these|those|them)$)",
        rf"(?:(?:i|we) (?:want|need|would like) |make |have ){_WHICH}(?:\w+ )?{_MESSAGES}"
        r" (?:to )?(?:stop|end|cease)\b",
        rf"(?:cancel|discontinue|terminate) (?:receiving )?(?:my |our )?(?:subscription to )?{_WHICH}"
        rf"(?:\w+ )?{_TEXTS}\b",
        rf"(?:stop|end|cease) (?:with )?(?:all|these|those|this|the|your)(?: the| these| your| of)?"
        rf"(?: \w+)? (?:{_MESSAGES}|{_REACHING}|harassment|contact)\b",
        rf"{_NOT} {_REACH}(?: (?:and|or) {_REACH})*(?: to)? {_ME}"
        rf"(?:$| (?:again|anymore|any more|ever|please|at all|at this|about|with|or|and|no|from|for any|under)\b)",
        rf"{_NOT} send (?:me |us )?(?:any|more|these|those|your|such) {_WHICH}(?:\w+ )?{_MESSAGES}\b",
        rf"{_NOT} send (?:me|us) anything\b",
        rf"(?:take|remove|delete|drop|get|erase) {_MINE}(?: {_NUMBER})? (?:off|from|out)(?: of)? {_LIST}\b",
        rf"(?:take|get) {_MINE} off(?: of)?(?: this| it| here)?$",
        rf"(?:take|get) off {_MINE}(?: {_NUMBER})?(?:$| (?:of|from)(?: of)? {_LIST}\b)",
        rf"(?:remove|delete|unsubscribe|take off|stop texting|stop calling)(?: my number)? {_NUMBER}(?: from\b|$)",
        rf"(?:(?:i|we) (?:want|need) |have |get ){_MINE} {_REMOVED}(?:$|(?: of| from)? {_LIST}\b)",
        rf"be {_REMOVED}(?:$|(?: of| from)? {_LIST}\b)",
        r"be left alone\b",
        rf"(?:i|we) want (?:off|out)(?:$|(?: of)? {_LIST}\b)",
        rf"{_ASKED}(?:stop|remove|remove me|delete me|unsubscribe|unsub|discontinue|opt me out)$",
        r"stop(?: it| this| now| right now| immediately| already)* or (?:i|we|ill|else)\b",
        rf"stop (?:the|this|all|your|these|that) (?:\w+ ){{1,4}}(?:{_TEXTS}|texting|ads|calls)\b",
        r"(?:put|add) (?:me|us|my number|this number) (?:on|to) (?:\w+ ){0,2}(?:do not (?:call|contact|text)|dnc)\b",
        r"(?:my )?consent (?:is |has been )?(?:revoked|withdrawn)\b",
        r"cease (?:all )?contact\b",
        r"(?:unsubscribe|unsub) (?:me|us|my|this number|from)\b",
        r"opt (?:(?:me|us|my number|this number) )?out\b",
        r"(?:i am |im |we are )?opting out\b",
        r"(?:i|we|ive|weve) (?:have )?(?:already )?(?:opted out|unsubscribed)\b",
        rf"{_NO_WISH} (?:want|wish|care|need|consent|agree)(?: you)?(?: to)?"
        rf"(?: (?:get|getting|receive|receiving|have|see))? {_WHICH}"
        rf"(?:(?!(?:stop|end|quit|cancel|miss|lose|block)\b)\w+ )?{_MESSAGES}\b",
        rf"{_NO_WISH} (?:want|wish|consent|agree) (?:to be|being|to being) "
        r"(?:contacted|texted|called|messaged|spammed|bothered)\b",
        rf"{_NO_WISH} (?:want|wish) to hear from (?:you|this)\b",
        rf"no more (?:of )?(?:these |those |your )?{_MESSAGES}\b(?! (?:\w+ )?(?:needed|necessary|required)\b)",
        rf"no more {_REACHING}(?:$| {_ME}\b)",
        r"leave (?:me|us) (?:the \w+ )?alone\b",
        r"lose (?:my|this) (?:phone )?number\b",
        r"(?:i |we )?(?:hereby )?(?:revoke|withdraw|rescind) (?:my |our |all |any |prior |express |written )*"
        r"(?:consent|permission|authorization)\b",
    )
)


@cache
def _sentences() -> re.Pattern[str]:
    # Compiled when the first message arrives: it takes 16 ms, and most processes read none.
    return re.compile(_SENTENCES)


def sentence_asks_to_stop(text: str) -> bool:
    """Return whether a part of a message plainly asks for no more messages or calls."""
    return any(_says_so(part, after) for part, after in pairwise([*_sentence_parts(text), ()]))


def _sentence_parts(text: str) -> Iterator[Words]:
    for part in _ENDS_OF_PARTS.split(unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])):
        words = words_of(part)
        if words:
            yield words


def _says_so(part: Words, after: Words) -> bool:
    words = without_politeness(part)
    if words in _ALONE:
        return _ON_A_WAY.isdisjoint(after[:2])
    if not _LIMITS.isdisjoint(part):
        return False
    line = " ".join(words)
    return any(_sentences().match(line, _offset(words, skip_courtesies(words, start))) for start in _starts(words))


def _starts(words: Words) -> Iterator[int]:
    yield 0
    for at in range(1, len(words)):
        before = (words[max(at - length, 0) : at] for length in range(1, _MAX_BEGINNING_WORDS + 1))
        if not _BEGINNINGS.isdisjoint(before) and (words[at - 1] != "or" or _NEGATING.isdisjoint(words[:at])):
            yield at


def _offset(words: Words, index: int) -> int:
    return sum(len(word) + 1 for word in words[:index])
