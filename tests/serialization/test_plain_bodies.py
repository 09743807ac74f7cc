"""Bodies that are read by the column are read as value by value; all others are left to that."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from outreach import InvalidRequest
from outreach.http import parse_json, read_sms_campaign
from outreach.models import PreparedRecipient
from outreach.models.metadata import MAX_DEPTH
from outreach.server_support import prepare_recipient, read_simple_body

REGIONS = [None, "US", "DE"]
TEXTS = [
    "",
    "Ada",
    "Zoë",
    "Zoe\u0308",
    "n\n\u0303",
    "\u2126",
    "李",
    "a:b",
    'say "x": y',
    " :",
    "\x7f",
    "😀",
    "a\\b",
    None,
]
NUMBERS = ["+14155550102", "4155550102", "+49 (0)30 123456", "0044 20 7946 0958", "x", "1", "+1 415-0 ", "-0"]
VALUES: list[Any] = [*TEXTS, 0, -1, True, False, 2**63 - 1, -(2**63), [1, {"a": None}], {"a": {"b": 1}}, [], {}]
SPOILED: list[Any] = [1.5, 1.0, 2**63, 10**30, -(2**63) - 1, [1.5], {"a": {"b": 2**63}}, "\x00", "\ud800", [], {}]
FIELDS: dict[str, list[Any]] = {
    "sms_rate_per_minute": [60, 0, 60.0],
    "description": TEXTS,
    "other": [[], [1, {"a": 0}], {"b": [{}]}, 0, 1.5],
    "csv_column_headers": [["a", "b"], [1]],
}


def written(document: Any) -> bytes:
    """Return a document as JSON; what no UTF-8 can hold becomes an escape."""
    return json.dumps(document).encode()


def body(*contacts: Any, **fields: Any) -> bytes:
    """Return a body with these contacts."""
    return written({"name": "n", "message_body": "hi", "recipients": list(contacts), **fields})


def the_long_way(raw: bytes, region: str | None) -> tuple[Any, Sequence[PreparedRecipient]] | None:
    """Return what value by value comes out of a body; None where it is refused."""
    try:
        campaign, recipients = read_sms_campaign(parse_json(raw), this_year=2026)
    except InvalidRequest:
        return None
    return campaign, [prepare_recipient(recipient, region) for recipient in recipients]


def at_once(raw: bytes, region: str | None) -> tuple[Any, Sequence[PreparedRecipient]] | None:
    """Return what is read of a body by the column; None where it is left to the long way."""
    plain = read_simple_body(raw)
    if plain is None:
        return None
    try:
        campaign, _ = read_sms_campaign(plain.head, this_year=2026)
    except InvalidRequest:
        return None
    return campaign, [contact for chunk in plain.chunks(region, size=3) for contact in chunk]


def a_contact(draw: random.Random, *, spoiled: float) -> Any:
    """Return a contact, somewhat less than well formed now and then."""
    contact: dict[str, Any] = {"phone_number": draw.choice(NUMBERS)}
    for name in ("first_name", "last_name", "email", "company", "city"):
        if draw.random() < 0.5:
            contact[name] = draw.choice(TEXTS)
    if draw.random() < 0.3:
        contact["external_id"] = draw.choice(["crm-7", "é" * 255, None, "x" * 255, *([""] if spoiled else [])])
    if draw.random() < 0.7:
        names = draw.sample(["plan", "n", "a:b", 'x":', "Zoë", "Zoe\u0308"], draw.randrange(4))
        contact["custom_variables"] = {name: draw.choice(VALUES) for name in names}
    if draw.random() < spoiled:
        where = draw.choice([contact, contact.get("custom_variables") or contact])
        where[draw.choice([*where, "new"])] = draw.choice(SPOILED)
    return contact if draw.random() > spoiled / 4 else draw.choice(SPOILED)


def a_body(draw: random.Random) -> bytes:
    """Return a body, with a mistake in it now and then: of a value, or of a byte."""
    spoiled = draw.choice([0, 0, 0.1])
    document: dict[str, Any] = {"name": "n", "message_body": draw.choice(["hi {{x}}", "a: b"])}
    document["recipients"] = [a_contact(draw, spoiled=spoiled) for _ in range(draw.randrange(8))]
    for name, values in FIELDS.items():
        if draw.random() < 0.2:
            document[name] = draw.choice(values)
    separators = draw.choice([(",", ":"), (", ", ": "), (" ,", "\n: ")])
    text = json.dumps(document, ensure_ascii=draw.random() < 0.5, separators=separators)
    raw = text.encode(errors="surrogatepass")
    if draw.random() < 0.2:
        at = draw.randrange(len(raw))
        raw = raw[:at] + draw.choice([b"", b"0", b"-0", b":", b'"', b"{}", b'"a":1,', b" ", b"\xff", b"."]) + raw[at:]
    if draw.random() < 0.1:
        raw = raw.replace(b'"plan"', b'"n"').replace(b'"first_name"', b'"email"')
    return raw


def test_what_is_read_at_once_is_read_the_long_way_with_the_same_result() -> None:
    """Twenty thousand bodies, many with something wrong: what is taken at once is the same, value for value."""
    draw = random.Random(5)
    taken = refused = 0
    for _ in range(20_000):
        raw, region = a_body(draw), draw.choice(REGIONS)
        found, wanted = at_once(raw, region), the_long_way(raw, region)
        refused += wanted is None
        if found is not None:
            taken += 1
            assert found == wanted, raw
    # Most of those that are right are taken; and there was much to be found.
    assert taken > (20_000 - refused) * 2 / 3
    assert refused > 3_000


@pytest.mark.parametrize(
    "contact",
    [
        {"phone_number": "+14155550102"},
        {"phone_number": "x", "first_name": None, "custom_variables": {}},
        {"phone_number": "1", "email": "a:b", "custom_variables": {"n": 0, "ok": True, "url": "https://example.com"}},
        {"phone_number": "1", "custom_variables": {"n": [1, {"a": {}}], "of": {"a": [], "b": None}}},
        {"phone_number": "1", "city": "London", "score": 1.5, "tags": [{"a": 1}]},
        {"phone_number": "1", "external_id": "crm-7"},
        {"phone_number": "1", "external_id": None},
    ],
)
def test_what_is_common_is_read_at_once(contact: dict[str, Any]) -> None:
    """Texts with colons, numbers, and fields that the interface does not have are nothing unusual."""
    for raw in (body(contact), body(contact, business_hours_config=None, csv_column_headers=["a"])):
        found = at_once(raw, "US")
        assert found is not None
        assert found == the_long_way(raw, "US")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"\xef\xbb\xbf" + body({"phone_number": "1"}),
        body(),
        body({"phone_number": ""}),
        body({"phone_number": "1", "external_id": ""}),
        body({"phone_number": "1", "external_id": "x" * 256}),
        body({"phone_number": "1", "external_id": 7}),
        body({"phone_number": "a\x00"}),
        body({"phone_number": "1", "first_name": "\ud800"}),
        body({"phone_number": "1", "custom_variables": None}),
        body({"phone_number": "1", "custom_variables": {"n": 1.10}}),
        body({"phone_number": "1", "custom_variables": {"n": 2**63}}),
        body({"phone_number": "1", "custom_variables": {"n": 7}}).replace(b"7", b"-0"),
        body({"phone_number": "1", "custom_variables": {"n": [1, {"a": 1.5}]}}),
        body({"phone_number": "1", "first_name": "a:b"}).replace(b"a:b", b"a\\u003ab"),
        body({"phone_number": "1", "city": {"name": 7}}).replace(b'"name": 7', b'"name": 7, "name": 7'),
        body({"phone_number": "1"}, sms_rate_per_minute=60.0),
        body({"phone_number": "1"}).replace(b'"phone_number"', b'"phone_number": "2", "phone_number"'),
        body({"phone_number": "1"}).replace(b'"name"', b'"name" : "m", "name"'),
        body({"phone_number": "1", "custom_variables": {"a": 1, "b": 2}}).replace(b'"b"', b'"a"'),
    ],
)
def test_what_is_wrong_or_unusual_is_left_to_the_long_way(raw: bytes) -> None:
    """Nothing is rounded, dropped or taken that reading value by value keeps or refuses."""
    assert read_simple_body(raw) is None


@pytest.mark.parametrize("escaped", [False, True])
def test_texts_are_composed_whichever_way_they_are_written(escaped: bool) -> None:
    """As characters and as escapes; numbers stay as they were supplied."""
    contact = {
        "phone_number": "+1\u00a04155550102\u0308",
        "first_name": "Jose\u0301",
        "custom_variables": {"Gro\u0308ße": ["n\u0303"]},
    }
    raw = json.dumps({"name": "n", "message_body": "hi", "recipients": [contact]}, ensure_ascii=escaped).encode()
    found = at_once(raw, "US")
    assert found is not None
    assert found == the_long_way(raw, "US")
    ((person,),) = (found[1],)
    assert (person.phone_number, person.first_name) == (contact["phone_number"], "José")
    assert person.custom_variables == '{"Größe":["ñ"]}'


def test_what_nests_more_deeply_than_anything_may_is_left_to_the_long_way() -> None:
    """How deep a parser goes is its own matter."""
    deep: Any = 1
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    for raw in (
        body({"phone_number": "1"}, other=deep),
        body({"phone_number": "1", "custom_variables": {"deep": deep}}),
    ):
        found = at_once(raw, None)
        assert found is not None
        assert found == the_long_way(raw, None)
        assert read_simple_body(raw.replace(b"[[[", b"[[[[").replace(b"]]]", b"]]]]")) is None
