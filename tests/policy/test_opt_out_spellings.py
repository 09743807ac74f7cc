from __future__ import annotations

import string

import pytest

from outreach.policy.opt_out import keywords
from outreach.policy.opt_out.keywords import keyword_of, may_mean_stop

OPT_OUTS = {
    "english": """
        stop | STOP | Stop. | stop! | STOP!!! | "STOP" | 'stop' | s t o p | S.T.O.P | s-t-o-p | stop stop stop |
        stopstop | stop pls | stop please | please stop | pls stop | plz stop | stop thanks | stop thank you |
        no stop | stop now | stop it | just stop | stop all | stopall | stop msgs | stop messaging | stop txt |
        stop texting me | stop texts | stop text | stop sms | stop sending | stop sending me this |
        stop messages | stop calling | stop calling me | stop contacting me | stop spam | stop spamming |
        stop bothering me | stop this | stop these | stop everything | stop. | st0p | $top | stooop | sttop |
        STOPPP | stop 2 | 2 stop | stop1 | reply stop | text stop | STOP to 12345 | unsubscribe |
        Unsubscribe me | un subscribe | un-subscribe | unsub | unsubscribe please | unsubscribe all |
        unsubscribed | i unsubscribe | want to unsubscribe | how do i unsubscribe | opt out | optout | opt-out |
        opt me out | i opt out | opting out | opted out | optout all | cancel | cancel all | please cancel |
        cancel sms | cancel messages | cancel texts | cancel subscription | cancel my subscription | end | END |
        end all | end messages | end texts | quit | QUIT! | i quit | quit it | quit texting me | quit it now |
        exit | exit please | exit list | off | OFF | turn off | sms off | mute | mute me | remove | remove me |
        remove me please | remove my number | please remove my number | remove number | remove from list |
        remove me from list | take me off | take me off your list | take me off this list | take off | delete |
        delete me | delete my number | delete number | delete my data | erase me | lose my number | no more |
        no more texts | no more messages | no more sms | no more calls | no more pls | no texts | no sms |
        no messages | nomore | do not text | do not text me | dont text me | don't text | dont message me |
        don't message me again | don't contact me | do not contact | do not call | don't call me | dont call |
        never text me again | never contact me again | revoke | revoke consent | i revoke consent |
        i withdraw my consent | withdraw | withdraw consent | cease | cease and desist | desist | discontinue |
        leave me alone | go away | fuck off | piss off | not interested | im not interested |
        no longer interested | wrong number | block | block me | blocked | enough | enough already | spam |
        dnc | do not disturb | disable | deactivate | deregister | stop sub | stop alerts | end alerts |
        no alerts | stop promo | stop promos | stop marketing | no marketing | stop ads | no ads |
        no thanks stop | ok stop | hi stop | hey stop texting | stop it please | stop with the texts |
        stop the texts | stop the messages | stop these messages | stop all messages | stop all texts |
        please unsubscribe | pls unsubscribe | kindly unsubscribe | please opt out | please take me off |
        please remove | plz remove | sign me off | sign off | sign out | unfollow | unregister | unenroll |
        un enroll | let me out | i want out | get me off this list | drop me | scrub my number | terminate |
        abort | halt | refuse | reject | decline | stop bot | stop robot | 🛑 | ⛔ | 🚫 | 🛑🛑🛑 | stop 🛑 | ＳＴＯＰ |
        𝐒𝐓𝐎𝐏 | ⓢⓣⓞⓟ | stоp | CTOП | otp out | stpo texting me | stope texting me | sotp msg |
        please stpo sending me this |
        I want to unsbu | cancle my subscription | remvoe my name | cancle all | qiut texting me | off now | exit now |
        exit sms | mute chat | switch off | switch it off | im out | I'm out | count me out | optmeout | opt0ut |
        takemeoff | rem0ve | canc3l | unsubscr1be | unsubscr1be me | stap | stope | stoo | cancal | cancwl | ramove |
        revoce | deleet | unsib | ahlt | fof | ff | ennd
    """,
    "hebrew": """
        הסר | הסירו | הסר אותי | הסירו אותי | הסירי אותי | להסיר | להסיר אותי | הסרה | תסירו אותי | תסיר אותי |
        תסירו | עצור | עצרו | תעצרו | די | מספיק | תפסיקו | תפסיק | הפסק | הפסיקו | להפסיק | ביטול | בטל |
        בטלו | לבטל | מחק | מחק אותי | תמחקו אותי | למחוק | סטופ | צא | יציאה | לא מעוניין | לא מעוניינת |
        אל תשלחו לי | לא לשלוח יותר | תורידו אותי מהרשימה | הורד | הורד אותי | הורידו | הסר מהרשימה | להתנתק |
        ביטול הרשמה | לא רוצה | אל תתקשרו | מספיק כבר | תפסיקו לשלוח | נא להסיר | אנא הסירו | בבקשה להסיר |
        חסל | חלאס | עיצרו | הסר נא | הסר בבקשה | הסרר | הפסקה | לא רלוונטי | לא רלוונטי לי | השתק | בלי הודעות
    """,
    "arabic": """
        توقف | قف | اوقف | أوقف | إيقاف | ايقاف | وقف | الغاء | إلغاء | الغي | ألغ | إلغاء الاشتراك |
        الغاء الاشتراك | الغاء اشتراك | إلغاء اشتراك | كفى | كفاية | يكفي | خلاص | بس | حذف | احذف | احذفني |
        احذف رقمي | امسح رقمي | ازالة | إزالة | شيلوني | لا ترسل | لا ترسلوا | لا ترسل لي | لا ترسلوا لي |
        لا تتصل | لا تتصلوا بي | لا اريد | لا أريد | لا أريد رسائل | مش عايز | ما ابي | ما اريد | ستوب | انهاء |
        إنهاء | خروج | الخروج | انسحاب | غير مهتم | لست مهتما | رفض | ارفض | وقفوا الرسائل | اوقفوا الرسائل |
        ايقاف الرسائل | الرجاء التوقف | توقف من فضلك | ارجوك توقف | بدون رسائل | لا رسائل | أوقفوا الإرسال |
        ألغوا اشتراكي | قطع | اخرج | أخرجوني | كتم | مغادرة | غادر | فك الاشتراك | فك اشتراكي | وقفو | اوقفو | كافي |
        لا يهمني
    """,
    "german": """
        stopp | stop | STOPP! | stoppen | abmelden | bitte abmelden | abmeldung | abbestellen |
        bitte abbestellen | abbestellung | austragen | bitte austragen | kündigen | kündigung | löschen |
        bitte löschen | nummer löschen | löscht meine nummer | ende | aufhören | bitte aufhören | hör auf |
        hört auf | schluss | schluss jetzt | aus | raus | nein danke stop | kein interesse | keine werbung |
        keine sms | keine sms mehr | keine nachrichten mehr | bitte keine nachrichten | keine anrufe |
        nicht mehr schreiben | nicht mehr anrufen | schreibt mir nicht mehr | lasst mich in ruhe |
        lass mich in ruhe | abbrechen | beenden | widerruf | ich widerrufe | widerspruch | stornieren |
        entfernen | bitte entfernen | streichen | genug | es reicht | abmeden | abmelen | stop bitte
    """,
    "french": """
        stop | arret | arrêt | arrêter | arrêtez | arretez | arrête | stopper | stoppez | désabonner |
        desabonner | désabonnement | se désabonner | me désabonner | désinscription | desinscription |
        désinscrire | désinscrivez-moi | désabonnez-moi | annuler | annulation | résilier | fin | terminer |
        supprimer | supprimez mon numéro | supprimez-moi | retirez-moi | enlevez-moi | enlevez moi de la liste |
        plus de sms | plus de messages | pas de pub | ne plus recevoir | ne m'appelez plus | ne m'écrivez plus |
        ne me contactez plus | pas intéressé | pas interesse | laissez-moi tranquille | foutez-moi la paix |
        ça suffit | assez | stop svp | stop merci | stop pub | quitter | refuser | je me désabonne |
        je ne veux plus
    """,
    "spanish": """
        alto | baja | BAJA | dar de baja | darme de baja | dame de baja | denme de baja | deme de baja |
        quiero darme de baja | parar | pare | paren | para | basta | ya basta | basta ya | no más | no mas |
        no mas mensajes | no más sms | cancelar | cancela | cancele | cancelar suscripción | anular | eliminar |
        elimíname | eliminarme | borrar | bórrame | borrarme | borren mi numero | quitar | quítame | quitenme |
        salir | detener | detente | deténganse | dejen de escribir | dejen de llamar | no me llamen |
        no me escriban | no molestar | no molesten | no me interesa | no quiero | no estoy interesado |
        desuscribir | desuscribirme | desinscribir | fin | terminar | stop por favor | baja por favor |
        no enviar | no envien mas | suficiente
    """,
    "portuguese": """
        sair | SAIR | parar | pare | parem | para | cancelar | cancela | cancele | remover | remova |
        me remova | remova meu número | descadastrar | descadastre | descadastro | me descadastre |
        desinscrever | excluir | excluir meu número | apagar | basta | chega | não quero | nao quero |
        não me mande mais | não me ligue | não perturbe | não tenho interesse | sem interesse | sair da lista |
        me tire da lista | pare de mandar | parar de receber | desativar | desligar | encerrar | bloquear |
        baixa | fim | não enviar | não mande mais mensagens | stop por favor
    """,
    "italian": """
        stop | ferma | fermati | fermatevi | basta | basta così | annulla | annullare | cancella | cancellami |
        cancellatemi | cancellare | cancellazione | disiscrivi | disiscrivimi | disiscrizione | disdire |
        disdetta | rimuovi | rimuovimi | rimuovetemi | togliere | toglimi | toglietemi | smettila | smettetela |
        smetti | esci | uscire | elimina | eliminami | non chiamare | non chiamatemi più | non scrivetemi più |
        non mi interessa | non sono interessato | niente sms | niente messaggi | basta sms | basta messaggi |
        lasciatemi in pace | stop grazie | recesso | revoca
    """,
    "dutch": """
        stop | stoppen | stop aub | stop a.u.b. | afmelden | afmelding | uitschrijven | uitschrijving |
        opzeggen | opzegging | annuleren | verwijderen | verwijder mij | verwijder mijn nummer | beëindigen |
        einde | ophouden | hou op | houd op | geen sms | geen sms meer | geen berichten meer |
        niet meer sms'en | niet bellen | bel me niet meer | niet geïnteresseerd | geen interesse |
        laat me met rust | genoeg | schrap | uit | weg | ik wil stoppen | meld me af | schrijf me uit
    """,
    "polish": """
        stop | przestań | przestan | przestańcie | przestancie | wypisz | wypisz mnie | wypisać |
        wypisz mnie z listy | rezygnuję | rezygnuje | rezygnacja | koniec | zatrzymaj | anuluj | usuń | usun |
        usuń mnie | usuń mój numer | odsubskrybuj | wyłącz | wylacz | nie pisz | nie dzwoń | nie dzwońcie |
        nie chcę | nie chce | nie jestem zainteresowany | nie wysyłaj | nie wysylajcie | dość | dosc |
        nie interesuje mnie | stop sms | proszę przestać | wyrejestruj | wypisuję się
    """,
    "turkish": """
        dur | DUR | durdur | durdurun | iptal | İPTAL | iptal et | iptal edin | ret | RET | çık | cik | çıkış |
        cikis | abonelikten çık | abonelikten cik | bırak | birak | yeter | sil | beni sil | numaramı sil |
        numaramı silin | silin | kapat | istemiyorum | mesaj istemiyorum | mesaj atma | mesaj atmayın |
        aramayın | beni aramayın | rahatsız etmeyin | listeden çıkar | listeden çıkarın | gönderme |
        göndermeyin | ilgilenmiyorum | stop lütfen
    """,
    "russian": """
        стоп | СТОП! | стоп смс | отписаться | отписка | отпиши | отпишите | отпишите меня | отпишись | отмена |
        отменить | отказ | отказаться | отказываюсь | прекратить | прекратите | хватит | хватит писать |
        перестаньте | перестаньте писать | остановите | остановить | остановись | удалить | удалите |
        удалите меня | удалите мой номер | не пишите | не пишите мне | не звоните | не звоните мне |
        не присылайте | не надо | не хочу | не интересно | не интересует | выход | конец | отвали | отстаньте |
        достали | довольно | спам | уберите меня | исключите меня | больше не пишите
    """,
    "other": """
        стоп | зупинити | відписатися | не пишіть | odhlásit | zrušit | nechci | dezabonare | opriți |
        nu mai trimiteți | leiratkozás | elég | lopeta | peruuta | avsluta | sluta | stanna | avregistrera |
        afmeld | avmeld | slutt | stopp | σταμάτα | διαγραφή | 停止 | 退订 | 取消订阅 | 不要再发 |
        配信停止 | やめて | 수신거부 | 그만 |
        중지 | रोकें | बंद करो | dừng | hủy | từ chối | berhenti | batal | หยุด | ยกเลิก | itigil | tama na |
        simama | توقف کنید | لغو | بند کرو
    """,
}
"""How people opt out, by language; a bar or a line end separates two."""

