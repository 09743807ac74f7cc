from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import attrs
import pytest

from outreach import (
    Campaign,
    EngineConfig,
    NewAgent,
    NewCallCampaign,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
    WorkspaceMode,
)
from outreach.models.campaign import Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState
from outreach.protocols import SystemClock
from outreach.protocols.storage import Storage
from outreach.storage.postgres import postgres_storage_from_url
from outreach.storage.sqlite import SqliteStorage
from outreach.testing.fault_server import Answer, Fault, FaultServer, Received
from tests import postgres
from tests.engine.rig import QUICK, people, reaches, until
from tests.providers.carriers import CARRIERS, SENDER
from tests.providers.parts import PUBLIC_URL, Part
from tests.providers.voices import VOICES

pytestmark = pytest.mark.anyio

CONTACTS: Final = 20
MOST: Final = 3
"""How many requests an account alone may have on their way of four (`FairLimiter`)."""

PATIENT: Final = attrs.evolve(QUICK, public_url=PUBLIC_URL, call_poll_seconds=0.5)
IMPATIENT: Final = attrs.evolve(PATIENT, provider_timeout_seconds=1.0)
"""For a provider that never answers; all else may take its time on a machine that is busy."""

PARTS: Final[Any] = pytest.mark.parametrize("part_of", [*CARRIERS, *VOICES])


@attrs.frozen(kw_only=True)
class Rig:
    """An engine that dispatches a campaign of one contact, and the provider that it asks.

    Attributes:
        provider: Has faults.
    """

    part: Part
    engine: Outreach
    workspace_id: str
    provider: FaultServer

    async def start(self, contacts: int = 1) -> Campaign:
        """Start a campaign with so many contacts."""
        person = [NewRecipient(phone_number=f"+1415555{100 + n:04d}") for n in range(contacts)]
        if self.part.channel == "sms":
            sms = NewSmsCampaign(
                name="Spring",
                body="Hi!",
                carrier=self.part.name,
                from_number=SENDER,
                rate_per_minute=600,
            )
            await self._own(SENDER)
            made = (await self.engine.campaigns.create_sms(self.workspace_id, sms, person)).campaign
        else:
            agent = await self.engine.agents.create(
                self.workspace_id,
                NewAgent(name="Ada", provider=self.part.name, provider_agent_id="agent-1", from_number=SENDER),
            )
            call = NewCallCampaign(name="Calls", agent_id=agent.id, batch_concurrency=40)
            made = (await self.engine.campaigns.create_call(self.workspace_id, call, person)).campaign
        return await self.engine.campaigns.start(self.workspace_id, made.id)

    async def _own(self, phone: str) -> None:
        """Add a number to the workspace, if it has it not."""
        owned = {number.phone async for number in self.engine.numbers.iter_all(self.workspace_id)}
        if phone not in owned:
            await self.engine.numbers.create(self.workspace_id, NewNumber(phone=phone))

    @property
    def posts(self) -> list[str]:
        """Which dispatches the provider was asked for, by the requests that arrived whole."""
        return [self.part.dispatch_id(one) for one in self.provider.requests if self.part.asks(one)]

    async def dispatches(self, campaign: Campaign, position: int = 0) -> list[Dispatch]:
        """Return what the ledger holds of a contact, oldest first."""
        return list(await self.engine.campaigns.list_dispatches(self.workspace_id, campaign.id, position))

    async def settled(self, campaign: Campaign, count: int = 1) -> list[Dispatch]:
        """Wait until so many dispatches have an outcome, and return all."""

        async def there() -> list[Dispatch] | None:
            found = await self.dispatches(campaign)
            done = [one for one in found if one.state is not DispatchState.DISPATCHING]
            return found if len(done) >= count else None

        found: list[Dispatch] = await until(there)
        return found

    async def person(self, campaign: Campaign) -> Recipient:
        """Return the one contact."""
        (one,) = await people(self.engine, campaign)
        return one


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.turn(16, "what is made of an answer is the same on SQLite")),
    ]
)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """An empty storage."""
    if request.param == "postgres":
        return postgres_storage_from_url(postgres.empty_database(), clock=SystemClock())
    return SqliteStorage(tmp_path / "o.db", clock=SystemClock())


