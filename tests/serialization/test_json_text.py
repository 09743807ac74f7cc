from __future__ import annotations

import pytest

from outreach import InvalidRequest
from outreach.http import parse_json
from outreach.rules.segments import RawNumber, as_text
from outreach.serialization.json_parsing import MAX_VALUES, shown


def refusal(body: bytes) -> str:
    """Return what a body is refused for."""
    with pytest.raises(InvalidRequest) as caught:
        parse_json(body)
    assert [detail.path for detail in caught.value.details] == [""]
    return caught.value.message


def test_plain_values_are_plain_python() -> None:
    """What JSON can say without loss comes as it is."""
    body = '{"a": [1, -2, true, false, null, "é\\ud83d\\ude00"], "b": {}}'.encode()
    assert parse_json(body) == {"a": [1, -2, True, False, None, "é😀"], "b": {}}


@pytest.mark.parametrize(
    "written",
    ["1.0", "1.10", "1e5", "1E+5", "-0", "-0.0", "10000000000000000000000", "9223372036854775808", "1e9999999"],
)
def test_numbers_that_would_be_rounded_keep_their_characters(written: str) -> None:
    """`variables`: numbers as written."""
    assert parse_json(written.encode()) == RawNumber(written)
    assert as_text(parse_json(f'{{"n":[{written}]}}'.encode())) == f'{{"n":[{written}]}}'


@pytest.mark.parametrize("number", [0, 60, -1, 2**63 - 1, -(2**63)])
def test_integers_of_64_bit_are_integers(number: int) -> None:
    """The largest and the smallest 64-bit integer are still integers."""
    found = parse_json(str(number).encode())
    assert type(found) is int
    assert found == number


def test_a_number_of_a_hundred_thousand_digits_costs_nothing() -> None:
    """Python refuses to make an integer of so many digits; the parser does not try."""
    assert parse_json(b"9" * 100_000) == RawNumber("9" * 100_000)


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"{", "not valid JSON"),
        (b"{'a': 1}", "not valid JSON"),
        (b'{"a": 1,}', "not valid JSON"),
        (b'{"a": "\x01"}', "not valid JSON"),
        (b"[1] []", "not valid JSON"),
        (b"01", "not valid JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": Infinity}', "Infinity"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": "\xff"}', "not valid UTF-8, at byte 7"),
        (b'{"a": "\xed\xa0\x80"}', "not valid UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "not valid UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a": {"b": 1, "b": 2}}', 'names the key "b" twice'),
    ],
)
def test_what_is_no_json_is_refused_with_a_reason(body: bytes, part: str) -> None:
    """Each kind of broken body is told by name."""
    assert part in refusal(body)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_deep_nesting_is_refused(body: bytes) -> None:
    """100,000 nested brackets end in a refusal and not in a RecursionError."""
    assert "nested too deeply" in refusal(body)


def test_a_document_of_too_many_values_is_refused_before_it_is_parsed() -> None:
    """Small values take many times the memory of their text."""
    assert str(MAX_VALUES) in refusal(b"[" + b"0," * MAX_VALUES + b"0]")


def test_a_key_is_shown_short_and_printable() -> None:
    """Messages and paths never echo what could break them."""
    assert shown("plan") == "plan"
    assert shown("a\x00\ud800") == "a\\u0000\\ud800"
    assert len(shown("x" * 1000)) < 80
