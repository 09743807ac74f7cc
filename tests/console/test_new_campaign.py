"""A new campaign in four steps."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from openpyxl import Workbook

from outreach import (
    Campaign,
    CampaignStatus,
    NewAgent,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    WorkspaceMode,
)
from outreach.models import Price, PriceTable
from outreach_server.console.access import Role
from outreach_server.console.security import uploads
from tests.console.conftest import MOUNT, PEOPLE, House
from tests.console.page import Page, parse
from tests.console.test_hostile import NAMES

pytestmark = pytest.mark.anyio

LIST = b"phone,first_name,city\n+13035550140,Ann,Denver\n+13035550141,Ben,Boulder\n+13035550142,Cleo,Aspen\n"
ODD = b"Handy;Name\n0151 23456789;Zoe\n0151 23456789;Jan\n12;Tom\n"


async def send_file(
    house: House,
    content: bytes = LIST,
    file: str = "autumn list.csv",
    *,
    person: str = "owner",
    **form: str,
) -> httpx.Response:
    """Send the first step's form with a file."""
    fields = {"token": await house.token(person), "key": "k-file", "channel": "sms", "name": "", **form}
    return await house.client.post(
        house.url("campaigns/new"),
        data=fields,
        files={"file": (file, io.BytesIO(content), "text/csv")},
        headers={PEOPLE: person, "sec-fetch-site": "same-origin"},
    )


def where(answer: httpx.Response) -> tuple[str, dict[str, str]]:
    """Return the page and the query that an answer leads to."""
    assert answer.status_code == 303, answer.text
    parts = urlsplit(answer.headers["location"])
    return parts.path.partition("/campaigns/")[2], {name: one[0] for name, one in parse_qs(parts.query).items()}


async def draft(house: House) -> Campaign:
    """Return the draft of a plain list."""
    page, query = where(await send_file(house))
    assert page == "new/text"
    return await house.engine.campaigns.get(house.workspace, query["campaign"])


def values(page: Page) -> dict[str, str]:
    """Return the fields of a page's forms as a browser would send them."""
    found: dict[str, str] = {}
    for one in page.root:
        name, kind = one.attributes.get("name", ""), one.attributes.get("type", "")
        if one.tag == "input" and (kind not in {"radio", "checkbox"} or "checked" in one.attributes) and name:
            found[name] = one.attributes.get("value", "")
        elif one.tag == "textarea":
            found[name] = "".join(one.texts).removeprefix("\n")
        elif one.tag == "select":
            chosen = [o for o in one.all("option") if "selected" in o.attributes] or one.all("option")[:1]
            found[name] = chosen[0].attributes["value"] if chosen else ""
    return found


async def submit(house: House, path: str, more: Mapping[str, str], *, key: str = "k-form") -> httpx.Response:
    """Open a page, fill some of its fields, and send its form."""
    page = await house.page(path)
    assert page.problems == []
    return await house.post(path, {**values(page), "key": key, **more})


@pytest.mark.parametrize(
    ("first", "content"),
    [(LIST, ODD), (ODD, ODD.replace(b"Zoe", b"Eve")), (LIST, LIST.replace(b"Ann", b"Eve"))],
    ids=["another size", "the same size", "the first one is loaded"],
)
async def test_another_file_after_the_way_back_is_asked_for_again(house: House, first: bytes, content: bytes) -> None:
    """The page says what to do in words of a person, keeps what was typed, and its new form takes the file."""
    await send_file(house, first)
    answer = await send_file(house, content, name="Spring")
    assert answer.status_code == 422
    page = parse(answer.text)
    assert page.problems == []
    assert "This form was sent before" in page.by_id("file-problem").text
    assert "choose it again" in page.by_id("problems").text
    assert "idempotency" not in answer.text
    form = values(page)
    assert form["name"] == "Spring"
    assert form["key"] != "k-file"
    where(await send_file(house, content, name=form["name"], key=form["key"]))


