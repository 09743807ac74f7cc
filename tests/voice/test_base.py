from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from outreach.models.states import ENDED_CALL_STATUSES, CallStatus
from outreach.providers.voice import base
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.rules.settlement import TRANSIENT_FAILURES
from outreach.testing.builders import NOW
from tests.voice.adapters import call_request

DOCUMENT = Path(__file__).parents[2] / "docs" / "voice-variables.md"


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"ivr_enabled": True}, base.IVR_NAVIGATION, "true"),
        ({"call_screen_enabled": True}, base.CALL_SCREENING, "true"),
        ({"call_screen_enabled": True, "screen_identity": "Ada"}, base.SCREEN_IDENTITY, "Ada"),
        ({"call_screen_enabled": True, "screen_purpose": "news"}, base.SCREEN_PURPOSE, "news"),
        ({"voicemail": "hang_up"}, base.VOICEMAIL, "hang_up"),
        ({"voicemail_message": "Hello."}, base.VOICEMAIL_MESSAGE, "Hello."),
        ({"max_seconds": 60}, base.MAX_SECONDS, "60"),
        ({"not_after": datetime(2026, 3, 1, 21, tzinfo=UTC)}, base.NOT_AFTER, "2026-03-01T21:00:00+00:00"),
    ],
)
def test_an_option_travels_under_its_name_unless_the_provider_has_a_field(
    changes: dict[str, Any], name: str, value: str
) -> None:
    """docs/interface.md#4: what a provider has no field for, an agent's prompt can still use."""
    request = call_request(**changes)
    assert base.variables_of(request)[name] == value
    assert name not in base.variables_of(request, native={name})
    assert name not in base.variables_of(call_request())


def test_a_contacts_own_variables_come_along_and_cannot_pass_for_options() -> None:
    """A column of a file that has the name of an option sets none."""
    own = {"first_name": "Zoë", "_mine": "x", **dict.fromkeys(base.RESERVED_VARIABLES, "forged")}
    request = call_request(variables=own)
    assert base.variables_of(request) == {
        "first_name": "Zoë",
        "_mine": "x",
        "_outreach_dispatch_id": request.dispatch_id,
    }


def test_identity_and_purpose_are_sent_only_when_screening_is_handled() -> None:
    """Without call screening nobody asks for them."""
    assert set(
        base.variables_of(call_request(screen_identity="Ada", screen_purpose="news"))
    ) & base.RESERVED_VARIABLES == {base.DISPATCH_ID_VARIABLE}


def test_the_document_lists_every_reserved_name_and_no_other() -> None:
    """`docs/voice-variables.md` is what people write prompts by."""
    listed = re.findall(r"^\| `(_[a-z_]+)` \|", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(base.RESERVED_VARIABLES)


ENDS = [value for value in vars(base).values() if isinstance(value, base.CallEnd)]


@pytest.mark.parametrize("end", ENDS)
def test_every_end_is_an_end_and_only_failures_have_a_class(end: base.CallEnd) -> None:
    """The status is one of the ended; a class that passes is of what reached nobody, so nobody answered it."""
    assert end.status in ENDED_CALL_STATUSES
    assert (end.reason is not None) == (end.status is CallStatus.FAILED)
    assert end.reason not in TRANSIENT_FAILURES or end.answered_by is None


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (base.ANSWERED_BY_PERSON, "positive"),
        (base.MACHINE, "voicemail"),
        (base.NO_ANSWER, "no_answer"),
        (base.BUSY, "busy"),
        (base.DECLINED, "declined"),
        (base.DO_NOT_CALL, "negative"),
        (base.CANCELED, None),
        (base.FAILED_AT_PROVIDER, "failed"),
        (base.FUNDS, "failed"),
    ],
)
def test_a_verdict_counts_only_where_somebody_was_talked_to(end: base.CallEnd, outcome: str | None) -> None:
    """What the way a call ended says goes before the provider's analysis."""
    report = base.report_of(
        end,
        workspace_id="w",
        provider="vapi",
        dispatch_id="d",
        provider_id="p",
        at=NOW,
        verdict=True,
        error="why",
    )
    assert ProviderAnalyser().outcome(report) == outcome
    assert report.error == ("why" if end.status in {CallStatus.FAILED, CallStatus.CANCELED} else None)
    assert report.do_not_call is (end is base.DO_NOT_CALL)
