"""Lists: one pattern for all of them."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach import InvalidRequest, Outreach, Page
from outreach import sync as plain
from outreach.models.base import MAX_PAGE_ITEMS
from outreach.models.states import DispatchState
from outreach.models.unreachable import UnreachableNumber
from outreach.models.upload import Upload
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_account,
    make_agent,
    make_audit_entry,
    make_call,
    make_callback,
    make_campaign,
    make_dispatch,
    make_flow,
    make_inbound,
    make_invitation,
    make_key,
    make_membership,
    make_message,
    make_number,
    make_occurrence,
    make_prepared,
    make_schedule,
    make_session,
    make_subscription,
    make_trunk,
    make_unsubscribe,
    make_user,
    make_webhook,
    make_webhook_attempt,
    make_workspace,
    new_id,
)
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, pending, publish
from tests.engine.conftest import OpenStorage, given_workspaces
from tests.engine_services import SERVICES, services_of

pytestmark = pytest.mark.anyio

COUNT = 5
PROVIDERS = ("twilio", "telnyx", "vonage", "vapi", "retell")


def methods(engine: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return the public methods of the services by name, such as `agents.list`."""
    for service, instance in services_of(engine):
        for name, method in inspect.getmembers(instance, inspect.ismethod):
            yield f"{service}.{name}", method


LISTS = {
    name
    for name, _ in methods(Outreach.open("memory://"))
    if name.partition(".")[2].startswith("list") and not name.startswith("http.")
}
CAMPAIGN = make_campaign(id="0195554e-0000-7000-8000-00000000ca11")

SCHEDULE = make_schedule(id="0195554e-0000-7000-8000-00000000ca14")
WEBHOOK = make_webhook(id="0195554e-0000-7000-8000-00000000ca15")

USER = make_user(id="0195554e-0000-7000-8000-00000000ca13")

ARGUMENTS = {
    "workspaces.list": (),
    "events.list_subscriptions": (),
    "campaigns.list_appearances": (THIS_WORKSPACE, "crm-7"),
    "campaigns.list_dispatches": (THIS_WORKSPACE, CAMPAIGN.id, 0),
    "campaigns.list_recipients": (THIS_WORKSPACE, CAMPAIGN.id),
    "contacts.list_history": (THIS_WORKSPACE, "+14155550400"),
    "schedules.list_occurrences": (THIS_WORKSPACE, SCHEDULE.id),
    "webhooks.list_attempts": (THIS_WORKSPACE, WEBHOOK.id),
    "users.list": (),
    "sessions.list": (USER.id,),
}


def of(engine: Outreach, name: str) -> tuple[Callable[..., Any], Callable[..., AsyncIterator[Any]], tuple[Any, ...]]:
    """Return a list, its iterator, and what both take first."""
    service, _, method = name.partition(".")
    listed = getattr(engine, service)
    return getattr(listed, method), getattr(listed, iterator_of(method)), ARGUMENTS.get(name, (THIS_WORKSPACE,))


def iterator_of(method: str) -> str:
    """Return the name of the iterator over a list."""
    return "iter_all" if method == "list" else method.replace("list_", "iter_", 1)


def make_upload(created_at: datetime) -> Upload:
    """Return an upload of a list that is still to come."""
    return Upload(
        id=new_id(),
        workspace_id=THIS_WORKSPACE,
        file_name="list.csv",
        size_bytes=10,
        received_bytes=0,
        created_at=created_at,
        expires_at=created_at + timedelta(days=1),
    )


def make_unreachable(phone: str) -> UnreachableNumber:
    """Return a number that takes no messages."""
    return UnreachableNumber(
        workspace_id=THIS_WORKSPACE,
        phone=phone,
        channel="sms",
        provider="twilio",
        error_code="30006",
        reported_at=NOW,
    )


