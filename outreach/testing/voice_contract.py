"""The contract of a voice provider, as tests: every sentence of `outreach.protocols.VoiceProvider`.

An adapter is held to it by a subclass that puts it in front of a provider that does what a test needs:

    @pytest.mark.anyio  # or pytest.mark.asyncio
    class TestMyVoice(VoiceContract):
        @pytest.fixture
        def harness(self):
            return MyHarness()

`provider_contract.ProviderHarness` says what a harness offers; for a provider with an HTTP API use `HttpHarness`.
"""

from __future__ import annotations

from outreach.models.dispatch import DispatchOutcome
from outreach.protocols.voice import CallRequest, VoiceProvider
from outreach.testing.builders import WORKSPACE_ID, new_id
from outreach.testing.provider_contract import ProviderContract, ProviderHarness

__all__ = ["VoiceContract"]


class VoiceContract(ProviderContract):
    """The contract of a voice provider: subclass it, and define the fixture `harness`.

    Attributes:
        provider_agent_id: The agent's identifier at the provider that calls are placed with; None where none is needed.
    """

    provider_agent_id: str | None = None
    must_arrive = ("14155550100", "Zoë")

    async def ask(self, adapter: VoiceProvider, dispatch_id: str) -> DispatchOutcome:
        """Place one call."""
        return await adapter.place_call(
            CallRequest(
                dispatch_id=dispatch_id,
                workspace_id=WORKSPACE_ID,
                provider_agent_id=self.provider_agent_id,
                from_number="+14155550199",
                to="+14155550100",
                variables={"first_name": "Zoë"},
            )
        )

    async def test_the_status_of_a_call_that_nobody_knows_is_none(self, harness: ProviderHarness) -> None:
        """`status` returns nothing for a call that was never accepted."""
        adapter: VoiceProvider = harness.adapter
        assert await adapter.status(workspace_id=WORKSPACE_ID, dispatch_id=new_id(), provider_id=None) is None

    async def test_the_status_of_an_accepted_call_is_of_that_call(self, harness: ProviderHarness) -> None:
        """`status` of an accepted call says nothing yet, or carries the identifiers of that call."""
        dispatch_id = new_id()
        outcome = await self.outcome_of(harness, "accepts", dispatch_id)
        report = await harness.adapter.status(
            workspace_id=WORKSPACE_ID, dispatch_id=dispatch_id, provider_id=outcome.provider_id
        )
        if report is not None:
            assert report.workspace_id == WORKSPACE_ID
            assert dispatch_id == report.dispatch_id or outcome.provider_id == report.provider_id
