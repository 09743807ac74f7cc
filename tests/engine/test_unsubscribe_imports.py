"""Lists of people who opted out: their evidence, the workspace's own numbers, and taking an import back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from outreach import InvalidRequest, NewNumber, NewRecipient, NewSmsCampaign, NewWorkspace, NotFound, Outreach
from outreach.models import Unsubscribe, UnsubscribeImport, UnsubscribeUndo
from outreach.models.unsubscribe import imports_of
from outreach.models.workspace import Workspace
from tests.engine.rig import given_workspace

pytestmark = pytest.mark.virtual_time

ANN, BEN, CLEO = "+14155550101", "+14155550102", "+14155550103"
OURS = "+14155550199"


async def load(engine: Outreach, workspace_id: str, *rows: Any, **more: Any) -> UnsubscribeImport:
    """Import numbers."""

    async def each() -> AsyncIterator[Any]:
        for row in rows:
            yield row

    return await engine.unsubscribes.import_numbers(workspace_id, each(), **more)


async def say(engine: Outreach, workspace_id: str, phone: str, body: str) -> None:
    """Have a person write to the workspace, whose carrier answers STOP itself."""
    await engine.messages.receive(
        workspace_id, from_number=phone, to=OURS, body=body, provider="twilio", replies_to_keywords=True
    )


async def register(engine: Outreach, workspace_id: str) -> dict[str, str | None]:
    """Return the evidence of each number on the register."""
    return {entry.phone: entry.evidence async for entry in engine.unsubscribes.iter_all(workspace_id)}


async def test_an_entry_names_its_import_with_file_and_row(engine: Outreach, workspace: Workspace) -> None:
    """Rows count from 1, or carry their own number."""
    named = await load(engine, workspace.id, (7, ANN), (9, BEN), (10, BEN), file_name="stop: list.csv")
    plain = await load(engine, workspace.id, "no number", CLEO)
    assert (named.added, named.known, plain.added, plain.rejected) == (3, 1, 1, ((1, "no number"),))
    assert await register(engine, workspace.id) == {
        ANN: f"import {named.id}: stop: list.csv, row 7",
        BEN: f"import {named.id}: stop: list.csv, row 9",
        CLEO: f"import {plain.id}: row 2",
    }


async def test_an_import_refuses_the_workspaces_own_numbers(engine: Outreach, workspace: Workspace) -> None:
    """A column of senders was read for the recipients."""
    own = await engine.numbers.create(workspace.id, NewNumber(phone="+14155550188"))
    await engine.numbers.create(workspace.id, NewNumber(phone="+525512345678"))
    other_spelling = "+5215512345678"
    done = await load(engine, workspace.id, ANN, own.phone, other_spelling)
    assert (done.added, done.rejected) == (1, ((2, own.phone), (3, other_spelling)))
    assert set(await register(engine, workspace.id)) == {ANN}


async def test_one_number_alone_is_refused_if_it_is_the_workspaces_own(engine: Outreach) -> None:
    """In any spelling; another workspace may register it."""
    workspace, other = await given_workspace(engine), await given_workspace(engine)
    await engine.numbers.create(workspace.id, NewNumber(phone="+525512345678"))
    with pytest.raises(InvalidRequest) as caught:
        await engine.unsubscribes.add(workspace.id, ANN, "+5215512345678")
    (detail,) = caught.value.details
    assert (detail.path, detail.message) == (
        "phone_numbers[1]",
        "+5215512345678 is a number of this workspace itself",
    )
    assert await register(engine, workspace.id) == {}
    await engine.unsubscribes.add(other.id, "+525512345678")
    assert set(await register(engine, other.id)) == {"+525512345678"}


async def test_the_address_of_a_message_names_its_number(engine: Outreach, workspace: Workspace) -> None:
    """The digits of another channel are international; those of its ids are no numbers."""
    done = await load(engine, workspace.id, f"whatsapp:{ANN}", f"RCS: {BEN[1:]}", "messenger:14155550104", "rcs:agent")
    assert (done.added, [row for row, _ in done.rejected]) == (2, [3, 4])
    (added,) = await engine.unsubscribes.add(workspace.id, f"whatsapp:{CLEO}")
    assert (await engine.unsubscribes.get(workspace.id, f"whatsapp:{CLEO}")).phone == added.phone == CLEO
    assert set(await register(engine, workspace.id)) == {ANN, BEN, CLEO}
    assert await engine.unsubscribes.remove(workspace.id, f"whatsapp:{CLEO}") == 1


async def test_a_number_that_a_spreadsheet_left_as_a_decimal_one_is_that_number(engine: Outreach) -> None:
    """In the register and in a campaign, as in the file of an import."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme", default_region="AT", contact_hours=False))
    (added,) = await engine.unsubscribes.add(workspace.id, "43664123456.0")
    done = await load(engine, workspace.id, "4.3664123457E+10")
    people = [NewRecipient(phone_number="43664123458.0")]
    made = await engine.campaigns.create_sms(workspace.id, NewSmsCampaign(name="May", body="Hi"), people)
    recipients = [one.phone async for one in engine.campaigns.iter_recipients(workspace.id, made.campaign.id)]
    assert (added.phone, done.added, recipients) == ("+43664123456", 1, ["+43664123458"])
    assert set(await register(engine, workspace.id)) == {"+43664123456", "+43664123457"}


