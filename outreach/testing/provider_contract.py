"""What the contracts of carriers and of voice providers share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final, Literal, Protocol

import anyio
import pytest

from outreach.models.dispatch import FAILURE_CLASSES, DispatchOutcome
from outreach.models.states import DispatchState
from outreach.protocols.carrier import CarrierCapabilities, ListsSent, LookupRequest
from outreach.protocols.sent_list import SentListFailed, SentQuery, SentRequest
from outreach.protocols.voice import VoiceCapabilities
from outreach.testing.builders import WORKSPACE_ID, new_id

__all__ = ["ProviderHarness", "Scenario"]

Scenario = Literal[
    "accepts",
    "refuses_for_good",
    "refuses_for_now",
    "too_busy",
    "cannot_be_reached",
    "drops_the_connection",
    "does_not_answer",
    "times_out",
    "cuts_the_answer",
    "has_an_error",
    "answers_307",
    "answers_408",
    "answers_500",
    "answers_502",
    "answers_504",
    "answers_nonsense",
]
"""What a provider, or the network before it, can do to one request.

The test cancels a request that gets no answer (`does_not_answer`), or the adapter's time-out ends it (`times_out`).
"""

OUTCOMES: Final[Mapping[Scenario, DispatchState]] = {
    "accepts": DispatchState.ACCEPTED,
    "refuses_for_good": DispatchState.REFUSED,
    "refuses_for_now": DispatchState.REFUSED,
    "too_busy": DispatchState.DEFERRED,
    "cannot_be_reached": DispatchState.NOT_SENT,
    "drops_the_connection": DispatchState.UNKNOWN,
    "times_out": DispatchState.UNKNOWN,
    "cuts_the_answer": DispatchState.UNKNOWN,
    "has_an_error": DispatchState.UNKNOWN,
    "answers_307": DispatchState.UNKNOWN,
    "answers_408": DispatchState.UNKNOWN,
    "answers_500": DispatchState.UNKNOWN,
    "answers_502": DispatchState.UNKNOWN,
    "answers_504": DispatchState.UNKNOWN,
    "answers_nonsense": DispatchState.UNKNOWN,
}
"""The one outcome that each may have; a request that is cancelled has none."""

FAILURES: Final = [
    scenario
    for scenario, state in OUTCOMES.items()
    if state in {DispatchState.UNKNOWN, DispatchState.NOT_SENT, DispatchState.DEFERRED}
]
"""Those in which a look-up cannot be answered either."""

PERMANENT_REFUSALS: Final = {name for name, traits in FAILURE_CLASSES.items() if not traits.passes} - {"provider_error"}
"""An error of the provider is no refusal: it leaves open what became of the request."""


class ProviderAdapter(Protocol):
    """An adapter as far as the shared part of the contracts goes."""

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        ...

    @property
    def capabilities(self) -> CarrierCapabilities | VoiceCapabilities:
        """Its capabilities."""
        ...

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find out what became of a dispatch."""
        ...


class ProviderHarness(Protocol):
    """An adapter in front of a provider that does what the test needs: a mock transport, a simulator, a script."""

    @property
    def adapter(self) -> Any:
        """The adapter that is tested."""
        ...

    @property
    def scenarios(self) -> frozenset[Scenario]:
        """Those that this harness can arrange; tests of the others are skipped."""
        ...

    def arrange(self, scenario: Scenario) -> None:
        """Have the provider do this with the requests that come from now on; the adapter may be another one then."""
        ...

    @property
    def requests_made(self) -> int | None:
        """How many requests have reached the provider so far; None where they are not counted."""
        ...

    @property
    def last_values(self) -> Collection[str] | None:
        """The values in the last of them, decoded; None where they are not seen."""
        ...


