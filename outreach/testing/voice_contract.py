"""The contract of a voice provider, as tests: every sentence of `outreach.protocols.voice`.

An adapter is held to it by a subclass that puts it in front of a provider that does what a test needs:

    class TestMyVoice(VoiceContract):
        @pytest.fixture
        def lab(self):
            return MyLab()

`provider_contract.ProviderLab` says what a laboratory is.
"""

from __future__ import annotations

from outreach.models.dispatch import Outcome
from outreach.protocols.voice import CallRequest, VoiceProvider
from outreach.testing.builders import WORKSPACE_ID, new_id
from outreach.testing.provider_contract import ProviderContract, ProviderLab


class VoiceContract(ProviderContract):
    """All of it; subclass it, and define the fixture `lab`.

    Attributes:
        agent_ref: The agent's identifier at the provider that calls are placed with; None where none is needed.
    """

    agent_ref: str | None = None

    async def ask(self, adapter: VoiceProvider, dispatch_id: str) -> Outcome:
        """Place one call."""
        return await adapter.place(
            CallRequest(
                dispatch_id=dispatch_id,
                workspace_id=WORKSPACE_ID,
                agent_ref=self.agent_ref,
                sender="+14155550199",
                to="+14155550100",
                variables={"first_name": "Zoë"},
            )
        )

    async def test_the_status_of_a_call_that_nobody_knows_is_none(self, lab: ProviderLab) -> None:
        """`status` tells nothing of a call that was never accepted."""
        adapter: VoiceProvider = lab.adapter
        assert await adapter.status(workspace_id=WORKSPACE_ID, dispatch_id=new_id(), provider_id=None) is None

    async def test_the_status_of_an_accepted_call_is_of_that_call(self, lab: ProviderLab) -> None:
        """`status` of an accepted call says nothing yet, or carries the identifiers of that call."""
        dispatch_id = new_id()
        outcome = await self.outcome_of(lab, "accepts", dispatch_id)
        report = await lab.adapter.status(
            workspace_id=WORKSPACE_ID, dispatch_id=dispatch_id, provider_id=outcome.provider_id
        )
        if report is not None:
            assert report.workspace_id == WORKSPACE_ID
            assert dispatch_id == report.dispatch_id or outcome.provider_id == report.provider_id
