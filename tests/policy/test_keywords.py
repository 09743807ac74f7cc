from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.policy.opt_out.keywords import (
    KeywordMatch,
    carrier_replies_to,
    keyword_of,
    may_mean_stop,
)
from outreach.policy.opt_out.words import words_of

STOP = KeywordMatch("stop", "exact")
UNDERSTOOD = KeywordMatch("stop", "phrase")
START = KeywordMatch("start", "exact")
HELP = KeywordMatch("help", "exact")

THE_LAWS_WORDS = ["stop", "quit", "end", "revoke", "opt out", "cancel", "unsubscribe"]
"""47 CFR 64.1200(a)(10)."""

CARRIERS_WORDS = ["STOPALL", "STOP ALL", "OPTOUT", "OPT-OUT", "REMOVE", "remove me", "TD"]
OTHERS_WORDS = ["discontinue", "Delete me", "cease", "st0p", "unsuscribe", "UNSUBCRIBE", "> stop"]
OTHER_LANGUAGES = [
    "ARRET",
    "Arrêt",
    "alto",
    "Pare",
    "baja",
    "¡Basta!",
    "no más",
    "Stopp",
    "abmelden",
    "СТОП",
    "退订",
    "停止",
    "ストップ",
]
BY_MORE_PEOPLE = [
    *("توقف", "إلغاء الاشتراك", "הסר", "הסירו אותי", "중지", "수신거부", "수신 거부", "बंद करो", "रोकें", "বন্ধ করুন"),
    *("بند کریں", "ਬੰਦ ਕਰੋ", "ఆపండి", "நிறுத்து", "બંધ કરો", "dur", "İPTAL", "RET", "berhenti", "hentikan", "dừng lại"),
    *("HỦY", "หยุด", "ยกเลิก", "itigil", "przestań", "wypisz mnie", "припинити", "хватит", "σταμάτα", "διακοπή"),
    *(
        "dezabonare",
        "leiratkozás",
        "odhlásit",
        "sitisha",
        "daina",
        "አቁም",
        "لغو",
        "取消订阅",
        "配信解除",
        "stoppez",
        "smettila",
    ),
]
BY_STILL_MORE = [
    *("ΣΤΟΠ", "סטופ", "להסיר", "스톱", "取消", "拒收", "थांबवा", "हटाओ", "band karo", "ruko", "ရပ်", "ବନ୍ଦ କରନ୍ତୁ"),
    *(
        "रोक्नुहोस्",
        "بند کړئ",
        "to'xtating",
        "jooji",
        "dhaabi",
        "dayandır",
        "ajanony",
        "hunong",
        "misa",
        "slutt",
        "avbryt",
    ),
]
STRETCHED = [
    "СТООПП",
    "ΣΤΟΟΠ",
    "st000p",
    "STOPPP",
    "Stooop",
    "SSTTOOPP",
    "stopppp!!!",
    "sto p p p",
    "STOOOOPALL",
    "quittt",
    "unsubscribeeee",
]
MISTYPED = [
    *("unsubscirbe", "Unsubscrbe", "unsubscrribe", "unsubscrive", "ubsubscribe", "unsibscribe", "nusubscribe"),
    "unsubscribr",
]
SINGLE_WORDS = ["exit", "Exit.", "OFF", "mute", "Mute!", "mute me"]
HEBREW = [
    *("הפסק", "הפסיקו", "הפסיקי", "תפסיקי", "להפסיק", "הסירי", "תסיר", "תסירו", "תסירו אותי", "עצרו", "תעצור", "תעצרו"),
    *("לעצור", "חדל", "חדלו", "ביטול", "לבטל", "לבטל מנוי", "ביטול הרשמה", "מחק", "מחקו", "תמחקו אותי", "תורידו אותי"),
    *("הורידו אותי", "יציאה", "תוציאו אותי"),
]
ARABIC = [
    *("توقفي", "أوقفوا", "اوقفي", "وقف", "وقفوا", "الغ", "ألغي", "الغوا", "إلغاء اشتراكي", "الغاء الرسائل", "ستوب"),
    *("إزالة", "ازلني", "أزيلوني", "احذفني", "احذفوني", "انسحاب", "انهاء", "خروج", "أوقف الرسائل"),
]
SIGNS = ["🛑", " 🛑🛑 ", "⛔️", "🚫"]
DISGUISED = ["5top", "$top", "5T0P!", "ꜱᴛᴏᴘ", "STӨP", "st🛑p", "ST⛔P"]
LOOK_ALIKES = ["СТОР", "ЅТОР", "SТOP", "StΟp", "ΣΤΟΡ", "sтοp", "ЅТОРРР", "САNСЕL"]
VARIED = [
    *("Stop.", "STOP!!!", " stop\n", "'stop'", "“STOP”", "«stop»", "*stop*", "stop 🙏🏽", "🛑STOP🛑", "stop❤️"),
    *("ＳＴＯＰ", "𝐒𝐓𝐎𝐏", "s.t.o.p.", "S T O P", "st\u200bop", "sto\u0301p", "opt_out", "un-subscribe", "(quit)"),
]