class ProviderContract:
    """The shared part; a subclass says how a request is made, an implementor gives the fixture `harness`.

    Attributes:
        must_arrive: Texts of each request that the provider must receive.
    """

    must_arrive: ClassVar[Collection[str]]

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run on asyncio, the engine's loop, where anyio runs the tests."""
        return "asyncio"

    @pytest.fixture
    def harness(self) -> ProviderHarness:
        """Return an adapter in front of a provider that does what the test needs."""
        raise NotImplementedError("A subclass of the contract defines the fixture `harness`.")

    async def ask(self, adapter: Any, dispatch_id: str) -> DispatchOutcome:
        """Make one request of the adapter."""
        raise NotImplementedError

    async def test_the_name_and_the_capabilities_never_change(self, harness: ProviderHarness) -> None:
        """An adapter has a name for the ledger and states what it can do, the same each time it is asked."""
        adapter: ProviderAdapter = harness.adapter
        assert adapter.name
        assert adapter.name == adapter.name.strip()
        assert adapter.capabilities == adapter.capabilities
        assert adapter.capabilities.look_up in {"none", "evidence", "authoritative"}

    @pytest.mark.parametrize("scenario", OUTCOMES)
    async def test_each_situation_has_its_one_outcome(self, harness: ProviderHarness, scenario: Scenario) -> None:
        """The outcome names the situation, nothing is raised, and doubt is `unknown`.

        docs/delivery-contract.md#rule-5.
        """
        outcome = await self.outcome_of(harness, scenario)
        assert outcome.state is OUTCOMES[scenario]

    async def test_the_number_and_the_text_arrive_as_they_are(self, harness: ProviderHarness) -> None:
        """The provider gets the number, with or without its plus, and the text of the request."""
        await self.outcome_of(harness, "accepts")
        values = harness.last_values
        if values is None:
            pytest.skip("this harness does not see what is in a request")
        assert [text for text in self.must_arrive if not any(text in value for value in values)] == []

    async def test_an_acceptance_carries_the_providers_identifier(self, harness: ProviderHarness) -> None:
        """`accepted` comes with an identifier, another one for each request."""
        first, second = await self.outcome_of(harness, "accepts"), await self.outcome_of(harness, "accepts")
        assert first.provider_id
        assert second.provider_id
        assert first.provider_id != second.provider_id

    async def test_a_refusal_for_good_names_a_class_that_does_not_pass(self, harness: ProviderHarness) -> None:
        """`refused` for good carries one of the failure classes that no later attempt changes."""
        assert (await self.outcome_of(harness, "refuses_for_good")).reason in PERMANENT_REFUSALS

    async def test_a_refusal_for_now_is_temporary(self, harness: ProviderHarness) -> None:
        """`refused` for now carries the class `temporary`."""
        assert (await self.outcome_of(harness, "refuses_for_now")).reason == "temporary"

    async def test_too_busy_says_so_and_when_to_come_again(self, harness: ProviderHarness) -> None:
        """`deferred` is `rate_limited`, and `retry_after_seconds` is not negative.

        docs/delivery-contract.md#rule-7.
        """
        outcome = await self.outcome_of(harness, "too_busy")
        assert outcome.reason == "rate_limited"
        assert outcome.retry_after_seconds is None or outcome.retry_after_seconds >= 0

    @pytest.mark.parametrize("scenario", OUTCOMES)
    async def test_no_situation_is_answered_by_a_second_request(
        self, harness: ProviderHarness, scenario: Scenario
    ) -> None:
        """The adapter makes one request and no more: no retry, no redirect."""
        before = harness.requests_made
        if before is None:
            pytest.skip("this harness does not count requests")
        await self.outcome_of(harness, scenario)
        # A second request that was begun in the background arrives before this one is answered.
        await self.outcome_of(harness, "accepts")
        expected = {1, 2} if scenario == "cannot_be_reached" else {2}
        assert (harness.requests_made or 0) - before in expected

    async def test_a_request_that_is_cancelled_ends(self, harness: ProviderHarness) -> None:
        """Cancelling a request ends it, so that the engine can record it as unknown, and no other one is made."""
        self.require(harness, "does_not_answer")
        before = harness.requests_made
        with anyio.move_on_after(0.05) as scope:
            await self.ask(harness.adapter, new_id())
        assert scope.cancelled_caught
        await self.outcome_of(harness, "accepts")
        assert before is None or (harness.requests_made or 0) - before <= 2

    async def test_a_look_up_finds_what_was_accepted(self, harness: ProviderHarness) -> None:
        """A look-up that can return an outcome returns that an accepted dispatch was accepted."""
        dispatch_id = new_id()
        accepted = await self.outcome_of(harness, "accepts", dispatch_id)
        # A look-up comes after a crash too: what only the adapter that sent it remembers is gone.
        harness.arrange("accepts")
        found = await self.find(harness, dispatch_id)
        if harness.adapter.capabilities.look_up == "none":
            assert found is None
        else:
            assert found is not None
            assert found.state is DispatchState.ACCEPTED
            assert found.provider_id in {None, accepted.provider_id}

    async def test_a_look_up_takes_no_other_dispatch_for_this_one(self, harness: ProviderHarness) -> None:
        """One that was never sent, with the number and text of one that was accepted, is not found for certain."""
        await self.outcome_of(harness, "accepts")
        found = await self.find(harness, new_id())
        assert found is None or found.state is DispatchState.NOT_SENT or found.circumstantial

    @pytest.mark.parametrize("scenario", FAILURES)
    async def test_a_failure_of_a_look_up_is_no_evidence(self, harness: ProviderHarness, scenario: Scenario) -> None:
        """Where the look-up itself fails it says nothing, and raises nothing.

        docs/delivery-contract.md#rule-6.
        """
        self.require(harness, scenario)
        assert await self.find(harness, new_id()) is None

    async def test_a_look_up_says_not_sent_only_where_it_is_authoritative(self, harness: ProviderHarness) -> None:
        """A "not found" is evidence only where the look-up is declared authoritative.

        docs/delivery-contract.md#rule-6.
        """
        found = await self.find(harness, new_id())
        if harness.adapter.capabilities.look_up == "authoritative":
            assert found is not None
            assert found.state is DispatchState.NOT_SENT
        else:
            assert found is None

    async def test_a_look_up_never_says_accepted_of_what_was_refused(self, harness: ProviderHarness) -> None:
        """A refused dispatch is looked up as refused or as not sent, or nothing is said of it."""
        dispatch_id = new_id()
        await self.outcome_of(harness, "refuses_for_now", dispatch_id)
        found = await self.find(harness, dispatch_id)
        assert found is None or found.state in {DispatchState.REFUSED, DispatchState.NOT_SENT}

    async def test_a_list_has_what_was_accepted(self, harness: ProviderHarness) -> None:
        """With its number, its identifier, and our identifier or none."""
        if not harness.adapter.capabilities.lists_sent:
            pytest.skip("this adapter cannot list what was sent")
        dispatch_id = new_id()
        accepted = await self.outcome_of(harness, "accepts", dispatch_id)
        listed = await self.list_sent(harness)
        (found,) = [one for one in listed if one.outcome.provider_id == accepted.provider_id]
        assert found.outcome.state is DispatchState.ACCEPTED
        assert found.to.removeprefix("+") == "14155550100"
        assert found.dispatch_id in {None, dispatch_id}
        assert found.body in {None, "Grüße 👋"}

    @pytest.mark.parametrize("scenario", ["has_an_error", "answers_nonsense", "cannot_be_reached"])
    async def test_a_list_that_is_not_complete_is_an_error(self, harness: ProviderHarness, scenario: Scenario) -> None:
        """A request that is missing in it would be sent again."""
        self.require(harness, scenario)
        if not harness.adapter.capabilities.lists_sent:
            pytest.skip("this adapter cannot list what was sent")
        with pytest.raises(SentListFailed):
            await self.list_sent(harness)

    async def list_sent(self, harness: ProviderHarness) -> Sequence[SentRequest]:
        """List what was sent within two minutes."""
        adapter: ListsSent = harness.adapter
        now = datetime.now(UTC)
        query = SentQuery(
            workspace_id=WORKSPACE_ID,
            from_number="+14155550199",
            since=now - timedelta(minutes=2),
            until=now + timedelta(minutes=2),
        )
        return await adapter.list_sent(query)

    async def outcome_of(
        self, harness: ProviderHarness, scenario: Scenario, dispatch_id: str | None = None
    ) -> DispatchOutcome:
        """Arrange a scenario and make one request in it."""
        self.require(harness, scenario)
        harness.arrange(scenario)
        with anyio.fail_after(30):
            return await self.ask(harness.adapter, dispatch_id or new_id())

    async def find(self, harness: ProviderHarness, dispatch_id: str) -> DispatchOutcome | None:
        """Look a dispatch up."""
        adapter: ProviderAdapter = harness.adapter
        return await adapter.look_up(self.lookup(dispatch_id))

    def lookup(self, dispatch_id: str) -> LookupRequest:
        """Ask for a dispatch as the engine does, some minutes after it was committed."""
        now = datetime.now(UTC)
        return LookupRequest(
            workspace_id=WORKSPACE_ID,
            dispatch_id=dispatch_id,
            from_number="+14155550199",
            to="+14155550100",
            body="Grüße 👋",
            since=now - timedelta(minutes=2),
            until=now + timedelta(minutes=2),
        )

    def require(self, harness: ProviderHarness, scenario: Scenario) -> None:
        """Arrange a scenario, or skip the test where the harness cannot."""
        if scenario not in harness.scenarios:
            pytest.skip(f"this harness cannot arrange the scenario {scenario!r}")
        harness.arrange(scenario)
