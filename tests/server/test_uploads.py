"""/manage/uploads: lists that are uploaded in chunks, checked, and loaded into campaigns."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from openpyxl import Workbook

from outreach import NewAgent
from tests.server.conftest import Service, Tenant, serve
from tests.server.test_errors import check_envelope

CSV = 'Name;Handy;Ort\nZoë;0151 23456789;Köln\nJan;="0151 23456780";Bonn\nEva;;Ulm\nTom;12;Trier\n'.encode()
SMS = {"channel": "sms", "name": "Autumn", "message_body": "Hi {{first_name}} in {{Ort}}"}
LIST = b"phone\n+14155550102\n"
CHUNK = 64 * 1024


def upload(tenant: Tenant, content: bytes, name: str = "list.csv") -> str:
    """Upload a file in chunks, each sent twice; return its path."""
    made = tenant.post("/manage/uploads", {"file_name": name, "size_bytes": len(content)})
    assert made.status_code == 201, made.text
    path = f"/manage/uploads/{made.json()['id']}"
    for offset in range(0, len(content), CHUNK):
        for _ in range(2):
            answer = put(tenant, path, content[offset : offset + CHUNK], offset)
            assert answer.status_code == 200, answer.text
    assert tenant.get(path).json()["is_complete"]
    return path


def put(tenant: Tenant, path: str, content: bytes, offset: int = 0) -> Any:
    """Send a chunk."""
    headers = {"Content-Type": "application/octet-stream"}
    return tenant.request("PUT", f"{path}/content?offset={offset}", content=content, headers=headers)


def workbook(*rows: tuple[str, ...]) -> bytes:
    """Return an XLSX file."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Sheet")
    for row in rows:
        sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_a_list_is_uploaded_checked_and_loaded(tenant: Tenant) -> None:
    """With what the command's dry run says: columns, numbers, corrections and rejects."""
    path = upload(tenant, CSV)
    reading = {"map": {"phone": "Handy"}, "region": "DE"}
    checked = tenant.post(f"{path}/check", {**reading, "campaign": SMS}).json()
    assert [one["is"] for one in checked["mapping"]][1:] == ["phone_number", "{{Ort}}"]
    assert checked["numbers"]["by_country"][0]["country"] == "DE"
    assert (checked["numbers"]["count"], checked["rows"], checked["rejected_count"]) == (2, 4, 2)
    assert [one["what"] for one in checked["corrected"]] == ["formula"]
    assert [(one["row"], one["column"]) for one in checked["rejected"]] == [(4, "Handy"), (5, "Handy")]
    assert checked["preflight"]["contacts"] == 2
    assert tenant.get("/campaigns").json()["data"] == []
    loaded = tenant.post(f"{path}/load", {**reading, "campaign": SMS})
    assert loaded.status_code == 201, loaded.text
    campaign = loaded.json()
    assert {name: campaign[name] for name in ("numbers", "rejected", "corrected", "mapping")} == {
        name: checked[name] for name in ("numbers", "rejected", "corrected", "mapping")
    }
    assert (campaign["total_recipients"], campaign["csv_column_headers"]) == (2, ["Name", "Handy", "Ort"])
    contacts = tenant.get(f"/manage/campaigns/{campaign['id']}/recipients").json()["data"]
    assert [one["phone_number"] for one in contacts] == ["0151 23456789", "0151 23456780"]
    assert contacts[0]["custom_variables"]["Ort"] == "Köln"


def test_a_list_is_checked_before_there_is_a_campaign(tenant: Tenant) -> None:
    """A check without a body reads it as it is."""
    path = upload(tenant, b"phone\n+14155550102\n")
    checked = tenant.post(f"{path}/check").json()
    assert (checked["preflight"], checked["refusal"], checked["numbers"]["count"]) == (None, None, 1)
    assert tenant.post(f"{path}/check", {"campaign": None, "map": None}).json() == checked


