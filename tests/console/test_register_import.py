"""Opt-outs are imported from a file."""

from __future__ import annotations

import io
from urllib.parse import urlsplit

import httpx
import pytest

from outreach import Unsubscribe
from outreach_server.lists import opening
from tests.console.conftest import PEOPLE, SENDER, House
from tests.console.page import Page, parse
from tests.console.test_hostile import NAMES
from tests.console.test_new_campaign import values

pytestmark = pytest.mark.anyio

PATH = "register/import"
KNOWN, NEW = "+14155550160", "+14155550161"
LIST = f"name,phone,mobile\nAnn,{KNOWN},\n\nBen,{NEW},12\nUs,{SENDER},\n".encode()


async def send_file(
    house: House, content: bytes = LIST, name: str = "stopped.csv", *, person: str = "manager", **form: str
) -> httpx.Response:
    """Send the form with a file."""
    return await house.client.post(
        house.url(PATH),
        data={"token": await house.token(person), "key": f"k-{len(content)}", "action": "file", **form},
        files={"file": (name, io.BytesIO(content), "text/csv")},
        headers={PEOPLE: person, "sec-fetch-site": "same-origin"},
    )


async def preview(house: House, content: bytes = LIST, name: str = "stopped.csv", **form: str) -> Page:
    """Send a file, and return the page that shows what was read."""
    answer = await send_file(house, content, name, **form)
    assert answer.status_code == 303, answer.text
    parts = urlsplit(answer.headers["location"])
    page = await house.page(f"{PATH}?{parts.query}", person="manager")
    assert page.problems == []
    return page


async def entries(house: House) -> dict[str, Unsubscribe]:
    """Return the register by its numbers."""
    return {one.phone: one async for one in house.engine.unsubscribes.iter_all(house.workspace)}


def tiles(page: Page) -> list[str]:
    """Return the figures of a preview."""
    return [one.text for one in page.all("dd")][:3]


async def do(house: House, page: Page, name: str, **more: str) -> httpx.Response:
    """Send the form of a page."""
    return await house.post(PATH, {**values(page), "key": "k-do", "action": name, **more}, person="manager")


async def imported(house: House, page: Page, **more: str) -> Page:
    """Import the numbers of a preview, and return the page that follows, which can be loaded again."""
    answer = await do(house, page, "import-opt-outs", **more)
    assert answer.status_code == 303, answer.text
    shown = await house.client.get(answer.headers["location"], headers={PEOPLE: "manager"})
    done = parse(shown.text)
    assert (shown.status_code, done.problems) == (200, [])
    return done


async def test_an_import_is_found_in_its_workspace_alone(house: House) -> None:
    """What is no import is not there either."""
    done = await imported(house, await preview(house))
    campaign = await house.campaign()
    path = house.url(PATH).replace(house.workspace, house.foreign)
    foreign = await house.client.get(f"{path}?import={values(done)['import']}", headers={PEOPLE: "stranger"})
    assert foreign.status_code == 404
    for one in (campaign.id, "none"):
        assert (await house.get(f"{PATH}?import={one}", person="manager")).status_code == 404


async def test_a_file_is_shown_then_imported_and_taken_back(house: House) -> None:
    """Its counts and rejects come before anything is written; each step stands in the audit trail."""
    await house.engine.unsubscribes.add(house.workspace, KNOWN, evidence="wrote to us")
    page = await preview(house, scope="sms")
    assert tiles(page) == ["3", "2", "2"]
    rows = [one.text for one in page.all("tr")][-2:]
    assert [one.split()[:4] for one in rows] == [["Row", "4", "4", "mobile"], ["Row", "5", "5", "phone"]]
    assert set(await entries(house)) == {KNOWN}
    csv = await do(house, page, "rejects")
    assert csv.text.splitlines()[0].startswith("row,column,message")
    assert len(csv.text.splitlines()) == 3
    done = await imported(house, page, scope="sms")
    assert "2 numbers put on the register" in done.by_id("done").text
    assert "1 of them was on it before" in done.root.text
    found = await entries(house)
    assert set(found) == {KNOWN, NEW}
    assert (found[NEW].scope, found[NEW].source) == ("sms", "import")
    assert "stopped.csv" in (found[NEW].evidence or "")
    assert (await house.engine.uploads.list(house.workspace)).items == []
    again = await do(house, page, "import-opt-outs")
    assert (again.status_code, again.headers["location"].endswith("/register")) == (303, True)
    assert await entries(house) == found
    register = await house.page("register", person="manager")
    links = {one.text: one.attributes["href"] for one in register.all("a") if "Its import" in one.text}
    assert set(links) == {f"Its import : {KNOWN}", f"Its import : {NEW}"}
    for link in links.values():
        later = parse((await house.client.get(link, headers={PEOPLE: "manager"})).text)
        assert later.problems == []
        assert later.by_id("done").text == "Its numbers are on the register"
        assert values(later)["import"] == values(done)["import"]
    for said in ("?done=undo-import", ""):
        answer = await do(house, done, "undo-import")
        assert answer.headers["location"].endswith(f"/register{said}")
    assert set(await entries(house)) == {KNOWN}
    after = parse((await house.client.get(link, headers={PEOPLE: "manager"})).text)
    assert after.by_id("done").text == "This import was taken back"
    audit = (await house.engine.audit.list(house.workspace, actor="host:manager")).items
    assert [one.action for one in reversed(audit)] == [
        *("upload.create", "upload.rejects", "upload.remove", "unsubscribes.import", "unsubscribes.undo_import"),
    ]


