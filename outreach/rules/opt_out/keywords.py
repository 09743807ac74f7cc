"""Keywords in inbound messages: STOP, START and HELP.

There are two tiers. *Exact*: the whole message is one of the words, ignoring case, punctuation, quotes, emoji, accents,
width and spacing, as carriers read it (CTIA messaging principles, 5.1.3; 47 CFR 64.1200(a)(10) names the words).
*Phrase*, for opt-outs only: a message of at most five words, not counting politeness, that begins or ends with such a
word or contains a phrase such as "do not text me", or a plain sentence in a longer message
(`outreach.rules.opt_out.words`). The same rule demands that any reasonable wording is honoured, and one contact too
few costs less than one too many. Quotations are not read for phrases (`outreach.rules.opt_out.words`).

Other messages with an opt-out word are for a person to read (`may_mean_stop`).
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from typing import Final, Literal

import attrs

from outreach.models.message import Keyword
from outreach.rules.opt_out.refusals import STOP_SIGNS, consists_of, may_refuse
from outreach.rules.opt_out.words import (
    MAX_CHARACTERS,
    Words,
    corrected,
    is_reaction,
    is_slip,
    meant_by,
    own_text,
    phrases,
    sentence_asks_to_stop,
    split_digits,
    to_latin,
    without_courtesies,
    without_politeness,
    words_of,
)

MatchKind = Literal["exact", "phrase"]

MAX_WORDS: Final = 5
"""Longer messages are not read as short phrases."""


@attrs.frozen
class KeywordMatch:
    """A keyword and its tier: the exact word, or a phrase."""

    keyword: Keyword
    tier: MatchKind


_STOP: Final = phrases(
    # 47 CFR 64.1200(a)(10), and the words of Twilio, Telnyx, Vonage and AWS.
    *("stop", "stop all", "unsubscribe", "cancel", "end", "quit", "revoke", "opt out", "remove", "remove me", "td"),
    *("unsub", "stop it", "stop now", "no more", "discontinue", "delete me", "cease", "cease and desist", "st0p"),
    *("exit", "off", "mute", "exit list", "mute me", "unregister", "deregister", "unenroll"),
    *("arret", "arrêter", "arrêtez", "désabonner", "désinscription"),  # French
    *("alto", "pare", "parar", "baja", "dar de baja", "cancelar", "no más", "basta", "ya basta"),  # Spanish, Portuguese
    *("sair", "remover", "descadastrar"),  # Portuguese
    *("stopp", "abmelden", "abbestellen", "abbestellung"),  # German; the first Swedish and Norwegian too
    *("annulla", "cancella", "disiscrivi"),  # Italian
    *("afmelden", "uitschrijven", "stoppen"),  # Dutch
    *("avsluta", "afmeld", "avmeld"),  # Swedish, Danish, Norwegian
    *("стоп", "отписаться", "отписка"),  # Russian
    *("停止", "配信停止", "ストップ"),  # Japanese
    *("退订", "退訂", "取消订阅", "取消訂閱", "停止发送", "不要再发", "別再傳"),  # Chinese
    *("配信解除", "解除", "やめて"),  # Japanese
    *("توقف", "قف", "أوقف", "إيقاف", "ايقاف", "الغاء", "إلغاء", "إلغاء الاشتراك", "الغاء الاشتراك", "كفى"),  # Arabic
    *(
        "توقفي",
        "أوقفوا",
        "أوقفي",
        "وقف",
        "وقفوا",
        "وقفي",
        "ألغ",
        "ألغي",
        "ألغوا",
        "إلغاء اشتراكي",
        "إلغاء الرسائل",
        "ستوب",
    ),
    *(
        "إيقاف الرسائل",
        "أوقف الرسائل",
        "إزالة",
        "أزلني",
        "أزيلوني",
        "احذفني",
        "احذفوني",
        "انسحاب",
        "إنهاء",
        "إنهاء الاشتراك",
    ),
    *("خروج",),
    *("הסר", "הסירו", "הסר אותי", "הסירו אותי", "עצור", "תפסיק", "תפסיקו", "די", "להסרה", "בטל"),  # Hebrew
    *(
        "הסירי",
        "תסיר",
        "תסירו",
        "תסירי",
        "תסירו אותי",
        "תסיר אותי",
        "הפסק",
        "הפסיקו",
        "הפסיקי",
        "תפסיקי",
        "להפסיק",
        "עצרו",
    ),
    *(
        "עצרי",
        "תעצור",
        "תעצרו",
        "לעצור",
        "חדל",
        "חדלו",
        "ביטול",
        "בטלו",
        "לבטל",
        "לבטל מנוי",
        "ביטול מנוי",
        "ביטול הרשמה",
    ),
    *("מחק", "מחקו", "תמחקו אותי", "תמחק אותי", "תורידו אותי", "תוריד אותי", "הורידו אותי", "תוציאו אותי", "יציאה"),
    *("중지", "정지", "그만", "수신거부", "수신 거부", "구독취소", "구독 취소", "멈춰", "해지"),  # Korean
    *("रोकें", "रुको", "रोको", "बंद करो", "बंद करें", "बंद", "बस करो"),  # Hindi
    *("বন্ধ", "বন্ধ করুন", "থামুন", "থামাও"),  # Bengali
    *("بند", "بند کرو", "بند کریں", "روکو", "رک جاؤ"),  # Urdu
    *("ਬੰਦ", "ਬੰਦ ਕਰੋ", "ਰੋਕੋ"),  # Punjabi
    *("थांबा", "बंद करा", "థాపు", "ఆపు", "ఆపండి", "நிறுத்து", "நிறுத்துங்கள்", "બંધ", "બંધ કરો", "ನಿಲ್ಲಿಸಿ", "നിർത്തുക"),
    *("توقف کنید", "لغو", "بس کنید", "متوقف", "بس است"),  # Persian
    *("dur", "durdur", "iptal", "iptal et", "ret", "ç\u0131k", "abonelikten ç\u0131k"),  # Turkish
    *("berhenti", "hentikan", "batal", "keluar", "stop langganan", "henti"),  # Indonesian, Malay
    *("dừng", "dừng lại", "ngừng", "hủy", "huỷ", "từ chối", "tuchoi"),  # Vietnamese
    *("หยุด", "ยกเลิก", "เลิก"),  # Thai
    *("itigil", "tigil", "ihinto", "tama na"),  # Filipino
    *("przestań", "wypisz", "wypisz mnie", "rezygnuję", "rezygnacja", "zatrzymaj", "stop sms"),  # Polish
    *("зупинити", "відписатися", "досить", "припинити", "отпишись", "отпишите", "прекратите", "хватит"),
    *("σταμάτα", "σταματήστε", "διακοπή", "διαγραφή"),  # Greek
    *("dezabonare", "opreste", "oprește", "opriți", "renunț"),  # Romanian
    *("leiratkozás", "leiratkozom", "odhlásit", "zrušit", "odhlásiť", "odjava", "prekini", "отпиши", "спри"),
    *("simama", "sitisha", "ondoa"),  # Swahili
    *("στοπ", "סטופ", "להסיר", "스톱", "스탑", "取消", "拒收", "停止して", "थांबवा", "हटाओ"),
    *("band karo", "band karen", "band kar do", "ruko", "rok do", "رکو"),  # Hindi and Urdu in Latin letters
    *("ရပ်", "ရပ်ပါ", "ବନ୍ଦ", "ବନ୍ଦ କରନ୍ତୁ", "रोक्नुहोस्", "बन्द गर्नुहोस्", "بند کړئ"),  # Burmese, Odia, Nepali, Pashto
    *("to'xtat", "to'xtating", "dayand\u0131r", "jooji", "dhaabi", "dhaabaa"),  # Uzbek, Azerbaijani, Somali, Oromo
    *("ajanony", "hunong", "misa", "slutt", "stans", "avbryt"),  # Malagasy, Cebuano, Zulu, Norwegian and Swedish
    *("daina", "dakata", "da duro", "kwụsị", "አቁም", "ማቆም"),  # Hausa, Yoruba, Igbo, Amharic
    *("raus", "aufhören", "schluss", "keine sms", "genug"),  # German
    *("stop", "basta così", "smettila", "rimuovi", "rimuovimi"),  # Italian
    *("cancelem", "chega", "descadastre", "parem", "pare de enviar"),  # Portuguese
    *("detener", "eliminar", "desuscribir", "desuscribirme", "bórrame", "quítame"),  # Spanish
    *("arrête", "arretez", "stoppez", "désabonnement", "désabonnez-moi", "désinscrire"),  # French
    *("lopeta", "peruuta", "stanna", "sluta", "lopettakaa", "avregistrera", "avanmäl"),  # Finnish, Swedish
    *("cancel all", "end all", "end texts", "end messages", "stop messages", "stop texts", "unsubscribed"),
    *("annuler", "me désabonner", "hör auf", "hören sie auf", "bitte löschen", "löschen", "löschen sie meine nummer"),
    *("para ya", "detente", "cancelar suscripción", "cancelar inscrição", "denme de baja", "sair da lista"),
    *("fermati", "smettetela", "cancellami", "cancellatemi", "disiscrivimi", "rimuovetemi", "ophouden", "hou op"),
    *("afmeld mig", "meld meg av", "przestańcie", "zastavit", "přestaň", "přestaňte", "prestaň", "prestaňte"),
    *("odhlásiť ma", "állj", "leállítás", "stop mesaje", "остановите", "остановись", "перестаньте", "отпишите меня"),
    *("отпиши ме", "зупиніть", "припиніть", "відпишіть мене", "спрете", "престани", "prestani", "prestanite"),
    *("odjavi me", "одјави ме", "durdurun", "iptal edin", "توقفوا", "أوقفوا", "ايقاف الرسائل", "متوقف کنید", "הסרה"),
    *("להסיר מהרשימה", "बंद कीजिए", "रुकिए", "நிறுத்தவும்", "રોકો", "നിർത്തൂ", "停止してください", "やめてください"),
    *(
        "止めて",
        "退会",
        "그만해",
        "그만 보내세요",
        "수신 거부합니다",
        "ngừng gửi",
        "hủy đăng ký",
        "די כבר",
        "หยุดส่ง",
        "เลิกส่ง",
    ),
    *("itigil mo na", "berhenti langganan", "ka daina", "别再发了", "不要再发了", "不要發了", "别发了"),
)

_CARRIER_STOP: Final = phrases(
    *("stop", "stop all", "stopall", "unsubscribe", "cancel", "end", "quit", "revoke", "optout")
)
"""The STOP words of all carriers together (Twilio, Telnyx, Vonage)."""

_DISGUISES: Final = str.maketrans(
    "$50\N{OCTAGONAL SIGN}\N{NO ENTRY}\N{NO ENTRY SIGN}\N{HEAVY LARGE CIRCLE}\u04e8\u04e9\ua731\u1d1b\u1d0f\u1d18",
    "ssooooo" + "oo" + "stop",
)
"""Look-alikes of the letters of STOP: `$T0P`, `ST\N{OCTAGONAL SIGN}P`, small capitals."""

_STRETCHED: Final = re.compile(r"(.)\1+")
_CRY: Final = re.compile(r"\b(?!stoop\b)s+t+o+p+\b", re.IGNORECASE)
"""STOP with repeated letters within a message, but not the word `stoop`."""

_STOP_STRETCHED: Final = frozenset(
    {"stop", "stopal", "unsubscribe", "unsub", "quit", "cancel", "end", "remove", "st0p", "стоп", "στοπ", "ctoп"}
)
"""Words with repeated letters reduced to one: `stoooppp`."""

_STOP_JOINED: Final = frozenset("".join(words) for words in _STOP)
"""Spaces and punctuation inside are ignored: `opt-out`, `STOPALL`, `S.T.O.P.`"""

_CARRIER_STOP_JOINED: Final = frozenset("".join(words) for words in _CARRIER_STOP)
_MAX_CRY_LENGTH: Final = 60

_TOKEN: Final = re.compile(r"[^\W_]+")
_MAX_SLIPS: Final = 8
"""The most words of a message that are tried as slips of opt-out words."""

_MIN_LONG: Final = 6
"""Opt-out words of so many letters are seldom meant by another word."""

_START: Final = phrases("start", "unstop", "un stop", "subscribe", "join")
_START_WHEN_STOPPED: Final = phrases("yes")
"""An opt-in only by those who have opted out by keyword."""

_HELP: Final = phrases("help", "info", "aide", "ayuda", "ajuda", "hilfe", "aiuto")

_OPT_OUT_EDGES: Final = frozenset(
    {"stop", "stopp", "stopall", "unsubscribe", "unsub", "quit", "revoke", "optout", "arret", "arretez", "стоп"}
)
"""Words that make a short message an opt-out at its beginning or end; `end` and `cancel` have other uses."""

_INSIDE: Final = phrases(
    *("stop texting", "stop messaging", "stop calling", "stop sending", "stop contacting", "stop these", "stop this"),
    *("stop it", "un subscribe"),
    *("do not text", "do not message", "do not contact", "do not call", "do not send me", "do not write"),
    *("don't text", "don't message", "don't contact", "don't call", "don't send me", "don't write"),
    *("no more texts", "no more messages", "no more calls", "no more sms"),
    *("no more texting", "no more messaging", "no more calling", "take off my number", "take off my name"),
    *(
        "take me off",
        "remove me",
        "remove my number",
        "remove my name",
        "delete my number",
        "lose my number",
        "leave me alone",
    ),
    *("opt out", "opt me out", "revoke my", "revoke consent", "unsubscribe me"),
    *("darme de baja", "dar de baja", "no me escriban", "no mas mensajes", "no más mensajes"),
    *("ne plus recevoir", "keine sms mehr", "keine nachrichten mehr"),
)


_ON_THE_WAY: Final = phrases("by", "over", "in", "at", "off", "near", "along")
"""After `stop` at the beginning: `stop by tomorrow`."""

_STOPS: Final = phrases(
    *("bus", "tram", "train", "metro", "subway", "truck", "taxi", "pit", "rest", "full", "non", "next", "last"),
    *("first", "the", "a", "one", "my", "our", "your", "which", "what"),
    *("mr", "mrs", "ms", "miss", "dr", "herr", "frau", "familie"),
)
"""Before `stop` or `stopp` at the end: `I am at the stop`, `Herr Stopp`."""

_NOUNS: Final = phrases("stop", "stopp", "quit")
"""Words that are nouns or names after those: `Ms Quitt`."""

_OTHER_USES: Final = phrases(
    *(f"arrêt {of} {what}" for of in ("de", "du") for what in ("bus", "tram", "métro", "train")),
    *(f"{me} {name}" for me in ("name is", "mein name ist", "ich bin", "hier ist") for name in ("stop", "stopp")),
    *(f"quit {whose} job" for whose in ("my", "the", "this", "that", "a", "his", "her", "your")),
    *(f"no more {what} {why}" for what in ("texts", "messages", "calls", "sms") for why in ("needed", "necessary")),
    *("stop sign", "stop light", "stop lights", "stop loss", "stop and shop", "stop shop"),
)
"""Other uses of opt-out words."""

_ALONE_ONLY: Final = frozenset(
    word
    for text in (
        *("td", "די", "बंद", "بند", "ਬੰਦ", "બંધ", "বন্ধ", "ବନ୍ଦ", "قف", "dur", "ret", "raus", "genug", "schluss", "chega"),
        *("exit", "off", "mute", "خروج", "وقف", "إنهاء", "إزالة", "יציאה"),
        *("misa", "ruko", "stans", "取消", "basta", "sair", "huy"),
    )
    for word in words_of(text)
)
"""Everyday words, which opt out only where they stand alone."""

_OPT_OUT_WORDS: Final = (
    frozenset(words[0] for words in _STOP if len(words) == 1)
    | _OPT_OUT_EDGES
    | {"stopping", "stopped", "opt", "opting", "opted", "unsubscribed", "unsubscribing", "removed", "canceled"}
    | {"cancelled", "quitting", "revoked", "delete", "discontinued", "harassing", "harassment", "spamming"}
) - _ALONE_ONLY
"""Words that opt out where they stand alone, and their forms."""

_UNWILLING: Final = phrases(
    *("block me", "block you", "blocking you", "go away", "fuck off", "report you", "i will sue", "i'll sue"),
    *("want off", "want out", "taken off", "get me off", "no longer interested", "text me again", "call me again"),
)
"""Possible opt-outs, for a person to read."""

_JOINED: Final = _STOP_JOINED | frozenset("".join(words) for words in _INSIDE)
"""Phrases that are an opt-out without other words, written in one: `optmeout`."""

_MAX_PHRASE_WORDS: Final = max(len(phrase) for phrase in _INSIDE | _OTHER_USES | _UNWILLING)

_NEGATIONS: Final = phrases(
    *("don't", "do not", "never", "un", "don't you dare", "no need to", "not going to", "not trying to"),
    *("not asking to", "not asking you to", "never asked to", "never asked you to", "never wanted to"),
    *(
        f"{who} {no}"
        for who in ("i", "we")
        for no in ("didn't", "did not", "won't", "will not", "wouldn't", "would not")
    ),
    *(
        f"{no} {verb} to"
        for no in ("don't", "do not", "didn't", "did not")
        for verb in ("want", "want you", "wish", "mean", "need", "intend", "plan", "ask", "ask you")
    ),
)
"""Phrases that reverse the following word: `don't stop`, `do not remove me`, `I don't want to unsubscribe`.