def test_a_workbook_is_read_by_its_content(tenant: Tenant) -> None:
    """Not by its name; it comes in several chunks."""
    content = workbook(("Phone", "First name"), *((f"+1415555{number:04}", "Ann") for number in range(100, 7000)))
    assert len(content) > CHUNK
    path = upload(tenant, content, "it.csv")
    body = {"campaign": {"name": "Calls", "agent_id": tenant.agent.id}}
    loaded = tenant.post(f"{path}/load", body).json()
    assert (loaded["channel"], loaded["total_recipients"], loaded["read_as"]) == ("call", 6900, "sheet 'Sheet'")


def test_a_load_happens_once_for_each_key(tenant: Tenant) -> None:
    """Another body under the key is refused."""
    path = upload(tenant, b"phone\n+14155550102\n")
    key = {"Idempotency-Key": "it"}
    first = tenant.post(f"{path}/load", {"campaign": SMS}, headers=key)
    assert tenant.post(f"{path}/load", {"campaign": SMS}, headers=key).json() == first.json()
    assert len(tenant.get("/campaigns").json()["data"]) == 1
    other = {"campaign": SMS | {"name": "Other"}}
    refused = check_envelope(tenant.post(f"{path}/load", other, headers=key), 400, "invalid_request")
    assert [one["path"] for one in refused["details"]] == ["Idempotency-Key"]


def test_a_list_is_added_to_a_campaign(tenant: Tenant) -> None:
    """Who is in the campaign already is not contacted again: several lists are one."""
    first, second = upload(tenant, LIST), upload(tenant, b"Handy;Vorname\n(415) 555-0102;Ada\n415 555 0103;Bo\n12;Cy\n")
    made = tenant.post(f"{first}/load", {"region": "US", "campaign": SMS}).json()
    body, key = {"region": "US", "campaign_id": made["id"]}, {"Idempotency-Key": "second"}
    answer = tenant.post(f"{second}/add", body, headers=key)
    assert answer.status_code == 201, answer.text
    added = answer.json()
    assert (added["campaign_id"], added["added"], added["skipped"], added["audience"]) == (made["id"], 2, 1, None)
    assert (added["rows"], added["rejected_count"], added["read_as"]) == (3, 1, "separated by semicolons, utf-8")
    assert [one["is"] for one in added["mapping"]] == ["phone_number", "first_name"]
    assert tenant.post(f"{second}/add", body, headers=key).json() == added
    assert tenant.get(f"/manage/campaigns/{made['id']}").json()["total_recipients"] == 3
    left_out = tenant.post(f"{second}/add", body | {"leave_out": {"campaigns": [made["id"]]}})
    refused = check_envelope(left_out, 400, "invalid_request")
    assert [one["path"] for one in refused["details"]] == ["leave_out.campaigns[0]"]


