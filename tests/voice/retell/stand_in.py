"""Retell's part: the server's stand-in, in front of the contracts."""

from __future__ import annotations

from outreach_server.stand_ins import retell
from tests.carriers.kit import Played


class RetellStandIn(Played):
    """Plays Retell."""

    def __init__(self) -> None:
        super().__init__(retell.RetellStandIn())
