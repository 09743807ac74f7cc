"""Vapi's part: the server's stand-in, in front of the contracts."""

from __future__ import annotations

from outreach_server.stand_ins import vapi
from tests.carriers.kit import Played


class VapiStandIn(Played):
    """Plays Vapi."""

    def __init__(self) -> None:
        super().__init__(vapi.VapiStandIn())
