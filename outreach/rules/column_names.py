"""The columns of imported contacts: their usual names in several languages, damaged texts, misread numbers.

An earlier program replaced characters by `�`, or encoded them twice. An earlier version may have loaded contacts under
a wrong number.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, get_args

import attrs

from outreach.errors import Problem
from outreach.models.campaign import Recipient
from outreach.rules import numbering

Field = Literal[
    "phone_number",
    "first_name",
    "last_name",
    "email",
    "company",
    "external_id",
    "country",
    "time_zone",
    "zip_code",
    "state",
]
"""The field that a column holds; `country` decides how local numbers are read, the last three where the contact is."""

_PUNCTUATION: Final = re.compile(r"[\W_]+")


def plain(header: str) -> str:
    """Return a column's name without case, accents, spaces and punctuation."""
    letters = unicodedata.normalize("NFKD", header.casefold())
    return _PUNCTUATION.sub("", "".join(letter for letter in letters if not unicodedata.combining(letter)))


_NAMES: Final[Mapping[Field, str]] = {
    # Mobile phones first, and in each group English first, the plainest name first: of several columns the first wins.
    "phone_number": """
        mobile|mobile number|mobile phone|mobile phone number|mobile no|cell|cell phone|cell number|cell phone number|
        phone mobile|telephone mobile|mobile telephone|mobile tel|tel mobile|phone cell|
        Mobilnummer|Handynummer|Handy|Mobil|Mobiltelefon|Telefon mobil|Tel. mobil|Mobil-Nr.|Handy-Nr.|Mobilfunk|
        Mobilfunknummer|Mobiltelefonnummer|Telefon Handy|
        téléphone portable|téléphone mobile|portable|tél. portable|numéro de portable|numéro de mobile|
        teléfono móvil|móvil|celular|teléfono celular|número de móvil|número móvil|telemóvel|telefone celular|
        cellulare|numero cellulare|telefono cellulare|telefono mobile|mobiel|mobiele nummer|mobiele telefoon|
        telefoon mobiel|gsm|matkapuhelin|telefon komórkowy|komórka|mobilní telefon|mobilszám|cep telefonu|gsm no|
        мобильный|мобильный телефон|мобільний|κινητό|جوال|رقم الجوال|נייד|मोबाइल|मोबाइल नंबर|no hp|nomor hp|
        携帯|携帯電話|携帯番号|手机|手机号|手机号码|手機|手機號碼|휴대폰|휴대전화|핸드폰|
        phone number|phone|phone no|telephone|telephone number|tel|contact number|msisdn|primary phone|
        phone 1 value|e164|whatsapp|home phone|business phone|work phone|
        Telefonnummer|Telefon|Rufnummer|Tel.-Nr.|Telefon-Nr.|
        téléphone|numéro de téléphone|teléfono|número de teléfono|telefone|número de telefone|
        telefono|numero di telefono|telefoonnummer|telefoon|puhelin|puhelinnumero|
        numer telefonu|telefonu|telefonní číslo|telefónne číslo|telefonszám|număr de telefon|telefon numaras\u0131|
        телефон|номер телефона|номер телефону|телефонен номер|τηλέφωνο|αριθμός τηλεφώνου|
        هاتف|الهاتف|رقم الهاتف|טלפון|מספר טלפון|फ़ोन|फ़ोन नंबर|nomor telepon|telepon|số điện thoại|điện thoại|
        เบอร์โทร|เบอร์โทรศัพท์|โทรศัพท์|電話|電話番号|电话|电话号码|電話號碼|전화|전화번호|
        landline|landline number|Festnetz|Festnetznummer|
        number|numéro|nummer|numer|номер
    """,
    "first_name": """
        first name|first|given name|forename|fname|
        Vorname|prénom|nombre|nombres|nome|primeiro nome|nome próprio|voornaam|förnamn|fornavn|etunimi|
        imię|jméno|křestní jméno|meno|keresztnév|utónév|prenume|ad|isim|ad\u0131|
        имя|ім'я|име|όνομα|الاسم الأول|שם פרטי|पहला नाम|nama depan|tên|ชื่อ|名|名前|이름
    """,
    "last_name": """
        last name|last|surname|family name|lname|
        Nachname|Familienname|nom de famille|apellido|apellidos|sobrenome|apelido|cognome|achternaam|
        efternamn|etternavn|efternavn|sukunimi|nazwisko|příjmení|priezvisko|vezetéknév|nume de familie|soyad|
        soyad\u0131|soyisim|
        фамилия|прізвище|фамилно име|επώνυμο|اسم العائلة|שם משפחה|उपनाम|nama belakang|họ|นามสกุล|姓|苗字|성
    """,
    "email": """
        email|email address|mail|e-mail 1 value|
        E-Mail-Adresse|adresse e-mail|courriel|adresse électronique|correo|correo electrónico|endereço de e-mail|
        posta elettronica|indirizzo e-mail|e-mailadres|e-post|e-postadress|sähköposti|adres e-mail|e-posta|
        почта|электронная почта|эл. почта|електронна пошта|ηλεκτρονικό ταχυδρομείο|البريد الإلكتروني|דואל|ईमेल|
        メール|メールアドレス|邮箱|电子邮件|電子郵件|이메일
    """,
    "company": """
        company|company name|organization|organisation|employer|organization name|
        Firma|Unternehmen|Firmenname|entreprise|société|empresa|compañía|azienda|società|ditta|bedrijf|bedrijfsnaam|
        företag|firmanavn|virksomhed|yritys|przedsiębiorstwo|společnost|cég|şirket|
        компания|организация|компанія|εταιρεία|الشركة|חברה|कंपनी|perusahaan|công ty|บริษัท|会社|会社名|公司|회사
    """,
    "external_id": "external id",
    "time_zone": """
        time zone|timezone|time zone name|iana time zone|local time zone|tz|
        Zeitzone|fuseau horaire|zona horaria|huso horario|fuso horário|fuso orario|tijdzone|tidszon|tidszone|
        aikavyöhyke|strefa czasowa|časové pásmo|időzóna|fus orar|saat dilimi|часовой пояс|часовий пояс|ζώνη ώρας|
        タイムゾーン|时区|時區|시간대
    """,
    "zip_code": """
        zip code|zip|us zip code|us zip|zip postal code|postal code|postcode|home zip|mailing zip|billing zip|
        mailing zip postal code|billing zip postal code
    """,
    "state": """
        state|us state|state code|state name|state province|home state|mailing state|billing state|
        mailing state province|billing state province
    """,
    "country": """
        country|country code|country name|country iso|iso country|iso country code|country region|
        mailing country|billing country|
        Land|Ländercode|Länderkürzel|Ländername|pays|code pays|país|código de país|código do país|paese|nazione|
        codice paese|landcode|landsnavn|landskod|maa|kraj|kod kraju|země|kód země|krajina|ország|országkód|țară|ülke|
        ülke kodu|страна|код страны|країна|код країни|държава|χώρα|البلد|الدولة|מדינה|देश|negara|quốc gia|ประเทศ|
        国|国名|国家|國家|국가
    """,
}