@asynccontextmanager
async def rig(storage: Storage, part: Part, config: EngineConfig = PATIENT) -> AsyncIterator[Rig]:
    """Open an engine, and a provider that accepts until something else is said."""
    async with (
        FaultServer(part.stand_in.accept) as provider,
        Outreach(storage, dispatch=True, config=config) as engine,
    ):
        workspace = await engine.workspaces.create(
            NewWorkspace(
                name="Live",
                mode=WorkspaceMode.LIVE,
                sms_campaigns_enabled=True,
                contact_hours=False,
                request_limit=None,
                default_region="US",
            )
        )
        await engine.accounts.connect(workspace.id, part.name, {**part.credentials, "api_base": provider.url})
        yield Rig(part=part, engine=engine, workspace_id=workspace.id, provider=provider)


@PARTS
@pytest.mark.sample(5, turn=4)
@pytest.mark.parametrize("fault", ["drop_before", "drop_during", "drop_after", "silence"])
async def test_a_request_on_a_lost_connection_is_unknown_and_not_repeated(
    storage: Storage, part_of: type[Part], fault: Fault
) -> None:
    """The same for a network that fails, whenever it does: one connection was made, and no other."""
    async with rig(storage, part_of(), IMPATIENT if fault == "silence" else PATIENT) as here:
        here.provider.fault = fault
        campaign = await here.start()
        (dispatch,) = await here.settled(campaign)
        assert (dispatch.state, dispatch.reason) == ("unknown", "timeout" if fault == "silence" else "dropped")
        assert (await here.person(campaign)).status == "unknown"
        assert here.posts == ([dispatch.id] if fault in {"drop_after", "silence"} else [])
        assert here.provider.connections == 1


@PARTS
@pytest.mark.sample(5, turn=4)
@pytest.mark.parametrize(("headers", "seconds"), [({}, 0.0), ({"retry-after": "1"}, 1.0)], ids=["429", "retry-after"])
async def test_a_provider_that_is_busy_is_asked_again_later(
    storage: Storage, part_of: type[Part], headers: Mapping[str, str], seconds: float
) -> None:
    """Deferred, without an attempt spent; the next try is another dispatch, asked once.

    docs/delivery-contract.md#rule-7.
    """
    asked_at: list[float] = []

    def answer(request: Received) -> Answer:
        if here.part.asks(request):
            asked_at.append(time.monotonic())
            if len(asked_at) == 1:
                return Answer(status=429, headers=headers)
        return here.part.stand_in.accept(request)

    async with rig(storage, part_of()) as here:
        here.provider.answer = answer
        campaign = await here.start()
        first, second = await here.settled(campaign, 2)
        assert (first.state, first.reason) == ("deferred", "rate_limited")
        assert (second.state, second.attempt, second.try_number) == ("accepted", first.attempt, first.try_number + 1)
        assert here.posts == [first.id, second.id]
        assert asked_at[1] - asked_at[0] >= seconds


@pytest.mark.soak("waits as long as a provider asks for")
@PARTS
@pytest.mark.parametrize("status", [429, 503])
async def test_a_throttle_holds_for_all_contacts(storage: Storage, part_of: type[Part], status: int) -> None:
    """docs/delivery-contract.md#rule-7: Retry-After is for the account; until it is over nothing goes out, then all.

    What a 503 did with its own request stays unknown (rule 5).
    """
    turned_away: list[float] = []

    def answer(request: Received) -> Answer:
        # A little less than it says: its clock is not the engine's.
        if here.part.asks(request) and (not turned_away or time.monotonic() < turned_away[0] + 1.9):
            turned_away.append(time.monotonic())
            return Answer(status=status, headers={"retry-after": "2"})
        return here.part.stand_in.accept(request)

    async with rig(storage, part_of(), attrs.evolve(PATIENT, max_requests_in_flight=MOST + 1)) as here:
        here.provider.answer = answer
        campaign = await here.start(CONTACTS)

        async def all_tried() -> list[list[Dispatch]] | None:
            tried = [await here.dispatches(campaign, position) for position in range(CONTACTS)]
            return tried if all(one and one[-1].state in {"accepted", "unknown"} for one in tried) else None

        tried = await until(all_tried)
        # The bound on what is on its way is the bound on what an impatient engine costs.
        assert 1 <= len(turned_away) <= MOST
        ends = Counter(one.state for dispatches in tried for one in dispatches)
        refused = "deferred" if status == 429 else "unknown"
        assert ends[refused] == len(turned_away)
        assert ends["accepted"] == CONTACTS - ends["unknown"]
        assert set(ends) <= {"accepted", "withdrawn", refused}
        assert all(one.attempt == 1 for dispatches in tried for one in dispatches)
        assert len(here.posts) == len(set(here.posts)) == ends["accepted"] + ends[refused]


