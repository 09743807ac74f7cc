"""The contract of an SMS carrier, as tests: every sentence of `outreach.protocols.Carrier`.

An adapter is held to it by a subclass that puts it in front of a provider that does what a test needs:

    @pytest.mark.anyio  # or pytest.mark.asyncio
    class TestMyCarrier(CarrierContract):
        @pytest.fixture
        def harness(self):
            return MyHarness()

`provider_contract.ProviderHarness` says what a harness offers; for a provider with an HTTP API use `HttpHarness`.
"""

from __future__ import annotations

from outreach.models.dispatch import DispatchOutcome
from outreach.protocols.carrier import Carrier, OutboundMessage
from outreach.testing.builders import WORKSPACE_ID
from outreach.testing.provider_contract import ProviderContract, ProviderHarness

__all__ = ["CarrierContract"]


class CarrierContract(ProviderContract):
    """The contract of a carrier: subclass it, and define the fixture `harness`."""

    must_arrive = ("14155550100", "Grüße 👋")

    async def ask(self, adapter: Carrier, dispatch_id: str) -> DispatchOutcome:
        """Send one message."""
        return await adapter.send(
            OutboundMessage(
                dispatch_id=dispatch_id,
                workspace_id=WORKSPACE_ID,
                from_number="+14155550199",
                to="+14155550100",
                body="Grüße 👋",
                not_after=None,
            )
        )

    async def test_a_message_without_a_sender_is_answered(self, harness: ProviderHarness) -> None:
        """A simulator sends it, others refuse it: that is an outcome, never an error."""
        self.require(harness, "accepts")
        message = OutboundMessage(
            dispatch_id="no-sender",
            workspace_id=WORKSPACE_ID,
            from_number=None,
            to="+14155550100",
            body="x",
            not_after=None,
        )
        assert isinstance(await harness.adapter.send(message), DispatchOutcome)