NAMES: Final[Mapping[Field, tuple[str, ...]]] = MappingProxyType(
    {field: tuple(dict.fromkeys(filter(None, map(plain, text.split("|"))))) for field, text in _NAMES.items()}
)
"""The names of each field's column as `plain` writes them; of several the first one wins."""

LAST_NAMES_BESIDE: Final[Mapping[str, str]] = MappingProxyType(
    {"vorname": "name", "prenom": "nom", "voornaam": "naam", "prenume": "nume"}
)
"""Names that mean a last name only beside this column for the first name; alone they may be whole names."""

_OWNERS: Final = "customer|client|patient|member|subscriber|recipient|guest|user|contact|lead"
_USES: Final = """
    work|office|business|home|private|personal|landline|day|daytime|evening|main|primary|preferred|secondary|alternate|
    alternative|other|second|
    geschäftlich|Geschäfts|gesch.|dienstlich|Dienst|Firmen|beruflich|Arbeit|Büro|privat|priv.|zuhause|zu Hause|tagsüber|
    abends|Festnetz|Haupt|weiteres|
    professionnel|pro|travail|bureau|domicile|maison|personnel|perso|privé|fixe|principal|autre|
    trabajo|del trabajo|oficina|de la oficina|casa|de casa|particular|fijo|domicilio|laboral|otro|
    ufficio|di casa|abitazione|lavoro|privato|personale|fisso|principale|altro|
    trabalho|comercial|residencial|escritório|profissional|pessoal|fixo|outro|
    werk|op werk|zakelijk|kantoor|thuis|vast|vaste|arbete|arbets|jobb|hem|arbejde|arbeid|arbeids|kontor|hjem|hjemme|
    työ|koti|służbowy|praca|domowy|dom|prywatny|pracovní|do zaměstnání|práce|domácí|domů|soukromý|
    munkahelyi|otthoni|iş|ev|
    рабочий|домашний|личный|робочий|домашній|自宅|会社|勤務先|公司|办公|辦公|家庭|住宅|직장|집|자택
"""