async def test_a_file_that_was_left_is_found_again_or_deleted(house: House) -> None:
    """A workspace may have few: the page that takes no more has them with a button."""
    for number in range(10):
        await send_file(house, LIST, f"list {number}.csv", key=f"k-{number}")
    full = await send_file(house, key="k-one-more")
    page = parse(full.text)
    assert (full.status_code, page.problems) == (409, [])
    [link] = [one.attributes["href"] for one in page.all("a") if one.text == "list 3.csv"]
    read = parse((await house.client.get(link, headers={PEOPLE: "manager"})).text)
    assert tiles(read) == ["3", "2", "2"]
    form = {"action": "discard", "upload": values(read)["upload"], "key": "k"}
    assert (await house.post(PATH, form, person="agent")).status_code == 403
    for _ in range(2):
        answer = await house.post(PATH, form, person="manager")
        assert answer.headers["location"].endswith(PATH)
    assert len((await house.engine.uploads.list(house.workspace)).items) == 9
    assert (await send_file(house, key="k-again")).status_code == 303


async def test_a_file_is_read_as_the_form_says(house: House) -> None:
    """By columns, region, encoding; a value that cannot be is named at its field, and nothing is lost."""
    content = "Büro;Vorname\n0151 23456789;Zoé\n".encode("cp1252")
    page = await preview(house, content)
    assert "Choose it below" in page.by_id("problems").text
    answer = await do(house, page, "read", phone="1", region="DE", encoding="cp1252", delimiter=";")
    query = urlsplit(answer.headers["location"]).query
    page = await house.page(f"{PATH}?{query}", person="manager")
    assert tiles(page) == ["1", "1", "0"]
    assert "`" not in page.root.text
    assert "--" not in page.root.text
    query = query.replace("region=DE", "region=Mars")
    wrong = await house.page(f"{PATH}?{query}", person="manager")
    assert "two-letter code" in wrong.by_id("region-problem").text
    assert values(wrong)["encoding"] == "cp1252"
    assert (await do(house, wrong, "import-opt-outs")).status_code == 422
    assert await entries(house) == {}


async def test_two_columns_of_numbers_without_a_header_are_named(house: House) -> None:
    """In words of the page."""
    page = await preview(house, f"{KNOWN},{NEW}\n".encode())
    assert "Name it below as the column of the numbers, such as 1" in page.by_id("problems").text


async def test_a_large_file_is_read_in_a_helper_process(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same result."""
    monkeypatch.setattr(opening, "_MAX_IN_THREAD", 10)
    page = await preview(house)
    assert tiles(page) == ["3", "2", "2"]
    await imported(house, page)
    assert set(await entries(house)) == {KNOWN, NEW}


async def test_without_a_file_or_its_upload_the_form_says_so(house: House) -> None:
    """An upload of another workspace is not there."""
    for name, begins in (("", "Choose a file"), ("stopped.csv", "This file is empty. Choose a file")):
        answer = await send_file(house, b"", name)
        assert answer.status_code == 422
        assert parse(answer.text).by_id("problems").text.startswith(begins)
    page = await preview(house)
    upload = values(page)["upload"]
    theirs = house.url(PATH).replace(house.workspace, house.foreign)
    answer = await house.client.get(f"{theirs}?upload={upload}", headers={PEOPLE: "stranger"})
    assert (answer.status_code, "The file is gone" in answer.text, KNOWN in answer.text) == (200, True, False)
    assert (await do(house, page, "import-opt-outs", scope="held")).status_code == 400
    none = await preview(house, b"phone\n12\n")
    assert "import-opt-outs" not in none.buttons
    assert (await do(house, none, "import-opt-outs")).status_code == 422


@pytest.mark.parametrize("name", NAMES)
async def test_what_a_file_holds_is_text(house: House, name: str) -> None:
    """In its name, its header and its cells, in the preview of opt-outs."""
    cell = '"' + name.replace('"', '""') + '"'
    content = f"phone,{cell}\n{cell},1\n{NEW},{cell}\n{cell},{cell}\n".encode()
    answer = await send_file(house, content, f"{name}.csv")
    page = await preview(house, content, f"{name}.csv")
    shown = await house.get(f"{PATH}?upload={values(page)['upload']}", person="manager")
    assert answer.status_code == 303
    assert not page.all("img")
    assert {one.attributes["src"].rpartition("/")[2] for one in page.all("script")} == {"htmx.js", "console.js"}
    assert "\u202e" not in shown.text
    assert "49{% raw" not in shown.text
    await imported(house, page)
    assert set(await entries(house)) == {NEW}
    register = await house.get("register", person="manager")
    assert parse(register.text).problems == []
    assert "\u202e" not in register.text