def test_a_list_is_not_added_to_what_takes_no_contacts(tenant: Tenant, service: Service) -> None:
    """A campaign that has ended is a 409, one of another workspace a 404, a list without contacts a 400."""
    made = tenant.post(f"{upload(tenant, LIST)}/load", {"campaign": SMS}).json()
    path, body = upload(tenant, LIST), {"campaign_id": made["id"]}
    stranger = service.tenant()
    check_envelope(stranger.post(f"{upload(stranger, LIST)}/add", body), 404, "not_found")
    bodies: list[dict[str, Any]] = [{}, {"campaign_id": 7}, {"campaign_id": ""}, body | {"campaign": SMS}]
    for wrong in bodies:
        refused = check_envelope(tenant.post(f"{path}/add", wrong), 400, "invalid_request")
        assert [one["path"] for one in refused["details"]] == ["campaign" if "campaign" in wrong else "campaign_id"]
    refused = check_envelope(tenant.post(f"{path}/check", body), 400, "invalid_request")
    assert [one["path"] for one in refused["details"]] == ["campaign_id"]
    check_envelope(tenant.post(f"{upload(tenant, b'phone' + bytes([10]) + b'12')}/add", body), 400, "invalid_request")
    assert tenant.post(f"/manage/campaigns/{made['id']}/cancel").status_code == 200
    check_envelope(tenant.post(f"{path}/add", body), 409, "conflict")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"campaign": SMS, "maps": {}}, "maps"),
        ({"campaign": SMS, "map": {"mail": "Name"}}, "map"),
        ({"campaign": SMS, "map": {"phone": "Handy", "phone_number": "Handy"}}, "map"),
        ({"campaign": SMS, "map": {"phone": 1}}, "map.phone"),
        ({"campaign": SMS, "map": {"phone": " "}}, "map"),
        ({"campaign": SMS, "map": []}, "map"),
        ({"campaign": SMS, "region": "Narnia"}, "region"),
        ({"campaign": SMS, "encoding": "zip"}, "encoding"),
        ({"campaign": SMS, "delimiter": "ab"}, "delimiter"),
        ({"campaign": SMS, "sheet": "\0"}, "sheet"),
        ({"campaign": SMS, "corrections": {"0": "1"}}, "corrections"),
        ({"campaign": SMS, "corrections": {"2": 1}}, "corrections.2"),
        ({"campaign": SMS, "corrections": {str(row): "1" for row in range(1, 102)}}, "corrections"),
        ({}, "campaign"),
        ({"campaign": []}, "campaign"),
        ({"campaign": SMS | {"channel": "fax"}}, "campaign"),
        ({"campaign": SMS | {"name": ""}}, "campaign.name"),
        ({"campaign": SMS | {"recipients": []}}, "campaign.recipients"),
        ({"campaign": SMS | {"from_number": "+14155550100"}}, "campaign.from_number"),
        (
            {"campaign": {"name": "Calls", "agent_id": "01932f71-3d6a-7b80-9e41-7c5d2b8a0f63", "ivr": True}},
            "campaign.ivr",
        ),
        ({"campaign": SMS | {"sms_flow_id": "01932f71-3d6a-7b80-9e41-7c5d2b8a0f63"}}, "campaign.sms_flow_id"),
    ],
)
def test_a_wrong_field_is_named(tenant: Tenant, body: dict[str, Any], path: str) -> None:
    """And nothing is created."""
    answer = tenant.post(f"{upload(tenant, CSV)}/load", {"map": {"phone": "Handy"}, "region": "DE"} | body)
    check_envelope(answer, 400, "invalid_request")
    assert [one["path"] for one in answer.json()["error"]["details"]] == [path]
    assert tenant.get("/campaigns").json()["data"] == []


def test_numbers_of_rows_are_corrected(tenant: Tenant) -> None:
    """They are read in the place of those of the file, by check, rejects and load; another wrong one is named."""
    content = b"name,phone,mobile\nAnn,12,\nBen\nCleo,x,4155550103\nDora,+14155550104,\n"
    body = {
        "map": {"phone": "phone"},
        "region": "US",
        "corrections": {"2": "(415) 555-0102", "3": "13", "4": "+14155550109", "9": "1"},
    }
    path = upload(tenant, content)
    checked = tenant.post(f"{path}/check", body).json()
    assert [(one["row"], "'13'" in one["message"]) for one in checked["rejected"]] == [(3, True)]
    assert "13" in tenant.post(f"{path}/rejects", body).text
    made = tenant.post(f"{path}/load", body | {"campaign": SMS}).json()
    loaded = tenant.get(f"/manage/campaigns/{made['id']}/recipients").json()["data"]
    assert [one["phone"] for one in loaded] == ["+14155550102", "+14155550109", "+14155550104"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"%PDF-1.7", "is a PDF file, not a list"),
        (b"a,b\n1,2\n", "No column is the phone number. The columns are: 'a', 'b'. Name it with `map` phone=COLUMN."),
        (b"phone\nx\n", "The only row cannot be loaded."),
        (b"phone\nx\n0151\n", "None of the 2 rows can be loaded."),
        (b"phone\n", "has a header and no rows"),
        (b"PK\x03\x04 and so on", "is damaged"),
        (b"name,phone\nZo\x81\xe9,1\n", "Name its encoding, for example `encoding` cp1252"),
    ],
)
def test_what_is_no_list_is_a_400(tenant: Tenant, content: bytes, said: str) -> None:
    """In the words of the body's fields."""
    answer = tenant.post(f"{upload(tenant, content)}/load", {"campaign": SMS})
    check_envelope(answer, 400, "invalid_request")
    assert said in answer.json()["error"]["message"]
    assert "--" not in answer.json()["error"]["message"]