async def test_an_import_is_taken_back(engine: Outreach) -> None:
    """Its numbers alone leave the register, and only in its own workspace."""
    workspace, other = await given_workspace(engine), await given_workspace(engine)
    await engine.unsubscribes.add(workspace.id, CLEO)
    numbers = [f"+1415555{n:04d}" for n in range(2000, 3200)]
    done = await load(engine, workspace.id, *numbers)
    for workspace_id, import_id in ((other.id, done.id), (workspace.id, "import"), (workspace.id, "")):
        with pytest.raises(NotFound):
            await engine.unsubscribes.undo_import(workspace_id, import_id)
    assert await engine.unsubscribes.undo_import(workspace.id, done.id) == UnsubscribeUndo(removed=1200, kept=0)
    assert set(await register(engine, workspace.id)) == {CLEO}
    with pytest.raises(NotFound):
        await engine.unsubscribes.undo_import(workspace.id, done.id)


async def entry_of(engine: Outreach, workspace_id: str, phone: str) -> Unsubscribe:
    """Return a number's entry."""
    (entry,) = [one async for one in engine.unsubscribes.iter_all(workspace_id) if one.phone == phone]
    return entry


@pytest.mark.parametrize("before", [True, False], ids=["before the import", "after the import"])
@pytest.mark.parametrize("what", ["keyword", "unclear", "carrier", "operator", "import"])
async def test_undo_keeps_a_number_that_something_else_confirms(engine: Outreach, what: str, before: bool) -> None:
    """Nobody who opted out by themselves is contacted again because a list was wrong."""
    workspace = await given_workspace(engine)

    async def confirm() -> None:
        if what in {"keyword", "unclear"}:
            await say(engine, workspace.id, ANN, "STOP" if what == "keyword" else "wrong number")
        else:
            await engine.unsubscribes.add(workspace.id, ANN, source=what)

    if before:
        await confirm()
    done = await load(engine, workspace.id, ANN, BEN, file_name="list.csv")
    if not before:
        await confirm()
    undone = await engine.unsubscribes.undo_import(workspace.id, done.id)
    assert undone.removed == 1
    assert set(await register(engine, workspace.id)) == {ANN}


async def test_undo_keeps_a_number_of_another_import_until_that_is_undone_too(engine: Outreach) -> None:
    """A wrong list that was loaded twice is taken back whole, in either order."""
    workspace = await given_workspace(engine)
    for turn in (1, -1):
        first = await load(engine, workspace.id, ANN, BEN, file_name="a.csv")
        second = await load(engine, workspace.id, ANN, file_name="b.csv")
        last, then = (first, second)[::turn]
        assert (await engine.unsubscribes.undo_import(workspace.id, last.id)).kept == 1
        assert set(await register(engine, workspace.id)) == ({ANN} if turn == 1 else {ANN, BEN})
        await engine.unsubscribes.undo_import(workspace.id, then.id)
        assert await register(engine, workspace.id) == {}


@pytest.mark.parametrize("turn", [1, -1], ids=["the first is undone", "the second is undone"])
async def test_each_import_keeps_its_file_and_row(engine: Outreach, workspace: Workspace, turn: int) -> None:
    """While both stand, and when either is taken back, whatever the files are called."""
    first = await load(engine, workspace.id, (2, ANN), file_name="a; import x: 1.csv")
    second = await load(engine, workspace.id, (5, ANN), (6, ANN), file_name=f"also import {first.id}: b.csv")
    places = {
        first.id: "a; import x: 1.csv, row 2",
        second.id: f"also import {first.id}: b.csv, row 5",
    }
    assert await register(engine, workspace.id) == {
        ANN: f"import {first.id}, also import {second.id}: {places[first.id]}; import {second.id}: {places[second.id]}"
    }
    undone, left = (first, second)[::turn]
    await engine.unsubscribes.undo_import(workspace.id, undone.id)
    assert await register(engine, workspace.id) == {ANN: f"import {left.id}: {places[left.id]}"}