WORDS = [
    *(*THE_LAWS_WORDS, *CARRIERS_WORDS, *OTHERS_WORDS, *OTHER_LANGUAGES),
    *(*MISTYPED, *SINGLE_WORDS, *HEBREW, *ARABIC),
    *(*BY_MORE_PEOPLE, *BY_STILL_MORE, *STRETCHED, *SIGNS, *LOOK_ALIKES, *DISGUISED, *VARIED),
]


@pytest.mark.parametrize("text", WORDS)
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
        *("please stop at once", "can you stop that", "make it stop", "will you stop please", "no stop it"),
        # The same word again and again; with a number; mistyped; other words for it.
        *("STOPSTOP", "stop stop stop stop stop stop", "UNSUBSCRIBEUNSUBSCRIBE", "stop stop stop stop you people"),
        *("remove 4155550100", "Please remove (415) 555-0100", "pls unsubcribe", "please un-subscribe me"),
        *("STOP1", "2STOP", "Stop2End", "stop2quit please", "STOP2ARRET", "2unsubscribe", "“STOP1”!", "STOP²"),
        *("Please discontinue", "delete me please", "please cease and desist", "remove my name", "ya basta por favor"),
        *("I want to be removed", "I want off this list", "get me off this list", "cancel these messages"),
        *("I told you: “STOP”", "I said “stop texting me”", "> Hi Ann. Reply STOP to opt out\nstop"),
    ],
)
def test_a_short_message_that_a_reasonable_person_understands_is_an_opt_out(text: str) -> None:
    """47 CFR 64.1200(a)(10): not only the words of a list."""
    assert keyword_of(text) == UNDERSTOOD


