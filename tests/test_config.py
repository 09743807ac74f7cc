from __future__ import annotations

import math
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from outreach import ConfigError, EngineConfig, Outreach, SimulatorConfig
from outreach.rules.provider_analyser import ProviderAnalyser


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
    assert EngineConfig.load({"OUTREACH_PUBLIC_URL": given}).public_url == used


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
    """docs/rules.md#sandbox: five variables; one that is empty counts as not set."""
    log = tmp_path / "carrier.jsonl"
    variables = {
        "OUTREACH_SIMULATOR_LOG": str(log),
        "OUTREACH_SIMULATOR_LATENCY_MS": "5.5",
        "OUTREACH_SIMULATOR_FAILURE_RATE": "1",
        "OUTREACH_SIMULATOR_SEED": "7",
        "OUTREACH_SIMULATOR_CALL_SECONDS": "0",
    }
    assert SimulatorConfig.load(variables) == SimulatorConfig(
        log_file=log, latency_ms=5.5, failure_rate=1.0, seed=7, call_seconds=0.0
    )
    assert SimulatorConfig.load(dict.fromkeys(variables, "")) == SimulatorConfig()


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
def test_a_variable_that_cannot_be_used_is_named(name: str, value: str) -> None:
    """A log that cannot be written would leave every message unknown: it is refused before anything is sent."""
    with pytest.raises(ConfigError, match=f"OUTREACH_SIMULATOR_{name}"):
        SimulatorConfig.load({f"OUTREACH_SIMULATOR_{name}": value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_requests_in_flight", 0), ("max_requests_in_flight", 1.5), ("max_requests_in_flight", True),
        ("max_requests_in_flight", 100_001), ("insert_batch_size", -1), ("insert_batch_size", "250"),
        ("change_poll_seconds", 0), ("change_poll_seconds", -0.25), ("change_poll_seconds", math.nan),
        ("lease_seconds", math.inf), ("lease_seconds", "15"), ("lease_seconds", None), ("callback_retention_days", 0.0),
        ("callback_retention_days", 1e10), ("stop_grace_seconds", -1),
        ("idempotency_key_ttl_seconds", timedelta(days=1)), ("public_url", 8000),
    ],
)  # fmt: skip
def test_a_setting_that_makes_no_sense_is_refused_by_its_name(field: str, value: Any) -> None:
    """And not by an engine that behaves strangely, or fails later."""
    words = "public address" if field == "public_url" else f"EngineConfig.{field} is"
    with pytest.raises(ConfigError, match=words):
        EngineConfig(**{field: value})


def test_every_number_of_the_configuration_has_bounds() -> None:
    """Nothing that is added later is left without."""
    for cls in (EngineConfig, SimulatorConfig):
        for field in attrs.fields(cls):
            if field.name not in {"public_url", "log_file"}:
                assert field.validator is not None, f"{cls.__name__}.{field.name}"


def test_the_bounds_themselves_are_taken() -> None:
    """Integers are as good as other numbers, and none is a time where waiting may be left out."""
    config = EngineConfig(
        max_requests_in_flight=1,
        insert_batch_size=100_000,
        stop_grace_seconds=0,
        lease_seconds=15,
        change_poll_seconds=1,
    )
    assert (config.stop_grace_seconds, config.lease_seconds) == (0, 15)
    assert SimulatorConfig(failure_rate=1, latency_ms=0, seed=0).seed == 0
    assert SimulatorConfig(log_file="log.jsonl").log_file == Path("log.jsonl")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"heartbeat_interval_seconds": 20.0}, "heartbeat_interval_seconds is 20, and lease_seconds 15"),
        ({"backoff_initial_seconds": 301.0}, "backoff_initial_seconds is 301, and backoff_max_seconds 300"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(given: dict[str, float], words: str) -> None:
    """A lease that ends before its heartbeat is lost again and again."""
    with pytest.raises(ConfigError, match=words):
        EngineConfig(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("log_file", 5), ("latency_ms", -1), ("failure_rate", 1.1), ("failure_rate", "0.5"), ("seed", 1.5),
        ("seed", -1), ("call_seconds", math.nan),
    ],
)  # fmt: skip
def test_the_simulators_settings_are_checked_too(field: str, value: Any) -> None:
    """The environment is checked by the same bounds."""
    with pytest.raises(ConfigError, match=rf"SimulatorConfig\.{field} is"):
        SimulatorConfig(**{field: value})


def test_an_engine_is_made_of_what_it_takes() -> None:
    """What is easily confused is told in words."""
    with pytest.raises(ConfigError, match=r"Outreach\.open\(url\)"):
        Outreach("sqlite:///app.db")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"config is .*must be an outreach\.EngineConfig"):
        Outreach.open("memory://", config={"change_poll_seconds": 1})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="must be a URL such as"):
        Outreach.open(Path("app.db"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="dispatch is 'no'; it must be True or False"):
        Outreach.open("memory://", dispatch="no")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"it must be an outreach\.Clock"):
        Outreach.open("memory://", clock=time)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"it must be a random\.Random"):
        Outreach.open("memory://", rng=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"config": {}}, r"config is \{\}; it must be an outreach\.EngineConfig"),
        ({"simulator": {}}, r"simulator is \{\}; it must be an outreach\.SimulatorConfig"),
        ({"clock": 0}, r"it must be an outreach\.Clock"),
        ({"rng": 0}, r"it must be a random\.Random"),
        ({"analyser": "positive"}, "There is no analyser 'positive'"),
        ({"analyser": ""}, "There is no analyser ''"),
        ({"analyser": 5}, r"it must be an outreach\.Analyser"),
        ({"analyser": ProviderAnalyser}, r"it must be an outreach\.Analyser"),
        ({"create": "no"}, "create is 'no'; it must be True or False"),
        ({"migrate": "no"}, "migrate is 'no'; it must be True or False"),
        ({"dispatch": 0}, "dispatch is 0; it must be True or False"),
    ],
)
def test_what_is_empty_or_a_word_is_not_taken_for_something_else(given: dict[str, Any], words: str) -> None:
    """Nothing is left out by handing in an empty thing, and "no" is no False."""
    with pytest.raises(ConfigError, match=words):
        Outreach.open("memory://", **given)
