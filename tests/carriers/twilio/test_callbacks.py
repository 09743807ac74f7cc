from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes, urlencode

import attrs
import pytest

from outreach.models.reports import MessageReport
from outreach.models.states import MessageStatus
from outreach.protocols.adapter import Callback, CallbackEvent, CallbackRefused, InboundMessageEvent
from outreach.providers.carriers.twilio import ADAPTER
from outreach.providers.carriers.twilio.callbacks import STATUSES
from outreach.providers.carriers.twilio.signature import verified_fields
from outreach.testing.builders import NOW, WORKSPACE_ID
from tests.carriers.junk import JunkRules
from tests.carriers.kit import CALLBACK_URL, SECONDS_TO_PACIFIC_MIDNIGHT, callback, connection
from tests.carriers.twilio.given import ACCOUNT_SID, CREDENTIALS, SHARED_SECRET, SID, TOKEN, signed

WITH_DISPATCH = f"{CALLBACK_URL}?dispatch=d-1"
STATUS = {
    "AccountSid": ACCOUNT_SID,
    "ApiVersion": "2010-04-01",
    "From": "+14155550199",
    "MessageSid": SID,
    "MessageStatus": "delivered",
    "SmsSid": SID,
    "SmsStatus": "delivered",
    "To": "+14155550100",
}
INBOUND = {
    "AccountSid": ACCOUNT_SID,
    "Body": "Yes & no, 50 %",
    "From": "+14155550100",
    "MessageSid": SID,
    "NumMedia": "0",
    "NumSegments": "1",
    "SmsMessageSid": SID,
    "SmsSid": SID,
    "SmsStatus": "received",
    "To": "+14155550199",
}


def _read(coming: Callback, **credentials: str) -> CallbackEvent:
    (event,) = ADAPTER.read(connection({**CREDENTIALS, **credentials}), coming)
    return event


def _report(coming: Callback) -> MessageReport:
    content = _read(coming).content
    assert isinstance(content, MessageReport)
    return content


class TestTwilioJunk(JunkRules):
    """Forms of any content."""

    adapter = ADAPTER
    credentials = CREDENTIALS
    headers = ("x-twilio-signature", "x-twilio-webhooks-signature-settings")
    template = STATUS

    def write(self, event: Mapping[str, Any]) -> bytes:
        """A form holds texts alone."""
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in event.items()}
        return urlencode(texts).encode()

    def sign(self, body: bytes) -> Callback:
        """Sign a form; what is none is signed as it stands, by its hash."""
        try:
            return signed(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict"))
        except ValueError:
            url = f"{CALLBACK_URL}?bodySHA256={hashlib.sha256(body).hexdigest()}"
            return attrs.evolve(signed({}, url=url), body=body, headers={**_json_headers(url)})


def _json_headers(url: str) -> dict[str, str]:
    digest = hmac.new(TOKEN.encode(), url.encode(), hashlib.sha1).digest()
    return {"content-type": "application/json", "x-twilio-signature": base64.b64encode(digest).decode()}


def test_the_published_vector_is_verified() -> None:
    """https://www.twilio.com/docs/usage/webhooks/webhooks-security: the example of the page."""
    fields = {
        "CallSid": "CA1234567890ABCDE",
        "Caller": "+14158675309",
        "Digits": "1234",
        "From": "+14158675309",
        "To": "+18005551212",
    }
    coming = callback(
        urlencode(fields).encode(),
        {"x-twilio-signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8="},
        url="https://mycompany.com/myapp.php?foo=1&bar=2",
    )
    assert verified_fields(coming, {**CREDENTIALS, "auth_token": "12345"}) == fields
    for secret in ("12346", "", "12345 "):
        with pytest.raises(CallbackRefused):
            verified_fields(coming, {**CREDENTIALS, "auth_token": secret})


def test_a_status_is_a_report_of_its_dispatch() -> None:
    """The dispatch id comes back in the signed address; the event is told by message and status."""
    event = _read(signed(STATUS, url=WITH_DISPATCH))
    assert event == CallbackEvent(
        event_id=f"{SID}:delivered",
        content=MessageReport(
            workspace_id=WORKSPACE_ID,
            provider="twilio",
            dispatch_id="d-1",
            provider_id=SID,
            status=MessageStatus.DELIVERED,
            at=NOW,
            from_number="+14155550199",
            raw=STATUS,
        ),
    )
    assert _report(signed(STATUS)).dispatch_id is None


@pytest.mark.parametrize("sender", ["Acme", "12345", "whatsapp:+14155550199", "+1415555019900000"])
def test_a_receipt_names_a_number_or_nothing(sender: str) -> None:
    """Only a number is kept for a contact."""
    assert _report(signed({**STATUS, "From": sender})).from_number is None


@pytest.mark.parametrize(("status", "known"), STATUSES.items())
def test_each_status_has_its_word(status: str, known: MessageStatus) -> None:
    """Twilio's statuses of outbound messages, in the engine's words; only a failure has a reason."""
    report = _report(signed({**STATUS, "MessageStatus": status}))
    assert report.status is known
    assert (report.reason is not None) is (known is MessageStatus.FAILED)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("30003", "unreachable"),
        ("30006", "invalid_number"),
        ("21610", "opted_out"),
        ("1", "rejected"),
        ("", "rejected"),
    ],
)
def test_a_failure_has_its_reason(code: str, reason: str) -> None:
    """The code's class; what the table lacks is `rejected`."""
    report = _report(signed({**STATUS, "MessageStatus": "undelivered", "ErrorCode": code}))
    assert (report.reason, report.error_code) == (reason, code or None)