LONGER = [
    # STOP first, and then to whoever sends.
    *(
        "STOP it with these stupid messages all the time",
        "STOP you have the wrong number I'm not Bob",
        "STOP wrong number this is not the person you want",
    ),
    *("STOP I am not interested in your product at all", "Stop I don't want these texts any longer from you"),
    *("STOP why do you keep texting me all the time", "STOP how did you get my number in the first place"),
    *("stop im not the person you are looking for", "stop this you are annoying me every single day"),
    *("Stop trying to sell me things I do not need", "STOP asking me to buy your garbage products every week"),
    *("STOP selling my data and my number to others", "stop pushing me to buy your stuff every day"),
    *(
        "STOP solicitation to this phone number it is on the DNC list",
        "Stop promotions to my number thank you very much",
    ),
    *("STOP reaching out to me about this stuff please now", "stop contact with me on this phone from now on"),
    *("Stop it now or I'm going to the police about it", "Stop please I have asked you five times now already"),
    *("stop already with these daily texts it's too much", "stop i said stop i said stop i said stop"),
    # Politeness around it.
    *("please stop texting me thank you so much", "can you please take me off your list", "Stop texting me right now"),
    *("Hi there, would you please stop messaging me, thanks in advance!", "I would like you to stop calling me please"),
    *("could you kindly remove my number from your contacts, have a nice day", "you need to stop texting my phone"),
    *("I want to opt out of this stupid thing", "Good morning. How do I opt out of these texts?"),
    # With reasons before and after it.
    *("stop texting me every day about your loans", "I already bought one, stop texting me", "STOP. I told you twice."),
    *("I'm not interested. Please take me off your list!", "this is the third time now please stop texting me"),
    *(
        "I have moved away from Denver and please remove me from your mailing list",
        "Wrong number! Stop texting me dude",
    ),
    *("No stop calling and texting me I am at work", "omg quit spamming this number already it is 3 am"),
    *("Do not contact me again under any circumstances", "Please don't call me or text me any more about this"),
    *(
        "never text my wife again",
        "dont ever contact us again you people",
        "take my name off of your system now or I sue",
    ),
    *("I no longer wish to receive text messages from your company", "We do not want any more calls from you people"),
    *("I don't want to be contacted by anybody at your company", "I do not want to hear from you ever again ok"),
    *("I do not consent to being contacted by your dealership", "Stop sending me your stupid promotions every morning"),
    *("please stop all of these marketing messages to me", "End all communications with me as of this very day"),
    *("No more text messages from this number please and thank you", "leave me alone I never signed up for any of it"),
    *("lose my number or I will report you to the FCC", "I hereby revoke my prior express consent to receive calls"),
    *("I already opted out last week, why do you still write?", "I've unsubscribed three times from these already"),
    *("unsubscribe me from all of your lists and delete the data", "Don't send me any more of your text messages"),
    *("i am opting out of any and all messages", "do not ever text or call me again or I will sue you"),
    *("(Please stop texting me) sent from my phone", "Hello — please unsubscribe. My mother has died last week."),
    *("please take my number off this. we are not buying", "stop sending me these", "And stop the harassment today"),
    # What somebody wants to have done.
    *("I'd like to stop receiving these messages", "I want to stop receiving texts", "I want these messages to stop"),
    *("How do I stop receiving these messages?", "How can I stop getting your texts", "discontinue these messages"),
    *("I want to stop getting these texts from you", "please make these texts stop now and forever"),
    *(
        "I wish to be removed from your list",
        "I would like to be taken off your list",
        "I want out of this mailing list",
    ),
    *("please have me removed from your contact list", "I want my number removed from your system"),
    *("I just want to be left alone by you people", "we would like these texts to stop please"),
    *("cancel my text messages", "please cancel all future texts", "cancel my subscription to these texts"),
    *("Please remove my number 415 555 0100 from the list", "unsubscribe 415-555-0100 from your list please"),
    # After other words, with nothing written between.
    *("No longer interested please remove", "sorry but we sold that house last year please stop"),
    *("Who is this stop texting me", "u have the wrong number stop texting me or i will report you"),
    *("I said stop texting me about the house", "who's this? I said stop calling my mother"),
    *("Wrong person. Remove me. Thanks", "Stop now or I call my lawyer", "Stop. Look, I told you twice"),
    # Begun with STOP, and addressed to whoever sends.
    *("STOP sending me this crap every single day", "Stop wasting my time with this garbage every week"),
    *("stop bugging me about it every morning you people", "STOOOOP texting me every single day about loans"),
    *("STOP with these stupid ads already I get ten of them", "quit blowing up my phone with all of this please"),
    *("stop the madness of these texts", "Stop it now or I call the police", "put me on your do not call list please"),
    *("I asked you to stop. This is my work phone", "Can you please stop? My phone rings all night"),
]


@pytest.mark.parametrize("text", LONGER)
def test_a_sentence_that_says_so_is_an_opt_out_however_long_the_message_is(text: str) -> None:
    """47 CFR 64.1200(a)(10): any wording that a reasonable person understands; politeness and reasons add nothing."""
    assert keyword_of(text) == UNDERSTOOD