async def test_the_sample_file_is_taken_as_it_is(house: House) -> None:
    """The first step has a link to it; some of its rows are wrong, so that the next step shows how that looks."""
    [link] = [one for one in (await house.page("campaigns/new")).all("a") if one.text == "A sample file"]
    answer = await house.client.get(link.attributes["href"])
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    page, query = where(await send_file(house, answer.content, "sample.csv"))
    assert page == "new/audience"
    page, query = where(await submit(house, f"campaigns/new/audience?{urlencode(query)}", {"action": "load"}))
    assert page == "new/text"
    campaign = await house.engine.campaigns.get(house.workspace, query["campaign"])
    assert (campaign.counters.total, campaign.variable_names) == (43, ("Slot",))


async def test_a_plain_list_goes_through_the_steps_and_is_sent(house: House) -> None:
    """File, text, time, check: a click each, and then the button that says what it does."""
    price = PriceTable(currency="USD", prices=(Price(kind="sms", amount=Decimal("0.0083")),))
    await house.engine.prices.update(house.workspace, price)
    campaign = await draft(house)
    assert (campaign.name, campaign.status, campaign.counters.total) == ("autumn list", CampaignStatus.DRAFT, 3)
    assert (await house.engine.uploads.list(house.workspace)).items == []
    text = f"campaigns/new/text?campaign={campaign.id}"
    page, _ = where(await submit(house, text, {"action": "next", "body": "Hi {{first_name}} in {{city}}"}))
    assert page == "new/when"
    page, _ = where(await submit(house, f"campaigns/new/when?campaign={campaign.id}", {}))
    assert page == "new/check"
    check = f"campaigns/new/check?campaign={campaign.id}"
    [button] = (await house.page(check)).all("button", name="action")
    assert button.text.startswith("Send 3 messages for 0.02 USD, done ")
    answer = await submit(house, check, {"action": "start"})
    assert answer.headers["location"].endswith(f"/campaigns/{campaign.id}?done=start")
    again = await house.post(check, {"action": "start", "key": "k-form", "revision": "0"})
    assert again.headers["location"].endswith(f"/campaigns/{campaign.id}")
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).status is CampaignStatus.ACTIVE
    actors = {one.actor for one in (await house.engine.audit.list(house.workspace)).items if one.actor != "library"}
    assert actors == {"host:owner"}


async def test_what_has_to_be_decided_is_shown_before_it_is_loaded(house: House) -> None:
    """Columns, rejected rows with their numbers, repeated numbers; the way of reading stands in the address."""
    page, query = where(await send_file(house, ODD, "C:\\lists\\odd.csv"))
    assert (page, query["name"]) == ("new/audience", "odd")
    path = f"campaigns/new/audience?upload={query['upload']}&name=odd"
    shown = await house.page(path)
    assert shown.problems == []
    assert "None of the 3 rows can be loaded" in shown.by_id("problems").text
    _, query = where(
        await house.post(
            path, {"action": "read", "upload": query["upload"], "name": "odd", "region": "DE", "map_phone": "1"}
        )
    )
    assert (query["region"], query["map_phone"]) == ("DE", "1")
    path = f"campaigns/new/audience?upload={query['upload']}&name=odd&region=DE&map_phone=1&map_first_name=2"
    read = await house.page(path)
    assert read.problems == []
    assert [one.text for one in read.all("dd")][:4] == ["3", "1", "1", "1"]
    assert "Row 4" in [one.text for one in read.all("th", scope="row")]
    assert "`" not in read.root.text
    [other] = [one.attributes["href"] for one in read.all("a") if one.text == "Another file"]
    again = values(parse((await house.client.get(other, headers={PEOPLE: "owner"})).text))
    assert (again["name"], again["upload"]) == ("odd", query["upload"])
    rejects = await house.post(path, {**values(read), "action": "rejects"})
    assert rejects.headers["content-type"].startswith("text/csv")
    assert "Tom" in rejects.text
    [entry] = (await house.engine.audit.list(house.workspace, action="upload.rejects")).items
    assert (entry.actor, entry.detail) == ("host:owner", "csv, rows: 1")
    page, query = where(await house.post(path, {**values(read), "key": "k-load", "action": "load"}))
    assert page == "new/text"
    found = (await house.engine.campaigns.list_recipients(house.workspace, query["campaign"])).items
    assert [(one.phone, one.first_name, one.reason) for one in found] == [
        ("+4915123456789", "Zoe", None),
        ("+4915123456789", "Jan", "duplicate"),
    ]