@pytest.mark.parametrize(
    ("code", "seconds"),
    [
        ("30022", 60.0),
        ("30023", SECONDS_TO_PACIFIC_MIDNIGHT),
        ("30027", SECONDS_TO_PACIFIC_MIDNIGHT),
        ("63038", 3600.0),
        ("30001", None),
    ],
)
def test_a_limit_in_a_receipt_names_its_reset(code: str, seconds: float | None) -> None:
    """The queue of a sender that is full says nothing of the account."""
    report = _report(signed({**STATUS, "MessageStatus": "undelivered", "ErrorCode": code}))
    assert (report.reason, report.retry_after_seconds) == ("rate_limited", seconds)


def test_a_status_that_is_new_is_no_error() -> None:
    """It is kept, once, and says nothing: a refusal would be called back again and again."""
    event = _read(signed({**STATUS, "MessageStatus": "pondering"}))
    assert (event.event_id, event.content) == (f"{SID}:pondering", None)


def test_parameters_that_are_new_do_not_matter() -> None:
    """Twilio may add some at any time."""
    assert _report(signed({**STATUS, "NewParameter": "x"})).status is MessageStatus.DELIVERED


def _glued(fields: dict[str, str], name: str, *more: str) -> dict[str, str]:
    """Cut a form up anew: the next fields become the end of a value, and what is signed stays the same."""
    kept = {key: value for key, value in fields.items() if key not in more}
    return {**kept, name: fields[name] + "".join(key + fields[key] for key in more)}