NUMBERS: Final = frozenset(map(plain, ("number", "numéro", "nummer", "numer", "номер")))
"""Names of a phone column that mean another number beside another word: `customer_number`, `Office number`."""

_PHONES: Final = frozenset(NAMES["phone_number"]) - NUMBERS
_BEFORE: Final = tuple(filter(None, map(plain, f"{_OWNERS}|{_USES}".split("|"))))
_BEHIND: Final = (*filter(None, map(plain, _USES.split("|"))), *"123456789")
_MOST_ADDITIONS: Final = 3
"""A person, a use, and which one of several: `Patient home phone 2`."""


@functools.lru_cache(maxsize=1024)
def bare_phone_name(name: str) -> str:
    """Return a column's name without what leaves it that of a phone; the name itself if it is no such name.

    That is a person in front (`customer_phone`), a use (`Telefon privat`, `Office phone`), and a number behind it.

    Args:
        name: The name as `plain` writes it.
    """
    names = {name} - _PHONES
    for _ in range(_MOST_ADDITIONS):
        names = {one.removeprefix(word) for one in names for word in _BEFORE if one.startswith(word)} | {
            one.removesuffix(word) for one in names for word in _BEHIND if one.endswith(word)
        }
        if found := names & _PHONES:
            return min(found, key=NAMES["phone_number"].index)
    return name


VARIABLES_TOO: Final[frozenset[Field]] = frozenset({"external_id", "country", "time_zone", "zip_code", "state"})
"""Fields whose columns are custom variables as well."""

_OF_CONTACTS: Final[tuple[Field, ...]] = tuple(
    field for field in get_args(Field) if field == "external_id" or field not in VARIABLES_TOO
)


def usual_field(header: str) -> Field | None:
    """Return the field whose column usually has this name; None if it is none's."""
    return _FIELDS_BY_NAME.get(plain(header))


_FIELDS_BY_NAME: Final[Mapping[str, Field]] = {name: field for field in _OF_CONTACTS for name in NAMES[field]}


def fields_of_headers(headers: Sequence[str]) -> Mapping[str, Field]:
    """Return which columns of a list are fields by the usual names, by their headers.

    Of several columns the one with the plainest name is the field.
    """
    names = {plain(header): header for header in reversed(headers)}
    found: dict[str, Field] = {}
    for field in _OF_CONTACTS:
        name = next((name for name in NAMES[field] if name in names), None)
        if name is not None:
            found[names[name]] = field
    beside = next((LAST_NAMES_BESIDE[name] for name in names if name in LAST_NAMES_BESIDE), None)
    if beside in names and "last_name" not in found.values():
        found.setdefault(names[beside], "last_name")
    return found


REPLACED: Final = "\N{REPLACEMENT CHARACTER}"
"""The character that programs write for bytes that they cannot read."""


