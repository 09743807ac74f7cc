"""Engines that trust what a clock has noted that was wrong; each broken on purpose in one place."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from outreach.ledger.leases import clock_steps, leases
from outreach.ledger.sending import committing, intents
from outreach.ledger.settling import reconciling
from outreach.rules.deciding import MAX_AHEAD
from outreach.storage.unit_of_work import Transaction


def let_slots_recede(patch: pytest.MonkeyPatch) -> None:
    """Reckon a slot that cannot be true from now, at each look."""

    def receding(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime | None:
        return noted if noted is None or noted <= now + spacing + MAX_AHEAD else now + spacing

    for module in (committing, intents):
        patch.setattr(module, "next_slot", receding)


def trust_every_slot(patch: pytest.MonkeyPatch) -> None:
    """Wait for a slot, however far ahead it lies."""

    def trusting(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime:
        return max(noted or now, now + spacing)

    for module in (committing, intents):
        patch.setattr(module, "next_slot", lambda noted, now, spacing: noted)
    patch.setattr(leases, "first_slot", trusting)


def trust_every_due_time(patch: pytest.MonkeyPatch) -> None:
    """Look at nothing again when the clock was set back."""

    def nothing(tx: Transaction, *some: Any, **given: Any) -> None:
        pass

    patch.setattr(clock_steps, "repair_after_clock_step", nothing)
    patch.setattr(clock_steps, "correct_due_times", nothing)


def take_jumps_for_time(patch: pytest.MonkeyPatch) -> None:
    """Believe that no request is on its way any more by the wall clock alone, which may have been set forth."""

    def left(_: Transaction, since: datetime, wait: timedelta, moment: datetime) -> timedelta:
        return max(since + wait - moment, timedelta())

    patch.setattr(reconciling, "time_left", left)