ORDINARY = """
    ende gut, alles gut | office | of | quiet | ok | okay | yes | no | maybe | thanks | thank you | sure |
    great | good | fine | hello | hi | hey | who is this | what time | when | where | why | how much |
    how are you | call me later | call me tomorrow | I'm at work | I am off today | 20% off |
    is it 20% off? | I'm off on Monday | off to work | day off | on and off | the exit is on the left |
    next exit | exit 12 | emergency exit | I'm at the office | weekend | friend | send | spend | bend |
    lend | trend | attend | cancer | council | counsel | quite | quite good | quick | quiz | quote | suit |
    mute the mic please when we talk tomorrow | mate | mutt | cute | remote | removal van comes at 5 | top |
    top! | stomp | step | spot | shop | store | stock | atop | stork | stoplight | stopwatch | laptop |
    desktop | rooftop | unsure | unsung | subscribe | I subscribed last week | describe | please | lease |
    release | case | ease | grease | chase | purchase | crease | delegate | deleted scene | dilate | exist |
    exits | text me | text me the address | next | exam | edit | existing customer | Frau Ende | Ms Quitt |
    contralto | alt | bajo | caja | bajas | trabajo | para mañana | para mi | parada | salir a las 5 |
    de nada | no problem | no worries | no idea | nope | not now | not yet | not today | not sure |
    call back | leave a message | leave at 5 | I leave tomorrow | enough for two people | is that enough? |
    big enough | good enough for me | block 5 | which block? | we live two blocks away | spam and eggs |
    fine by me | finest | finish | fin de semana | am Ende der Woche | Wochenende | Ende Mai | am Ende |
    anmelden | ich melde mich | ab morgen | aus Berlin | raus aus Berlin um 5 | genug Zeit |
    ich habe genug Zeit | Schlussverkauf | alta | arrive | à l'arrêt de bus | sortir ce soir | basta pasta |
    pasta | a che ora | einde van de week | weekeinde | koniec tygodnia | dzień dobry | tak | nie | evet |
    hayır | son durak | durak | durum | да | нет | хорошо | спасибо | конец недели | выходной | на выходе |
    نعم | لا | شكرا | كم السعر | متى | محطة الباص | כן | לא | תודה | מתי | תחנת אוטובוס | די טוב |
    אני די עייף | 有 | 好 | 谢谢 | 停车场在哪里 | はい | 네 | he never stops talking | stopgap | halt mal kurz |
    Haltestelle | nada más | más o menos | cancelación de vuelo | offer | offers | what offers? | coffee |
    often | offline today | off-road | soft | far off | kick off at 8 | drop off at 9 | day off tomorrow |
    take off is at 8 | mutual | commute | minute | 1 minute | move | remorse | revolve | revolver | option |
    option 1 | optional | optical | hours? | Sunday | unload | quits | we are quits | quietly | quilt |
    exit poll | text | exact | exactly | I exited the building | ceasefire | sease | season | decrease |
    step out | stoep | hat | and | said | salt | pasta | hasta luego | hasta mañana | switch office | switch on |
    I am out of office | I am out today | out of office | out now | off today | off to the shop now | leave now |
    exit at 5 | mute button | group chat | sto arrivando | sto bene | air | sir | yes sir | op vrijdag | ned |
    haalt hem op | er hallt | alt text | pot luck | OTP | the otp is 1234 | I got the otp | 2nd floor | b4 3pm | 4 all |
    step by step | my stepmother | slop | sopp | stops at 5 | it never stops | no, cancer |
    revolving door | evoke | resist | recover | remote work | chase me | delate | asset | terminal 2 | withdrew |
    Ms Quitt, Frau Stoppa | Basti | besta | bast | parlare | pagar | param | Barret | Garret
"""
"""Answers that say nothing of an opt-out."""

