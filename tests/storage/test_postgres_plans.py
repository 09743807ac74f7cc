"""The plans of PostgreSQL's queries over large tables, also where the server has not counted them since they grew."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import psycopg
import pytest
from psycopg.sql import SQL, Identifier, Literal

from outreach.storage.postgres.connect import connect, conninfo_of
from outreach.storage.postgres.schema import column_types
from outreach.storage.postgres.sql import Queries
from outreach.storage.unit_of_work.kinds import filtered
from tests import postgres

SMALL_ROWS: Final = 2_000
ROWS: Final = 20_000
ASKED: Final = 20
MOST_ROWS: Final = 10 * ASKED
"""Rows that a query may read: all would be a hundred times as many."""
MOST_BLOCKS: Final = 40 * ASKED
"""Blocks of 8 kB that it may touch, for a search of an index touches four and reads one row."""

WORKSPACE: Final = "w1"
LARGE: Final = 2
AT: Final = """to_char('2026-11-01'::timestamp + i * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
EARLY, LATE = "2026-10-01T00:00:00.000000Z", "2027-01-01T00:00:00.000000Z"

PHONE: Final = "'+1201555' || lpad(i::text, 5, '0')"
PHONES: Final = [f"+1201555{number:05}" for number in range(2_000, ROWS, ROWS // ASKED)]
POSITIONS: Final = [[LARGE, number] for number in range(2_000, ROWS, ROWS // ASKED)]

METADATA: Final = """CASE i % 1000 WHEN 777 THEN '{"team":7}' END"""

TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "recipients": {
        "campaign_number": "CASE WHEN i < 2000 THEN 10 + i % 10 ELSE 2 END",
        "position": "i",
        "phone_number": PHONE,
        "phone": PHONE,
        "external_id": "'x' || i",
        "status": "(ARRAY['completed', 'in_progress', 'waiting', 'pending'])[greatest(i / 2000 - 6, 0) + 1]",
        "reason": "CASE i / 2000 WHEN 8 THEN 'outside_hours' END",
        "due_at": f"CASE WHEN i / 2000 IN (7, 8) THEN {AT} END",
    },
    "dispatches": {
        "id": "'d' || i",
        "workspace_id": "CASE WHEN i < 2000 THEN 'w' || 10 + i % 10 ELSE 'w1' END",
        "campaign_number": "CASE WHEN i < 2000 THEN 10 + i % 10 ELSE 2 END",
        "position": "i",
        "provider": "'twilio'",
        "from_number": "'+14155550199'",
        "to_number": PHONE,
        "state": "'accepted'",
        "provider_id": "'SM' || i",
        "created_at": AT,
    },
    "unsubscribes": {
        "workspace_id": "CASE WHEN i < 2000 THEN 'w' || 10 + i % 10 ELSE 'w1' END",
        "phone": PHONE,
        "scope": "'all'",
        "source": "'keyword'",
        "created_at": AT,
    },
    "inbound_messages": {
        "id": "'i' || i",
        "workspace_id": "CASE WHEN i < 2000 THEN 'w' || 10 + i % 10 ELSE 'w1' END",
        "from_number": PHONE,
        "keyword": "'stop'",
        "written_at": AT,
        "received_at": AT,
    },
    "callbacks": {
        "account_id": "'a1'",
        "event_id": "'e' || i",
        "workspace_id": "CASE WHEN i < 2000 THEN 'w' || 10 + i % 10 ELSE 'w1' END",
        "received_at": AT,
        "body": "''::bytea",
        "report": "json_build_object('provider', 'twilio', 'provider_id', 'SM' || i, 'telephony_id', 'CA' || i)::text",
    },
    "calls": {
        "id": "'c' || i",
        "workspace_id": "CASE WHEN i < 2000 THEN 'w' || 10 + i % 10 ELSE 'w1' END",
        "agent_id": "'a' || i / 100",
        "external_id": "'o' || i / 100",
        "metadata": METADATA,
        "campaign_number": "CASE WHEN i < 2000 THEN 10 + i % 10 ELSE 2 END",
        "position": "i",
        "provider_call_id": "'p' || i",
        "to_number": PHONE,
        "status": "CASE i % 100 WHEN 0 THEN 'queued' ELSE 'completed' END",
        "outcome": "CASE i % 100 WHEN 1 THEN 'positive' END",
        "created_at": AT,
    },
    "messages": {
        "id": "'m' || i",
        "workspace_id": "CASE WHEN i < 2000 THEN 'w' || 10 + i % 10 ELSE 'w1' END",
        "to_number": PHONE,
        "purpose": "'reply'",
        "external_id": "'o' || i / 100",
        "metadata": METADATA,
        "created_at": AT,
    },
    "trail": {
        "number": "i",
        "workspace_id": "CASE WHEN i < 2000 THEN 'w' || 10 + i % 10 ELSE 'w1' END",
        "campaign_number": "CASE WHEN i < 2000 THEN 10 + i % 10 ELSE 2 END",
        "position": "i",
        "phone": PHONE,
        "what": "'held'",
        "at": AT,
    },
    "campaigns": {
        "number": "i",
        "id": "'k' || i",
        "workspace_id": "CASE WHEN i < 2000 THEN 'w' || 10 + i % 10 ELSE 'w1' END",
        "channel": "'sms'",
        "external_id": "'o' || i / 100",
        "metadata": METADATA,
        "name_folded": "'spring ' || i",
        "status": "CASE WHEN i < 19900 THEN 'completed' ELSE 'active' END",
        "created_at": AT,
    },
    "campaign_names": {"number": "i", "trigrams": "outreach.name_trigrams(1, 'spring ' || i)"},
    "numbers": {
        "id": "'n' || i",
        "workspace_id": "CASE WHEN i < 2000 THEN 'w' || 10 + i % 10 ELSE 'w1' END",
        "phone": PHONE,
    },
}

PHONE_OF_ONE: Final = PHONES[1]
NEARLY_LAST: Final = (datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=ROWS - ASKED)).strftime(
    "%Y-%m-%dT%H:%M:%S.%fZ"
)
OF_PERSON: Final = {
    "workspace_id": WORKSPACE,
    "phone": PHONE_OF_ONE,
    "after_at": LATE,
    "after_id": "",
    "limit": ASKED,
}
PAGE: Final = {"workspace_id": WORKSPACE, "after_at": LATE, "after_id": "", "limit": ASKED}
NUMBERS: Final = json.dumps([LARGE])

QUERIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "campaigns.refs": {"wanted": json.dumps([f"k{number}" for _, number in POSITIONS])},
    "campaigns.refs_by_number": {"wanted": json.dumps([number for _, number in POSITIONS])},
    "campaigns.leftovers": {"now": LATE},
    "campaigns.page?channel": {**PAGE, "channel": "sms", "offset": 100},
    "campaigns.page?channel,status": {**PAGE, "channel": "sms", "status": "completed", "offset": 100},
    "campaigns.page": {**PAGE, "offset": 100},
    "campaigns.page?status": {**PAGE, "status": "completed", "offset": 100},
    "campaigns.found?search": {
        "after_at": LATE,
        "after_id": "",
        "list": 1,
        "phrase": '"spring 7777"',
        "workspace_id": WORKSPACE,
        "search": "spring 7777",
    },
    "campaigns.names_with": {"list": 1, "phrase": '"spring 7777"', "limit": 1000},
    "campaigns.of_external_id": {
        "workspace_id": WORKSPACE,
        "external_id": "o77",
        "after_at": LATE,
        "after_id": "",
    },
    "campaigns.scanned?metadata": {
        "workspace_id": WORKSPACE,
        "metadata": "team=7",
        "after_at": LATE,
        "after_id": "",
    },
    "campaigns.any_archived": {"workspace_id": WORKSPACE},
    "campaigns.archived": {
        "after_at": LATE,
        "after_id": "",
        "workspace_id": WORKSPACE,
    },
    "campaigns.of_numbers": {"numbers": json.dumps([number for _, number in POSITIONS]), "workspace_id": WORKSPACE},
    "campaigns.in_status": {"statuses": '["active", "scheduled"]', "workspace_id": None},
    "campaigns.running": {"workspace_id": None, "limit": ASKED},
    "campaigns.paused_by_engine": {"workspace_id": None, "limit": ASKED},
    "campaigns.taken_back": {"workspace_id": None, "reason": "approval_ended", "limit": ASKED},
    "campaigns.delete_recipients": {"number": LARGE, "limit": ASKED},
    "campaigns.delete_trail": {"number": LARGE, "limit": ASKED},
    "erasure.messages": {
        "name": "#1",
        "workspace_id": WORKSPACE,
        "ids": json.dumps([f"m{number}" for _, number in POSITIONS]),
    },
    "erasure.dispatches_of_messages": {
        "name": "#1",
        "workspace_id": WORKSPACE,
        "ids": json.dumps([f"m{number}" for _, number in POSITIONS]),
    },
    "erasure.single_calls": {
        "country": None,
        "name": "#1",
        "workspace_id": WORKSPACE,
        "ids": json.dumps([f"c{number}" for _, number in POSITIONS]),
    },
    "erasure.dispatches_of_calls": {
        "name": "#1",
        "workspace_id": WORKSPACE,
        "ids": json.dumps([f"c{number}" for _, number in POSITIONS]),
    },
    "erasure.recipients": {"number": LARGE, "first": 3_000, "last": 3_020},
    "erasure.dispatches": {"number": LARGE, "first": 3_000, "last": 3_020},
    "erasure.person_in_recipients": {"name": "#1", "number": LARGE, "position": 3_000},
    "erasure.person_in_dispatches": {
        "name": "#1",
        "country": "US",
        "phone": PHONE_OF_ONE,
        "workspace_id": WORKSPACE,
    },
    "recipients.with_phones": {"number": LARGE, "phones": json.dumps(PHONES)},
    "recipients.taken": {"number": LARGE, "first": 100, "last": 120},
    "recipients.known_phones": {"number": LARGE, "phones": json.dumps(PHONES)},
    "recipients.due_waiting_for": {"wanted": NUMBERS, "reason": "outside_hours", "now": LATE, "limit": ASKED},
    "recipients.due_waiting_else": {"wanted": NUMBERS, "reason": "other", "now": LATE, "limit": ASKED},
    "recipients.due_pending": {"wanted": NUMBERS, "limit": ASKED},
    "recipients.next_due": {"wanted": NUMBERS},
    "recipients.overdue_in_progress": {"number": LARGE, "now": LATE, "limit": ASKED},
    "recipients.in_progress_after": {"number": LARGE, "after": EARLY, "limit": ASKED},
    "recipients.waiting_beyond": {"wanted": json.dumps([[LARGE, "outside_hours", EARLY]])},
    "recipients.in_progress_beyond": {"wanted": NUMBERS, "after": EARLY},
    "recipients.postponed": {"number": LARGE, "reason": "outside_hours", "now": EARLY, "limit": ASKED},
    "recipients.waiting_for_phone": {"phone": PHONE_OF_ONE, "workspace_id": WORKSPACE},
    "recipients.closable": {"number": LARGE, "limit": ASKED},
    "recipients.page": {"number": LARGE, "after": 10_000, "status": None, "reason": None, "limit": ASKED},
    "recipients.contacts": {"number": LARGE, "after": 10_000, "limit": ASKED},
    "recipients.by_phone": {"number": LARGE, "phone": PHONE_OF_ONE},
    "recipients.without_phone": {"number": LARGE, "phone_number": "what"},
    "recipients.with_external_id": {
        "external_id": "x77",
        "workspace_id": WORKSPACE,
        "after_at": LATE,
        "after_id": "",
        "after_position": 0,
        "limit": ASKED,
    },
    "recipients.of_person": {**OF_PERSON, "after_number": 0},
    "recipients.with_external_id_in": {"external_id": "x77", "number": LARGE, "limit": ASKED},
    "recipients.external_ids": {"wanted": json.dumps(POSITIONS)},
    "dispatches.by_provider_id": {
        "wanted": json.dumps([[WORKSPACE, "twilio", f"SM{number}"] for _, number in POSITIONS])
    },
    "dispatches.with_provider_id": {"wanted": json.dumps([["twilio", f"SM{number}"] for _, number in POSITIONS])},
    "dispatches.similar": {
        "phone": PHONE_OF_ONE,
        "since": EARLY,
        "until": LATE,
        "provider": "twilio",
        "from_number": "+14155550199",
        "dispatch_id": "d1",
    },
    "dispatches.of_recipient": {"wanted": json.dumps(POSITIONS)},
    "dispatches.of_call": {"call_id": "c1", "workspace_id": WORKSPACE},
    "dispatches.of_message": {"message_id": "m1", "workspace_id": WORKSPACE},
    "dispatches.to_person": OF_PERSON,
    "dispatches.sent_to": {"workspace_id": WORKSPACE, "phone": PHONE_OF_ONE, "since": EARLY},
    "dispatches.contacted": {"workspace_id": WORKSPACE, "phones": json.dumps(PHONES), "since": EARLY},
    "dispatches.dialled": {"workspace_id": WORKSPACE, "phones": json.dumps([PHONE_OF_ONE, PHONES[0]])},
    "dispatches.recent": {"number": LARGE, "since": EARLY, "limit": ASKED},
    "dispatches.judged": {"number": LARGE, "since": EARLY, "until": LATE, "limit": ASKED},
    "register.list": {"workspace_id": WORKSPACE, "after": PHONE_OF_ONE, "limit": ASKED},
    "register.stopped_since": {"workspace_id": WORKSPACE, "since": NEARLY_LAST, "channel": "sms"},
    "register.scopes": {"workspace_id": WORKSPACE, "phones": json.dumps(PHONES)},
    "inbound.list": {"workspace_id": WORKSPACE, "after_at": LATE, "after_id": "", "limit": ASKED},
    "inbound.list_unanswered": {
        "workspace_id": WORKSPACE,
        "since": NEARLY_LAST,
        "unclear": 0,
        "after_at": LATE,
        "after_id": "",
        "limit": ASKED,
    },
    "inbound.from_person": OF_PERSON,
    "inbound.replied_since": {"workspace_id": WORKSPACE, "phone": PHONE_OF_ONE, "since": EARLY},
    "inbound.senders_among": {"workspace_id": WORKSPACE, "phones": json.dumps(PHONES), "since": EARLY},
    "inbound.last_keyword": {"workspace_id": WORKSPACE, "phone": PHONE_OF_ONE, "keyword": "stop"},
    "callbacks.waiting": {
        "workspace_id": WORKSPACE,
        "provider": "twilio",
        "provider_id": "SM77",
        "limit": ASKED,
    },
    "callbacks.waited_for": {"wanted": json.dumps([[WORKSPACE, "twilio", f"XX{number}"] for _, number in POSITIONS])},
    "callbacks.list": {
        "workspace_id": WORKSPACE,
        "after_at": LATE,
        "after_account": "",
        "after_event": "",
        "limit": ASKED,
    },
    **{
        filtered("calls.list", chosen): {"workspace_id": WORKSPACE, **chosen, "after": "~", "limit": ASKED}
        for chosen in (
            {},
            {"number": LARGE},
            {"agent_id": "a77"},
            {"status": "queued"},
            {"outcome": "positive"},
            {"external_id": "o77"},
            {"metadata": "team=7"},
            {"agent_id": "a77", "outcome": "unknown", "status": "completed"},
            {"number": LARGE, "outcome": "positive"},
        )
    },
    "calls.by_provider_id": {"workspace_id": WORKSPACE, "provider_call_id": "p77"},
    "calls.open_of_agent": {"workspace_id": WORKSPACE, "agent_id": "a7"},
    "calls.open_call_between": {"workspace_id": WORKSPACE, "agent_id": "a7", "to_number": PHONE_OF_ONE},
    "calls.to_person": OF_PERSON,
    "messages.list": {"workspace_id": WORKSPACE, "after": "~", "limit": ASKED},
    "messages.list?external_id": {"workspace_id": WORKSPACE, "external_id": "o77", "after": "~", "limit": ASKED},
    "messages.list?metadata": {"workspace_id": WORKSPACE, "metadata": "team=7", "after": "~", "limit": ASKED},
    "messages.to_person": OF_PERSON,
    "messages.last_reply": {"workspace_id": WORKSPACE, "phone": PHONE_OF_ONE, "purpose": "reply", "until": None},
    "trail.of_recipient": {"number": LARGE, "position": 77},
    "trail.of_number": {"workspace_id": WORKSPACE, "phone": PHONE_OF_ONE, "limit": ASKED},
    "trail.opt_outs_of_person": {
        "workspace_id": WORKSPACE,
        "phone": PHONE_OF_ONE,
        "after_at": LATE,
        "after_number": 0,
        "limit": ASKED,
    },
    "trail.between": {"after": 100, "until": 120, "workspace_id": WORKSPACE},
    "numbers.by_phone": {"wanted": json.dumps([[WORKSPACE, phone] for phone in PHONES])},
    "reports.replies_of": {
        "phones": json.dumps(PHONES),
        "workspace_id": WORKSPACE,
        "since": EARLY,
        "until": LATE,
        "number": LARGE,
    },
    "reports.opt_outs_of": {
        "phones": json.dumps(PHONES),
        "workspace_id": WORKSPACE,
        "since": EARLY,
        "until": LATE,
        "number": LARGE,
    },
    "archives.replies_of": {"phones": json.dumps(PHONES), "workspace_id": WORKSPACE, "number": LARGE},
    "archives.opt_outs_of": {"phones": json.dumps(PHONES), "workspace_id": WORKSPACE, "number": LARGE},
}


OF_TWO_INDEXES: Final = {
    "archives.replies_of",
    "calls.list?agent_id,outcome,status",
    "calls.list?number,outcome",
    "campaigns.any_archived",
    "campaigns.archived",
    "dispatches.judged",
    "dispatches.recent",
    "inbound.from_person",
    "inbound.replied_since",
    "inbound.senders_among",
    "messages.last_reply",
    "recipients.by_phone",
    "recipients.with_phones",
    "register.stopped_since",
    "reports.replies_of",
}
"""Two indexes begin alike, and the server has to know its tables to choose: it may err until it has counted them."""


@pytest.fixture(scope="module", params=["never", "when small", "since"])
def counted(request: pytest.FixtureRequest) -> str:
    """When the server has counted the rows of its tables."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def connection(counted: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that has prepared all of the queries, to a database with large tables."""
    server = postgres.server()
    with (
        server.database(template=postgres.template()) as name,
        connect(conninfo_of(server.url(name))) as made,
    ):
        # Neither triggers nor references: the tables are filled one by one.
        made.execute("SET session_replication_role = replica")
        for table in TABLES:
            made.execute(SQL("ALTER TABLE {} SET (autovacuum_enabled = off)").format(Identifier(table)))
        _fill(made, 0, SMALL_ROWS)
        if counted == "when small":
            made.execute("ANALYZE")
        _fill(made, SMALL_ROWS, ROWS)
        if counted == "since":
            made.execute("ANALYZE")
        queries = Queries(column_types(made))
        for name, given in QUERIES.items():
            places = {value: f"${number}" for number, value in enumerate(given, 1)}
            made.execute(SQL("PREPARE {} AS {}").format(Identifier(name), SQL(queries[name] % places)))
        yield made


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_reads_little_beside_what_it_finds(
    name: str, mode: str, counted: str, connection: psycopg.Connection[Any]
) -> None:
    """Whatever the server knows of the tables: it counts them when it gets round to it."""
    connection.execute(SQL("SET plan_cache_mode = {}").format(Literal(mode)))
    explain = SQL("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE {} ({})").format(
        Identifier(name), SQL(", ").join(map(Literal, QUERIES[name].values()))
    )
    # Some of them write.
    with connection.transaction(force_rollback=True):
        [(found,)] = connection.execute(explain).fetchall()
    plan = found[0]["Plan"]
    if counted == "since" or name not in OF_TWO_INDEXES:
        touched = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        assert touched <= MOST_BLOCKS, json.dumps(plan, indent=1)
        assert _rows_read(plan) <= MOST_ROWS, json.dumps(plan, indent=1)


def _rows_read(plan: Mapping[str, Any]) -> float:
    each = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) if "Scan" in plan["Node Type"] else 0
    return float(each * plan["Actual Loops"]) + sum(map(_rows_read, plan.get("Plans", [])))


def _fill(connection: psycopg.Connection[Any], first: int, end: int) -> None:
    required = connection.execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'outreach' AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'"
    ).fetchall()
    for table, given in TABLES.items():
        values = {name: "''" if kind == "text" else "0" for where, name, kind in required if where == table}
        values.update(given)
        connection.execute(
            SQL("INSERT INTO {} ({}) SELECT {} FROM generate_series({}, {}) AS i").format(
                Identifier(table),
                SQL(", ").join(map(Identifier, values)),
                SQL(", ").join(map(SQL, values.values())),
                Literal(first),
                Literal(end - 1),
            )
        )