def test_a_row_that_breaks_the_file_off_creates_nothing(tenant: Tenant) -> None:
    """Though contacts before it were read."""
    content = b"phone\n" + b"+14155550102\n" * 20_000 + b"\xff\xfe\x81\n" + "é\n".encode()
    answer = tenant.post(f"{upload(tenant, content)}/load", {"campaign": SMS})
    check_envelope(answer, 400, "invalid_request")
    assert "line 20002" in answer.json()["error"]["message"]
    assert tenant.get("/campaigns").json()["data"] == []


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tenant: Tenant) -> None:
    """By what its parts say of their sizes."""
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as bomb, bomb.open("xl/sharedStrings.xml", "w", force_zip64=True) as part:
        part.write(b"<sst/>")
    with ZipFile(out, "a") as bomb:
        bomb.infolist()[0].file_size = 1 << 30
        bomb.writestr("it", "")
    answer = tenant.post(f"{upload(tenant, out.getvalue(), 'it.xlsx')}/check")
    check_envelope(answer, 400, "invalid_request")
    assert "too large" in answer.json()["error"]["message"]


def test_a_text_that_suits_nobody_is_refused_as_on_the_command_line(tenant: Tenant) -> None:
    """A check says so beside its preflight; a load creates nothing."""
    path = upload(tenant, b"phone,word\n+14155550102,Hi\n+14155550103,Ho\n")
    body = {"campaign": SMS | {"message_body": "word " * 320}}
    checked = tenant.post(f"{path}/check", body).json()
    assert checked["refusal"] == (
        "The text cannot be sent to any contact (11 segments, of at most 5): with the footer it is over the segment "
        "cap; shorten it, or raise `max_segments`. Nothing was created."
    )
    assert checked["preflight"]["contacts"] == 2
    loaded = tenant.post(f"{path}/load", body)
    check_envelope(loaded, 400, "invalid_request")
    assert loaded.json()["error"]["message"] == checked["refusal"]
    assert tenant.get("/campaigns").json()["data"] == []
    fitting = {"campaign": SMS | {"message_body": "{{word}}"}}
    assert tenant.post(f"{path}/check", fitting).json()["refusal"] is None


def test_a_check_says_that_no_row_can_be_loaded(tenant: Tenant) -> None:
    """With and without a campaign."""
    path = upload(tenant, b"phone\nx\n")
    for body in ({}, {"campaign": SMS}):
        checked = tenant.post(f"{path}/check", body).json()
        assert (checked["refusal"], checked["preflight"]) == (
            "The only row cannot be loaded.",
            None,
        )
        assert checked["rejected_count"] == 1


def test_repeated_numbers_are_counted(tenant: Tenant) -> None:
    """In each spelling, without a campaign too; a repetition is loaded, and skipped."""
    path = upload(tenant, b"phone\n+14155550102\n(415) 555-0102\n+1 415 555 0103\n+14155550102\n12\n")
    assert tenant.post(f"{path}/check", {"region": "US"}).json()["duplicates"] == 2
    loaded = tenant.post(f"{path}/load", {"region": "US", "campaign": SMS}).json()
    assert (loaded["duplicates"], loaded["total_recipients"], loaded["rejected_count"]) == (2, 4, 1)
    groups = tenant.get(f"/manage/campaigns/{loaded['id']}/results").json()["data"]
    assert [one["count"] for one in groups if one["reason"] == "duplicate"] == [2]


