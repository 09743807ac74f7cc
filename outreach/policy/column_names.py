"""The usual names of a contact's columns, in several languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, get_args

Field = Literal["phone_number", "first_name", "last_name", "email", "company", "external_id"]

_PUNCTUATION: Final = re.compile(r"[\W_]+")


def plain(header: str) -> str:
    """Return a column's name without case, accents, spaces and punctuation."""
    letters = unicodedata.normalize("NFKD", header.casefold())
    return _PUNCTUATION.sub("", "".join(letter for letter in letters if not unicodedata.combining(letter)))


_NAMES: Final[Mapping[Field, str]] = {
    # English first, and in it the plainest name: of several columns the first name here wins.
    "phone_number": """
        phone number|phone|phone no|mobile|mobile number|mobile phone|mobile no|cell|cell phone|cell number|telephone|
        telephone number|tel|contact number|msisdn|primary phone|phone 1|phone 1 value|e164|whatsapp|
        home phone|business phone|work phone|
        Telefonnummer|Telefon|Mobilnummer|Handynummer|Handy|Mobil|Mobiltelefon|Rufnummer|Tel.-Nr.|
        téléphone|numéro de téléphone|téléphone portable|téléphone mobile|portable|
        teléfono|número de teléfono|teléfono móvil|móvil|celular|
        telefone|número de telefone|celular|telemóvel|
        telefono|numero di telefono|cellulare|numero cellulare|
        telefoonnummer|telefoon|mobiel|mobiele nummer|gsm|
        telefonnummer|mobilnummer|mobiltelefon|puhelin|puhelinnumero|matkapuhelin|
        numer telefonu|telefon komórkowy|komórka|telefonní číslo|telefónne číslo|telefonszám|mobilszám|
        număr de telefon|telefon numaras\u0131|cep telefonu|gsm no|
        телефон|номер телефона|мобильный|мобильный телефон|номер телефону|мобільний|телефонен номер|
        τηλέφωνο|κινητό|αριθμός τηλεφώνου|
        هاتف|الهاتف|رقم الهاتف|جوال|رقم الجوال|טלפון|מספר טלפון|נייד|
        फ़ोन|फ़ोन नंबर|मोबाइल|मोबाइल नंबर|nomor telepon|telepon|no hp|nomor hp|số điện thoại|điện thoại|
        เบอร์โทร|เบอร์โทรศัพท์|โทรศัพท์|
        電話|電話番号|携帯|携帯電話|携帯番号|电话|电话号码|手机|手机号|手机号码|電話號碼|手機|手機號碼|전화|전화번호|휴대폰|휴대전화|핸드폰|
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
}

NAMES: Final[Mapping[Field, tuple[str, ...]]] = MappingProxyType(
    {field: tuple(dict.fromkeys(filter(None, map(plain, text.split("|"))))) for field, text in _NAMES.items()}
)
"""The names of each field's column as `plain` writes them; of several the first one wins."""

LAST_NAMES_BESIDE: Final[Mapping[str, str]] = MappingProxyType(
    {"vorname": "name", "prenom": "nom", "voornaam": "naam", "prenume": "nume"}
)
"""Names that mean a last name only beside this column for the first name; alone they may be whole names."""


def usual_field(header: str) -> Field | None:
    """Return the field whose column usually has this name; None if it is none's."""
    return _FIELDS_BY_NAME.get(plain(header))


_FIELDS_BY_NAME: Final[Mapping[str, Field]] = {name: field for field in get_args(Field) for name in NAMES[field]}


def fields_of_headers(headers: Sequence[str]) -> Mapping[str, Field]:
    """Return which columns of a list are fields by the usual names, by their headers.

    Of several columns the one with the plainest name is the field.
    """
    names = {plain(header): header for header in reversed(headers)}
    found: dict[str, Field] = {}
    for field in get_args(Field):
        name = next((name for name in NAMES[field] if name in names), None)
        if name is not None:
            found[names[name]] = field
    beside = next((LAST_NAMES_BESIDE[name] for name in names if name in LAST_NAMES_BESIDE), None)
    if beside in names and "last_name" not in found.values():
        found.setdefault(names[beside], "last_name")
    return found
