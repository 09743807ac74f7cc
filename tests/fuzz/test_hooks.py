"""The rules that tell Schemathesis what only the server can know change that and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.generation.meta import TestPhase

from tests.fuzz import hooks

EVEN, ODD = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e00", "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"
NOTHING = hooks.Known()
ALL = hooks.Known(agent_id="A", flow_id="F", trunk_id="T")


@pytest.fixture(autouse=True)
def known_again() -> Iterator[None]:
    """Let the rules know afterwards what they knew before."""
    before = attrs.evolve(hooks.KNOWN)
    yield
    hooks.use(before)


SCHEDULED = {"schedule_type": "scheduled", "scheduled_start_at": "2026-12-01T09:00:00"}
SAME = {"start": "00:00", "end": "00:00"}
DAY = {"start": "00:00", "end": "24:00"}


@pytest.mark.parametrize(
    ("known", "body", "changed"),
    [
        (NOTHING, {"sms_flow_id": ODD}, {"sms_flow_id": None}),
        (
            NOTHING,
            {"sms_flow_id": ODD, "sms_message_source": "flow"},
            {"sms_flow_id": None, "sms_message_source": "custom", "message_body": ""},
        ),
        (ALL, {"sms_flow_id": ODD, "sms_message_source": "flow"}, {"sms_flow_id": "F", "sms_message_source": "flow"}),
        (ALL, {"sms_flow_id": "no uuid"}, {"sms_flow_id": "no uuid"}),
        (ALL, {"agent_id": EVEN, "sip_trunk_id": EVEN}, {"agent_id": "A", "sip_trunk_id": "T"}),
        (ALL, {"agent_id": ODD, "sip_trunk_id": None}, {"agent_id": ODD, "sip_trunk_id": None}),
        (
            NOTHING,
            {"sms_from_number": "x", "sms_from_numbers": ["000", "001"]},
            {"sms_from_number": "000", "sms_from_numbers": ["000", "001"]},
        ),
        (
            NOTHING,
            {"sms_from_number": "x", "sms_from_numbers": []},
            {"sms_from_number": "x", "sms_from_numbers": []},
        ),
        (
            NOTHING,
            {"sms_from_number": None, "sms_from_numbers": ["000"]},
            {"sms_from_number": None, "sms_from_numbers": ["000"]},
        ),
        (NOTHING, SCHEDULED | {"scheduled_expires_at": "2026-12-01T09:00:00Z"}, SCHEDULED),
        (
            NOTHING,
            SCHEDULED | {"scheduled_expires_at": "2026-12-01T09:00:01z"},
            SCHEDULED | {"scheduled_expires_at": "2026-12-01T09:00:01z"},
        ),
        (
            NOTHING,
            {"business_hours_config": {"days": ["mon"], **SAME}},
            {"business_hours_config": {"days": ["mon"], **DAY}},
        ),
        (
            NOTHING,
            {"business_hours_config": {"days": {"mon": {**SAME}, "tue": 1}}},
            {"business_hours_config": {"days": {"mon": DAY, "tue": 1}}},
        ),
        (
            NOTHING,
            {"business_hours_config": {"schedule": {"monday": [{**SAME}, None], "friday": 1}}},
            {"business_hours_config": {"schedule": {"monday": [DAY, None], "friday": 1}}},
        ),
        (
            NOTHING,
            {"holidays_config": {"country": "GB", "subdivision": "x"}},
            {"holidays_config": {"country": "GB", "subdivision": "NIR"}},
        ),
        (
            NOTHING,
            {"variables": {"a": ["\x00b", {"\x00c": 1}]}, "recipients": [{"custom_variables": {"d": "\x00"}}, 1]},
            {"variables": {"a": ["b", {"c": 1}]}, "recipients": [{"custom_variables": {"d": ""}}, 1]},
        ),
        (NOTHING, {"holidays_config": {"country": "VA", "subdivision": "x"}}, {"holidays_config": {"country": "VA"}}),
    ],
)
def test_a_rule_changes_what_it_is_for(known: hooks.Known, body: dict[str, Any], changed: dict[str, Any]) -> None:
    """Each rule does what its docstring says, also with values that are not what they should be."""
    hooks.use(known)
    for rule in hooks.TRAIL_RULES:
        rule(body)
    assert body == changed


def test_every_rule_has_its_reason() -> None:
    """What Schemathesis is told has a reason beside it."""
    rules = (*hooks.TRAIL_RULES, hooks.begin_with_the_first_page)
    assert all("Reason: " in (rule.__doc__ or "") for rule in rules)


def case_of(phase: TestPhase = TestPhase.FUZZING, *, method: str = "GET", negative: bool = False, **parts: Any) -> Any:
    """Return a case of a list of flows, as far as the rules look at it."""
    return SimpleNamespace(
        meta=SimpleNamespace(is_negative_at=lambda location: negative, phase=SimpleNamespace(name=phase)),
        operation=SimpleNamespace(
            path="/manage/flows/{id}", definition=SimpleNamespace(raw={"operationId": "listFlows"})
        ),
        method=method,
        **{"query": {}, "path_parameters": {}, "body": None, **parts},
    )


@pytest.mark.parametrize(("negative", "left"), [(False, {"limit": 5}), (True, {"after": "x", "limit": 5})])
def test_a_valid_query_begins_with_the_first_page(negative: bool, left: dict[str, Any]) -> None:
    """A place in a list is taken out of a query, unless the query is broken on purpose."""
    case = case_of(negative=negative, query={"after": "x", "limit": 5})
    hooks.before_call(None, case, {})
    assert case.query == left


@pytest.mark.parametrize(
    ("phase", "method", "named"),
    [
        (TestPhase.EXAMPLES, "PATCH", "F"),
        (TestPhase.EXAMPLES, "DELETE", EVEN),
        (TestPhase.STATEFUL, "PATCH", EVEN),
    ],
)
def test_an_example_names_what_exists(phase: TestPhase, method: str, named: str) -> None:
    """It does not remove it; and what a link names stays."""
    hooks.use(ALL)
    case = case_of(phase, method=method, path_parameters={"id": EVEN})
    hooks.before_call(None, case, {})
    assert case.path_parameters == {"id": named}


def test_the_idempotency_key_is_left_out() -> None:
    """The other parameters of an operation stay."""
    key, other = {"$ref": next(iter(hooks.KEYS))}, {"$ref": "#/components/parameters/CampaignId"}
    schema: dict[str, Any] = {"paths": {"/a": {"post": {"parameters": [other, key]}, "get": {}}}}
    hooks.before_load_schema(schemathesis.HookContext(), schema)
    assert schema["paths"]["/a"]["post"]["parameters"] == [other]


@pytest.mark.parametrize(
    ("days", "counts"),
    [({"mon": {"enabled": False, "end": ""}}, False), ({"mon": {"end": ""}}, True), (["mon"], True), (None, True)],
)
def test_the_times_of_a_closed_day_may_be_anything(days: Any, *, counts: bool) -> None:
    """Those of an open day may not, and neither may those of all days."""
    failure = AcceptedNegativeData(operation="POST /campaigns", message="", status_code=201, expected_statuses=[])
    case: Any = SimpleNamespace(body={"business_hours_config": {"enabled": False, "days": days}})
    assert hooks.filter_failure(None, failure, case, None) is counts
