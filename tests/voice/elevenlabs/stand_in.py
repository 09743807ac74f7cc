"""ElevenLabs's part: the server's stand-in, in front of the contracts."""

from __future__ import annotations

from outreach_server.stand_ins import elevenlabs
from tests.carriers.kit import Played


class ElevenLabsStandIn(Played):
    """Plays ElevenLabs."""

    def __init__(self) -> None:
        super().__init__(elevenlabs.ElevenLabsStandIn())
