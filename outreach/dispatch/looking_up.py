"""Asking a provider what became of a request: a look-up changes nothing and may be repeated."""

from __future__ import annotations

from datetime import timedelta

import anyio

from outreach.core.config import EngineConfig
from outreach.dispatch.adapter_answers import recordable
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.states import DispatchState
from outreach.models.workspace import Workspace
from outreach.protocols.carrier import Carrier, LookupRequest
from outreach.protocols.voice import VoiceProvider
from outreach.providers.http.request_gate import call_plugin
from outreach.providers.pool import ProviderPool


class LookUps:
    """Looks requests up at their providers."""

    def __init__(self, *, config: EngineConfig, provider_pool: ProviderPool) -> None:
        self._config = config
        self._provider_pool = provider_pool

    async def ask(self, workspace: Workspace, dispatch: Dispatch) -> DispatchOutcome | None:
        """Return the evidence on a request; None if its provider has none, or cannot be asked.

        Raises:
            Exception: The adapter failed, or took too long.
        """
        provider = await self._provider(workspace, dispatch)
        ability = provider.capabilities.look_up
        if ability == "none":
            return None
        with anyio.fail_after(self._config.provider_timeout_seconds):
            answer: object = await call_plugin(provider.look_up(self._lookup_request(dispatch)))
        found = recordable(answer)
        if found is None and answer is not None:
            # Its answer is worthless, and may contain what no log may.
            raise TypeError(f"The adapter of {dispatch.provider} returned no outcome: {type(answer).__name__}.")
        # Only an authoritative look-up proves that a request did not arrive.
        if found is not None and found.state is DispatchState.NOT_SENT and ability != "authoritative":
            return None
        return found

    def _lookup_request(self, dispatch: Dispatch) -> LookupRequest:
        last_end = dispatch.valid_until + timedelta(seconds=self._config.provider_timeout_seconds)
        return LookupRequest(
            workspace_id=dispatch.workspace_id,
            dispatch_id=dispatch.id,
            provider_id=dispatch.provider_id,
            from_number=dispatch.from_number,
            to=dispatch.to,
            body=dispatch.body,
            since=dispatch.created_at,
            until=last_end,
        )

    async def _provider(self, workspace: Workspace, dispatch: Dispatch) -> Carrier | VoiceProvider:
        if dispatch.channel == "sms":
            return await self._provider_pool.carrier(workspace, dispatch.provider)
        return await self._provider_pool.voice(workspace, dispatch.provider)