`They won't stop` and `I can't unsubscribe` are not among them: in doubt a short message counts.
"""

_MAX_NEGATION_WORDS: Final = max(len(phrase) for phrase in _NEGATIONS)


def keyword_of(text: str, *, opted_out_by_keyword: bool = False) -> KeywordMatch | None:
    """Return the keyword of a message, or None.

    With `opted_out_by_keyword` the sender has opted out by a keyword, which `yes` takes back.
    """
    words = corrected(words_of(text))
    if words in _STOP or "".join(words) in _STOP_JOINED or _is_stop_variant(text, words):
        return KeywordMatch("stop", "exact")
    if words in _START or (opted_out_by_keyword and words in _START_WHEN_STOPPED):
        return KeywordMatch("start", "exact")
    if words in _HELP:
        return KeywordMatch("help", "exact")
    if is_reaction(text):
        return None
    own = _CRY.sub("stop", own_text(text))
    understood = _asks_to_stop(corrected(words_of(own))) or sentence_asks_to_stop(own)
    return KeywordMatch("stop", "phrase") if understood else None


def _is_stop_variant(text: str, words: Words) -> bool:
    """Return whether a message is a sign of STOP, or the word with repeated letters or in another script."""
    if not words:
        return consists_of(text, STOP_SIGNS)
    if to_latin("".join(words_of(text.translate(_DISGUISES)))) in _CARRIER_STOP_JOINED:
        return True
    joined = to_latin("".join(words))
    # The Cyrillic letter that looks like a C sounds like an S: `CTOP`.
    spellings = {"".join(words), joined, joined.replace("c", "s")}
    if not spellings.isdisjoint(_CARRIER_STOP_JOINED):
        return True
    return len(joined) <= _MAX_CRY_LENGTH and any(_STRETCHED.sub(r"\1", one) in _STOP_STRETCHED for one in spellings)


def carrier_replies_to(text: str) -> bool:
    """Return whether carriers that answer STOP themselves answer this message.

    They know only single words. A word with punctuation counts as theirs: no confirmation is better than two.
    """
    return words_of(text) in _CARRIER_STOP


def may_mean_stop(text: str) -> bool:
    """Return whether a message that is no keyword contains an opt-out word, and is for a person to read."""
    words = corrected(words_of(_CRY.sub("stop", text[:MAX_CHARACTERS])))
    if is_reaction(text):
        return False
    if is_slip(words):
        return True
    # `Bus stop12`: digits may be attached.
    if not _OPT_OUT_WORDS.isdisjoint((*words, *split_digits(words))):
        return True
    if any(run in _INSIDE or run in _UNWILLING for _, run in _runs(words)) or may_refuse(text):
        return True
    return any(_stops_if_right(word, right) for word, right in _with_a_slip_corrected(text))


def _with_a_slip_corrected(text: str) -> Iterator[tuple[str, str]]:
    """Yield an opt-out word that a word of a message may be a slip of, and the message with it, for a few words."""
    text = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])
    slips = ((found, meant_by(word)) for found in _TOKEN.finditer(text) for word in words_of(found[0]))
    for found, meant in itertools.islice((one for one in slips if one[1]), _MAX_SLIPS):
        for word in meant:
            yield word, f"{text[: found.start()]}{word}{text[found.end() :]}"


def _stops_if_right(word: str, text: str) -> bool:
    """Return whether a message with a corrected word is an opt-out, or is short and has a long opt-out word."""
    match = keyword_of(text)
    if match is not None:
        return match.keyword == "stop"
    return len(word) >= _MIN_LONG and word in _OPT_OUT_WORDS and len(words_of(text)) <= MAX_WORDS


def _asks_to_stop(words: Words) -> bool:
    if _shortest_period("".join(without_courtesies(words))) in _JOINED:
        # `Please cancel`: the word stands alone but for courtesies.
        return True
    words = without_politeness(words)
    if _is_numbered(words):
        return True
    words = tuple(word for at, word in enumerate(words) if word not in _OPT_OUT_EDGES or words[at - 1 : at] != (word,))
    if not 0 < len(words) <= MAX_WORDS or any(run in _OTHER_USES for _, run in _runs(words)):
        return False
    if any(words[at] in _OPT_OUT_EDGES and not _negated(words, at) for at in {0, len(words) - 1}) and not _is_a_place(
        words
    ):
        return True
    return any(phrase in _INSIDE and not _negated(words, at) for at, phrase in _runs(words))


def _shortest_period(joined: str) -> str:
    """Return the shortest text whose repetition a text is: `stop` of `stopstopstop`."""
    return joined[: (joined * 2).find(joined, 1)]


def _is_numbered(words: Words) -> bool:
    """Return whether a message is STOP words and numbers in one: `STOP1`, `2STOP`, `STOP2END` (stop to end)."""
    parts = split_digits(words) if len(words) == 1 else ()
    own = [part for part in parts if not part.isdecimal()]
    return not _OPT_OUT_EDGES.isdisjoint(own) and all(part in _OPT_OUT_EDGES or (part,) in _STOP for part in own)


def _is_a_place(words: Words) -> bool:
    """Return whether a short message is about a bus stop, stopping on the way, or a person of that name."""
    begins = words[:1] == ("stop",) and words[1:2] in _ON_THE_WAY
    return begins or (words[-1:] in _NOUNS and words[-2:-1] in _STOPS)


def _runs(words: Words) -> Iterator[tuple[int, Words]]:
    for at in range(len(words)):
        for length in range(1, min(_MAX_PHRASE_WORDS, len(words) - at) + 1):
            yield at, words[at : at + length]


def _negated(words: Words, at: int) -> bool:
    return any(words[max(at - length, 0) : at] in _NEGATIONS for length in range(1, _MAX_NEGATION_WORDS + 1))
