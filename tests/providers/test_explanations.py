from __future__ import annotations

from importlib import import_module
from typing import Any, get_args

import pytest

from outreach.models import CARRIERS
from outreach.models.account import PROVIDERS
from outreach.models.base import Channel
from outreach.models.dispatch import FAILURE_CLASSES, FailureClass
from outreach.models.states import CallStatus
from outreach.providers.voice.elevenlabs import reasons as elevenlabs
from outreach.providers.voice.retell import reasons as retell
from outreach.providers.voice.vapi import reasons as vapi
from outreach.reasons import describe_reason, explain
from outreach.rules.explanations import FAILURE_TEXTS, OWN_CODES
from outreach.rules.settlement import TRANSIENT_FAILURES
from tests import provider_documents

_NO_FAILURES = {CallStatus.COMPLETED, CallStatus.BUSY, CallStatus.NO_ANSWER}


def table(provider: str) -> Any:
    """Return the module with a provider's explanations."""
    kind = "carriers" if PROVIDERS[provider] == "carrier" else "voice"
    return import_module(f"outreach.providers.{kind}.{provider}.explanations")


def sentences(provider: str) -> list[str]:
    """Return all that a provider's tables say."""
    rows = table(provider)
    parts = [text for _, *row in getattr(rows, "PARTS", ()) for text in row]
    return [*rows.MEANINGS.values(), *rows.ADVICE.values(), *parts]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_every_code_of_a_carrier_is_explained(carrier: str) -> None:
    """All that the adapter knows, and nothing that it does not."""
    errors = import_module(f"outreach.providers.carriers.{carrier}.errors")
    known = {*errors.FAILURES, *getattr(errors, "AMBIGUOUS", ())}
    assert set(table(carrier).MEANINGS) == known
    for code in known:
        told = explain(provider=carrier, code=code, reason=errors.FAILURES.get(code))
        assert told is not None
        assert told.source is not None


def test_every_published_code_of_vonage_is_explained() -> None:
    """The document lists them."""
    published = provider_documents.load("vonage_messages")
    assert isinstance(published, dict)
    assert set(published["x-errors"]) <= set(table("vonage").MEANINGS)


def test_every_way_of_vapi_to_fail_is_explained() -> None:
    """Of the published list, and each row is of some."""
    published = provider_documents.load("vapi_endedReason")
    failing = [reason for reason in published if vapi.end_of(reason).status not in _NO_FAILURES]
    for reason in failing:
        told = explain(provider="vapi", code=reason, reason=vapi.end_of(reason).reason)
        assert told is not None, reason
        assert told.source is not None, reason
    rows = table("vapi")
    assert set(rows.MEANINGS) <= set(failing)
    used = {next((part for part, *_ in rows.PARTS if part in reason), "") for reason in failing}
    assert {part for part, *_ in rows.PARTS} <= used


def test_every_way_of_retell_to_fail_is_explained() -> None:
    """Those that the adapter knows, and errors that it does not know yet."""
    failing = {reason for reason, end in retell.ENDS.items() if end.status not in _NO_FAILURES}
    assert failing <= set(table("retell").MEANINGS)
    told = explain(provider="retell", code="error_of_next_year", reason="provider_error")
    assert told is not None
    assert "Retell" in told.meaning


def test_every_refusal_of_elevenlabs_is_explained() -> None:
    """Those that have a code."""
    assert set(table("elevenlabs").MEANINGS) == set(elevenlabs._CODES)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_explanations_are_sentences(provider: str) -> None:
    """Of which each says something, and advice belongs to a meaning."""
    rows = table(provider)
    assert set(rows.ADVICE) <= set(rows.MEANINGS)
    assert rows.PAGE.startswith("https://")
    assert [text for text in sentences(provider) if not (text[0].isupper() and text.endswith("."))] == []


def test_every_failure_class_is_in_the_table_and_explained() -> None:
    """Whichever provider it is at, and whatever code it has."""
    assert set(FAILURE_CLASSES) == set(get_args(FailureClass)) <= set(FAILURE_TEXTS)
    for reason in FAILURE_TEXTS:
        told = explain(provider="simulator", code="nobody knows", reason=reason)
        assert told is not None
        assert told.source is None
    for code in OWN_CODES:
        assert explain(provider="twilio", code=code, reason="bad_sender") is not None


