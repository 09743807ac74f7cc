from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.protocols.adapter import CallbackRefused
from outreach.providers.http.callback_bodies import json_event


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"STOP \ud83d", "STOP \ufffd"),
        (r"\uDE00STOP", "\ufffdSTOP"),
        (r"\ud83d\ud83d\ude00", "\ufffd\N{GRINNING FACE}"),
        (r"\ud83d\ude00", "\N{GRINNING FACE}"),
        (r"\\ud83d \ud83d", "\\ud83d \ufffd"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\ud83d\n", "\ufffd\n"),
    ],
)
def test_half_a_pair_becomes_a_replacement_character(written: str, read: str) -> None:
    """A text that was cut in the midst of an emoji is a text all the same: a STOP in it counts."""
    assert json_event(f'{{"text": "{written}"}}'.encode()) == {"text": read}


@given(st.text(st.characters(codec=None) | st.sampled_from("\\\ud83d\ude00ud8")))
def test_any_text_is_read_so_that_it_can_be_stored(text: str) -> None:
    """Whatever is escaped, what is whole stays as it is."""
    read = json_event(json.dumps({"text": text}).encode())["text"]
    read.encode()
    whole = json.loads(json.dumps(text)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert [one for one in read if one != "\ufffd"] == [one for one in whole if one != "\ufffd"]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'"\\ud83d"', b'{"a": "\\ud83d"', b'{"a": "\xed\xa0\xbd"}', b"[" * 100_000]
)
def test_what_is_no_object_in_utf8_is_refused(body: bytes) -> None:
    """Half a pair makes no other error a lesser one."""
    with pytest.raises(CallbackRefused):
        json_event(body)
