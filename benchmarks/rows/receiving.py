"""How many receipts a second are merged: one a message, handed in as callbacks come, many at a time."""

from __future__ import annotations

from benchmarks.results import Results, at_least
from benchmarks.rounds import alternate
from benchmarks.rows.sending import Load
from benchmarks.settings import Settings


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    campaigns, recipients = settings.sized((500, 20), (5, 4))
    load = Load(settings=settings, campaigns=campaigns, recipients=recipients, receipts=True)
    case = f"{load.messages:,} receipts"
    settings.say(f"receipts: {case}")
    load.engine()  # the rows that the floor writes in the first round
    samples = alternate({"outreach": load.engine, "ledger floor": load.receipts_floor}, settings.rounds)
    row, unit = "receipts", "receipts a second"
    results.compare(samples, "ledger floor", row=row, case=case, unit=unit, wanted=at_least(0.4))
    results.figure(samples["outreach"], "CPU ms a receipt", row=row, case=case)
    return results
