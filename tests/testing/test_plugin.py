from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from outreach.testing.virtual_time import START, VirtualTimeLoop
from outreach.testing.virtual_time_mark import mark_problem

CONFTEST: Final = """
pytest_plugins = ["outreach.testing.plugin"]
"""

DAY: Final = """
import asyncio
import datetime
import pytest
from outreach.testing.virtual_time import VirtualTimeLoop

pytestmark = [MARKS]

@FIXTURE
async def campaign(outreach_engine, outreach_workspace):
    from outreach import NewRecipient, NewSmsCampaign
    new = NewSmsCampaign(name="Day", body="Hi", carrier="twilio", from_number="+14155550199",
                         rate_per_minute=1)
    people = [NewRecipient(phone_number=f"+1415555{n:04d}") for n in range(100, 160)]
    created = await outreach_engine.campaigns.create_sms(outreach_workspace.id, new, people)
    yield created.campaign

async def test_a_campaign_of_an_hour(outreach_engine, outreach_carrier, outreach_clock, campaign):
    from outreach.testing.waiting import campaign_ended
    assert isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    await outreach_engine.campaigns.start(campaign.workspace_id, campaign.id)
    ended = await campaign_ended(outreach_engine, campaign)
    assert ended.counters.successful == 60
    assert (outreach_carrier.requested_at[-1] - outreach_carrier.requested_at[0]).total_seconds() >= 59 * 60

async def test_stuck(outreach_engine):
    # Without the engine's timers: it is closed, and nothing is left that could happen.
    await outreach_engine.__aexit__(None, None, None)
    await asyncio.Event().wait()

async def test_ticking(outreach_engine):
    await asyncio.Event().wait()

async def test_after(outreach_engine, outreach_workspace):
    assert (await outreach_engine.workspaces.get(outreach_workspace.id)).name == "Test"
"""

CONTRACTS: Final = """
import asyncio
import pytest
from outreach.core.config import EngineConfig
from outreach.dispatch.leased import InProcessDispatcher
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.carrier_contract import CarrierContract
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, accept, hang, refuse
from outreach.testing.dispatcher_contract import DispatcherContract
from outreach.testing.storage_contract import StorageContract
from outreach.testing.virtual_time import clock_of_loop
from outreach.testing.voice_contract import VoiceContract

pytestmark = [MARKS]

class OnItsLoop:
    # Like a client of HTTP, it works on the loop that it was made on and on no other.
    def __init__(self, provider, loop):
        self._provider = provider
        self._loop = loop

    def __getattr__(self, name):
        if name in {"send", "place", "look_up"}:
            assert asyncio.get_running_loop() is self._loop
        return getattr(self._provider, name)

class Harness:
    scenarios = frozenset({"accepts", "refuses_for_good", "refuses_for_now", "does_not_answer"})
    last_values = None

    def __init__(self, provider, loop):
        self._provider = provider
        self.adapter = OnItsLoop(provider, loop)

    def arrange(self, scenario):
        step = {"accepts": accept(), "refuses_for_good": refuse("invalid_number"),
                "refuses_for_now": refuse("temporary"), "does_not_answer": hang()}[scenario]
        self._provider.script([], then=step)

    @property
    def requests_made(self):
        return len(self._provider.requests)

class TestCarrier(CarrierContract):
    @FIXTURE
    async def harness(self):
        yield Harness(ScriptedCarrier(), asyncio.get_running_loop())

class TestVoice(VoiceContract):
    @FIXTURE
    async def harness(self):
        yield Harness(ScriptedVoice(), asyncio.get_running_loop())

class TestStorage(StorageContract):
    @pytest.fixture
    def open_storage(self):
        storage = MemoryStorage()
        return lambda: storage

class TestDispatcher(DispatcherContract):
    @pytest.fixture
    def make(self):
        return lambda worker, runner, sources, report: InProcessDispatcher(
            worker=worker, runner=runner, report=report, sources=sources, clock=clock_of_loop(),
            config=EngineConfig(change_poll_seconds=0.02, heartbeat_interval_seconds=0.03, lock_retry_seconds=0.03),
        )
"""