@pytest.mark.parametrize(("rows", "note"), [(20, ""), (2_000, "long" * 50)])
def test_all_rejected_rows_are_a_file(tenant: Tenant, rows: int, note: str) -> None:
    """Each with its number, what is wrong, and its cells; a thread reads the small list, a helper the large one."""
    lines = ["phone,note", *(f"{number},=SUM({number}){note}" for number in range(rows)), "+14155550102,good"]
    path = upload(tenant, "\n".join(lines).encode())
    checked = tenant.post(f"{path}/check").json()
    assert (checked["rejected_count"], len(checked["rejected"])) == (rows, min(rows, 1000))
    answer = tenant.post(f"{path}/rejects")
    assert answer.headers["content-type"].startswith("text/csv")
    found = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(one["row"], one["phone"]) for one in found] == [(str(number + 2), str(number)) for number in range(rows)]
    assert [one["message"] for one in found[:1000]] == [one["message"] for one in checked["rejected"]]
    assert {one["column"] for one in found} == {"phone"}
    assert found[7]["note"] == f"'=SUM(7){note}"
    assert "--" not in answer.text


def test_the_file_of_rejected_rows_follows_the_body(tenant: Tenant) -> None:
    """As a load with it does; what cannot be read is an error."""
    path = upload(tenant, CSV)
    body = {"map": {"phone": "Handy"}, "region": "DE", "campaign": SMS}
    found = list(csv.DictReader(io.StringIO(tenant.post(f"{path}/rejects", body).text)))
    assert [(one["row"], one["Name"]) for one in found] == [("4", "Eva"), ("5", "Tom")]
    unreadable = upload(tenant, b"a,b\n1,2\n")
    check_envelope(tenant.post(f"{unreadable}/rejects"), 400, "invalid_request")
    check_envelope(tenant.post(f"{path}/rejects", {"maps": {}}), 400, "invalid_request")
    check_envelope(tenant.post("/manage/uploads/\N{CJK UNIFIED IDEOGRAPH-4F60}/rejects"), 404, "not_found")


def test_contacts_of_other_campaigns_are_left_out(tenant: Tenant) -> None:
    """And counted, also before there is a campaign."""
    first = upload(tenant, b"phone\n+14155550102\n+14155550103\n")
    other = tenant.post(f"{first}/load", {"campaign": SMS}).json()["id"]
    path = upload(tenant, b"phone\n(415) 555-0102\n+14155550104\n")
    body = {"region": "US", "leave_out": {"campaigns": [other]}}
    assert tenant.post(f"{path}/check", {"region": "US"}).json()["audience"] is None
    checked = tenant.post(f"{path}/check", body).json()
    assert (checked["audience"]["contacts"], checked["audience"]["left_out"]) == (2, 1)
    with_campaign = tenant.post(f"{path}/check", body | {"campaign": SMS}).json()
    assert with_campaign["preflight"]["audience"] == with_campaign["audience"] == checked["audience"]
    loaded = tenant.post(f"{path}/load", body | {"campaign": SMS}).json()
    assert (loaded["total_recipients"], loaded["audience"]) == (1, checked["audience"])


