"""The acceptance tests that the failures of other projects hand us, one row for each.

A test names its row with `@pytest.mark.field(5)` and the project that fails it in its docstring, wherever it lives:
`pytest -m field` runs them all. Rows 10 and 11 are tested with the rules in `tests/engine`, and with whole campaigns at
real carriers and voice providers in `tests/providers`. `test_registry.py` finds rows that nobody tests, and tests that
name nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs


@attrs.frozen
class Row:
    """One acceptance test.

    Attributes:
        demand: What has to hold.
        peers: Who fails it; the docstring of each of its tests names one of them.
    """

    demand: str
    peers: tuple[str, ...]


ROWS: Final[Mapping[int, Row]] = MappingProxyType(
    {
        1: Row("A kill after the claim and before the request: contacted exactly once", ("Dograh", "courier")),
        2: Row("A kill after the yes and before the commit: unknown, never contacted again", ("courier", "PraisonAI")),
        3: Row("A yes whose write fails: not failed, its place not freed", ("Dograh",)),
        4: Row("No rollback after a request: the intent is committed first", ("Spoke",)),
        5: Row("Pause, wait, resume a hundred times: nothing lost, doubled or over too early", ("listmonk",)),
        6: Row("Cancel with a full batch in memory: nothing leaves after it", ("listmonk", "Notifuse")),
        7: Row("No slot, no rate, no place: put off, never failed", ("Dograh",)),
        8: Row("A slot or a place a second after closing time: not contacted", ("Dograh",)),
        9: Row("A zone that nobody knows: refused or skipped, never contacted", ("Dograh", "Pinpoint")),
        10: Row("STOP, and what is written after it", ("mailroom", "Rock", "GSA")),
        11: Row("Callbacks that are late, doubled, or there before the answer", ("twilio-csharp", "Chatwoot")),
        12: Row("Two campaigns with one contact or one sender: cap and rate hold", ("Spoke", "jasmin")),
        13: Row("Footer and values that cross a segment: counted and capped", ("postmangovsg", "Rock")),
        14: Row("One budget for all reasons to retry; a double dial counts once", ("whispey", "newfies")),
        15: Row("A start that was missed by hours is no surprise", ("listmonk",)),
        16: Row("Counters equal a recount of the ledger", ("Dograh",)),
        17: Row("One bad row in 10,000 is named, and the others are loaded", ("GSA", "piipan")),
        18: Row("A throttled campaign stalls no other", ("listmonk",)),
    }
)