WITH_A_WORD = """
    stop by at 5 | I can't stop laughing | see you at the bus stop | which stop do I get off |
    stop by tomorrow | I'll stop by later | don't stop | non stop fun | one stop shop | pit stop first |
    the end of the month | at the end | by the end of the day | week end | end of May |
    in the end it worked | cancel my 3pm appointment and book 4pm | can I cancel my appointment? |
    I need to cancel tomorrow's appointment | I quit my job |
    I will remove the old one on Friday and call you | Mr Stopp | Herr Stopp | Alto Adige | Palo Alto |
    pare a las 5? | baja california | arrêt de bus | ferma alle 5? | автобусная остановка |
    we stopped at your shop yesterday, nice place | my flight has one stop | this is my last stop |
    can you stop in on Friday | stop over for coffee | stop at the store | will you stop near the station |
    I could not stop smiling | they keep stopping the train | no más tarde de las 5 | baja la música |
    cancelled flight, can we move? | removed the old battery | remove the old one? | revoked license? |
    opt in | I opt for the blue one | yes stop by | yes, at the stop | where is the stop | the bus stop |
    bus stop | truck stop | I am at the stop | delete the old appointment and keep the new one |
    did you delete it? | cease fire
"""
"""Answers with a word of an opt-out that say something else."""

ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
MISTYPED = (
    *(
        "stop",
        "stopall",
        "unsubscribe",
        "unsub",
        "cancel",
        "quit",
        "exit",
        "mute",
        "remove",
        "revoke",
        "optout",
        "cease",
    ),
    "delete",
)
OTHER_WORDS = {
    *(
        "atop",
        "sop",
        "stol",
        "top",
        "qui",
        "quot",
        "edit",
        "exif",
        "ext",
        "jute",
        "mite",
        "ute",
        "evoke",
        "case",
        "ease",
    ),
}
"""Words of their own that are one slip from an opt-out."""