def _characters_of(first: int, last: int) -> str:
    """Return the characters, as a set of a pattern, that these bytes are in Windows-1252 or Latin-1."""
    found = {bytes([one]).decode(encoding, "ignore") for one in range(first, last + 1) for encoding in _ENCODINGS}
    return f"[{''.join(map(re.escape, sorted(found)))}]"


_ENCODINGS: Final = ("cp1252", "latin-1")
_NEXT: Final = _characters_of(0x80, 0xBF)

# The decoded text must be of one script: a French word may end with `é`, a non-breaking space and `»`, which are the
# bytes of a Chinese sign.
_TWICE: Final = re.compile(
    "|".join(
        (
            f"{_characters_of(0xC2, 0xC5)}{_NEXT}",  # letters of European languages, and their signs
            f"\u00e2[\u20ac\u0080\u201a\u0082]{_NEXT}",  # quotation marks, dashes, the sign of the euro
            f"(?:{_characters_of(0xCE, 0xDB)}{_NEXT}){{2,}}",  # Greek, Cyrillic, Hebrew, Arabic
            f"(?:{_characters_of(0xE0, 0xED)}{_NEXT}{_NEXT}){{2,}}",  # languages of Asia
            f"\u00f0[\u0178\u009f\u009d]{_NEXT}{_NEXT}",  # emoji
        )
    )
)
"""The characters of UTF-8 that was read in another encoding."""


def decoded_once(text: str) -> str | None:
    """Return what a text was before its UTF-8 was read in Windows-1252: `Müller` of `MÃ¼ller`; None if it was not."""
    if text.isascii():
        return None
    once = _TWICE.sub(lambda found: _decoded(found[0]), text)
    return once if once != text else None


def _decoded(text: str) -> str:
    try:
        return b"".join(map(_byte, text)).decode()
    except UnicodeDecodeError:
        return text


def _byte(letter: str) -> bytes:
    try:
        return letter.encode("cp1252")
    except UnicodeEncodeError:
        return letter.encode("latin-1")


def other_reading(written: str, phone: str) -> str | None:
    """Return the mobile number that a contact's digits are without the calling code that was put before them.

    529b10ce took `4915123456701` in Germany for the landline +494915123456701. This version does not.

    Args:
        written: The number as supplied.
        phone: The number that it was read as, in E.164.
    """
    if written[:1] == "+" or written == phone:
        return None
    digits = "".join(filter(str.isdigit, written))
    code = phone.removesuffix(digits)[1:]
    if not code or not digits.startswith(code) or code == "1" or f"+{code}{digits}" != phone:
        return None
    other = numbering.international(digits)
    is_mobile = other not in {None, phone} and numbering.number_kind(other or "") == "mobile"
    return other if is_mobile and numbering.number_kind(phone) != "mobile" else None


@attrs.define(kw_only=True)
class MisreadNumbers:
    """Counts the open contacts of a campaign whose number may be another one.

    Attributes:
        checked: How many were checked.
        count: How many of them may have another number.
        example: The first of these: its number, and the other one.
    """

    checked: int = 0
    count: int = 0
    example: tuple[str, str] | None = None

    def see(self, contacts: Iterable[Recipient]) -> None:
        """Count contacts; those that have ended are left out."""
        for one in contacts:
            if not one.is_open:
                continue
            self.checked += 1
            other = None if one.phone is None else other_reading(one.phone_number, one.phone)
            if one.phone is not None and other is not None:
                self.count += 1
                self.example = self.example or (one.phone, other)

    def warnings(self) -> tuple[Problem, ...]:
        """Return the warning of these contacts, if there are any."""
        if self.example is None:
            return ()
        phone, other = self.example
        message = (
            f"{self.count:,} of {self.checked:,} contacts may have been loaded under a wrong number by an earlier "
            f"version, such as {phone} in place of {other}. If the other number is meant, cancel the campaign "
            "(campaigns cancel) and import its list again (campaigns import)."
        )
        return (Problem(path="recipients", message=message),)