UNCLEAR = [
    *("stop by tomorrow", "Can you stop by tomorrow?", "stop by my house tomorrow at 5", "stop over in Denver please"),
    *("stop4coffee", "bus12stop", "bus stop12 please", "bus stop 12 please", "quit2day", "end2end", "Reply STOP2END"),
    *("don't STOP1", "remove2", "see you at stop3 then, it is only a short walk from there"),
    *("I am at the stop", "bus stop", "which stop", "next stop", "We stopped at the bus stop on Main, come and get us"),
    *("cancel my appointment", "please cancel my appointment", "can I cancel", "Can you cancel?", "end of story"),
    *("the end of May", "Does it end?", "I will stop at the shop on my way home", "remove the second one"),
    *("don't stop", "please don't stop", "do not stop", "never stop", "do not remove me", "don't take me off"),
    *("please don't stop texting me, I love these", "my ex won't stop calling me, can you change my number for me"),
    *("did you stop texting me? I have heard nothing since May", "I wish they would all stop calling me at work"),
    *("please tell my brother to stop calling me at work", "why did you remove me from your list of VIP guests?"),
    *("stop sending me the wrong size, I need a ten", "please remove me from the waiting list for tonight's table"),
    *(
        "Stop texting me and call me instead",
        "do not call me until next week please",
        "stop texting me unless it is new",
    ),
    *(
        "What does reply STOP to opt out mean in your message?",
        "alto ahí amigo",
        "pare o carro",
        "do I quit my job now",
    ),
    *(
        "non-stop flights to Rome please",
        "I was opted in by you, not opted out",
        "the doctor removed my stitches today",
    ),
]


NEGATED = [
    *(
        "I don't want to unsubscribe",
        "I didn't unsubscribe",
        "i won't opt out",
        "I would not unsubscribe",
        "I will not quit",
    ),
    *("I do not wish to opt out", "I did not ask you to stop", "I'm not going to unsubscribe", "no need to remove me"),
    *("I never asked to unsubscribe", "we did not opt out", "I'd never opt out", "I didn't mean to stop"),
    *("don't you dare unsubscribe me", "please don't cancel or stop these texts", "please un-stop"),
    *("I don't want to stop the messages", "I don't want to stop receiving these texts"),
    *("do not discontinue these messages please", "I don't want to miss offers, do not stop"),
]
"""The opposite of an opt-out, and no START either, which is exact."""

OTHER_THINGS = [
    *("stop sending me the wrong one, I ordered blue ones", "Stop the car at 5th please and wait for me there"),
    *("stop signs are everywhere on this road now I guess", "stop sending me my old password, send me a new one"),
    *("No more calls needed, I booked", "no more texts needed thanks", "quit my job", "stop sign on Main"),
    *("Directions: go to 5th, stop, turn left", "drive two blocks, stop, then cross the road"),
    *(
        "The Stop & Shop on Main",
        "Cancel all calls today",
        "cancel my subscription",
        "Can you delete the second order?",
    ),
]

UNWILLING = [
    *("block me", "if you text me again i will sue", "you are harassing me", "I'm no longer interested, sold it"),
    "I'm going to report you if you don't stop",
]
"""Who writes so may well want no more, and has not said it."""

IN_OTHER_WORDS = [
    *(
        "wrong number",
        "enough already",
        "spam",
        "sotp",
        "stpo",
        "stahp",
        "No texting",
        "do not disturb",
        "get lost",
        "DNC",
    ),
    *("no me manden más", "Dejen de molestar", "quítenme de la lista", "me tire dessa lista", "não me mande mais SMS"),
    *("Ne m'écrivez plus", "plus de messages", "Laissez-moi tranquille", "Lass mich in Ruhe", "ich widerrufe alles"),
    *(
        "Schreiben Sie mir nicht mehr",
        "non scrivetemi più",
        "meld me af",
        "geen sms meer",
        "proszę nie pisać",
        "usuń mnie",
    ),
    *(
        "hagyjanak békén",
        "nu mai trimiteți",
        "не пишите мне",
        "Достали!",
        "не пишіть мені",
        "μη μου στέλνετε",
        "istemiyorum",
    ),
    *("mesaj atmayın", "لا ترسلوا لي", "احذف رقمي", "دیگه پیام نده", "میسج مت کرو", "אל תשלחו לי", "तुम मैसेज मत भेजो"),
    *(
        "মেসেজ পাঠাবেন না",
        "அனுப்ப வேண்டாம்",
        "వద్దు",
        "不要再给我发了",
        "別再傳簡訊",
        "もう送らないでください",
        "보내지 마세요",
    ),
    *("ไม่ต้องส่งมา", "đừng gửi nữa", "jangan kirim lagi", "huwag na magtext", "usinitumie", "mat bhejo"),
    *("✋", "🖐️", "🙅", "🙅🏽‍♂️", "❌", "👎", "🖕", "📵", "🛑✋", "👍🛑", "🛑 texting"),
]
"""What a person who wants no more may write, in other words and in other languages."""