@pytest.mark.parametrize("first", [True, False], ids=["before the import", "after the import"])
@pytest.mark.parametrize("source", ["keyword", "carrier", "call", "operator"])
async def test_an_import_is_added_to_what_another_source_says(engine: Outreach, source: str, first: bool) -> None:
    """The source and its evidence stay, in either order, and are all that is left when the imports are taken back."""
    workspace = await given_workspace(engine)

    async def confirm(phone: str) -> None:
        if source == "keyword":
            text = "STOP; also import 0195554e-0000-7000-8000-00000000cafe: y, row 1"
            await engine.messages.receive(
                workspace.id, from_number=phone, to=OURS, body=text, provider="twilio", provider_id=f"SM{phone}"
            )
        else:
            await engine.unsubscribes.add(workspace.id, phone, source=source, evidence="21610; 9:30")

    before: Unsubscribe | None = None
    if first:
        await confirm(ANN)
        before = await entry_of(engine, workspace.id, ANN)
    one = await load(engine, workspace.id, (2, ANN), file_name="a; also import x: 1, row 2.csv")
    if not first:
        await confirm(ANN)
    two = await load(engine, workspace.id, (5, ANN), file_name="b.csv")
    entry = await entry_of(engine, workspace.id, ANN)
    evidence = entry.evidence or ""
    own, _, _ = evidence.partition(f"; also import {one.id}, also import {two.id}: ")
    assert entry.source == source
    assert (f"SM{ANN}" if source == "keyword" else "21610; 9:30") in own
    assert imports_of(entry) == [one.id, two.id]
    assert evidence.endswith(f"a; also import x: 1, row 2.csv, row 2; import {two.id}: b.csv, row 5")
    assert (await engine.unsubscribes.undo_import(workspace.id, one.id)).kept == 1
    left = await entry_of(engine, workspace.id, ANN)
    assert (left.source, left.evidence) == (source, f"{own}; also import {two.id}: b.csv, row 5")
    assert (await engine.unsubscribes.undo_import(workspace.id, two.id)).kept == 1
    left = await entry_of(engine, workspace.id, ANN)
    assert (left.source, left.evidence, imports_of(left)) == (source, own, [])
    assert before is None or left == before


async def test_an_import_is_added_to_an_entry_without_evidence(engine: Outreach, workspace: Workspace) -> None:
    """An operator need not say why."""
    await engine.unsubscribes.add(workspace.id, ANN)
    before = await entry_of(engine, workspace.id, ANN)
    done = await load(engine, workspace.id, (2, ANN), file_name="a.csv")
    assert await register(engine, workspace.id) == {ANN: f"also import {done.id}: a.csv, row 2"}
    assert (await engine.unsubscribes.undo_import(workspace.id, done.id)).kept == 1
    assert await entry_of(engine, workspace.id, ANN) == before


@pytest.mark.parametrize("file_name", ["list.csv", "n" * 200])
async def test_the_evidence_of_an_import_stays_short_however_often_it_is_confirmed(
    engine: Outreach, workspace: Workspace, file_name: str
) -> None:
    """A list that is loaded every night names the first and the newest of its imports, and the number then stays."""
    first = await load(engine, workspace.id, ANN, file_name=file_name)
    await engine.unsubscribes.add(workspace.id, ANN)
    imports = [await load(engine, workspace.id, (n, ANN), file_name=file_name) for n in range(20)]
    evidence = (await register(engine, workspace.id))[ANN]
    assert evidence is not None
    assert len(evidence) <= 1000
    assert evidence.startswith(f"also import {first.id}, also import ")
    assert ", also others: " in evidence
    assert f": {file_name}, row 1; import " in evidence
    assert evidence.endswith(f"import {imports[-1].id}: {file_name}, row 19")
    for one in (first, *imports[-2:]):
        await engine.unsubscribes.undo_import(workspace.id, one.id)
    assert set(await register(engine, workspace.id)) == {ANN}


@pytest.mark.parametrize("before", [True, False], ids=["before the import", "after the import"])
async def test_a_start_lifts_the_keyword_and_leaves_the_import(engine: Outreach, before: bool) -> None:
    """Only an operator takes back what a list says, also where it came later, and where the person was erased."""
    workspace = await given_workspace(engine)
    for phone in (ANN, BEN):
        if before:
            await say(engine, workspace.id, phone, "STOP")
        done = await load(engine, workspace.id, phone)
        if not before:
            await say(engine, workspace.id, phone, "STOP")
        if phone == BEN:
            await engine.erasure.purge(workspace.id, BEN)
        await say(engine, workspace.id, phone, "START")
        if phone == ANN:
            entry = await entry_of(engine, workspace.id, ANN)
            assert (entry.source, entry.evidence) == ("import", f"import {done.id}: row 1")
    assert len(await register(engine, workspace.id)) == 2
