"""The meaning of columns."""

from __future__ import annotations

from typing import Any

import click
import pytest

from outreach.server_support import NAMES, plain
from outreach_server.cli.lists.options import ColumnMapping
from outreach_server.lists.contact_columns import read_columns, without_foreign_zone
from outreach_server.lists.errors import UnreadableList


def test_columns_go_by_their_usual_names() -> None:
    """Case, spaces and punctuation do not matter; the rest are variables of their own names."""
    columns = read_columns([" MOBILE-number ", "Given Name", "SURNAME", "E-mail", "Organisation", "Order ID"])
    assert columns.phone == 0
    assert dict(columns.fields) == {1: "first_name", 2: "last_name", 3: "email", 4: "company"}
    assert columns.variables == ((5, "Order ID"),)
    assert columns.headers[0] == "MOBILE-number"


@pytest.mark.parametrize(
    "header",
    [
        ["Telefonnummer", "Vorname", "Nachname", "E-Mail-Adresse", "Firma"],
        ["Handy", "Vorname", "Name", "E-Mail", "Unternehmen"],
        ["Téléphone", "Prénom", "Nom", "Adresse e-mail", "Société"],
        ["N° de téléphone portable".replace("N° de ", ""), "Prénom", "Nom de famille", "Courriel", "Entreprise"],
        ["Teléfono", "Nombre", "Apellidos", "Correo electrónico", "Empresa"],
        ["Telemóvel", "Primeiro nome", "Sobrenome", "E-mail", "Empresa"],
        ["Cellulare", "Nome", "Cognome", "Email", "Azienda"],
        ["Telefoonnummer", "Voornaam", "Naam", "E-mailadres", "Bedrijf"],
        ["Numer telefonu", "Imię", "Nazwisko", "Adres e-mail", "Firma"],
        ["Telefon", "Förnamn", "Efternamn", "E-post", "Företag"],
        ["Cep telefonu", "Ad", "Soyad", "E-posta", "Şirket"],
        ["Телефон", "Имя", "Фамилия", "Почта", "Компания"],
        ["Τηλέφωνο", "Όνομα", "Επώνυμο", "Email", "Εταιρεία"],
        ["رقم الهاتف", "الاسم الأول", "اسم العائلة", "البريد الإلكتروني", "الشركة"],
        ["טלפון", "שם פרטי", "שם משפחה", "דוא״ל", "חברה"],
        ["電話", "名", "姓", "メール", "会社"],
        ["手机号码", "名", "姓", "邮箱", "公司"],
        ["전화번호", "이름", "성", "이메일", "회사"],
        ["फ़ोन नंबर", "पहला नाम", "उपनाम", "ईमेल", "कंपनी"],
        ["numero", "nome", "cognome", "mail", "ditta"],
    ],
)
def test_columns_are_known_in_many_languages(header: list[str]) -> None:
    """Accents and case do not matter."""
    for written in (header, [name.upper() for name in header]):
        columns = read_columns(written)
        assert columns.phone == 0
        assert dict(columns.fields) == {1: "first_name", 2: "last_name", 3: "email", 4: "company"}
        assert columns.variables == ()


def test_no_name_stands_for_two_fields() -> None:
    """And each is written as headers are compared."""
    names = [(name, field) for field, known in NAMES.items() for name in known]
    assert len(dict(names)) == len(names)
    assert all(plain(name) == name for name, _ in names)


def test_a_name_alone_may_be_a_whole_one() -> None:
    """It is a last name only beside a first name of its language."""
    assert dict(read_columns(["Telefon", "Name"]).fields) == {}
    assert dict(read_columns(["Telefon", "Name", "Vorname"]).fields) == {2: "first_name", 1: "last_name"}
    assert dict(read_columns(["Phone", "Name", "First name"]).fields) == {2: "first_name"}


def test_of_several_phone_columns_the_mobile_one_wins() -> None:
    """Then the plainest name. The others are variables, which is said; --map decides otherwise."""
    header = ["Number", "Mobile", "Phone"]
    columns = read_columns(header)
    assert columns.phone == 1
    assert columns.notes == (
        "'Mobile' is the phone number, and where it is empty 'Phone'; 'Number' may be one too: "
        "--map phone=COLUMN reads one column alone.",
    )
    assert columns.other_phones == (2,)
    columns = read_columns(header, mapped={"phone_number": "phone"})
    assert (columns.phone, columns.notes) == (2, ())
    assert columns.other_phones == ()
    assert columns.variables == ((0, "Number"), (1, "Mobile"))
    assert read_columns(["Home phone", "Number", "Phone"]).phone == 2