@pytest.mark.parametrize(
    ("fields", "name", "more"),
    [
        ({**INBOUND, "OptOutType": "START"}, "MessageSid", ["NumMedia"]),
        ({**INBOUND, "FromCountry": "US"}, "From", ["FromCountry"]),
        ({**INBOUND, "From": "whatsapp:+14155550100", "FromCountry": "US"}, "From", ["FromCountry"]),
        ({**INBOUND, "ToCountry": "US"}, "To", ["ToCountry"]),
        (INBOUND, "SmsStatus", ["To"]),
        ({**INBOUND, "OptOutType": "STOP"}, "OptOutType", ["SmsMessageSid"]),
        (INBOUND, "Body", ["From"]),
        (STATUS, "MessageSid", ["MessageStatus"]),
        (STATUS, "MessageStatus", ["SmsSid"]),
        ({**STATUS, "ErrorCode": "30003"}, "ErrorCode", ["From"]),
        ({**STATUS, "ToCountry": "US"}, "To", ["ToCountry"]),
        ({key: value for key, value in INBOUND.items() if key != "MessageSid"}, "SmsSid", ["SmsStatus"]),
        ({**INBOUND, "From": "AMAZON", "FromCity": ""}, "From", ["FromCity"]),
        ({**INBOUND, "From": "ACM", "FromCity": ""}, "From", ["FromCity"]),
        ({**INBOUND, "From": "729", "FromZip": "1"}, "From", ["FromZip"]),
        ({**INBOUND, "From": "AMAZON"}, "From", ["MessageSid"]),
        ({**INBOUND, "From": "messenger:123"}, "From", ["MessageSid"]),
        ({**INBOUND, "To": "rcs:my agent", "ToCity": "SAN DIEGO"}, "To", ["ToCity"]),
        ({**INBOUND, "To": "rcs:an_agent", "WaId": "1"}, "To", ["WaId"]),
        ({**STATUS, "ErrorCode": "30003", "ErrorMessage": "x"}, "ErrorCode", ["ErrorMessage"]),
        ({**STATUS, "ErrorCode": "null"}, "ErrorCode", ["From"]),
    ],
)
def test_a_callback_that_is_cut_up_anew_is_refused(fields: dict[str, str], name: str, more: list[str]) -> None:
    """Names and values are signed without a border: a captured signature fits other fields, and is worth nothing."""
    captured, forged = signed(fields), signed(_glued(fields, name, *more))
    assert forged.headers["x-twilio-signature"] == captured.headers["x-twilio-signature"]
    assert _read(captured).content is not None
    with pytest.raises(CallbackRefused):
        _read(attrs.evolve(captured, body=forged.body))


@pytest.mark.parametrize(
    "changes",
    [
        {"From": "somebody else"},
        {"From": "+somebody"},
        {"From": " "},
        {"From": "+1415555010a"},
        {"To": "AMAZON"},
        {"From": ""},
        {"From": "+"},
        {"From": "+14155550100\n"},
        {"To": ""},
        {"To": "messenger:"},
        {"SmsStatus": "receivedNumMedia0"},
        {"MessageSid": "SM1"},
        {"MessageSid": "XX" + SID[2:]},
        {"MessageSid": SID + "0"},
    ],
)
def test_what_is_not_of_its_form_is_refused(changes: dict[str, str]) -> None:
    """Nothing is made of an identifier, an address or a status that Twilio does not write."""
    with pytest.raises(CallbackRefused, match=next(iter(changes))):
        _read(signed({**INBOUND, **changes}))


@pytest.mark.parametrize(
    "address",
    [
        *("+14155550100", "72975", "whatsapp:+14155550100", "messenger:1234567890", "viber:+14155550100"),
        *("rcs:an_agent-1", "rcs:my agent", "rcs:Tony", "rcs:Fromage"),
    ],
)
def test_numbers_short_codes_and_channels_are_addresses(address: str) -> None:
    """https://www.twilio.com/docs/messaging/channels."""
    content = _read(signed({**INBOUND, "From": address, "To": address})).content
    assert isinstance(content, InboundMessageEvent)
    assert (content.from_number, content.to) == (address, address)


@pytest.mark.parametrize("name", ["AMAZON", "PayPal", "7ELEVEN", "1800FLOWERS", "An office", "A&B", "somebody"])
def test_a_message_may_come_from_a_name(name: str) -> None:
    """An alphanumeric sender; what it wrote is stored."""
    content = _read(signed({**INBOUND, "From": name, "FromCountry": "US"})).content
    assert isinstance(content, InboundMessageEvent)
    assert content.from_number == name