def fill(tx: Transaction) -> None:
    """Write some of everything, created at the same moment and an instant later."""
    publish(tx, CAMPAIGN, pending(*(make_prepared(external_id="crm-7") for _ in range(COUNT))))
    tx.schedules.insert(SCHEDULE)
    tx.webhooks.insert(WEBHOOK)
    tx.users.insert(USER)
    for number in range(COUNT):
        at = {"created_at": NOW + timedelta(microseconds=number // 2)}
        tx.workspaces.insert(make_workspace(id=new_id(), **at))
        agent, message = make_agent(name=f"Agent {number}", **at), make_message(**at)
        tx.agents.insert(agent)
        tx.messages.insert(message)
        tx.trunks.insert(make_trunk(**at))
        tx.numbers.insert(make_number(phone=f"+1415555010{number}", **at))
        tx.flows.insert(make_flow(**at))
        tx.schedules.insert(make_schedule(**at))
        tx.webhooks.insert(make_webhook(**at))
        tx.webhook_attempts.insert(make_webhook_attempt(webhook_id=WEBHOOK.id))
        planned = NOW + timedelta(days=number)
        tx.occurrences.insert(make_occurrence(schedule_id=SCHEDULE.id, at=planned))
        tx.keys.insert(make_key(workspace_id=THIS_WORKSPACE, **at))
        tx.accounts.insert(make_account(provider=PROVIDERS[number], **at))
        tx.uploads.insert(make_upload(**at))
        tx.unreachable_numbers.put(make_unreachable(f"+1415555060{number}"))
        tx.audit.append(make_audit_entry(subject=str(number)))
        tx.calls.insert(make_call(agent_id=agent.id, **at))
        tx.dispatches.insert(make_dispatch(state=DispatchState.UNKNOWN, message_id=message.id, **at))
        of_recipient = {"campaign_id": CAMPAIGN.id, "position": 0, "state": DispatchState.ACCEPTED}
        tx.dispatches.insert(make_dispatch(attempt=number + 1, try_number=number + 1, **of_recipient, **at))
        user = make_user(**at)
        tx.users.insert(user)
        tx.memberships.put(make_membership(user_id=user.id, **at))
        tx.sessions.insert(make_session(user_id=USER.id, **at))
        tx.invitations.insert(make_invitation(**at))
        tx.subscriptions.put(make_subscription(name=f"billing {number}"))
        tx.inbound.insert(make_inbound(from_number="+14155550400", received_at=at["created_at"]))
        tx.callbacks.insert(make_callback(event_id=f"a~{number}", received_at=at["created_at"]))
        tx.register.put(make_unsubscribe(phone=f"+1415555020{number}", **at))
        tx.register.put(make_unsubscribe(phone=f"+1415555030{number}", scope="held", source="unclear", **at))
        publish(tx, make_campaign(**at), pending(make_prepared(external_id="crm-7")))


@pytest.fixture
async def filled(open_storage: OpenStorage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine over a database that has several of everything."""
    storage = open_storage(clock)
    async with Outreach(storage, clock=clock) as engine:
        await given_workspaces(storage)
        await storage.write(fill)
        yield engine


def test_every_list_returns_a_page_and_has_an_iterator() -> None:
    """Both take the same but for `after` and `limit`, in asynchronous and in synchronous code."""
    for engine in (Outreach.open("memory://"), plain.Outreach.open("memory://")):
        known = dict(methods(engine))
        found = {name for name in known if name.partition(".")[2].startswith("list") and not name.startswith("http.")}
        assert len(found) > 15
        assert found == LISTS
        for name in found:
            service, _, method = name.partition(".")
            listed, every = (inspect.signature(known[one]) for one in (name, f"{service}.{iterator_of(method)}"))
            assert listed.return_annotation.startswith("Page["), name
            after, limit = listed.parameters["after"], listed.parameters["limit"]
            assert (after.annotation, after.default, after.kind) == ("str | None", None, after.KEYWORD_ONLY)
            assert (limit.annotation, limit.default, limit.kind) == ("int", 100, limit.KEYWORD_ONLY)
            rest = [one for one in listed.parameters.values() if one.name not in {"after", "limit"}]
            assert rest == list(every.parameters.values()), name
            kind = "AsyncIterator" if isinstance(engine, Outreach) else "Iterator"
            assert every.return_annotation == listed.return_annotation.replace("Page", kind), name


@pytest.mark.parametrize("kind", [Outreach, plain.Outreach])
def test_dir_lists_the_services(kind: type[Outreach | plain.Outreach]) -> None:
    """Of an engine that is not open yet, too: what has documentation, and its methods."""
    listed = {name for name in dir(kind.open("memory://")) if not name.startswith("_")}
    services = {name for name in SERVICES if inspect.getdoc(getattr(Outreach, name))}
    methods = {"open", "now", "health", *(("start", "close") if kind is plain.Outreach else ())}
    assert len(services) > 20
    assert listed == services | methods


async def test_the_pages_of_a_list_have_every_item_once(filled: Outreach) -> None:
    """Also those of one moment, whatever the size of the pages; the last page says that it is the last."""
    for name in sorted(LISTS):
        listed, iterate, arguments = of(filled, name)
        whole: Page[Any] = await listed(*arguments, limit=MAX_PAGE_ITEMS)
        assert whole.next is None
        assert len(whole) >= COUNT
        assert [item async for item in iterate(*arguments)] == list(whole)
        for limit in (1, 2, len(whole) - 1, len(whole)):
            found: list[Any] = []
            after = None
            for _ in whole:
                page: Page[Any] = await listed(*arguments, after=after, limit=limit)
                assert 0 < len(page) <= limit
                found += page
                after = page.next
                if after is None:
                    break
            assert found == list(whole)


async def test_what_is_no_place_in_a_list_is_refused(filled: Outreach) -> None:
    """The message says what `after` has to be, and what the limit may be."""
    for name in sorted(LISTS):
        listed, _, arguments = of(filled, name)
        for limit in (0, MAX_PAGE_ITEMS + 1, "7", None, True):
            with pytest.raises(InvalidRequest) as raised:
                await listed(*arguments, limit=limit)
            assert [detail.path for detail in raised.value.details] == ["limit"]
        for after in (7, "a\x00b", "\ud800", "nonsense", "", "~", "2026-01-01T00:00:00Z~a", "1", "²", "+14155550200"):
            with pytest.raises(InvalidRequest) as raised:
                await listed(*arguments, after=after)
            assert [detail.path for detail in raised.value.details] == ["after"]


async def test_a_cursor_of_another_list_is_refused(filled: Outreach) -> None:
    """Also one of the same list of another workspace, campaign or contact; no cursor shows a phone number."""
    cursors: dict[str, str] = {}
    for name in sorted(LISTS):
        listed, _, arguments = of(filled, name)
        cursor = (await listed(*arguments, limit=1)).next
        assert len(await listed(*arguments, after=cursor)) > 0
        assert "415555" not in cursor
        cursors[name] = cursor
    for name in sorted(LISTS):
        listed, _, arguments = of(filled, name)
        foreign = [cursor for other, cursor in cursors.items() if other != name]
        for after in (*foreign, cursors[name][:-1], cursors[name].swapcase()):
            with pytest.raises(InvalidRequest):
                await listed(*arguments, after=after)
        for number in range(len(arguments)):
            elsewhere = [*arguments]
            elsewhere[number] = 1 if elsewhere[number] == 0 else OTHER_WORKSPACE
            with pytest.raises(InvalidRequest):
                await listed(*elsewhere, after=cursors[name])


async def test_what_is_removed_between_two_pages_hides_nothing(filled: Outreach) -> None:
    """A page begins behind the place of the last item, whether or not that item is still there."""
    first = await filled.trunks.list(THIS_WORKSPACE, limit=2)
    whole = list(await filled.trunks.list(THIS_WORKSPACE))
    await filled.trunks.remove(THIS_WORKSPACE, first.items[-1].id)
    assert list(await filled.trunks.list(THIS_WORKSPACE, after=first.next)) == whole[2:]
    held = await filled.unsubscribes.list_held(THIS_WORKSPACE, limit=2)
    rest = [entry async for entry in filled.unsubscribes.iter_held(THIS_WORKSPACE)][2:]
    for entry in held:
        await filled.unsubscribes.resolve(THIS_WORKSPACE, entry.phone, opted_out=entry is held.items[0])
    assert list(await filled.unsubscribes.list_held(THIS_WORKSPACE, after=held.next)) == rest


async def test_an_iterator_reads_in_bounded_pages(filled: Outreach) -> None:
    """More than one read has: all of them come, in order."""
    await filled.unsubscribes.add(THIS_WORKSPACE, *(f"+1212555{last:04d}" for last in range(1100)))
    found = [entry.phone async for entry in filled.unsubscribes.iter_all(THIS_WORKSPACE)]
    assert found == sorted(found)
    assert len(found) == len(set(found)) == 1100 + 2 * COUNT


async def test_only_campaigns_are_counted(filled: Outreach) -> None:
    """The total is that of all pages."""
    page = await filled.campaigns.list(THIS_WORKSPACE, limit=2)
    assert (len(page), page.total) == (2, COUNT + 1)
    assert (await filled.campaigns.list(THIS_WORKSPACE, after=page.next, limit=2)).total == COUNT + 1
    assert (await filled.agents.list(THIS_WORKSPACE, limit=2)).total is None


def test_a_page_is_gone_through_like_its_items() -> None:
    """An empty one is false."""
    page = Page(items=("a", "b"), next="b")
    assert (list(page), len(page), bool(page)) == (["a", "b"], 2, True)
    assert not Page[str](items=())
    assert attrs.evolve(page, next=None) != page