@pytest.mark.parametrize(
    ("header", "order"),
    [
        (["Phone 1", "Phone 2"], ["Phone 1", "Phone 2"]),
        (["Phone 2", "Phone 1", "Phone"], ["Phone", "Phone 1", "Phone 2"]),
        (["Phone3", "Phone2", "Phone1"], ["Phone1", "Phone2", "Phone3"]),
        (["Mobile 2", "Mobile 1", "Phone 1"], ["Mobile 1", "Mobile 2", "Phone 1"]),
    ],
)
def test_the_first_of_numbered_phone_columns_wins(header: list[str], order: list[str]) -> None:
    """Wherever it stands."""
    columns = read_columns(header)
    assert [header[index] for index in (columns.phone, *columns.other_phones)] == order


def test_a_word_for_the_person_does_not_hide_a_phone_column() -> None:
    """A number of the customer is another number."""
    assert read_columns(["customer_id", "customer_phone"]).phone == 1
    assert read_columns(["customer phone", "Phone"]).phone == 1
    assert read_columns(["Home Phone", "Client Mobile"]).phone == 1
    with pytest.raises(UnreadableList, match="No column is the phone number"):
        read_columns(["customer number", "user"])


@pytest.mark.parametrize(
    "header",
    [
        "Telefon geschäftlich", "Telefon (privat)", "Telefon privat 2", "Telefonnummer dienstlich", "Tel. privat",
        "Diensthandy", "Handy-Nr. privat", "Mobil", "Festnetz", "Phone 2", "Office phone", "Home phone", "Work mobile",
        "Mobile (work)", "Daytime phone", "Patient home phone 2", "Téléphone professionnel", "Tél. domicile",
        "Teléfono del trabajo", "Telefono ufficio", "Telefone residencial", "Telefoon thuis", "Hemtelefon",
        "Telefon służbowy", "Kotipuhelin", "İş telefonu", "Рабочий телефон", "自宅電話",
    ],
)  # fmt: skip
def test_a_use_or_a_number_does_not_hide_a_phone_column(header: str) -> None:
    """It is found alone, and a column of mobile numbers is preferred."""
    assert read_columns(["Fax", header]).phone == 1
    assert read_columns([header, "Mobile"]).phone == 1


@pytest.mark.parametrize(
    "header",
    ["Fax", "Telefax privat", "Fax geschäftlich", "Office fax", "Telefon/Fax", "Office number", "Emergency phone",
     "Phone type", "Kundennummer privat", "Privat"],
)  # fmt: skip
def test_a_use_makes_no_phone_column_of_another_one(header: str) -> None:
    """Not of a fax, the number of an office, or somebody else's phone."""
    with pytest.raises(UnreadableList, match="No column is the phone number"):
        read_columns([header, "Vorname"])


def test_of_several_uses_the_mobile_one_wins() -> None:
    """Whichever comes first; the others are read where it is empty."""
    columns = read_columns(["Telefon geschäftlich", "Telefon privat", "Handy privat", "Fax"])
    assert (columns.phone, columns.other_phones) == (2, (0, 1))
    assert read_columns(["Home phone", "Office phone", "Cell"]).phone == 2
    assert read_columns(["Telefon privat", "Telefon"]).phone == 1


def test_a_country_decides_how_numbers_are_read_and_is_a_variable_too() -> None:
    """Unless --map says that no column is one."""
    columns = read_columns(["Phone", "Land"])
    assert (columns.country, columns.variables, columns.meaning(1)) == (1, ((1, "Land"),), "country, {{Land}}")
    assert read_columns(["Phone", "Land"], mapped={"country": ""}).country is None
    assert read_columns(["Phone", "Where"], mapped={"country": "where"}).country == 1


