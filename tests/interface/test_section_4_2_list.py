"""docs/interface.md#4.2: GET /sms-campaigns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Tenant


def names(answer: Any) -> list[str]:
    """Return the names on a page."""
    assert answer.status_code == 200, answer.text
    return [campaign["name"] for campaign in answer.json()["data"]]


@pytest.mark.sentence("4.2 newest first", "4.2 no calling campaigns", "row order")
def test_sms_campaigns_newest_first(tenant: Tenant) -> None:
    """Section 4.2: newest first, also of the same moment; calling campaigns never appear."""
    for number in range(5):
        tenant.create(name=f"n{number}")
    people = [{"phone_number": "+14155550102"}]
    tenant.post("/campaigns", {"agent_id": tenant.agent.id, "name": "by voice", "recipients": people})
    assert names(tenant.get("/sms-campaigns")) == ["n4", "n3", "n2", "n1", "n0"]
    assert names(tenant.get("/campaigns")) == ["by voice", "n4", "n3", "n2", "n1", "n0"]


@pytest.mark.sentence(
    *("4.2 page", "4.2 page_size", "8 page", "8 page_size", "4.2 echo and total", "4.2 200"),
    *("2.5 page", "2.5 page_size", "2.5 total"),
)
def test_pages(tenant: Tenant) -> None:
    """Section 4.2: page from 1, page_size 1-100 by default 20, capped; both echoed; total over all pages."""
    for number in range(3):
        tenant.create(name=f"n{number}")
    answer = tenant.get("/sms-campaigns")
    assert set(answer.json()) == {"data", "pagination"}
    assert answer.json()["pagination"] == {"page": 1, "page_size": 20, "total": 3}
    assert names(tenant.get("/sms-campaigns?page=2&page_size=2")) == ["n0"]
    for query, echo in (
        ("page=2&page_size=2", (2, 2)),
        ("page_size=100", (1, 100)),
        ("page_size=101", (1, 100)),
        ("page=0002", (2, 20)),
    ):
        pagination = tenant.get(f"/sms-campaigns?{query}").json()["pagination"]
        assert (pagination["page"], pagination["page_size"], pagination["total"]) == (*echo, 3)
    for wrong in ("page=0", "page=-1", "page=x", "page=1.5", "page_size=0", "page_size=", "page="):
        assert tenant.get(f"/sms-campaigns?{wrong}").status_code == 400


@pytest.mark.sentence("4.2 status")
def test_the_status_filter(tenant: Tenant) -> None:
    """Section 4.2: one of eight; filters on the raw status."""
    tenant.create(name="draft")
    tenant.create(name="ready", sms_carrier="twilio", sms_from_number="+14155550199")
    assert names(tenant.get("/sms-campaigns?status=draft")) == ["draft"]
    assert names(tenant.get("/sms-campaigns?status=ready")) == ["ready"]
    for wrong in ("", "Draft", "unknown", "draft,ready"):
        assert tenant.get(f"/sms-campaigns?status={wrong}").status_code == 400
