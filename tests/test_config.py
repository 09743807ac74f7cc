from __future__ import annotations

from pathlib import Path

import pytest

from outreach import ConfigError, SimulatorConfig


def test_the_simulators_are_set_by_the_environment(tmp_path: Path) -> None:
    """Design, section 8: five variables; one that is empty counts as not set."""
    log = tmp_path / "carrier.jsonl"
    variables = {
        "OUTREACH_SIMULATOR_LOG": str(log),
        "OUTREACH_SIMULATOR_LATENCY_MS": "5.5",
        "OUTREACH_SIMULATOR_FAILURE_RATE": "1",
        "OUTREACH_SIMULATOR_SEED": "7",
        "OUTREACH_SIMULATOR_CALL_SECONDS": "0",
    }
    assert SimulatorConfig.from_environment(variables) == SimulatorConfig(
        log=log, latency_ms=5.5, failure_rate=1.0, seed=7, call_seconds=0.0
    )
    assert SimulatorConfig.from_environment(dict.fromkeys(variables, "")) == SimulatorConfig()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LATENCY_MS", "soon"),
        ("LATENCY_MS", "-1"),
        ("FAILURE_RATE", "1.1"),
        ("SEED", "-1"),
        ("CALL_SECONDS", "nan"),
        ("LOG", "/nowhere/at/all/carrier.jsonl"),
        ("LOG", "/"),
    ],
)
def test_a_variable_that_cannot_be_heeded_is_named(name: str, value: str) -> None:
    """A log that cannot be written would leave every message unknown: it is refused before anything is sent."""
    with pytest.raises(ConfigError, match=f"OUTREACH_SIMULATOR_{name}"):
        SimulatorConfig.from_environment({f"OUTREACH_SIMULATOR_{name}": value})
