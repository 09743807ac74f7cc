from __future__ import annotations

from outreach.clock import Clock, SystemClock
from outreach.protocols.carrier import Carrier
from outreach.protocols.storage import Storage
from outreach.protocols.voice import VoiceProvider
from outreach.runners.connections import Connections
from outreach.runners.desk import ProviderDesk
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.vault import Vault


def desk_of(
    carrier: Carrier, voice: VoiceProvider, *, storage: Storage | None = None, clock: Clock | None = None
) -> ProviderDesk:
    """Return a desk for sandboxes; with a storage, one that finds the accounts of live workspaces too."""
    clock = clock or SystemClock()
    return ProviderDesk(
        sandbox_carrier=carrier,
        sandbox_voice=voice,
        storage=storage or MemoryStorage(clock=clock),
        connections=Connections(vault=Vault(), clock=clock, answer_seconds=5.0, public_url=None),
    )