ANY_LETTER = {
    "stopp": {"sopp", "stoep", "stomp", "stopa", "stops", "stopy", "stoup", "topp"},
    "cancel": {"cancels", "cancer", "carcel"},
    "remove": {"remore", "remote", "removeu"},
    "revoke": {"evoke"},
    "delete": {"degete", "delate", "deleite", "delejte", "delene", "devlete"},
    "cease": {"case", "chase", "clase", "crease", "ease", "lease", "sease", "tease"},
    "arreter": set(),
    "abmelden": {"anmelden"},
    "annulla": {"pannulla"},
    "cancelar": {"cancelan", "kancelar"},
}
"""Words of five letters or more, with the words of their own that are one letter from each."""

FEW_SLIPS = {
    "stop": {"sop", "top"},
    "end": {"ed", "en", "ned"},
    "off": {"of"},
    "sair": {"air", "sai", "sar", "sari", "sir"},
    "halt": {"alt", "haalt", "hal", "hallt", "hat"},
}
"""Shorter words, with the words of their own that are two exchanged letters, an omission or a doubling from each."""


def texts(table: str) -> list[str]:
    """Return the texts of a table."""
    return [text.strip() for line in table.strip().splitlines() for text in line.split(" | ")]


def recognised(text: str) -> bool:
    """Return whether a message opts out at once, or is held until a person has read it."""
    keyword = keyword_of(text)
    return may_mean_stop(text) if keyword is None else keyword.keyword == "stop"