@pytest.mark.parametrize("code", ["null", "None", "0", "30003.0", "-", "1" * 11, "unknown error"])
def test_a_code_that_is_none_does_not_cost_the_receipt(code: str) -> None:
    """It counts without the code."""
    report = _report(signed({**STATUS, "MessageStatus": "failed", "ErrorCode": code}))
    assert (report.status, report.reason) == (MessageStatus.FAILED, "rejected")
    assert report.error_code == ("0" if code == "0" else None)


def test_a_sender_may_be_a_name() -> None:
    """Messages are also sent under names, and nothing of a receipt goes by its sender."""
    assert _report(signed({**STATUS, "From": "An office"})).status is MessageStatus.DELIVERED


@pytest.mark.parametrize("sid", [SID, "MM" + "a" * 32, "SM" + "A" * 32])
def test_the_identifiers_of_messages_are_known(sid: str) -> None:
    """`SM` or `MM`, and 32 hexadecimal digits."""
    assert _report(signed({**STATUS, "MessageSid": sid})).provider_id == sid


def test_a_message_is_an_inbound_text() -> None:
    """Who wrote what to whom; the event is told by the message."""
    assert _read(signed(INBOUND)) == CallbackEvent(
        event_id=f"{SID}:received",
        content=InboundMessageEvent(
            provider_id=SID, from_number="+14155550100", to="+14155550199", body="Yes & no, 50 %", at=NOW
        ),
    )


@pytest.mark.parametrize("keyword", ["STOP", "START", "HELP"])
def test_a_keyword_that_twilio_has_answered_is_said(keyword: str) -> None:
    """`OptOutType` comes with Advanced Opt-Out, and then Twilio has replied."""
    content = _read(signed({**INBOUND, "OptOutType": keyword})).content
    assert isinstance(content, InboundMessageEvent)
    assert (content.keyword, content.replied_by_carrier) == (keyword.lower(), True)


@pytest.mark.parametrize("written", ["%ED%A0%BD", "%ff"])
def test_a_text_that_is_no_utf8_is_taken_in(written: str) -> None:
    """Half a surrogate pair, or bytes of another encoding: a STOP in it must not be lost."""
    pairs = [(name, "STOP |" if name == "Body" else value) for name, value in INBOUND.items()]
    form = urlencode(pairs).replace("%7C", written)
    text = "".join(name + value for name, value in sorted(pairs)).replace("|", "{}")
    before, after = (part.encode() for part in text.split("{}"))
    over = CALLBACK_URL.encode() + before + unquote_to_bytes(written) + after
    digest = base64.b64encode(hmac.new(TOKEN.encode(), over, hashlib.sha1).digest()).decode()
    headers = {"content-type": "application/x-www-form-urlencoded", "x-twilio-signature": digest}
    content = _read(callback(form.encode(), headers)).content
    assert isinstance(content, InboundMessageEvent)
    assert content.body.startswith("STOP \ufffd")
    content.body.encode()


def test_a_message_of_media_alone_has_no_text() -> None:
    """Its body is empty."""
    content = _read(signed({**INBOUND, "Body": "", "NumMedia": "1"})).content
    assert isinstance(content, InboundMessageEvent)
    assert content.body == ""


@pytest.mark.parametrize(
    "fields", [{}, {"MessageStatus": "sent"}, {**STATUS, "MessageSid": ""}, {**STATUS, "MessageSid": "S" * 999}]
)
def test_an_event_without_a_message_is_refused(fields: dict[str, str]) -> None:
    """Signed, but nothing that could be told from others."""
    with pytest.raises(CallbackRefused, match=r"MessageSid|SmsSid"):
        _read(signed(fields))


def test_values_of_a_repeated_name_are_sorted_and_listed_once() -> None:
    """What is signed has each value of a name once, in order."""
    pairs = [*STATUS.items(), ("MediaUrl", "b"), ("MediaUrl", "a"), ("MediaUrl", "b"), ("Empty", "")]
    assert _read(signed(pairs)).content is not None