@PARTS
@pytest.mark.parametrize(("status", "reason"), [(402, "provider_funds"), (401, "provider_auth")])
async def test_an_account_in_trouble_pauses_the_campaign_and_loses_nobody(
    storage: Storage, part_of: type[Part], status: int, reason: str
) -> None:
    """docs/rules.md#error-budget: paused with the reason; resumed, the contact is reached, once."""
    async with rig(storage, part_of()) as here:
        here.provider.answer = lambda _: Answer(status=status, body=b"{}")
        campaign = await here.start()
        assert (await reaches(here.engine, campaign, "paused")).pause_reason == reason
        (refused,) = await here.dispatches(campaign)
        assert (refused.state, refused.reason) == ("refused", reason)
        assert (await here.person(campaign)).status == "waiting"
        assert here.posts == [refused.id]
        here.provider.answer = here.part.stand_in.accept
        await here.engine.campaigns.resume(here.workspace_id, campaign.id)
        _, accepted = await here.settled(campaign, 2)
        assert accepted.state == "accepted"
        assert here.posts == [refused.id, accepted.id]


def _whole(header: str, value: str, headers: Mapping[str, str]) -> str:
    return f"{header}: {value}, {json.dumps(dict(headers))}"


def _shortened(header: str, value: str, headers: Mapping[str, str]) -> str:
    return f"the key {value.split()[-1][:14]}... is not known"


def _escaped(header: str, value: str, headers: Mapping[str, str]) -> str:
    return f"?key={quote(value.split()[-1], safe='')}&x=1"


def _at_the_cut(header: str, value: str, headers: Mapping[str, str]) -> str:
    # Our own adapters keep some hundred characters.
    return f"{'x' * (300 - 20 - len('Bad request: '))}{value.split()[-1]}"


@PARTS
@pytest.mark.parametrize("repeat", [_whole, _shortened, _escaped, _at_the_cut])
async def test_a_refusal_that_repeats_the_request_leaves_no_secret_in_the_ledger(
    storage: Storage, part_of: type[Part], repeat: Callable[[str, str, Mapping[str, str]], str]
) -> None:
    """Nor what was made of one for a header: neither in a request's error nor in that of a call."""

    def repeated(request: Received) -> Answer:
        header = next(name for name in ("authorization", "xi-api-key") if name in request.headers)
        words = f"Bad request: {repeat(header, request.headers[header], request.headers)}"
        said = dict.fromkeys(("message", "detail", "title", "error"), words)
        return Answer(status=422, body=json.dumps({**said, "errors": [said]}).encode())

    async with rig(storage, part_of()) as here:
        here.provider.answer = repeated
        campaign = await here.start()
        (dispatch,) = await here.settled(campaign)
        assert dispatch.state == "refused"
        (request,) = here.provider.requests
        sent = request.headers.get("authorization", request.headers.get("xi-api-key", "")).split()[-1]
        errors = [call.error or "" for call in (await here.engine.calls.list(here.workspace_id)).items]
        stored = " ".join([dispatch.error_message or "", *errors])
        assert "Bad request:" in stored
        assert "[removed]" in stored
        assert sent[:12] not in stored
        assert not [one for one in part_of.credentials.values() if len(one) > 12 and one[:12] in stored]


@PARTS
async def test_a_tls_handshake_that_stalls_sends_nothing(storage: Storage, part_of: type[Part]) -> None:
    """The connection was never there: nobody is unknown, and the contact is reached when the provider is back."""
    stalled: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: stalled.append(writer), "127.0.0.1", 0)
    address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with rig(storage, part_of(), IMPATIENT) as here:
        account = (await here.engine.accounts.list(here.workspace_id)).items[0]
        credentials = {**part_of.credentials, "api_base": address}
        await here.engine.accounts.connect(here.workspace_id, account.provider, credentials)
        campaign = await here.start()
        (dispatch, *_) = await here.settled(campaign)
        assert (dispatch.state, dispatch.reason, dispatch.error_code) == ("not_sent", "not_connected", "ConnectTimeout")
        assert stalled
        credentials = {**part_of.credentials, "api_base": here.provider.url}
        await here.engine.accounts.connect(here.workspace_id, account.provider, credentials)

        async def accepted() -> bool:
            return (await here.dispatches(campaign))[-1].state is DispatchState.ACCEPTED

        await until(accepted)
        states = [one.state for one in await here.dispatches(campaign)]
        assert {*states[:-1]} == {DispatchState.NOT_SENT}
        assert len(here.posts) == 1
    for writer in stalled:
        writer.close()
    server.close()
    await server.wait_closed()
