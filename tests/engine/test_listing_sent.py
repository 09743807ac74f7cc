"""What was sent after a backup is found in the list of the provider too, and not sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from outreach import CallStatus, Conflict, FlowStep, NewAgent, NewCallCampaign, NewFlow, Outreach
from outreach.errors import StorageError
from outreach.ledger.campaigns import listed as ledger
from outreach.models.campaign import Campaign
from outreach.models.recovery import ListedContacts
from outreach.protocols.sent_list import SentListFailed, SentQuery, SentRequest
from outreach.server_support import take_over
from outreach.services.campaigns import listing_sent
from outreach.services.campaigns.listing_sent import CampaignSentLists
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, accept
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import hear
from tests.engine.provider_pool import provider_pool_of
from tests.engine.rig import Rig, contacts, dispatching, given_workspace, people
from tests.engine.test_recovering import CONFIG, Databases, Restored, goes_on, paused, phones_of, restored

pytestmark = pytest.mark.virtual_time


async def both_sent(rig: Rig, campaign: Campaign) -> None:
    """Send to the other two contacts, and stop."""
    carrier = rig.carrier
    await carrier.wait_for_requests(3, timeout_seconds=600)
    await anyio.sleep(5)


def lists_of(found: Restored, carrier: ScriptedCarrier | None = None) -> CampaignSentLists:
    """Return the part that asks the carrier."""
    pool = provider_pool_of(carrier or found.rig.carrier, ScriptedVoice())
    return CampaignSentLists(found.rig.engine._context, lambda _: pool)


async def marked(
    found: Restored, listed: Sequence[SentRequest], *, lists_sent: bool = True, known: frozenset[str] = frozenset()
) -> ListedContacts:
    """Mark whom the carrier lists; what was counted before is what is done."""
    carrier = ScriptedCarrier(lists_sent=lists_sent)
    carrier.listed = list(listed)
    part, place = lists_of(found, carrier), (found.campaign.workspace_id, found.campaign.id)
    counted = await part.take_over_sent(*place, known=known, dry_run=True)
    assert await part.take_over_sent(*place, known=known, dry_run=False) == counted
    again = await part.take_over_sent(*place, known=known, dry_run=True)
    assert again.contacts == 0
    return counted


async def test_what_the_provider_lists_is_not_sent_again(tmp_path: Path) -> None:
    """Without the replaced database: two of three contacts were reached after the backup."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        assert await marked(found, before.listed) == ListedContacts(provider="twilio", contacts=2)
        ended = await goes_on(found.rig, found.campaign)
        recounted = await found.rig.engine.campaigns.recount(ended.workspace_id, ended.id)
        assert ended.counters == recounted
        assert ended.counters.successful == 3
        assert phones_of([*before.reached, *found.rig.carrier.reached]).total() == 3
        audit = await found.rig.engine.audit.list(ended.workspace_id)
        assert any("2 contacts of the list of twilio" in (one.detail or "") for one in audit)


async def test_those_who_are_not_listed_are_contacted(tmp_path: Path) -> None:
    """Nobody is lost."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        assert (await marked(found, before.listed[:2])).contacts == 1
        await goes_on(found.rig, found.campaign)
        assert phones_of(found.rig.carrier.reached) == phones_of(before.reached[2:])


async def test_what_the_replaced_database_has_is_counted_there(tmp_path: Path) -> None:
    """The provider's part is what that database does not have; after it nothing is left to mark."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        place, seen = (found.campaign.workspace_id, found.campaign.id), set[str]()
        counted = await take_over(found.rig.engine, found.replaced, *place, seen=seen, dry_run=True, actor="test")
        assert counted.sent == 2
        carrier = ScriptedCarrier(lists_sent=True)
        carrier.listed = before.listed
        part = lists_of(found, carrier)
        assert await part.take_over_sent(*place, known=seen, dry_run=True) == ListedContacts(provider="twilio")
        await take_over(found.rig.engine, found.replaced, *place, dry_run=False, actor="test")
        assert await part.take_over_sent(*place) == ListedContacts(provider="twilio")


