"""The list of a campaign manager's afternoon, the carrier that refuses some of it, and the recount of every figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from outreach import Outreach
from outreach.models.dispatch import Dispatch
from outreach.testing.scripted import ScriptedCarrier, Step, accept, refuse
from outreach.working_set import Transaction

HEADER: Final = ("Kunde", "Handynummer", "Vorname", "Slot")
ROWS: Final = (
    ("K1", "+1 (415) 555-0101", "Ana", "9:00"),
    ("K2", "'+14155550102", "Ben", "9:30"),
    ("K3", '="+14155550103"', "Cyd", "10:00"),
    ("K4", "14155550104.0", "Dee", "10:30"),
    ("K5", "1.4155550105E+10", "Eve", "11:00"),
    ("K6", "tel:+1-415-555-0106", "Fay", "11:30"),
    ("K7", "+14155550107", "Gus", "12:00"),
    ("K8", "+14155550101", "Ana again", "12:30"),
    ("K9", "1.4E+10", "Hal", "13:00"),
    ("K10", "#N/A", "Ida", "13:30"),
    ("K11", "+14155550177", "Out", "14:00"),
)
"""What spreadsheets do to numbers; the last but two have lost digits or are no number, the last has opted out."""

SENDER: Final = "+14155550100"
MYSELF: Final = "+14155550199"
OPTED_OUT: Final = "+14155550177"
FAILING: Final = frozenset({"+14155550103", "+14155550106"})
REACHED: Final = frozenset(f"+1415555010{last}" for last in (1, 2, 4, 5, 7))
REJECTED: Final = 2


def carrier() -> ScriptedCarrier:
    """Return a carrier that refuses two numbers and accepts the others."""

    def step(message: Any) -> Step:
        return refuse("invalid_number") if message.to in FAILING else accept()

    return ScriptedCarrier(step)


async def ledger_of(engine: Outreach, workspace_id: str, campaign_id: str, contacts: int) -> Sequence[Dispatch]:
    """Return every request of a campaign."""

    def read(tx: Transaction) -> Sequence[Dispatch]:
        of = tx.dispatches.of_recipient
        return [one for position in range(contacts) for one in of(workspace_id, campaign_id, position)]

    return await engine._storage.read(read)


def check_figures(
    report: Mapping[str, Any], exported: Sequence[Mapping[str, Any]], ledger: Sequence[Dispatch], price: str
) -> None:
    """Every figure of the report is counted anew in the export and in the ledger."""
    by_result = Counter((one["status"], one["reason"]) for one in exported)
    assert {(one["status"], one["reason"]): one["contacts"] for one in report["results"]} == by_result
    assert report["contacts"] == len(exported)
    assert report["contacted"] == sum(one["contacted"] for one in exported) == len({one.position for one in ledger})
    assert report["successful"] == sum(one["successful"] for one in exported)
    assert report["failed"] == sum(one["status"] == "failed" for one in exported)
    assert report["open"] == 0
    requests = [request for one in exported for request in one["requests"]]
    assert {one["id"]: (one["state"], one["body"]) for one in requests} == {
        one.id: (one.state.value, one.body) for one in ledger
    }
    states = Counter(one.state.value for one in ledger)
    assert report["messages"]["requests"] == len(requests) == len(ledger)
    assert (report["messages"]["accepted"], report["messages"]["refused"]) == (states["accepted"], states["refused"])
    segments = sum(one.segments or 0 for one in ledger if one.state == "accepted")
    assert report["messages"]["segments"] == sum(one["segments"] for one in exported) == segments
    assert sum(one["requests"] for one in report["failures"]) == states["refused"] == len(FAILING)
    assert sum(one["requests"] for one in report["over_time"]) == len(ledger)
    assert report["replies"] == sum(len(one["replies"]) for one in exported) == 1
    [line] = report["cost"]["lines"]
    assert (line["quantity"], line["price"], report["cost"]["unpriced"]) == (segments, price, 0)
    assert {one["phone"] for one in exported if one["successful"]} == REACHED
    assert {one["phone"] for one in exported if one["status"] == "failed"} == FAILING