QUOTING = [
    *("> Reply STOP to opt out\nok thanks", "> stop texting me", "ok\n  > Hi Ann. Stop."),
    *("You wrote “Hi Ann, reply STOP to opt out of this”, why?", "👍 “Sale today at Acme! Opt out: STOP”"),
    "Hat mit 👍 auf „Das war es. Alles im Angebot. STOP“ reagiert",
]
"""Quotations that no telephone is known to write so."""


@pytest.mark.parametrize("text", UNCLEAR + NEGATED + OTHER_THINGS + UNWILLING + IN_OTHER_WORDS + QUOTING)
def test_what_holds_a_word_of_opting_out_and_says_something_else_is_for_a_person(text: str) -> None:
    """Providers, F.1: what is ambiguous is no opt-out, and is not overlooked either."""
    assert keyword_of(text) is None
    assert may_mean_stop(text)


SLIPS = [
    *("sotp", "stpo", "tsop", "stp", "sto", "syop", "srop", "dtop", "stoo", "stiop", "qiut", "quti", "qit", "quut"),
    *(
        "wuit",
        "cancle",
        "canecl",
        "cancl",
        "camcel",
        "vancel",
        "remvoe",
        "remobe",
        "revoek",
        "revok",
        "optuot",
    ),
    *("opt-uot", "opout", "unsbu", "usnub", "unsib", "caese", "discontineu", "discontine", "exti", "eixt", "exut"),
    *("mtue", "mutw", "unsibscrbe", "unscubsribe", "abmleden", "stoppne", "please sotp", "Qiut!"),
    *("cansel", "Cansel!", "please cansel", "kancel", "canselar"),
    *(
        "atlo",
        "altto",
        "akto",
        "abja",
        "bajja",
        "vaja",
        "parrar",
        "oarar",
        "praar",
        "arrret",
        "arert",
        "arrett",
        "areet",
    ),
    *("يكفي", "كفاية", "إزعاج", "حظر", "امسحني", "شيلني", "غير مهتم", "مش مهتم", "ما بدي"),
    *("צא", "ספאם", "חסום", "חסימה", "עזבו אותי", "אין עניין"),
]


@pytest.mark.parametrize("text", SLIPS)
def test_a_word_with_a_wrong_letter_is_for_a_person(text: str) -> None:
    """Where it is short, and so may be another word: it is not missed, and nobody is put on the register by it."""
    assert keyword_of(text) is None
    assert may_mean_stop(text)


ORDINARY = [
    *(
        "of",
        "top",
        "shop",
        "stomp",
        "step",
        "spot",
        "atop",
        "strop",
        "store",
        "stock",
        "case",
        "ease",
        "crease",
    ),
    *(
        "lease",
        "please",
        "chase",
        "evoke",
        "invoke",
        "edit",
        "exist",
        "exits",
        "next",
        "quiet",
        "quite",
        "quilt",
        "suit",
    ),
    *("cancer", "council", "counsel", "remote", "remora", "mite", "jute", "mate", "must", "ext", "out", "input"),
    *("anmelden", "subscribed", "resubscribe", "describe", "and", "on", "one", "half", "hat", "qui", "sop", "top!"),
    *("I am off today", "20% off", "the exit is on the left", "I mute my phone at night", "off we go then"),
    *("shop please", "edit: see you at 5"),
    *(
        "algo",
        "alo",
        "aló",
        "alt",
        "alot",
        "salto",
        "auto",
        "bajo",
        "bajas",
        "caja",
        "haja",
        "parra",
        "arrest",
    ),
]