async def test_what_was_sent_since_the_restore_hides_nothing(tmp_path: Path) -> None:
    """A campaign that was resumed too early sends to one of two contacts; the list still names the other one."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        place = (found.campaign.workspace_id, found.campaign.id)
        await found.rig.engine.campaigns.resume(*place)
        await found.rig.carrier.wait_for_requests(1, timeout_seconds=600)
        await anyio.sleep(5)
        await found.rig.engine.campaigns.pause(*place)
        listed = [*before.listed, *found.rig.carrier.listed]
        assert await marked(found, listed) == ListedContacts(provider="twilio", contacts=1)
        await goes_on(found.rig, found.campaign)
        assert len(found.rig.carrier.reached) == 1


async def test_what_was_taken_over_hides_nothing(tmp_path: Path) -> None:
    """The replaced database may lack a request that is older than its last one, so all are listed again."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        storage = found.rig.storage
        since = await storage.read(lambda tx: ledger.sent_since(tx, found.campaign))
        assert (await found.take_over()).sent == 2
        assert await storage.read(lambda tx: ledger.sent_since(tx, found.campaign)) == since


async def test_what_the_replaced_database_has_is_never_marked_by_the_list(tmp_path: Path) -> None:
    """Where it was not taken over, because this database has sent to the contact since, the contact stays as it is."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        known = frozenset(one.dispatch_id for one in before.listed if one.dispatch_id is not None)
        assert await marked(found, before.listed, known=known) == ListedContacts(provider="twilio")


@pytest.mark.parametrize("body", [None, "Another text"])
async def test_an_ambiguous_request_counts_as_sent(tmp_path: Path, body: str | None) -> None:
    """Without the text, or with another one, it may have been this campaign's."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        unclear = [attrs.evolve(one, body=body, dispatch_id=None) for one in before.listed]
        assert await marked(found, unclear) == ListedContacts(provider="twilio", contacts=2, ambiguous=2)
        await goes_on(found.rig, found.campaign)
        assert not found.rig.carrier.reached


async def test_a_run_that_was_ended_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one slice has marked does not hide what the next one would have."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        carrier = ScriptedCarrier(lists_sent=True)
        carrier.listed = list(before.listed)
        part, place = lists_of(found, carrier), (found.campaign.workspace_id, found.campaign.id)
        monkeypatch.setattr(listing_sent, "_SLICE", 1)
        mark, left = ledger.mark_listed, iter([True, True])

        def ends(*args: Any, **kwargs: Any) -> ListedContacts:
            if next(left, None) is None:
                raise StorageError("The process has ended.")
            return mark(*args, **kwargs)

        monkeypatch.setattr(ledger, "mark_listed", ends)
        with pytest.raises(StorageError):
            # The first contact is known, the second one is marked, the third one is not.
            await part.take_over_sent(*place)
        monkeypatch.setattr(ledger, "mark_listed", mark)
        assert await part.take_over_sent(*place) == ListedContacts(provider="twilio", contacts=1)
        await goes_on(found.rig, found.campaign)
        assert not found.rig.carrier.reached


async def test_an_ambiguous_request_is_left_to_other_campaigns(tmp_path: Path) -> None:
    """Each of them may have made it, so it counts for each."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        unclear = [attrs.evolve(one, body=None, dispatch_id="Call by hand") for one in before.listed]
        await marked(found, unclear)
        ids = {one.outcome.provider_id for one in unclear[1:]}
        place = (found.campaign.workspace_id, found.campaign.id)
        made = [one for n in range(3) for one in await found.rig.engine.campaigns.list_dispatches(*place, n)]
        assert len(made) == 3
        assert not ids & {one.provider_id for one in made}


async def test_two_requests_with_the_same_text_are_ambiguous(tmp_path: Path) -> None:
    """One of them is taken over."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        last = before.listed[-1]
        outcome = attrs.evolve(last.outcome, provider_id="another")
        twice = [*before.listed, attrs.evolve(last, outcome=outcome, dispatch_id=None)]
        assert (await counted(found, twice)) == ListedContacts(provider="twilio", contacts=2, ambiguous=1)


async def counted(found: Restored, listed: Sequence[SentRequest]) -> ListedContacts:
    """Count whom the carrier lists."""
    carrier = ScriptedCarrier(lists_sent=True)
    carrier.listed = list(listed)
    part = lists_of(found, carrier)
    return await part.take_over_sent(found.campaign.workspace_id, found.campaign.id, dry_run=True)


