"""Possible opt-outs in many languages, which are too vague to obey at once.

They are for a person to read while the number is under review: in doubt a message counts, unless it is about everyday
things. Texts are compared in the form of `words.words_of`: small letters without accents, and for Indic scripts without
vowel signs.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

from outreach.rules.opt_out.words import MAX_CHARACTERS, Words, phrases, without_courtesies, words_of

STOP_SIGNS: Final = frozenset("\N{OCTAGONAL SIGN}\N{NO ENTRY}\N{NO ENTRY SIGN}")
"""Signs that alone are an opt-out."""

_REFUSING_SIGNS: Final = STOP_SIGNS | frozenset(
    "\N{RAISED HAND}\N{RAISED BACK OF HAND}\N{RAISED HAND WITH FINGERS SPLAYED}\N{FACE WITH NO GOOD GESTURE}"
    "\N{CROSS MARK}\N{NEGATIVE SQUARED CROSS MARK}\N{HEAVY MULTIPLICATION X}\N{THUMBS DOWN SIGN}"
    "\N{REVERSED HAND WITH MIDDLE FINGER EXTENDED}\N{BELL WITH CANCELLATION STROKE}\N{NO MOBILE PHONES}"
    "\N{SPEAKER WITH CANCELLATION STROKE}\N{ZIPPER-MOUTH FACE}\N{NO PEDESTRIANS}"
)
"""Signs that refuse if a message has nothing else."""

_ADDED: Final = frozenset("\N{FEMALE SIGN}\N{MALE SIGN}")
"""Gender signs; skin colours are modifiers."""

_VISIBLE: Final = frozenset({"So", "Sm", "Lo", "Ll", "Lu", "Nd"})

_WHOLE: Final = phrases(
    *(
        "enough",
        "enough already",
        "spam",
        "spammer",
        "desist",
        "block",
        "blocked",
        "no text",
        "no texts",
        "no sms",
    ),
    *("no texting", "no calls", "no messages", "don't", "wrong number", "wrong person"),
    *("stahp", "stpo", "sotp", "tsop", "stp", "sto", "stip", "stob", "stpp", "stup", "srop", "syop", "dtop", "stopo"),
    *("fin", "salir", "bloquear", "finir", "ende", "disdire", "konec", "koniec", "dosta", "доста", "dosc"),
    *("eleg", "poista", "stopni", "stopu", "ustavi", "hætta", "beigt", "lõpeta", "mjaft", "sispann", "yeter"),
    *(
        "b\u0131rak",
        "\u00e7\u0131k\u0131\u015f",
        "t",
        "tc",
        "回T",
        "停",
        "滚",
        "删除",
        "不要",
        "中止",
        "خلاص",
        "بس",
        "حذف",
        "ختم",
    ),
    *("cukup", "tamat", "thôi", "พอ", "dúró", "yeka", "зогс", "тоқта", "ឈប់", "ຢຸດ", "ရပ်", "შეაჩერე", "გაჩერდი"),
    *("დაასრულე", "դադարեցնել", "שטאָפּ", "ይቁም", "बस", "नको", "वद्दु", "వద్దు", "చాలు", "போதும்", "ಬೇಡ", "വേണ്ട", "বাতিল"),
    *(
        "يكفي",
        "كفاية",
        "إزعاج",
        "حظر",
        "بلوك",
        "امسح",
        "امسحني",
        "امسحوني",
        "شيلني",
        "شيلوني",
        "غير مهتم",
        "مش مهتم",
        "خلص",
    ),
    *("رفض", "ارفض", "سبام", "ما بدي", "ما أبغى", "ما أبي", "مو مهتم", "غير مهتمة", "أزعجتوني", "ازل", "بطل"),
    *(
        "צא",
        "צאו",
        "ספאם",
        "חסום",
        "חסימה",
        "לחסום",
        "עזוב אותי",
        "עזבו אותי",
        "תעזבו אותי",
        "אין עניין",
        "קץ",
        "סטוף",
        "הטרדה",
    ),
    *("leave", "mute this", "turn off", "take off", "sms off", "erase me", "withdraw", "disable", "deactivate"),
    *(
        "drop me",
        "no alerts",
        "no marketing",
        "no ads",
        "sign me off",
        "sign off",
        "sign out",
        "unfollow",
        "let me out",
    ),
    *("terminate", "abort", "halt", "refuse", "reject", "decline", "scrub my number"),
    *("im out", "count me out", "switch off", "switch it off", "turn it off", "shut off", "mute all", "no chat"),
    *(
        f"{off} {what}"
        for off in ("off", "exit", "mute", "leave", "switch off", "turn off", "block")
        for what in (
            "now",
            "all",
            "sms",
            "text",
            "texts",
            "msg",
            "msgs",
            "message",
            "messages",
            "chat",
            "list",
            "group",
        )
        if off != "leave" or what not in {"now", "message", "messages", "text", "texts", "msg", "msgs"}
    ),
    *("הפסקה", "לא רלוונטי", "לא רלוונטית", "לא רלוונטי לי", "השתק", "השתקה", "להשתיק", "לא עוד", "בלי הודעות"),
    *("اخرج", "اخرجني", "اخرجوني", "كتم", "اكتم", "مغادرة", "غادر", "فك الاشتراك", "فك اشتراك", "فك اشتراكي"),
    *("وقفو", "اوقفو", "توقفو", "الغو", "احذفوا", "كافي", "كافى", "يكفينا", "لا يهمني", "لا يعنيني"),
    *("למחוק", "לא לשלוח", "לא לשלוח יותר", "הורד", "הורד אותי", "הורידו", "להתנתק", "חלאס", "עיצרו", "חסל"),  # Hebrew
    *("امسح رقمي", "مش عايز", "ما اريد", "الخروج", "التوقف", "لست مهتما", "بدون رسائل", "لا رسائل", "قطع"),  # Arabic
    *("aus", "abbrechen", "beenden", "widerspruch", "stornieren", "entfernen", "streichen", "es reicht"),  # German
    *("stopper", "annulation", "résilier", "terminer", "supprimer", "pas de pub", "assez", "quitter"),  # French
    *("refuser",),
    *("paren", "basta ya", "cancele", "anular", "borrar", "quitar", "no estoy interesado"),  # Spanish
    *("no estoy interesada", "terminar", "suficiente"),
    *("remova", "remova meu número", "excluir", "excluir meu número", "apagar", "sem interesse"),  # Portuguese
    *("desativar", "desligar", "encerrar", "baixa", "fim"),
    *("annullare", "cancellare", "cancellazione", "disdetta", "togliere", "toglimi", "esci", "uscire"),  # Italian
    *("elimina", "non sono interessato", "non sono interessata", "niente sms", "niente messaggi", "recesso"),
    *("revoca",),
    *("opzeggen", "opzegging", "annuleren", "beëindigen", "einde", "niet bellen", "bel me niet meer"),  # Dutch
    *("genoeg", "niet geïnteresseerd", "schrap", "weg"),
    *("anuluj", "odsubskrybuj", "wyłącz", "nie wysylajcie", "nie interesuje mnie", "wyrejestruj"),  # Polish
    *(
        "sil",
        "silin",
        "beni sil",
        "kapat",
        "arama",
        "aramay\u0131n",
        "beni aramay\u0131n",
        "gönderme",
        "göndermeyin",
    ),  # Turkish
    *("ilgilenmiyorum",),
    *("отмена", "отменить", "отказ", "отказаться", "отказываюсь", "выход", "конец", "довольно", "спам"),  # Russian
    *("уберите меня", "исключите меня"),
)
"""Whole messages, apart from courtesies."""

_RUNS: Final = phrases(
    *("मत भेजो", "मत भेजिए", "मत भेजना", "मैसेज मत", "नहीं चाहिए", "बंद कीजिए", "नका पाठवू", "पाठवू नका", "पाठाउनुहोस"),
    *("পাঠাবেন না", "পাঠিও না", "চাই না", "வேண்டாம்", "நிறுத்தவும்", "ఆపేయండి", "పంపవద్దు", "ન મોકલો", "નથી જોઈતું"),
    *("ಕಳುಹಿಸಬೇಡಿ", "അയക്കരുത്", "ਨਾ ਭੇਜੋ", "ਨਹੀਂ ਚਾਹੀਦਾ"),
)
"""Anywhere, in scripts whose signs part words."""

_PATTERNS: Final = (
    r"\b(?:"
    + "|".join(
        (
            # English
            r"(?:not|no longer) interested|do not disturb|do not call (?:list|registry)|dn[cd]",
            r"get lost|no (?:texting|more (?:spam|texting|messaging|calling))",
            r"(?:piss|f|fuck|bugger|sod) off|knock it off|cut it out|(?:thats|its) enough",
            r"(?:reported|reporting) (?:you|as)",
            r"(?:my|a) lawyer|the (?:fcc|ftc|police)|no longer want",
            r"(?:do not|dont) want (?:these|any|your|to hear|this)",
            r"(?:you are|youre|u r) (?:blocked|harassing|spamming)|wrong (?:number|person)",
            r"how (?:did|do) you (?:get|have) my",
            r"unsubscri\w*|unsuscri\w*|unsubcri\w*|opting out|revok\w+|spamm\w+",
            # Spanish
            r"no (?:me |nos |le |les )?(?:mand|envi|escrib|llam|molest|contact)\w*|no (?:quiero|me interesa|deseo)",
            r"no mas",
            r"(?:deje[ns]?|deja[nrs]?|pare[ns]?|parar) de|detente|detengan\w*|ya no (?:me|quiero)",
            r"(?:quit|borr|elimin)\w*(?:me|nme)|sa(?:ca|quen?)(?:me|nos)",
            r"(?:borr|elimin|quit)\w* mi|numero equivocado|para ya|desuscri\w*|darme de baja|denme de baja",
            # Portuguese
            r"nao (?:me )?(?:mand|envi|escrev|lig|contat|incomod|perturb|procur)\w*|nao (?:quero|tenho interesse)",
            r"me (?:remov|exclu|delet)\w*|me tir\w* d\w+ lista|par(?:e|em|ar) (?:de|com)",
            r"numero errado|descadastr\w*|desinscr\w*|sair da lista",
            # French
            r"ne (?:me |nous )?m?(?:ecri|envo|appel|contact|derang|sollicit|harcel)\w* plus|je ne veux plus",
            r"plus de (?:messages?|sms|appels?|textos?|pub\w*)",
            r"laissez (?:moi|nous)|foutez|(?:retir|supprim|effac|enlev)\w+ (?:moi|mon|mes)|ca suffit|arrete\w*",
            r"desabonn\w*",
            r"(?:faux|mauvais) numero|pas interesse\w*",
            # German
            r"keine (?:\w+ )?(?:sms|nachrichten|werbung|anrufe|mails)",
            r"lass\w* (?:sie )?(?:mich|uns) (?:\w+ )?in ruhe|hor(?:en|t|)? (?:\w+ ){0,2}auf|aufhoe?r\w*",
            r"nicht mehr (?:an)?(?:schreib|ruf|kontaktier|send|schick)\w*|unterlass\w*|schluss (?:damit|jetzt)",
            r"kue?ndig\w*",
            r"(?:schreib|ruf|send|schick|kontaktier)\w* (?:\w+ ){0,3}nicht mehr|lo?e?sch(?:en|t)\w*",
            r"(?:streich|entfern)\w* (?:sie )?(?:mich|meine|uns)|widerruf\w*",
            r"kein interesse|nicht interessiert|falsche nummer|austrag\w+|abmeld\w*|abbestell\w*",
            # Italian
            r"non (?:mi |ci )?(?:scriv|mand|invi|chiam|contatt|disturb)\w*|non (?:voglio|mi interessa)",
            r"basta (?:messaggi|sms|chiamate|con|cosi|grazie)|fermat\w*|ferma",
            r"(?:toglie|rimuove|cancella|elimina)(?:te)?(?:mi|ci)|lascia(?:te)?mi (?:in pace|stare)|smett\w+",
            r"disiscri\w*|numero sbagliato",
            # Dutch
            r"geen (?:\w+ )?(?:sms\w*|berichten|reclame|interesse)|met rust|verwijder\w*",
            r"(?:meld|schrijf) me (?:\w+ )?(?:af|uit)|uitschrij\w*",
            r"hou\w* (?:er ?mee )?op|ophouden|niet meer (?:stur|bel|sms|bericht|app|mail)\w*|verkeerd nummer",
            # Swedish, Danish, Norwegian, Finnish
            r"sluta \w+|inga fler|ta bort (?:mig|mitt)|avregistr\w*|avanmal\w*|meld m[ei]g av|afmeld\w*",
            r"ikke (?:send|skriv|ring) (?:til |mer|flere|m[ei]g)",
            r"(?:send|skriv|ring) ikke|ala (?:enaa )?(?:laheta|soita|viesti)\w*|en halua|lopett\w+|pysayta",
            # Polish, Czech, Slovak, Hungarian, Romanian
            r"nie (?:pisz|dzwon|wysylaj|kontaktuj|chce|zycze|pisac)\w*|nie jestem zainteresowan\w*|usun\w*",
            r"skasuj\w*|przesta\w+",
            r"wypis\w*|(?:z?rezygn)\w+|ne(?:pis|volej|posilej|posielaj|kontaktuj|chci|chcem)\w*|prestan\w*",
            r"zastavte|odhlas\w*",
            r"ne (?:kuld|irj|hivj|zavarj|keress|keresd)\w*|hagyj\w*|leirat\w*|leall\w*|allj",
            r"nem (?:kerek|akarok|erdekel)",
            r"nu (?:imi |mi |ma |ne )?mai (?:trimit|scri|sun|contact|deranj|vreau)\w*|nu ma interes\w*",
            r"lasa(?:ti)? ma|sterge\w*|dezabon\w*|opri\w+|opreste",
            # Russian, Ukrainian, Bulgarian, Serbian, Croatian, Slovene
            r"не (?:пиш|шли|слать|присыл|звон|отправ|беспоко|тревож|надо|нужно|хочу|интерес)\w*",
            r"не (?:надсил|дзвон|турбу|изпращ)\w*",
            r"отпи[сш]\w*|відпи[сш]\w*|прекрат\w*|останов\w*|перестан\w*|отста[нв]\w*|отвал\w*|хватит|достали",
            r"надоел\w*|зупин\w*",
            r"припин\w*|удалит\w*|удаля\w*|удали|видал(?:іть|ити)|стига|спрете|престан\w*|одјав\w*|odjav\w*",
            r"prekini\w*",
            r"не той номер|ошиблись",
            # Greek, Turkish
            r"φτανει|μην? (?:μου |μας )?(?:στελν|ξανα|στειλ|γραφ|τηλεφων)\w*|οχι αλλα|διαγρα\w*|σταματ\w*",
            r"διακο[πψ]\w*",
            r"mesaj (?:atma|gonderme|yollama)\w*|istemiyor\w*|listeden|durdur\w*|iptal\w*|rahatsiz etme\w*",
            r"numarami sil\w*",
            # Arabic, Persian, Urdu, Hebrew
            r"لا (?:ترسل|تراسل|تتصل|اريد|تبعث|تزعج)\w*|احذف\w*|توقفوا?|اوقف\w*|ايقاف|الغاء|اترك\w*|لا تراسلني",
            r"پیام (?:نده\w*|ندید|نفرست\w*)|نفرست\w*|ندهید|متوقف|لغو|مزاحم\w*|نمی ?خواهم",
            r"(?:مت|نہ) (?:کر|بھیج)\w*|روک\w*|بند کر\w*",
            r"אל ת(?:שלח|כתב|תקשר|סמס|ציק|טריד|פנ)\w*|תוריד\w*|תסיר\w*|תפסיק\w*|הסר\w*|להסיר|מספיק",
            r"לא (?:מעוני\w*|רוצ\w+)|תמחק\w*",
            # Hindi and its neighbours in Latin letters
            r"(?:mat|na) bhej\w*|(?:msg|message|sms|call) mat|nahi chahiye|bas kar\w*|band kar\w*",
            # Vietnamese, Indonesian, Malay, Filipino, Swahili, Haitian, Baltic
            r"dung (?:gui|nhan|goi|lam)|khong (?:muon|can|quan tam|nhan)|ngung \w+",
            r"huy (?:dang ky|dich vu|nhan|tin)|tu choi",
            r"jangan (?:\w+ ){0,2}(?:kirim|sms|hubungi|telepon|ganggu|hantar|kacau)|tidak (?:mau|minat|tertarik)",
            r"berhenti \w+",
            r"tak (?:nak|mahu|berminat)|huwag na|wag na|ayoko|ayaw ko|itigil \w+|tigilan",
            r"usinitum\w*|acha kutuma|acheni|sitaki|sispann|sustabdy\w*|prestanite|mos dergo\w*",
        )
    )
    + r")\b"
)
"""Anywhere, in scripts with letters and blanks."""

_PARTS: Final = tuple(
    "".join(words_of(text))
    for text in (
        *(
            "别再",
            "別再",
            "不要再",
            "不要发",
            "不要發",
            "不要傳",
            "别发",
            "別發",
            "别给我",
            "別給我",
            "退订",
            "退訂",
            "取消订阅",
        ),
        *(
            "取消訂閱",
            "拒收",
            "停止发",
            "停止發",
            "骚扰",
            "騷擾",
            "举报",
            "删除我",
            "刪除我",
            "不感兴趣",
            "不需要",
            "打错",
        ),
        *(
            "送らない",
            "やめて",
            "止めて",
            "配信停止",
            "停止して",
            "退会",
            "いらない",
            "要らない",
            "迷惑",
            "不要で",
            "興味な",
            "興味ありません",
        ),
        *("보내지", "그만", "중지", "거부", "해지", "필요없", "차단", "스팸", "멈춰", "멈추", "삭제해"),
        *("ไม่ต้องส่ง", "เลิกส่ง", "หยุด", "ยกเลิก", "อย่าส่ง", "ไม่สนใจ", "รำคาญ", "ลบเบอร์"),
    )
)
"""Anywhere, in scripts without blanks."""


@cache
def _patterns() -> re.Pattern[str]:
    # Compiled when the first message arrives: it takes 12 ms, and most processes read none.
    return re.compile(_PATTERNS)


def may_refuse(text: str) -> bool:
    """Return whether a message may be an opt-out."""
    if not STOP_SIGNS.isdisjoint(text[:MAX_CHARACTERS]):
        return True
    words = words_of(text)
    if not words:
        return consists_of(text, _REFUSING_SIGNS)
    if _without_courtesies(words) in _WHOLE or _patterns().search(" ".join(words)) is not None:
        return True
    if any(words[at : at + length] in _RUNS for at in range(len(words)) for length in range(1, _MAX_RUN_WORDS + 1)):
        return True
    joined = "".join(words)
    return any(part in joined for part in _PARTS)


def consists_of(text: str, signs: frozenset[str]) -> bool:
    """Return whether a message has some of these signs and no other visible ones."""
    seen = [
        letter for letter in text[:MAX_CHARACTERS] if unicodedata.category(letter) in _VISIBLE and letter not in _ADDED
    ]
    return bool(seen) and signs.issuperset(seen)


def _without_courtesies(words: Words) -> Words:
    return without_courtesies(words) or words


_MAX_RUN_WORDS: Final = max(len(run) for run in _RUNS)
