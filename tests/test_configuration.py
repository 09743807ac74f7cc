"""The configuration by file, environment and flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from outreach import ConfigError, EngineConfig, SimulatorConfig
from outreach.core.config import Setting
from outreach_server.cli.serving.serve import serve
from outreach_server.config import ServerConfig, load

SETTINGS = [
    *((ServerConfig, setting) for setting in ServerConfig.settings()),
    *((SimulatorConfig, setting) for setting in SimulatorConfig.settings()),
]
EACH = pytest.mark.parametrize(("config", "setting"), SETTINGS, ids=[setting.key for _, setting in SETTINGS])


def another(setting: Setting) -> Any:
    """Return a value that a setting may have and that is not its default."""
    match setting.name, setting.kind:
        case ("public_url", _):
            return "https://outreach.example.com"
        case ("docs_url", _):
            return "https://docs.example.com/outreach"
        case ("proxy_headers", _):
            return "127.0.0.1, 10.0.0.0/8"
        case ("cors_origins", _):
            return "https://app.example.com"
        case ("root_path", _):
            return "/outreach"
        case ("log_level", _):
            return "error"
        case ("log_format", _):
            return "json"
        case ("dispatcher", _):
            return "procrastinate"
        case ("require_second_factor", _):
            return "manager"
        case ("metrics", _):
            return "127.0.0.1:9464"
        case ("failure_rate" | "heartbeat_interval_seconds", _):
            return 0.5
        case ("seed", _):
            return 7
        case (_, "number"):
            return float(setting.default) + 1 if isinstance(setting.default, float) else 1.0
        case (_, "integer"):
            return int(str(setting.default)) + 1
        case (_, "boolean"):
            return not setting.default
        case _:
            return "named-here"


def as_toml(setting: Setting, value: Any) -> str:
    """Return a file that sets one setting."""
    shown = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else repr(value)
    table, _, name = setting.key.rpartition(".")
    return f"[{table}]\n{name} = {shown}\n" if table else f"{name} = {shown}\n"


def read(config: Any, setting: Setting, **sources: Any) -> Any:
    """Return what a setting is by some sources."""
    value = getattr(config.load(**sources), setting.name)
    return str(value) if isinstance(value, Path) else value


@EACH
def test_every_setting_is_read_from_each_source(config: Any, setting: Setting, tmp_path: Path) -> None:
    """From the file, from the environment instead, and from a flag instead of both."""
    value = another(setting)
    file = tmp_path / "outreach.toml"
    file.write_text(as_toml(setting, value), "utf-8")
    assert read(config, setting) == setting.default
    assert read(config, setting, file=file) == value
    text = str(value).lower() if isinstance(value, bool) else str(value)
    assert read(config, setting, environment={setting.variable: text}) == value
    assert read(config, setting, flags={setting.name: text}) == value
    assert read(config, setting, environment={setting.variable: ""}) == setting.default


def test_the_first_source_that_has_a_setting_counts(tmp_path: Path) -> None:
    """Flags, then the environment, then the file; another setting may come from another source."""
    file = tmp_path / "outreach.toml"
    file.write_text("change_poll_seconds = 3\nlease_seconds = 30\nmax_requests_in_flight = 30\n", "utf-8")
    environment = {"OUTREACH_CHANGE_POLL_SECONDS": "2", "OUTREACH_LEASE_SECONDS": "20"}
    found = EngineConfig.load(environment, file=file, flags={"change_poll_seconds": "1"})
    assert (found.change_poll_seconds, found.lease_seconds, found.max_requests_in_flight) == (1, 20, 30)


@EACH
def test_every_setting_is_an_option_of_serve_and_says_what_it_is_for(config: Any, setting: Setting) -> None:
    """With the name that errors use for it."""
    options = {option for param in serve.params for option in param.opts}
    assert setting.flag in options
    assert setting.meaning.endswith(".")


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    """Some editors of Windows write one."""
    file = tmp_path / "outreach.toml"
    file.write_text("listen_port = 8123\n", "utf-8-sig")
    assert load(file=file)[0].listen_port == 8123


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("change_poll_seconds = true", "change_poll_seconds in {file} is True; it must be a number above 0"),
        ('change_poll_seconds = "1"', "change_poll_seconds in {file} is '1'; it must be a number above 0"),
        (
            "max_requests_in_flight = 1.5",
            "max_requests_in_flight in {file} is 1.5; it must be an integer from 1 and up to 100000",
        ),
        ("listen_port = 65536", "listen_port in {file} is 65536; it must be an integer from 0 and up to 65535"),
        ('dispatch = "yes"', "dispatch in {file} is 'yes'; it must be true or false"),
        ('log_level = "loud"', "log_level in {file} is 'loud'; it must be one of debug, info"),
        ('log_format = "xml"', "log_format in {file} is 'xml'; it must be one of text, json"),
        ('metrics = "9464"', "metrics in {file} is '9464'; it must be HOST:PORT"),
        ('metrics = "here:x"', "metrics in {file} is 'here:x'; it must be HOST:PORT"),
        ("database_url = 5", "database_url in {file} is 5; it must be a text"),
        ("tls_certificate = 5", "tls_certificate in {file} is 5; it must be the path of a PEM file"),
        ('proxy_headers = "*"', "proxy_headers in {file} is '*': '*' is no proxy"),
        ('root_path = "outreach"', "root_path in {file} is 'outreach'; it must be a path"),
        ("spool_directory = 5", "spool_directory in {file} is 5; it must be the path"),
        ('public_url = "ftp://x"', "public_url in {file}: The public address is 'ftp://x'"),
        ("change_pol_seconds = 1", "change_pol_seconds in {file} is no setting; did you mean change_poll_seconds?"),
        ("port = 8080", "port in {file} is no setting; did you mean listen_port?"),
        ('log-format = "json"', "log-format in {file} is no setting; did you mean log_format?"),
        ("OUTREACH_LISTEN_HOST = 5", "OUTREACH_LISTEN_HOST in {file} is no setting; did you mean listen_host?"),
        ("simulator-seed = 1", "simulator-seed in {file} is no setting; did you mean seed in [simulator]?"),
        ("[simulator]\nsimulator_seed = 1", "simulator.simulator_seed in {file} is no setting; did you mean seed?"),
        ("[engine]\npoll_seconds = 1", "engine in {file} is no setting."),
        ("simulator = 5", "simulator in {file} must be a table"),
        ("[simulator]\nlatency = 5", "simulator.latency in {file} is no setting; did you mean latency_ms?"),
        ("[simulator]\nlatency_ms = -1", "simulator.latency_ms in {file} is -1; it must be a number from 0"),
        ('[simulator]\nlog = "/nowhere/at/all/log"', "simulator.log in {file} is '/nowhere/at/all/log'; it must be a"),
        ("change_poll_seconds = ", "The configuration file {file} is not TOML"),
    ],
)
def test_a_wrong_key_of_the_file_is_refused_by_its_place(text: str, words: str, tmp_path: Path) -> None:
    """Texts are no numbers there, booleans neither; what is unknown is not passed over."""
    file = tmp_path / "outreach.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file=file)
    assert words.format(file=file) in caught.value.message


@pytest.mark.parametrize("missing", ["none.toml", "."])
def test_a_file_that_cannot_be_read_is_refused(missing: str, tmp_path: Path) -> None:
    """It was named, so it was meant."""
    with pytest.raises(ConfigError, match="cannot be read: "):
        load(file=tmp_path / missing)


@pytest.mark.parametrize(
    ("name", "text"),
    [("change_poll_seconds", "soon"), ("max_requests_in_flight", "1.5"), ("dispatch", "perhaps"), ("listen_port", "x")],
)
def test_a_wrong_variable_and_a_wrong_flag_are_refused_by_their_names(name: str, text: str) -> None:
    """And with what would be right."""
    (setting,) = [one for one in ServerConfig.settings() if one.name == name]
    with pytest.raises(ConfigError, match=f"^{setting.variable} is '{text}'; it must be "):
        ServerConfig.load({setting.variable: text})
    with pytest.raises(ConfigError, match=f"^{setting.flag} is '{text}'; it must be "):
        ServerConfig.load(flags={name: text})


def test_all_problems_are_reported_at_once() -> None:
    """Not one thing at each start."""
    with pytest.raises(ConfigError) as caught:
        EngineConfig.load({"OUTREACH_CHANGE_POLL_SECONDS": "-1", "OUTREACH_INSERT_BATCH_SIZE": "0"})
    assert [line.partition(" ")[0] for line in caught.value.message.splitlines()] == [
        "OUTREACH_CHANGE_POLL_SECONDS",
        "OUTREACH_INSERT_BATCH_SIZE",
    ]


def test_settings_that_contradict_each_other_name_their_sources(tmp_path: Path) -> None:
    """A lease shorter than its heartbeat: each may come from elsewhere."""
    file = tmp_path / "outreach.toml"
    file.write_text("lease_seconds = 5\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        EngineConfig.load({"OUTREACH_HEARTBEAT_INTERVAL_SECONDS": "6"}, file=file)
    assert "heartbeat_interval_seconds is set by OUTREACH_HEARTBEAT_INTERVAL_SECONDS" in caught.value.message
    assert f"lease_seconds is set by lease_seconds in {file}" in caught.value.message


def test_the_file_that_the_environment_names_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`OUTREACH_CONFIG`, unless another one is given."""
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text("listen_port = 1\n[simulator]\nseed = 1\n", "utf-8")
    second.write_text("listen_port = 2\n", "utf-8")
    monkeypatch.setenv("OUTREACH_CONFIG", str(first))
    config, simulator = load(flags={"simulator_latency_ms": "5"})
    assert (config.listen_port, simulator.seed, simulator.latency_ms) == (1, 1, 5)
    assert load(file=second)[0].listen_port == 2


def test_every_field_of_the_classes_is_a_setting() -> None:
    """Nothing that is added later is left out."""
    for config in (ServerConfig, SimulatorConfig):
        assert [one.name for one in config.settings()] == [field.name for field in attrs.fields(config)]
    assert len({setting.variable for _, setting in SETTINGS}) == len(SETTINGS)