async def test_requests_to_others_and_from_before_are_left_alone(tmp_path: Path) -> None:
    """So is what this database has sent itself."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        known, missing = before.listed[0], before.listed[1]
        elsewhere = attrs.evolve(missing, to="+14155559999")
        assert await counted(found, [known, elsewhere]) == ListedContacts(provider="twilio")


async def test_a_flow_goes_on_after_the_step_that_is_listed(tmp_path: Path) -> None:
    """Each text is recognised as that of its step: nobody gets one again."""
    flow = NewFlow(
        name="F",
        steps=[
            FlowStep(kind="send", body="One"),
            FlowStep(kind="wait", wait_minutes=5),
            FlowStep(kind="send", body="Two"),
        ],
    )

    async def some_sent(rig: Rig, campaign: Campaign) -> None:
        await rig.carrier.wait_for_requests(4, timeout_seconds=1200)
        await anyio.sleep(5)

    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, some_sent, flow=flow) as found:
        await marked(found, before.listed)
        await goes_on(found.rig, found.campaign)
        got = Counter((one.to, one.body.split()[0]) for one in (*before.reached, *found.rig.carrier.reached))
        assert got == Counter((one.phone_number, text) for one in contacts(3) for text in ("One", "Two"))


class Broken(ScriptedCarrier):
    """A carrier whose list ends early."""

    async def list_sent(self, query: SentQuery) -> Sequence[SentRequest]:
        """Fail."""
        raise SentListFailed("its list has more than 3 pages")


async def test_a_list_that_is_not_complete_changes_nothing(tmp_path: Path) -> None:
    """Who is missing in it would be contacted again."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        part = lists_of(found, Broken(lists_sent=True))
        with pytest.raises(Conflict, match=r"twilio has not listed all .* more than 3 pages"):
            await part.take_over_sent(found.campaign.workspace_id, found.campaign.id)
        assert len([one for one in await people(found.rig.engine, found.campaign) if one.attempts]) == 1


async def test_a_provider_that_cannot_list_is_not_asked(tmp_path: Path) -> None:
    """The result names none."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        assert await marked(found, before.listed, lists_sent=False) == ListedContacts()


async def test_only_a_paused_campaign_is_compared(tmp_path: Path) -> None:
    """Otherwise it would send meanwhile."""
    before = ScriptedCarrier(look_up="authoritative")
    async with restored(tmp_path, before, both_sent) as found:
        await found.rig.engine.campaigns.resume(found.campaign.workspace_id, found.campaign.id)
        with pytest.raises(Conflict, match="Pause it first"):
            await counted(found, before.listed)


async def test_listed_calls_are_not_placed_again(tmp_path: Path) -> None:
    """They go on as placed ones: a report or a look-up brings their end."""
    databases = Databases(tmp_path)
    voice = ScriptedVoice(then=accept().answered(talk_seconds=30.0))
    async with dispatching(databases.open("original"), voice=voice, config=CONFIG) as rig:
        workspace = await given_workspace(rig.engine)
        agent = await rig.engine.agents.create(workspace.id, NewAgent(name="Ada"))
        new = NewCallCampaign(name="C", agent_id=agent.id, batch_concurrency=1)
        campaign = (await rig.engine.campaigns.create_call(workspace.id, new, contacts(3))).campaign
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await voice.wait_for_requests(1)
        await anyio.sleep(10)
        databases.copy("original", "copy")
        await voice.wait_for_requests(2, timeout_seconds=600)
        await anyio.sleep(2)
        await rig.engine.campaigns.pause(workspace.id, campaign.id)
    await anyio.sleep(120)
    after = ScriptedVoice(then=accept().answered(), lists_sent=True)
    after.listed = voice.listed
    async with (
        Outreach(databases.open("original"), clock=clock_of_loop(), config=CONFIG) as replaced,
        dispatching(databases.open("copy"), voice=after, config=CONFIG) as rig,
    ):
        found = Restored(rig=rig, replaced=replaced, campaign=await paused(rig, campaign))
        part = CampaignSentLists(rig.engine._context, lambda _: provider_pool_of(ScriptedCarrier(), after))
        listed = await part.take_over_sent(workspace.id, campaign.id)
        assert listed == ListedContacts(provider=agent.provider, contacts=1)
        hear(after, voice.requests[0], status=CallStatus.COMPLETED, outcome="positive")
        hear(after, voice.requests[1], status=CallStatus.COMPLETED, outcome="positive")
        await goes_on(rig, found.campaign)
    reached = Counter(request.to for request in (*voice.reached, *after.reached))
    assert reached == Counter(one.phone_number for one in contacts(3))