async def test_another_sheet_of_a_workbook_is_named_and_chosen(house: House) -> None:
    """The people of the others would not be contacted; the choice stands in the address."""
    book = Workbook()
    book.worksheets[0].title = "January"
    for row in (["phone", "first_name"], ["+13035550140", "Jan"]):
        book.worksheets[0].append(row)
    second = book.create_sheet("February")
    for row in (["phone", "first_name"], ["+13035550141", "Feb"], ["+13035550142", "Eve"]):
        second.append(row)
    content = io.BytesIO()
    book.save(content)
    page, query = where(await send_file(house, content.getvalue(), "two.xlsx"))
    assert page == "new/audience"
    shown = await house.page(f"campaigns/new/audience?{urlencode(query)}")
    assert "Only the sheet 'January' is read. “Sheet of a workbook” reads another: 'February'." in shown.root.text
    typed = {**values(shown), "sheet": "February", "action": "read", "key": "k-r"}
    _, query = where(await house.post("campaigns/new/audience", typed))
    assert query["sheet"] == "February"
    page, query = where(
        await submit(house, f"campaigns/new/audience?{urlencode(query)}", {"action": "load"}, key="k-load")
    )
    assert page == "new/text"
    found = (await house.engine.campaigns.list_recipients(house.workspace, query["campaign"])).items
    assert [one.first_name for one in found] == ["Feb", "Eve"]


