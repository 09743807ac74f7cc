"""Engines that trust what a clock has noted that was wrong; each broken on purpose in one place."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from outreach.models.dispatch import Dispatch
from outreach.operations import clock_steps, leases, limits, planning, reconciling, waves
from outreach.policy.pacing import MOST_AHEAD
from outreach.working_set import Transaction


def let_slots_recede(patch: pytest.MonkeyPatch) -> None:
    """Reckon a slot that cannot be true from now, at each look."""

    def receding(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime | None:
        return noted if noted is None or noted <= now + spacing + MOST_AHEAD else now + spacing

    for module in (planning, waves, limits):
        patch.setattr(module, "next_slot", receding)


def trust_every_slot(patch: pytest.MonkeyPatch) -> None:
    """Wait for a slot, however far ahead it lies."""

    def trusting(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime:
        return max(noted or now, now + spacing)

    for module in (planning, waves, limits):
        patch.setattr(module, "next_slot", lambda noted, now, spacing: noted)
    patch.setattr(leases, "first_slot", trusting)


def trust_every_due_time(patch: pytest.MonkeyPatch) -> None:
    """Look at nothing again when the clock was set back."""

    def nothing(tx: Transaction, *some: Any, **given: Any) -> None:
        pass

    patch.setattr(clock_steps, "distrust", nothing)
    patch.setattr(clock_steps, "correct_due_times", nothing)


def take_jumps_for_time(patch: pytest.MonkeyPatch) -> None:
    """Believe that no request is on its way any more by the wall clock alone, which may have been set forth."""

    def left(_: Transaction, dispatch: Dispatch, wait: timedelta, moment: datetime) -> timedelta:
        return max(dispatch.created_at + wait - moment, timedelta())

    patch.setattr(reconciling, "_left", left)