@attrs.frozen
class Runner:
    """What runs the async tests of a project.

    Attributes:
        mark: Its own mark; empty for none.
        fixture: How an async fixture is declared.
        options: Of pytest.
    """

    mark: str
    fixture: str
    options: tuple[str, ...]


_STRICT = ("-o", "asyncio_default_fixture_loop_scope=function")
RUNNERS: Final[Mapping[str, Runner]] = {
    "the plugin alone": Runner("", "pytest.fixture", ("-p", "no:asyncio")),
    "anyio": Runner("pytest.mark.anyio", "pytest.fixture", ("-p", "no:asyncio")),
    "anyio beside pytest-asyncio": Runner("pytest.mark.anyio", "pytest.fixture", _STRICT),
    "pytest-asyncio": Runner("pytest.mark.asyncio", "__import__('pytest_asyncio').fixture", _STRICT),
    "pytest-asyncio, automatic": Runner("", "pytest.fixture", (*_STRICT, "-o", "asyncio_mode=auto")),
}


@pytest.mark.turn(4, "starts a pytest of its own for each runner")
@pytest.mark.parametrize("runner", [pytest.param(runner, id=name) for name, runner in RUNNERS.items()])
def test_a_project_runs_under_each_runner(tmp_path: Path, runner: Runner) -> None:
    """Fixtures and tests share a loop with virtual time, a test that is stuck fails, and the contract suites pass."""
    virtual = "pytest.mark.virtual_time(max_run=datetime.timedelta(hours=12))"
    # Where nothing else runs async tests, the mark does.
    plain = runner.mark or ("" if "auto" in "".join(runner.options) else "pytest.mark.virtual_time")
    for name, text, marks in (("day", DAY, (virtual, runner.mark)), ("contracts", CONTRACTS, (plain,))):
        text = text.replace("MARKS", ", ".join(filter(None, marks))).replace("FIXTURE", runner.fixture)
        (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-c", os.devnull),
            *("--rootdir", str(tmp_path), "-k", "day or Carrier or Voice or Dispatcher or lease", *runner.options),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    printed = done.stdout + done.stderr
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", printed.strip().rpartition("\n")[2])}
    assert counts.keys() == {"passed", "skipped", "deselected", "failed"}, printed
    assert counts["passed"] > 60, printed
    failed = re.findall(r"^FAILED test_day\.py::(\w+)", printed, re.MULTILINE)
    assert (counts["failed"], failed) == (2, ["test_stuck", "test_ticking"]), printed
    assert "Nothing can ever happen" in printed
    assert "The time has moved to 12:00:" in printed


@pytest.mark.parametrize(
    ("mark", "problem"),
    [
        (pytest.mark.virtual_time(START), "by name only"),
        (pytest.mark.virtual_time(begin=START), "has no argument begin"),
        (pytest.mark.virtual_time(start=START.replace(tzinfo=None)), "a datetime with a time zone as start"),
        (pytest.mark.virtual_time(start="2026-03-02"), "a datetime with a time zone as start"),
        (pytest.mark.virtual_time(max_run=3600), "a timedelta as max_run"),
        (pytest.mark.virtual_time(max_thread_seconds="60"), "a number as max_thread_seconds"),
    ],
)
def test_a_mark_with_wrong_arguments_is_reported(mark: pytest.MarkDecorator, problem: str) -> None:
    """It would otherwise be ignored, or fail as the loop is made, far from the mark."""
    assert problem in str(mark_problem(mark.mark))


def test_the_arguments_of_the_mark_are_those_of_the_loop() -> None:
    """Each of them alone is accepted."""
    right: dict[str, Any] = {"start": START, "max_run": timedelta(hours=1), "max_thread_seconds": 5.0}
    assert inspect.signature(VirtualTimeLoop).parameters.keys() == right.keys()
    assert mark_problem(pytest.mark.virtual_time(**right).mark) is None


@pytest.mark.soak("it starts a pytest of its own")
def test_a_wrong_mark_fails_its_module_and_names_the_test(tmp_path: Path) -> None:
    """With the sentence alone."""
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_a.py").write_text(
        "import pytest\n@pytest.mark.virtual_time(max_run=60)\nasync def test_it(): ...\n", encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "test_a.py::test_it: the mark virtual_time takes a timedelta as max_run, not 60." in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