def slips(word: str) -> set[str]:
    """Return a word with two letters exchanged, one missing or doubled, or the key on its left or right."""
    found = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    for at, letter in enumerate(word):
        row = next(row for row in ROWS if letter in row)
        place = row.index(letter)
        beside = (*row[max(place - 1, 0) : place], *row[place + 1 : place + 2])
        found |= {word[:at] + other + word[at + 1 :] for other in ("", letter * 2, *beside)}
    return found - {word}


@pytest.mark.parametrize("language", OPT_OUTS)
def test_what_people_write_to_opt_out_is_recognised(language: str) -> None:
    """It is obeyed at once, or its number is contacted by no campaign until a person has read it."""
    assert [text for text in texts(OPT_OUTS[language]) if not recognised(text)] == []


def test_the_table_has_many_spellings_and_the_plain_words_are_obeyed_at_once() -> None:
    """A table of a few words, or one that is held for a person as a whole, would show little."""
    all_texts = [text for table in OPT_OUTS.values() for text in texts(table)]
    obeyed = [text for text in all_texts if keyword_of(text) is not None]
    assert len(all_texts) > 750
    assert len(obeyed) > 350


@pytest.mark.parametrize("word", MISTYPED)
def test_a_slip_of_an_opt_out_is_recognised(word: str) -> None:
    """Every one, but where it makes another word."""
    assert {slip for slip in slips(word) if not recognised(slip)} <= OTHER_WORDS


