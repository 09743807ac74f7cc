"""The rules of the operations under /manage change what they are for and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.document import operations
from tests.fuzz import managing
from tests.fuzz.hooks import Known

KNOWN = Known(campaign_id="C", phone="P")


@pytest.mark.parametrize(
    ("operation", "body", "changed"),
    [
        ("updateCampaign", {"agent_id": "x", "scheduled_expires_at": "y", "name": "n"}, {"name": "n"}),
        ("updateCampaign", {"scheduled_expires_at": None}, {"scheduled_expires_at": None}),
        (
            "createAgent",
            {"provider": "x", "from_number": "1"},
            {"provider": "simulator", "from_number": "+14155550100"},
        ),
        ("updateAgent", {"from_number": None, "voicemail_message": "x"}, {"from_number": None}),
        ("updateAgent", {"placeholders": ["x"]}, {"placeholders": None}),
        (
            "updateAgent",
            {"voicemail": "leave_message"},
            {"voicemail": "leave_message", "voicemail_message": "Call us back."},
        ),
        ("createFlow", {"steps": [{"kind": "wait"}]}, {"steps": [{"kind": "send", "body": "Hi"}]}),
        ("updateFlow", {"steps": [{"kind": "send", "body": " "}]}, {"steps": [{"kind": "send", "body": "Hi"}]}),
        ("updateFlow", {"name": "x"}, {"name": "x"}),
        ("addUnsubscribes", {"phone_numbers": ["x", "x"]}, {"phone_numbers": ["+14155550366", "+14155550366"]}),
        ("setContactHours", {"narrower_hours": []}, {"narrower_hours": []}),
        (
            "setContactHours",
            {"narrower_hours": [{"place": "QQ", "schedule": {"monday": [{"start": "10:00", "end": "09:00"}]}}, {}]},
            {"narrower_hours": [{"place": "US-FL", "schedule": {"monday": [{"start": "09:00", "end": "20:00"}]}}]},
        ),
        ("updateReplySettings", {"stop_text": " ", "help_text": "x"}, {"stop_text": "", "help_text": "x"}),
        (
            "followUpCampaign",
            {"results": ["x"], "message_body": "y", "name": "n", "leave_out": {"campaigns": ["x"]}},
            {"results": ["failed", "skipped"], "name": "n", "leave_out": {}},
        ),
        ("countAudience", {"leave_out": {"contacted_within_days": 1}}, {"leave_out": {}}),
        ("erasePerson", {"phone_number": "x"}, {"phone_number": "+14155550366"}),
        ("cloneCampaign", {"leave_out": None}, {"leave_out": None}),
        (
            "sendTestMessage",
            {"contact": "x", "to": "y", "message": 7},
            {"contact": "+14155550200", "to": "+14155550300"},
        ),
        (
            "setPrices",
            {"prices": [{"amount": "1", "country": "QQ"}, {"amount": "2"}]},
            {"prices": [{"amount": "1", "provider": None, "country": None}]},
        ),
        (
            "loadUpload",
            {"map": {"x": "y"}, "leave_out": {"campaigns": ["x"], "contacted_within_days": 3}, "campaign": {}},
            {
                "leave_out": {"contacted_within_days": 3},
                "campaign": {"channel": "sms", "name": "List", "message_body": "Hi"},
            },
        ),
        ("checkUpload", {"sheet": "x", "leave_out": None, "campaign": None}, {"leave_out": None, "campaign": None}),
        ("getCampaign", {"a": 1}, {"a": 1}),
    ],
)
def test_a_rule_changes_what_it_is_for(operation: str, body: dict[str, Any], changed: dict[str, Any]) -> None:
    """Each does what its docstring says."""
    managing.repair(operation, body)
    assert body == changed


def test_each_new_number_is_another_one() -> None:
    """A workspace has each once."""
    first, second = {"phone": "x"}, {"phone": "x"}
    managing.repair("addNumber", first)
    managing.repair("addNumber", second)
    assert first != second


def test_three_of_four_paths_name_what_exists() -> None:
    """The same path always does, or always does not; one that is of the interface, or of nothing known, is left."""
    for _ in range(2):
        found = []
        for number in range(100):
            parameters = {"id": f"made up {number}", "position": f"p{number}"}
            managing.name_what_exists("/manage/campaigns/{id}/recipients/{position}", parameters, KNOWN)
            found.append(parameters)
        assert 60 < sum(one["id"] == "C" for one in found) < 90
        assert 60 < sum(one["position"] == "0" for one in found) < 90
    for path in ("/calls/{id}", "/manage/accounts/{id}", "/manage/flows/{id}"):
        parameters = {"id": "made up"}
        managing.name_what_exists(path, parameters, KNOWN)
        assert parameters == {"id": "made up"}


def test_only_a_removal_names_the_spare_upload() -> None:
    """The other operations need one that stays."""
    known = Known(upload_id="U", spare_upload_id="S")
    for method, exists in (("DELETE", "S"), ("post", "U"), ("get", "U")):
        parameters = {"id": "made up"}
        managing.name_what_exists("/manage/uploads/{id}", parameters, known, method=method)
        assert parameters == {"id": exists}


def test_a_chunk_is_the_one_that_is_there() -> None:
    """At its place."""
    query = {"offset": 7}
    assert managing.repeat_the_list(query) == managing.LIST
    assert query == {"offset": 0}


def test_every_rule_is_of_an_operation() -> None:
    """One that is renamed has to be renamed here."""
    assert managing.RULES.keys() <= {one["operationId"] for _, _, one in operations()}