@pytest.mark.parametrize("reason", ["operator_retry", "decision_undone"])
def test_what_an_operator_decided_is_explained(reason: str) -> None:
    """It stands among the failures of a campaign, beside the codes of providers."""
    told = explain(provider="twilio", code=None, reason=reason)
    assert told is not None
    assert "operator" in told.meaning
    assert told.advice


@pytest.mark.parametrize("reason", ["not_found", "not_asked", "not_connected"])
def test_what_was_not_sent_is_explained(reason: str) -> None:
    """A request that was not sent is told among those that went wrong."""
    told = explain(provider="twilio", code=None, reason=reason)
    assert told is not None
    assert "othing was sent." in told.meaning


def test_what_nobody_knows_is_not_explained() -> None:
    """Nothing is made up; what a code stands for is told by its class."""
    assert explain(provider="twilio", code="99999", reason=None) is None
    assert explain(provider="nobody", code=None, reason=None) is None
    told = explain(provider="twilio", code="99999", reason="invalid_number")
    assert told is not None
    assert told.meaning == FAILURE_TEXTS["invalid_number"][0]


def test_a_code_says_more_than_its_class() -> None:
    """And names the page."""
    told = explain(provider="twilio", code="30034", reason="filtered")
    assert told is not None
    assert "10DLC" in told.meaning
    assert "Register" in told.advice
    assert told.source == "https://www.twilio.com/docs/api/errors/30034"


@pytest.mark.parametrize(
    ("code", "reason", "word"),
    [
        ("30032", "bad_sender", "toll-free"),
        ("30033", "bad_sender", "suspended"),
        ("30023", "rate_limited", "daily limit"),
        ("30036", "unreachable", "expired"),
        ("30410", "provider_error", "may have delivered"),
        ("63038", "rate_limited", "24 hours"),
    ],
)
def test_codes_of_twilio_that_people_meet_are_explained(code: str, reason: str, word: str) -> None:
    """What expired unsent is tried again; what a network may have delivered is not."""
    assert import_module("outreach.providers.carriers.twilio.errors").FAILURES[code] == reason
    told = explain(provider="twilio", code=code, reason=reason)
    assert told is not None
    assert word in told.meaning
    assert (reason in TRANSIENT_FAILURES) == (code in {"30023", "30036", "63038"})


@pytest.mark.parametrize(
    ("carrier", "code", "reason"),
    [("telnyx", "40319", "bad_sender"), ("twilio", "21266", "bad_sender"), ("twilio", "21604", "rejected")],
)
def test_a_code_that_is_not_about_the_line_takes_no_number_off(carrier: str, code: str, reason: FailureClass) -> None:
    """Another sender, or a request that is put right, may reach it."""
    assert import_module(f"outreach.providers.carriers.{carrier}.errors").FAILURES[code] == reason
    assert not FAILURE_CLASSES[reason].lasts


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_failure_that_may_pass_says_that_it_is_retried_only_while_retry_is_on(carrier: str) -> None:
    """Retry is off by default; only a limit is waited for without it."""
    failures = import_module(f"outreach.providers.carriers.{carrier}.errors").FAILURES
    passing = {code: reason for code, reason in failures.items() if reason in TRANSIENT_FAILURES}
    assert passing
    for code, reason in passing.items():
        told = explain(provider=carrier, code=code, reason=reason)
        assert told is not None
        assert ("while retry is on" in told.advice.lower()) is (reason != "rate_limited"), code
        assert "attempt" not in told.meaning


@pytest.mark.parametrize("reason", ["temporary", "unreachable"])
def test_a_contact_that_failed_for_now_has_a_reason_why_nothing_follows(reason: str) -> None:
    """The message's failure may pass, but retry was off or no attempt was left."""
    assert "retry was off" in (describe_reason("failed", reason) or "")
    assert "retry was off" not in (describe_reason("failed", reason, "call") or "")


@pytest.mark.parametrize("channel", ["sms", "call"])
def test_a_contact_that_failed_at_a_limit_has_a_reason_why_it_does_not_wait(channel: Channel) -> None:
    """Limits are waited for: one that failed belongs to a campaign that had ended, or was tried too often."""
    told = describe_reason("failed", "rate_limited", channel) or ""
    assert "its campaign had ended" in told
    assert "no attempt is spent" not in told