@pytest.mark.parametrize("word", ANY_LETTER)
def test_any_wrong_letter_of_a_longer_word_is_recognised(word: str) -> None:
    """Also one that is not beside the right one."""
    places, letters = range(len(word) + 1), ("", *string.ascii_lowercase)
    replaced = {word[:at] + letter + word[at + 1 :] for at in places[:-1] for letter in letters}
    added = {word[:at] + letter + word[at:] for at in places for letter in letters}
    assert {slip for slip in replaced | added if not recognised(slip)} == ANY_LETTER[word]


@pytest.mark.parametrize("word", FEW_SLIPS)
def test_letters_of_a_short_word_that_are_exchanged_left_out_or_doubled_are_recognised(word: str) -> None:
    """Where they make no other word."""
    places = range(len(word))
    found = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places[:-1]}
    found |= {word[:at] + letter + word[at + 1 :] for at in places for letter in ("", word[at] * 2)}
    assert {slip for slip in found if not recognised(slip)} == FEW_SLIPS[word]


@pytest.mark.parametrize("phrase", ["{} texting me", "please {}", "I said {}", "ok {} now", "{}, I told you twice"])
@pytest.mark.parametrize("slip", ["stpo", "sotp", "stopp", "syop", "stope", "unsbu", "qiut", "unsubscirbe"])
def test_a_slip_in_a_phrase_is_recognised_as_the_right_word_is(phrase: str, slip: str) -> None:
    """At least it is held for a person."""
    assert recognised(phrase.format(slip))


def test_a_message_of_many_slips_takes_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few words are tried, however long the message is."""
    asked: list[str] = []

    def none(text: str) -> None:
        asked.append(text)

    monkeypatch.setattr(keywords, "keyword_of", none)
    assert not may_mean_stop("hello stpo " * 200)
    assert 0 < len(asked) < 30


def test_ordinary_answers_are_no_opt_out() -> None:
    """They are not even held for a person."""
    ordinary = texts(ORDINARY)
    assert len(ordinary) > 200
    assert [text for text in ordinary if recognised(text)] == []


def test_an_opt_out_word_with_another_meaning_puts_nobody_on_the_register() -> None:
    """A person may have to read it."""
    assert [text for text in texts(WITH_A_WORD) if keyword_of(text) is not None] == []


@pytest.mark.parametrize(
    "text", ["\u00e7\u0131k", "\u00c7IK", "c\u0131k", "cik", "WYPISZ", "\u0111\u1eebng g\u1eedi", "dung gui"]
)
def test_letters_with_a_stroke_or_without_a_dot_are_read_without_accents(text: str) -> None:
    """Unicode separates no accent of them, and many people write the plain letter."""
    assert recognised(text)