async def test_a_file_is_loaded_once_for_two_people(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who presses the button before the file of the other one is deleted gets the same campaign."""
    _, query = where(await send_file(house, LIST + b"12,Dora,Vail\n"))
    path = f"campaigns/new/audience?{urlencode(query)}"
    form = {**values(await house.page(path)), "action": "load"}
    answers = []
    with monkeypatch.context() as patched:
        patched.setattr(type(house.engine.uploads), "remove", _not_yet)
        for one in ("owner", "manager"):
            sent = {**form, "key": one, "token": await house.token(one)}
            answers.append(await house.post(path, sent, person=one))
    [campaign] = (await house.engine.campaigns.list(house.workspace)).items
    assert [where(one) for one in answers] == [("new/text", {"campaign": campaign.id})] * 2
    await house.engine.uploads.remove(house.workspace, query["upload"])
    assert (await house.post(path, form)).headers["location"] == house.url("campaigns")


async def _not_yet(*_: object, **__: object) -> None:
    """Leave a file where it is."""


async def test_columns_that_nobody_chose_are_read_by_their_names(house: House) -> None:
    """The form sends no choice of the page's own, which would turn off the second column of numbers."""
    rows = b"first_name,Mobile,Home phone\nAnn,,+13035550140\nBen,+13035550141,+13035550151\n"
    _, query = where(await send_file(house, rows))
    path = f"campaigns/new/audience?{urlencode(query)}"
    shown = await house.page(path)
    assert shown.problems == []
    assert not {value for name, value in values(shown).items() if name.startswith("map_")} - {""}
    first = {one.attributes["id"]: one.all("option")[0].text for one in shown.all("select")}
    assert first["map_phone"] == "by its name: Mobile, else Home phone"
    assert (first["map_first_name"], first["map_company"]) == ("by its name: first_name", "by its name: no column")
    typed = {**values(shown), "map_first_name": "-", "action": "read", "key": "k-r"}
    _, query = where(await house.post(path, typed))
    assert {name: value for name, value in query.items() if name.startswith("map_")} == {"map_first_name": "-"}
    page, query = where(await submit(house, f"campaigns/new/audience?{urlencode(query)}", {"action": "load"}))
    assert page == "new/text"
    found = (await house.engine.campaigns.list_recipients(house.workspace, query["campaign"])).items
    assert [(one.phone, one.first_name) for one in found] == [("+13035550140", None), ("+13035550141", None)]


async def test_what_was_chosen_in_one_sheet_is_not_for_another(house: House) -> None:
    """A column, and the number of a row; both stay while the sheet does."""
    book = Workbook()
    for row in (["first_name", "Mobile", "Order"], ["Ann", "+13035550140", "A1"], ["Ben", "12", "A2"]):
        book.worksheets[0].append(row)
    other = book.create_sheet("May")
    for row in (["first_name", "Order", "Mobile"], ["Cy", "2125550101", "+13035550142"], ["Di", "2125550102", "12"]):
        other.append(row)
    content = io.BytesIO()
    book.save(content)
    _, query = where(await send_file(house, content.getvalue(), "two.xlsx"))
    path = f"campaigns/new/audience?{urlencode(query)}"
    chosen = {"map_phone": "2", "fix_3": "+13035550141"}
    typed = {**values(await house.page(path)), **chosen, "action": "read", "key": "k-r"}
    _, query = where(await house.post(path, typed))
    assert chosen.items() <= query.items()
    path = f"campaigns/new/audience?{urlencode(query)}"
    again = values(await house.page(path))
    assert chosen.items() <= again.items()
    _, query = where(await house.post(path, {**again, "sheet": "May", "action": "read", "key": "k-s"}))
    assert not chosen.keys() & query.keys()
    page, query = where(await submit(house, f"campaigns/new/audience?{urlencode(query)}", {"action": "load"}))
    assert page == "new/text"
    found = (await house.engine.campaigns.list_recipients(house.workspace, query["campaign"])).items
    assert [(one.phone, one.first_name) for one in found] == [("+13035550142", "Cy")]


async def test_a_column_that_was_named_stays_chosen(house: House) -> None:
    """A page without columns takes its name; the page that follows has its number, as it has read it."""
    _, query = where(await send_file(house, b"first_name,Line\nAnn,+13035550140\nBen,12\n"))
    shown = await house.page(f"campaigns/new/audience?{urlencode({**query, 'map_phone': 'Line'})}")
    assert values(shown)["map_phone"] == "2"


async def test_numbers_that_take_no_texts_are_shown_before_they_are_loaded(house: House) -> None:
    """The file is not plain, though each row can be loaded."""
    page, query = where(await send_file(house, b"phone,first_name\n+493012345678,Ann\n+4915123456789,Ben\n"))
    assert page == "new/audience"
    shown = await house.page(f"campaigns/new/audience?{urlencode(query)}")
    assert "1 number is a landline" in shown.root.text


async def test_a_rejected_row_is_corrected_in_the_page(house: House) -> None:
    """By a field for its number; the correction stands in the address, can be changed, and is loaded."""
    _, query = where(await send_file(house, LIST + b"12,Dora,Vail\n,Emil,Vail\n"))
    path = f"campaigns/new/audience?upload={query['upload']}&name=two"
    shown = await house.page(path)
    fields = {name for name in values(shown) if name.startswith("fix_")}
    assert fields == {"fix_5", "fix_6"}
    typed = {**values(shown), "fix_5": "+13035550155", "action": "read", "key": "k-r"}
    _, query = where(await house.post(path, typed))
    assert query["fix_5"] == "+13035550155"
    path = f"campaigns/new/audience?upload={query['upload']}&name=two&fix_5=%2B13035550155"
    again = await house.page(path)
    assert again.problems == []
    assert values(again)["fix_5"] == "+13035550155"
    assert "1 row cannot be loaded" in again.by_id("rejects").text
    page, query = where(await house.post(path, {**values(again), "action": "load", "key": "k-l"}))
    assert page == "new/text"
    found = (await house.engine.campaigns.list_recipients(house.workspace, query["campaign"])).items
    assert [(one.phone, one.first_name) for one in found][-1] == ("+13035550155", "Dora")


@pytest.mark.parametrize("name", NAMES)
async def test_what_a_file_holds_is_text(house: House, name: str) -> None:
    """In its name, its header, its cells and the rows that cannot be loaded."""
    cell = '"' + name.replace('"', '""') + '"'
    content = f"phone,first_name,{cell}\n+13035550140,{cell},{cell}\n{cell},{cell},{cell}\n".encode()
    page, query = where(await send_file(house, content, f"{name}.csv"))
    assert page == "new/audience"
    answer = await house.get(f"campaigns/new/audience?{urlencode(query)}")
    shown = parse(answer.text)
    assert shown.problems == []
    assert "1 row cannot be loaded" in shown.by_id("rejects").text
    assert not shown.all("img")
    assert {one.attributes["src"].rpartition("/")[2] for one in shown.all("script")} == {"htmx.js", "console.js"}
    assert "\u202e" not in answer.text
    assert "49{% raw" not in answer.text


async def test_days_that_are_left_out_are_a_number(house: House) -> None:
    """They are counted with the list; what was typed stays."""
    await draft(house)
    _, query = where(await send_file(house, LIST, key="k-2"))
    path = f"campaigns/new/audience?upload={query['upload']}&name=two&days="
    for days, wrong in (("3", False), ("many", True)):
        shown = await house.page(path + days)
        assert shown.problems == []
        assert values(shown)["days"] == days
        assert bool([one for one in shown.all("p") if one.attributes.get("id") == "days-problem"]) is wrong


async def test_another_file_takes_the_place_of_the_first(house: House) -> None:
    """A workspace may have few at a time."""
    _, query = where(await send_file(house, ODD))
    where(await send_file(house, ODD, upload=query["upload"], key="k-other"))
    [left] = (await house.engine.uploads.list(house.workspace)).items
    assert left.id != query["upload"]


async def test_what_is_wrong_is_said_without_names_of_fields(house: House) -> None:
    """Those of a request, and those of a campaign."""
    _, query = where(await send_file(house, b"phone,phone,name\n+13035550140,+13035550141,Ann\n", key="k-2"))
    shown = await house.page(f"campaigns/new/audience?upload={query['upload']}&name=two")
    assert shown.by_id("problems").text.endswith("Columns 1 and 2 are both called 'phone'. Rename one")
    campaign = await draft(house)
    times = {"start": "at", "start_at": "2030-01-01T10:00", "expires_at": "2029-01-01T10:00"}
    shown = parse((await submit(house, f"campaigns/new/when?campaign={campaign.id}", times)).text)
    assert "The end must be later than the start." in shown.by_id("problems").text


async def test_a_file_that_was_left_is_found_again_or_deleted(house: House) -> None:
    """A workspace may have few: the page that takes no more has them with a button."""
    for number in range(10):
        await send_file(house, ODD, f"list {number}.csv", key=f"k-{number}")
    full = await send_file(house, ODD, key="k-one-more")
    page = parse(full.text)
    assert (full.status_code, page.problems) == (409, [])
    [link] = [one.attributes["href"] for one in page.all("a") if one.text == "list 3.csv"]
    read = parse((await house.client.get(link, headers={PEOPLE: "owner"})).text)
    assert values(read)["name"] == "list 3"
    upload = values(read)["upload"]
    stranger = await house.post("campaigns/new", {"action": "discard", "upload": upload, "key": "k"}, person="agent")
    assert stranger.status_code == 403
    for _ in range(2):
        answer = await house.post("campaigns/new", {"action": "discard", "upload": upload, "key": "k"})
        assert where(answer)[0] == "new"
    assert len((await house.engine.uploads.list(house.workspace)).items) == 9
    assert where(await send_file(house, ODD, key="k-again"))[0] == "new/audience"


async def test_contacts_of_other_campaigns_are_counted_and_left_out(house: House) -> None:
    """By a box for each campaign that has some of them."""
    await draft(house)
    page, query = where(await send_file(house, LIST + b"+13035550150,Dora,Vail\n", key="k-2"))
    assert page == "new/audience"
    path = f"campaigns/new/audience?upload={query['upload']}&name=two"
    shown = await house.page(path)
    [box] = [one for one in shown.all("input", type="checkbox") if one.attributes["name"].startswith("leave_")]
    answer = await house.post(path, {**values(shown), box.attributes["name"]: "yes", "key": "k-3", "action": "load"})
    _, query = where(answer)
    found = await house.engine.campaigns.list_recipients(house.workspace, query["campaign"])
    assert [one.first_name for one in found.items] == ["Dora"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "This file is empty. Choose a file"),
        (b"%PDF-1.7", "PDF"),
        (b"a,b\n1,2\n", "phone number"),
        (b"phone\n", "no rows"),
    ],
)
async def test_a_file_that_is_no_list_says_what_it_is(house: House, content: bytes, said: str) -> None:
    """And the name that was typed stays."""
    answer = await send_file(house, content, name="Kept")
    if answer.status_code == 303:
        answer = await house.client.get(answer.headers["location"], headers={PEOPLE: "owner"})
    assert answer.status_code == (200 if content else 422)
    page = parse(answer.text)
    assert page.problems == []
    assert said in page.by_id("problems").text
    assert "Kept" in values(page)["name"]
    assert (await house.engine.campaigns.list(house.workspace)).items == []


