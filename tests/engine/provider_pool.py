from __future__ import annotations

from outreach.core.clock import Clock
from outreach.core.vault import Vault
from outreach.protocols.carrier import Carrier
from outreach.protocols.storage import Storage
from outreach.protocols.voice import VoiceProvider
from outreach.providers.pool import AccountConnections, ProviderPool
from outreach.providers.registry import Adapters
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.virtual_time import clock_of_loop


def provider_pool_of(
    carrier: Carrier, voice: VoiceProvider, *, storage: Storage | None = None, clock: Clock | None = None
) -> ProviderPool:
    """Return a provider_pool for sandboxes; with a storage, one that finds the accounts of live workspaces too."""
    clock = clock or clock_of_loop()
    return ProviderPool(
        sandbox_carrier=carrier,
        sandbox_voice=voice,
        storage=storage or MemoryStorage(clock=clock),
        connections=AccountConnections(vault=Vault(), clock=clock, answer_seconds=5.0, public_url=None),
        adapters=Adapters(),
    )