@pytest.mark.parametrize(
    ("url", "signed_url"),
    [
        ("https://hooks.example.com/w?dispatch=d", "https://hooks.example.com:443/w?dispatch=d"),
        ("https://hooks.example.com:443/w?dispatch=d", "https://hooks.example.com/w?dispatch=d"),
        ("https://hooks.example.com:8443/w", "https://hooks.example.com/w"),
        ("http://hooks.example.com/w", "http://hooks.example.com:80/w"),
        ("https://[2001:db8::1]/w", "https://[2001:db8::1]:443/w"),
        ("https://[2001:db8::1]:443/w", "https://[2001:db8::1]/w"),
    ],
)
def test_the_address_is_signed_with_its_port_or_without(url: str, signed_url: str) -> None:
    """Twilio does the one or the other."""
    assert _read(signed(STATUS, url=url, signed_url=signed_url)).content is not None


@pytest.mark.parametrize(
    "signed_url",
    [
        f"{CALLBACK_URL}?dispatch=d-2",
        CALLBACK_URL,
        CALLBACK_URL.replace("https", "http"),
        "https://other.example.com/w",
    ],
)
def test_another_address_is_refused(signed_url: str) -> None:
    """The dispatch that a callback names is covered by the signature."""
    with pytest.raises(CallbackRefused):
        _read(signed(STATUS, url=WITH_DISPATCH, signed_url=signed_url))


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_shared_key_signs_too(algorithm: str) -> None:
    """With the settings header the secret is that of the shared key, and the algorithm the one it names."""
    named = f"key=webhooks_sharedkey_1,algorithm=HMAC_{algorithm.upper()}"
    coming = signed(STATUS, secret=SHARED_SECRET, algorithm=algorithm, settings=named)
    assert _read(coming, webhook_shared_secret=SHARED_SECRET).content is not None
    for credentials in ({"webhook_shared_secret": "other"}, {}):
        with pytest.raises(CallbackRefused):
            _read(coming, **credentials)


@pytest.mark.parametrize("settings", ["key=k,algorithm=HMAC_MD5", "algorithm=NONE", "key=k,algorithm=HMAC_SHA256"])
def test_a_signature_with_the_token_is_none_with_a_shared_key(settings: str) -> None:
    """The header cannot choose an algorithm that is not known, nor a secret that does not fit."""
    with pytest.raises(CallbackRefused):
        _read(signed(STATUS, settings=settings), webhook_shared_secret=SHARED_SECRET)


def test_a_body_that_is_no_form_is_signed_by_its_hash() -> None:
    """`bodySHA256` stands in the address, which is what is signed."""
    body = json.dumps(STATUS).encode()
    url = f"{CALLBACK_URL}?dispatch=d-1&bodySHA256={hashlib.sha256(body).hexdigest()}"
    coming = callback(body, _json_headers(url), url=url)
    assert _report(coming).dispatch_id == "d-1"
    for changed in (body + b" ", b"{}", b""):
        with pytest.raises(CallbackRefused):
            _read(attrs.evolve(coming, body=changed))


@pytest.mark.parametrize("address", [CALLBACK_URL, WITH_DISPATCH, f"{CALLBACK_URL}?tenant=5"])
@pytest.mark.parametrize("end", ["", "&x="])
def test_a_text_that_holds_the_hash_of_another_body_is_no_part_of_the_address(address: str, end: str) -> None:
    """A signature that was captured from somebody's message signs no receipt: fields are no part of an address."""
    forged = json.dumps({**STATUS, "MessageStatus": "failed", "ErrorCode": "30005"}).encode()
    text = f"&bodySHA256={hashlib.sha256(forged).hexdigest()}{end}"
    captured = signed({**INBOUND, "Body": text}, url=address)
    glued = "".join(name + value for name, value in sorted({**INBOUND, "Body": text}.items()))
    headers = {**captured.headers, "content-type": "application/json"}
    for url in (address + glued, f"{address}?{glued}", f"{address}&{glued}"):
        with pytest.raises(CallbackRefused):
            _read(attrs.evolve(captured, url=url, body=forged, headers=headers))