def test_columns_are_mapped_by_name_or_number() -> None:
    """The id of the application stays a variable too; no column is one that nobody is to have."""
    header = ["Phone", "Company", "Kunde", "Ref", "7"]
    columns = read_columns(header, mapped={"phone_number": "ref", "company": "", "first_name": "3", "external_id": "7"})
    assert columns.phone == 3
    assert dict(columns.fields) == {2: "first_name", 4: "external_id"}
    assert columns.variables == ((0, "Phone"), (1, "Company"), (4, "7"))
    assert [columns.meaning(index) for index in range(5)] == [
        "{{Phone}}", "{{Company}}", "first_name", "phone_number", "external_id, {{7}}",
    ]  # fmt: skip
    assert dict(read_columns(["Phone", "External ID"]).fields) == {1: "external_id"}


def test_a_header_loses_what_is_invisible() -> None:
    """Marks of another reading of the file's first bytes, and spaces that do not break."""
    assert read_columns(["\ufeffphone"]).phone == 0
    assert read_columns(["ï»¿phone"]).headers == ("phone",)
    assert read_columns(["\u00a0phone\u200b"]).headers == ("phone",)


def test_a_name_that_comes_twice_keeps_both_values() -> None:
    """No value is lost in silence."""
    columns = read_columns(["Phone", "Note", "Note", "", "Note_2"])
    assert columns.variables == ((1, "Note"), (2, "Note_2"), (4, "Note_2_2"))
    assert len(columns.notes) == 3


@pytest.mark.parametrize(
    ("header", "mapped", "problem"),
    [
        (["Name", "City"], {}, "The columns are: 'Name', 'City'. Name it with --map phone=COLUMN."),
        (["+14155550101", "Ann"], {}, "looks like a contact"),
        (["Name"], {"phone_number": "Handy"}, "There is no column 'Handy'"),
        (["Phone"], {"phone_number": "2"}, "There is no column '2'"),
        (["Phone", "phone"], {}, "Columns 1 and 2 are both called 'Phone'"),
        (["Phone", "A"], {"email": "A", "company": "a"}, "'A' is mapped to two fields"),
        (["p\0h"], {}, "--encoding utf-16-le"),
    ],
)
def test_a_header_that_does_not_say_whom_to_reach_is_refused(
    header: list[str], mapped: dict[Any, str], problem: str
) -> None:
    """The message says what there is and what to do."""
    with pytest.raises(UnreadableList) as caught:
        read_columns(header, mapped=mapped)
    assert problem in caught.value.message


@pytest.mark.parametrize("value", ["phone", "=x", "street=x", "phone=", "phone_number= "])
def test_a_mapping_that_is_none_is_wrong_usage(value: str) -> None:
    """It names the fields."""
    with pytest.raises(click.BadParameter):
        ColumnMapping().convert(value, None, None)
    assert ColumnMapping().convert("Phone= Mobile=1 ", None, None) == ("phone_number", "Mobile=1")


def test_the_place_of_a_contact_has_columns_that_are_variables_too() -> None:
    """So that texts go on naming them."""
    columns = read_columns(["Phone", "Time Zone", "ZIP", "State", "City"])
    assert dict(columns.fields) == {1: "time_zone", 2: "zip_code", 3: "state"}
    assert columns.variables == ((1, "Time Zone"), (2, "ZIP"), (3, "State"), (4, "City"))
    columns = read_columns(["Phone", "Mailing State/Province", "Mailing Zip/Postal Code", "Mailing Country"])
    assert dict(columns.fields) == {1: "state", 2: "zip_code"}
    assert columns.country == 3


@pytest.mark.parametrize(("cell", "read"), [("Eastern", False), ("EST", False), ("America/Denver", True), ("", True)])
def test_a_column_of_other_names_is_no_time_zone(cell: str, read: bool) -> None:
    """People are told; a column that they map is read all the same."""
    columns = read_columns(["Phone", "Timezone"])
    found = without_foreign_zone(columns, [["+14155550101", cell]])
    assert (dict(found.fields) == {1: "time_zone"}) is read
    assert [note for note in found.notes if f"{cell!r} is not a name such as America/New_York" in note] == (
        [] if read else list(found.notes)
    )
    assert without_foreign_zone(columns, [["", cell]], mapped={"time_zone": "Timezone"}) == columns