@pytest.mark.parametrize(
    ("leave_out", "path"),
    [
        ([], "leave_out"),
        ({"days": 1}, "leave_out.days"),
        ({"contacted_within_days": 0}, "leave_out.contacted_within_days"),
        ({"campaigns": ["01932f71-3d6a-7b80-9e41-7c5d2b8a0f63"]}, "leave_out.campaigns[0]"),
    ],
)
@pytest.mark.parametrize("operation", ["check", "load"])
def test_whom_to_leave_out_is_checked(tenant: Tenant, operation: str, leave_out: Any, path: str) -> None:
    """And named where it is in the body."""
    body = {"leave_out": leave_out, "campaign": SMS}
    answer = tenant.post(f"{upload(tenant, LIST)}/{operation}", body)
    check_envelope(answer, 400, "invalid_request")
    assert [one["path"] for one in answer.json()["error"]["details"]] == [path]
    assert tenant.get("/campaigns").json()["data"] == []


def test_an_upload_is_of_one_workspace(service: Service, tenant: Tenant) -> None:
    """For each operation."""
    path, other = upload(tenant, CSV), service.tenant()
    for answer in (
        other.get(path),
        other.delete(path),
        put(other, path, CSV),
        other.post(f"{path}/check"),
        other.post(f"{path}/rejects"),
        other.post(f"{path}/load", {"campaign": SMS}),
    ):
        check_envelope(answer, 404, "not_found")
    assert other.get("/manage/uploads").json()["data"] == []
    assert [one["id"] for one in tenant.get("/manage/uploads").json()["data"]] == [path.rpartition("/")[2]]


def test_an_upload_ends_with_its_day_or_before(service: Service, tenant: Tenant) -> None:
    """What was loaded stays."""
    path, removed = upload(tenant, b"phone\n+14155550102\n"), upload(tenant, b"phone\n+14155550102\n")
    tenant.post(f"{path}/load", {"campaign": SMS})
    assert tenant.delete(removed).json()["id"] in removed
    check_envelope(tenant.get(removed), 404, "not_found")
    service.clock.ahead += timedelta(days=1)
    check_envelope(tenant.post(f"{path}/check"), 404, "not_found")
    assert len(tenant.get("/campaigns").json()["data"]) == 1


def test_an_upload_that_is_not_complete_is_a_409(tenant: Tenant) -> None:
    """As is a chunk at another place than the next."""
    made = tenant.post("/manage/uploads", {"file_name": "list.csv", "size_bytes": CHUNK + 9}).json()
    path = f"/manage/uploads/{made['id']}"
    put(tenant, path, bytes(CHUNK))
    answer = tenant.post(f"{path}/check")
    check_envelope(answer, 409, "conflict")
    assert f"has {CHUNK} of its {CHUNK + 9} bytes" in answer.json()["error"]["message"]
    check_envelope(put(tenant, path, b"the end.", CHUNK + 1), 409, "conflict")
    check_envelope(put(tenant, path, bytes(4 * 1024 * 1024 + 1)), 400, "invalid_request")


def test_without_a_helper_a_thread_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an executable that cannot start itself; no copy stays behind."""
    monkeypatch.setattr("outreach_server.app.default_command", lambda: None)
    for service in serve("memory://", spool_directory=tmp_path):
        tenant = service.tenant()
        path = upload(tenant, b"phone\n+14155550102\n")
        assert tenant.post(f"{path}/load", {"campaign": SMS}).json()["total_recipients"] == 1
        assert list(tmp_path.iterdir()) == []


def test_missing_values_are_counted_for_an_agent(service: Service, tenant: Tenant) -> None:
    """Its names are columns, also of fields."""
    new = NewAgent(name="Ada", placeholders=["Nachname"])
    agent = service.run(service.engine.agents.create, tenant.workspace.id, new)
    path = upload(tenant, "phone,Nachname\n+14155550102,Müller\n".encode())
    loaded = tenant.post(f"{path}/load", {"campaign": {"name": "Calls", "agent_id": agent.id}}).json()
    assert loaded["total_recipients"] == 1
    missing = {"campaign": {"name": "Calls", "agent_id": "01932f71-3d6a-7b80-9e41-7c5d2b8a0f63"}}
    check_envelope(tenant.post(f"{path}/load", missing), 404, "not_found")
