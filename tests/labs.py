"""Laboratories for the provider contracts: the simulators, and the scripted providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from outreach.protocols.carrier import LookupRequest
from outreach.testing.provider_contract import FAILURES, Scenario
from outreach.testing.scripted import (
    Step,
    accept,
    defer,
    drop,
    hang,
    not_sent,
    refuse,
)

STEPS: Final[Mapping[Scenario, Step]] = {
    "accepts": accept(),
    "refuses_for_good": refuse("invalid_number"),
    "refuses_for_now": refuse("temporary"),
    "too_busy": defer(2.5),
    "cannot_be_reached": not_sent(),
    "drops_the_connection": drop(),
    "does_not_answer": hang(),
    "times_out": drop("timeout"),
    "has_an_error": drop("http_503"),
    "answers_nonsense": drop("unreadable"),
}


async def _say_nothing(_: LookupRequest) -> None:
    """Fail to look a dispatch up, which a script cannot."""


class ScriptedLab:
    """A scripted provider, which can do everything."""

    scenarios = frozenset(STEPS)
    last_values = None

    def __init__(self, make: Any, **options: Any) -> None:
        self._situation: Scenario = "accepts"
        self.adapter = make(lambda _: STEPS[self._situation], **options)
        self._look_up = self.adapter.look_up

    def arrange(self, scenario: Scenario) -> None:
        """Have the provider do this from now on."""
        self._situation = scenario
        self.adapter.look_up = _say_nothing if scenario in FAILURES else self._look_up

    @property
    def requests_made(self) -> int:
        """How many requests the script has had."""
        return len(self.adapter.requests)


class SimulatorLab:
    """A simulator, which accepts or refuses for now; with a long latency it does not answer."""

    scenarios: frozenset[Scenario] = frozenset({"accepts", "refuses_for_now", "does_not_answer"})
    requests_made = None
    last_values = None

    def __init__(self, by_situation: Mapping[Scenario, Any]) -> None:
        self._adapters = by_situation
        self.adapter = by_situation["accepts"]

    def arrange(self, scenario: Scenario) -> None:
        """Take the simulator that is set up for this."""
        self.adapter = self._adapters[scenario]