@pytest.mark.parametrize("text", ORDINARY)
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


@pytest.mark.parametrize(
    "text",
    [
        *('👍 to "Sale today! Opt out: STOP"', "❤️ to “ Hi. Reply STOP to opt out ”", "👍 à « STOP »", "👍 zu „STOP“"),
        *(
            "Reacted 😂 to “Hi Ann. STOP”",
            "Removed a question mark from “STOP”",
            "Removed 👍 from “STOP”",
            "Liked 'STOP'",
        ),
        *(
            "Gefällt „Hallo Ann. Abmelden: STOP“",
            "Gefällt nicht „STOP“",
            "Lacht über „STOP“",
            "A aimé « Bonjour. STOP »",
        ),
        *(
            "N’a pas aimé « STOP »",
            "A réagi avec 😀 à « STOP »",
            "Le gustó “Hola. Baja: STOP”",
            "Reaccionó con ❤️ a “STOP”",
        ),
        *(
            "Gostou de “Oi. SAIR para parar”",
            "Reagiu com 👍 a “STOP”",
            "Ha messo mi piace a “STOP”",
            "Ha adorato «STOP»",
        ),
    ],
)
def test_a_reaction_is_known_in_other_forms_and_languages(text: str) -> None:
    """An emoji that leads to a quotation, and what telephones write that speak another language."""
    assert keyword_of(text) is None
    assert not may_mean_stop(text)


@pytest.mark.parametrize(
    "text",
    [
        "To “stop texting me”",
        "I liked “STOP texting me”",
        "They loved it. “STOP”",
        "Loved it, now stop texting me about “deals”",
    ],
)
def test_what_only_resembles_a_reaction_is_somebodys_own(text: str) -> None:
    """Nothing but such words and a quotation is one."""
    assert keyword_of(text) == UNDERSTOOD


@pytest.mark.parametrize("text", LONGER)
def test_a_message_that_is_one_quotation_is_somebodys_own(text: str) -> None:
    """There is nobody else in it."""
    assert keyword_of(f"“{text.replace('“', '').replace('”', '')}”.") == UNDERSTOOD


@pytest.mark.parametrize(
    "text",
    [
        "they won't stop",
        "quit smoking",
        "never mind, just stop",
        "I want to unsubscirbe",
        "unsubscrbe me",
        "off please",
    ],
)
def test_in_doubt_a_short_message_is_an_opt_out(text: str) -> None:
    """One contact lost costs less than one who is contacted against the law: decided, and so documented."""
    assert keyword_of(text) == UNDERSTOOD


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n", "👋", "👍", "...", "thanks", "Thank you!", "ok", "no", "who is this?", "No thanks"),
        *(
            "unstoppable",
            "nonstop2rome",
            "b4 2nd st",
            "stopover",
            "we sat on the stoop all evening",
            "die Praxis ist heute zu, genug getan",
            "אני די עייף היום",
            "आज दुकान बंद है",
            "do not park here",
            "I don't want the blue one",
            "I want the red one",
            "never ever",
            "my list",
        ),
        *("Liked “Hi Ann, reply STOP to opt out”", "yes please", "yes", "YES", "help me", "more info", "start now"),
        # Every day in other languages.
        *("Fine, thanks", "Red", "un par de días", "Não me lembro", "Je ne me souviens plus", "lies es in Ruhe durch"),
        *("5 km entfernt", "Ik kan niet meer komen", "Meld me aan", "Nu mai pot veni", "Больше не могу ждать"),
        *(
            "Доста добре",
            "پیام نرسید",
            "acha",
            "dost kaise ho",
            "Huy đang đến",
            "興味あります",
            "停车场在哪里",
            "明日行きます",
        ),
        *("Vou sair da escola às 5", "Basta che mi dici l'ora"),
        *("please start", "join us", "i want to subscribe", "s t a r t", "h e l p"),
        *("I don't want to miss your offers", "I have to be off at five", "get my order out today", "don't subscribe"),
    ],
)
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
    assert len(stop) > 40
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
    sentences = re.findall(r"`([^`]+)`", page_between("where that part begins:", "(`outreach/policy"))
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