@pytest.mark.parametrize("query", ["tenant=5", "dispatch=d-1&x=1", "dispatch=d-1&dispatch=d-2", "bodySHA256=0", "x"])
def test_an_address_with_parameters_that_are_nobody_s_is_refused(query: str) -> None:
    """Which parameters belong to it is decided before, and not by what comes."""
    with pytest.raises(CallbackRefused):
        _read(signed(STATUS, url=f"{CALLBACK_URL}?{query}"))


@pytest.mark.parametrize(
    "changes",
    [
        {"body": urlencode({**STATUS, "MessageStatus": "failed"}).encode()},
        {"body": urlencode(STATUS).encode() + b"&Extra=1"},
        {"body": b""},
        {"body": b"\xff"},
        {"body": b"a=%ff"},
        {"headers": {}},
        {"headers": {"x-twilio-signature": ""}},
        {"headers": {"x-twilio-signature": "not base64 !"}},
        {"headers": {"x-twilio-signature": base64.b64encode(b"x" * 20).decode()}},
    ],
)
def test_what_twilio_has_not_signed_is_refused(changes: dict[str, Any]) -> None:
    """A changed body, a missing or wrong signature: nothing of it is read."""
    with pytest.raises(CallbackRefused):
        _read(attrs.evolve(signed(STATUS, url=WITH_DISPATCH), **changes))
    with pytest.raises(CallbackRefused):
        _read(signed(STATUS, secret="another token"))


MEDIA_URL = f"https://api.twilio.com/2010-04-01/Accounts/{ACCOUNT_SID}/Messages/MM{'0' * 32}/Media/ME{'1' * 32}"


def test_the_links_to_media_are_kept() -> None:
    """In order; a link that another split of the signed text may have made is left out, and counted."""
    fields = {**INBOUND, "NumMedia": "3", "MediaUrl0": MEDIA_URL, "MediaUrl1": MEDIA_URL[:-1] + "2"}
    content = _read(signed({**fields, "MediaUrl2": f"{MEDIA_URL}MessageSid{SID}", "Body": ""})).content
    assert isinstance(content, InboundMessageEvent)
    assert (content.media, content.body) == ((MEDIA_URL, MEDIA_URL[:-1] + "2"), "")
    assert content.media_left_out == 1
    plain = _read(signed(INBOUND)).content
    assert isinstance(plain, InboundMessageEvent)
    assert (plain.media, plain.media_left_out) == ((), 0)


@pytest.mark.parametrize(
    "link",
    [
        *("https://media.example.com/1.jpg", "http://media.example.com/1?Signature=x~y&Expires=1", f"{MEDIA_URL}.jpg"),
        *(MEDIA_URL.replace("/ME", "/me").upper().replace("HTTPS", "https"), "HTTPS://example.com/a"),
        "https://example.com/" + "a" * 1980,
    ],
)
def test_a_link_to_media_may_have_any_host_and_path(link: str) -> None:
    """Twilio may keep media elsewhere."""
    content = _read(signed({**INBOUND, "MediaUrl0": link, "MediaUrl10": MEDIA_URL, "MediaUrl9": MEDIA_URL})).content
    assert isinstance(content, InboundMessageEvent)
    assert (content.media, content.media_left_out) == ((link, MEDIA_URL, MEDIA_URL), 0)


@pytest.mark.parametrize(
    "link",
    [
        *("javascript:alert(1)", "ftp://example.com/1", "https://", "https:///x", "https://example.com/a b", "1.jpg"),
        *("https://example.com/\x1b[2J", "https://example.com/\u202e", "https://example.com/" + "a" * 2000),
    ],
)
def test_what_is_no_link_to_media_is_left_out_and_counted(link: str) -> None:
    """The message counts all the same."""
    content = _read(signed({**INBOUND, "MediaUrl0": link, "MediaUrl1": MEDIA_URL})).content
    assert isinstance(content, InboundMessageEvent)
    assert (content.media, content.media_left_out) == ((MEDIA_URL,), 1)
