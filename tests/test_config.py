from __future__ import annotations

from pathlib import Path

import pytest

from outreach import ConfigError, EngineConfig, SimulatorConfig


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("https://o.example.com", "https://o.example.com"),
        (" https://o.example.com/\n", "https://o.example.com"),
        ("https://o.example.com:8443/a_b/%C3%B6", "https://o.example.com:8443/a_b/%C3%B6"),
        ("https://xn--nda.example.com", "https://xn--nda.example.com"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("", None),
    ],
)
def test_the_public_address_is_used_as_it_was_looked_at(given: str, used: str | None) -> None:
    """Providers sign it: not a blank around it stays."""
    assert EngineConfig.from_environment({"OUTREACH_PUBLIC_URL": given}).public_url == used


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("ftp://x.example", "must be like"),
        ("http://x.example", "must be like"),
        ("x.example", "must be like"),
        ("https://", "must be like"),
        ("https://x.example:port", "must be like"),
        ("https://x.example:99999", "must be like"),
        ("https://[::1", "must be like"),
        (" ", "must be like"),
        ("https://x.example/?a=1", "leave out"),
        ("https://x.example/a?", "leave out"),
        ("https://x.example/#", "leave out"),
        ("https://x.example#a", "leave out"),
        ("https://ada:s3cret@x.example", "leave out"),
        ("https://@x.example", "leave out"),
        ("https://x.exa\nmple", "control characters"),
        ("https://x.exa\tmple", "control characters"),
        ("https://x.exa\x00mple", "control characters"),
        ("https://x.exa mple", "blanks"),
        ("https://x.example/a b", "blanks"),
        ("https://x.exa\u00a0mple", "blanks"),
        ("https://ö.example.com", "xn--"),
        ("https://x.example/ö", "percent"),
        ("https://my_host.example.com", "underscore"),
    ],
)
def test_a_public_address_that_providers_cannot_call_is_refused(given: str, words: str) -> None:
    """Providers send people's words to it: it is https, a host and a path; Twilio takes no host with an underscore."""
    with pytest.raises(ConfigError, match="public address") as caught:
        EngineConfig(public_url=given)
    assert words in caught.value.message
    assert "s3cret" not in caught.value.message


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