async def test_a_file_that_is_too_large_is_refused_while_it_comes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept of it."""
    monkeypatch.setattr(uploads, "MAX_FILE_FORM_BYTES", 1_000)
    assert (await send_file(house, b"x" * 5_000)).status_code == 413
    assert (await house.engine.uploads.list(house.workspace)).items == []


async def test_a_text_is_tried_before_it_is_sent(house: House) -> None:
    """Three contacts' texts, the characters that cost, and the test to one's own number."""
    campaign = await draft(house)
    path = f"campaigns/new/text?campaign={campaign.id}"
    body = "Hi {{first_name}} – " + "x" * 100
    where(await submit(house, path, {"action": "save", "body": body}))
    page = await house.page(path)
    assert page.problems == []
    assert values(page)["body"] == body
    bubbles = [one.text for one in page.all("div") if one.attributes.get("class") == "bubble"]
    assert len(bubbles) == 3
    assert bubbles[0].startswith("Hi Ann – xxx")
    assert "replace" in page.buttons
    where(await submit(house, path, {"action": "replace"}, key="k-r"))
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).replace_characters
    wrong = await submit(house, path, {"action": "test", "to": "12"}, key="k-w")
    assert wrong.status_code == 422
    assert "to" in {one.attributes["href"].removeprefix("#") for one in parse(wrong.text).by_id("problems").all("a")}
    for _ in range(2):
        sent = await submit(house, path, {"action": "test", "to": "+14155550199"}, key="k-t")
        assert "on its way to" in sent.text
    assert len((await house.engine.messages.list(house.workspace)).items) == 1


async def test_a_text_that_is_tried_twice_is_sent_once(house: House) -> None:
    """A second click without JavaScript sends the same form again, and gets the same answer; another text does not."""
    campaign = await draft(house)
    path = f"campaigns/new/text?campaign={campaign.id}"
    form = {
        **values(await house.page(path)),
        "body": "Hi\r\nthere",
        "action": "test",
        "to": "+14155550199",
        "key": "k-t",
    }
    for _ in range(2):
        sent = await house.post(path, form)
        assert (sent.status_code, "on its way to" in sent.text) == (200, True)
    assert len((await house.engine.messages.list(house.workspace)).items) == 1
    assert (await house.post(path, {**form, "body": "Bye", "key": "k-u"})).status_code == 409


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"rate": "many"}, "rate"),
        ({"rate": "9999"}, "rate"),
        ({"zone": "Narnia"}, "zone"),
        ({"start": "at", "start_at": "soon"}, "start_at"),
        ({"start": "at", "start_at": "2030-01-01T10:00", "expires_at": "2029-01-01T10:00"}, "expires_at"),
        ({"day_monday": "yes", "opens": "late"}, "opens"),
    ],
)
async def test_a_wrong_time_is_named_and_what_was_typed_stays(
    house: House, typed: Mapping[str, str], field: str
) -> None:
    """Nothing is saved."""
    campaign = await draft(house)
    path = f"campaigns/new/when?campaign={campaign.id}"
    answer = await submit(house, path, typed)
    assert answer.status_code == 422
    page = parse(answer.text)
    assert page.problems == []
    assert page.by_id(f"{field}-problem").text
    assert typed.items() <= values(page).items()
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).revision == campaign.revision


async def test_times_are_by_the_clocks_of_the_zone(house: House) -> None:
    """A start that lies ahead makes the button schedule it, and the form shows what was saved."""
    campaign = await draft(house)
    place = (house.workspace, campaign.id)
    where(await submit(house, f"campaigns/new/text?campaign={campaign.id}", {"action": "next", "body": "Hi"}))
    path = f"campaigns/new/when?campaign={campaign.id}"
    typed = {
        "zone": "America/Denver",
        "start": "at",
        "start_at": "2031-06-02T10:00",
        "day_monday": "yes",
        "opens": "09:30",
        "closes": "12:00",
        "rate": "30",
    }
    where(await submit(house, path, typed))
    saved = await house.engine.campaigns.get(*place)
    assert saved.scheduled_start_at is not None
    assert saved.scheduled_start_at.isoformat() == "2031-06-02T16:00:00+00:00"
    assert saved.rate_per_minute == 30
    assert typed.items() <= values(await house.page(path)).items()
    check = f"campaigns/new/check?campaign={campaign.id}"
    [button] = (await house.page(check)).all("button", name="action")
    assert button.text.startswith("Schedule 3 messages, from 2 Jun 2031 10:00, done ")
    where(await submit(house, check, {"action": "start"}))
    assert (await house.engine.campaigns.get(*place)).status is CampaignStatus.SCHEDULED


async def test_a_change_meanwhile_takes_the_button_back(house: House) -> None:
    """The figures that were shown are those that are sent."""
    campaign = await draft(house)
    where(await submit(house, f"campaigns/new/text?campaign={campaign.id}", {"action": "next", "body": "Hi"}))
    check = f"campaigns/new/check?campaign={campaign.id}"
    old = values(await house.page(check))
    where(await submit(house, f"campaigns/new/text?campaign={campaign.id}", {"action": "next", "body": "Ho"}))
    answer = await house.post(check, {**old, "action": "start"})
    assert answer.status_code == 409
    assert "changed since" in answer.text
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).status is CampaignStatus.READY


@pytest.mark.parametrize(("step", "field", "typed"), [("text", "body", "Mine"), ("when", "rate", "7")])
async def test_two_people_do_not_overwrite_each_other(house: House, step: str, field: str, typed: str) -> None:
    """The second is told, keeps what was typed, and can send it again."""
    campaign = await draft(house)
    path = f"campaigns/new/{step}?campaign={campaign.id}"
    mine = {**values(await house.page(path)), "action": "next", field: typed}
    where(await submit(house, f"campaigns/new/text?campaign={campaign.id}", {"action": "save", "body": "Theirs"}))
    answer = await house.post(path, mine)
    assert answer.status_code == 409
    page = parse(answer.text)
    assert "changed since" in page.by_id("problems").text
    assert values(page)[field] == typed
    where(await house.post(path, {**values(page), "action": "next", "key": "k-again"}))
    saved = await house.engine.campaigns.get(house.workspace, campaign.id)
    assert typed in {saved.body, str(saved.rate_per_minute)}


async def test_two_people_who_save_at_once_do_not_overwrite_each_other(house: House) -> None:
    """Both forms were of the present revision when they came."""
    campaign = await draft(house)
    path = f"campaigns/new/text?campaign={campaign.id}"
    form = {**values(await house.page(path)), "action": "next"}
    answers = await asyncio.gather(
        *(house.post(path, {**form, "body": body, "key": f"k-{body}"}) for body in ("Mine", "Theirs"))
    )
    assert sorted(one.status_code for one in answers) == [303, 409]
    [told] = [one for one in answers if one.status_code == 409]
    assert "has changed meanwhile" in parse(told.text).by_id("problems").text


async def test_what_is_missing_leads_to_the_page_that_mends_it(house: House) -> None:
    """There is no button until then."""
    campaign = await draft(house)
    page = await house.page(f"campaigns/new/check?campaign={campaign.id}")
    assert page.buttons == set()
    assert "It has no text yet." in page.root.text
    assert any("/new/text?" in one.attributes["href"] for one in page.all("a") if one.text == "Mend it")


async def test_each_problem_leads_to_what_mends_it(house: House) -> None:
    """To the text, to the account, and to the numbers, for those who may add one."""
    theirs = (await house.engine.workspaces.create(NewWorkspace(name="Live", mode=WorkspaceMode.LIVE))).id
    new = NewSmsCampaign(name="Visits", body="Hi {{nope}}", carrier="twilio", from_number=None)
    people = [NewRecipient(phone_number="+13035550100")]
    made = (await house.engine.campaigns.create_sms(theirs, new, people)).campaign.id

    async def page(step: str) -> Page:
        path = f"{MOUNT}/w/{theirs}/campaigns/new/{step}?campaign={made}"
        return parse((await house.client.get(path, headers={PEOPLE: "operator"})).text)

    def links(page: Page, text: str) -> set[str]:
        found = {one.attributes["href"].partition(theirs)[2] for one in page.all("a") if one.text == text}
        return {one.partition("?")[0] for one in found}

    check = await page("check")
    assert links(check, "Mend it") == {"/campaigns/new/text", "/campaigns/new/when", "/accounts"}
    assert links(await page("when"), "Add one") == {"/numbers"}


async def test_an_agent_calls(house: House) -> None:
    """The same steps for calls: who calls, how many at a time, and the button that says so."""
    agent = await house.engine.agents.create(
        house.workspace, NewAgent(name="Robin", provider="vapi", provider_agent_id="a1")
    )
    missing = await send_file(house, channel="call")
    assert missing.status_code == 422
    assert "Choose the agent" in missing.text
    page, query = where(await send_file(house, channel="call", agent=agent.id, key="k-c"))
    assert page == "new/text"
    where(await submit(house, f"campaigns/new/text?campaign={query['campaign']}", {"action": "next"}))
    where(await submit(house, f"campaigns/new/when?campaign={query['campaign']}", {"rate": "4"}))
    found = await house.engine.campaigns.get(house.workspace, query["campaign"])
    assert (found.channel, found.batch_concurrency, found.agent_id) == ("call", 4, agent.id)
    [button] = (await house.page(f"campaigns/new/check?campaign={found.id}")).all("button", name="action")
    assert button.text.startswith("Call 3 contacts, done ")


@pytest.mark.parametrize("role", [*Role, "operator", "stranger"])
async def test_only_who_may_draft_gets_in(house: House, role: str) -> None:
    """To read and to send each form; a campaign of others is not there."""
    campaign = await draft(house)
    may = role in {"manager", "owner", "operator"}
    expected = 200 if may else 404 if role == "stranger" else 403
    steps = ("", *(f"/{name}?campaign={campaign.id}" for name in ("text", "when", "check")))
    for step in steps:
        assert (await house.get(f"campaigns/new{step}", person=role)).status_code == expected, step
    sent = await send_file(house, person=role, key="k-role")
    assert sent.status_code == (303 if may else expected)
    for step in steps[1:]:
        answer = await house.post(f"campaigns/new{step}", {"action": "next"}, person=role)
        assert (answer.status_code in {400, 409}) if may else answer.status_code == expected
    theirs = await house.engine.campaigns.create_sms(
        house.foreign, NewSmsCampaign(name="Theirs", body="Hi"), [{"phone_number": "+13035550100"}]
    )
    if role != "stranger":
        for name in ("text", "when", "check"):
            path = f"campaigns/new/{name}?campaign={theirs.campaign.id}"
            assert (await house.get(path, person=role)).status_code == (404 if may else 403)


async def test_forms_with_files_need_the_token(house: House) -> None:
    """And come from a page of this origin."""
    for headers, form in (({"sec-fetch-site": "same-origin"}, {"key": "k"}), ({"sec-fetch-site": "cross-site"}, {})):
        answer = await house.client.post(
            house.url("campaigns/new"),
            data={"channel": "sms", **form},
            files={"file": ("x.csv", io.BytesIO(LIST), "text/csv")},
            headers={PEOPLE: "owner", **headers},
        )
        assert answer.status_code == 403
    assert (await house.engine.uploads.list(house.workspace)).items == []


HOSTILE: Any = (
    ("<script>alert(1)</script>.csv", b'phone,"<img src=x onerror=alert(1)>"\n+13035550140,"=HYPERLINK(1)"\n12,<b>\n'),
    ("\u202egnp.csv", "phone,\u202eevil,{{ 7 * 7 }}\n+13035550140,\u202ex,👩‍👩‍👧‍👦\nx,{% raw %},\n".encode()),
    ("a" * 300 + ".csv", b"phone," + b"x" * 3_000 + b"\n+13035550140,y\nz,y\n"),
)


@pytest.mark.parametrize(("name", "content"), HOSTILE)
async def test_hostile_files_are_text(house: House, name: str, content: bytes) -> None:
    """On the page of the contacts and on those behind it."""
    answer, path = await send_file(house, content, name), ""
    for _ in range(4):
        if answer.status_code == 303:
            path = answer.headers["location"]
            answer = await house.client.get(path, headers={PEOPLE: "owner"})
        page = parse(answer.text)
        assert page.problems == []
        assert not page.all("img")
        assert "\u202e" not in answer.text
        assert len(answer.text) < 150_000
        if "/new/audience" not in path:
            break
        fields = {**values(page), "token": await house.token("owner"), "action": "load"}
        answer = await house.client.post(path, data=fields, headers={PEOPLE: "owner", "sec-fetch-site": "same-origin"})
