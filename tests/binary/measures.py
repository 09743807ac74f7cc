"""Size, start and memory of the executable beside those of the installed package."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs
import httpx
import psutil

ROUNDS: Final = 7
ALLOWED_SECONDS: Final = 0.4
"""How much later than the package the executable may answer first."""

BUSY_SHARE: Final = 0.2
"""Which part of the machine others may compute on, so that seconds on the clock are judged."""

INSTALLED: Final = "installed"
"""The form that the others are compared with."""


@attrs.frozen(kw_only=True)
class Start:
    """One start.

    Attributes:
        seconds: Until the first answer.
        computing: The seconds that its processes computed until then.
        memory: The megabytes of memory that are its own after that.
    """

    seconds: float
    computing: float
    memory: float


@attrs.frozen(kw_only=True)
class Starts:
    """The starts of all forms, in turns.

    Attributes:
        by_form: Those of each form, by round.
        others: Which part of the machine others computed on meanwhile, from 0 to 1.
    """

    by_form: Mapping[str, Sequence[Start]]
    others: float

    @property
    def is_busy(self) -> bool:
        """Whether seconds on the clock tell more of the machine than of what was started."""
        return self.others > BUSY_SHARE

    def later(self, form: str) -> float:
        """Return by how much a form starts later than the installed package: the median of all rounds.

        Seconds on the clock, and where the machine is busy those of computing.
        """
        kind = "computing" if self.is_busy else "seconds"
        rounds = zip(self.by_form[form], self.by_form[INSTALLED], strict=True)
        return statistics.median(getattr(one, kind) - getattr(installed, kind) for one, installed in rounds)


def verdicts(starts: Starts) -> dict[str, str]:
    """Return a sentence about the start of each form but the installed one."""
    what = "s of computing (the machine is busy)" if starts.is_busy else "s"
    found = {}
    for name in starts.by_form:
        if name != INSTALLED:
            later = starts.later(name)
            within = "within" if later <= ALLOWED_SECONDS else "NOT within"
            found[name] = f"{name}: {later:+.2f} {what} to the first answer, {within} the {ALLOWED_SECONDS} s allowed"
    return found


def too_late(starts: Starts) -> list[str]:
    """Return the forms that start too late."""
    return [name for name in starts.by_form if name != INSTALLED and starts.later(name) > ALLOWED_SECONDS]


def measure(forms: Mapping[str, Path]) -> Starts:
    """Start each form several times, in turns, and print a table."""
    started: dict[str, list[Start]] = {name: [] for name in forms}
    with tempfile.TemporaryDirectory() as unpacked:
        for name, program in forms.items():
            # Reads from the disk, writes bytecode, and unpacks.
            print(f"{name}: {_start(program, unpacked).seconds:.2f} s to the first answer at its first start")
        everybody, ours, begun = _computed(), _computed_by_us(), time.monotonic()
        for _ in range(ROUNDS):
            for name, program in forms.items():
                started[name].append(_start(program, unpacked))
    passed = (time.monotonic() - begun) * (os.cpu_count() or 1)
    others = ((_computed() - everybody) - (_computed_by_us() - ours)) / passed
    print(f"{'':12}{'MB on disk':>12}{'s to first answer':>20}{'s of computing':>17}{'MB of memory':>15}")
    for name, program in forms.items():
        found = started[name]
        seconds, computing, memory = (
            statistics.median(getattr(one, kind) for one in found) for kind in ("seconds", "computing", "memory")
        )
        print(f"{name:12}{_size(program):12.1f}{seconds:20.2f}{computing:17.2f}{memory:15.1f}")
    return Starts(by_form=started, others=max(others, 0.0))


def _computed() -> float:
    """Return the seconds that this machine has computed."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0.0)


def _computed_by_us() -> float:
    """Return the seconds that this process and its ended children have computed."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _start(program: Path, unpacked: str) -> Start:
    with tempfile.TemporaryDirectory() as directory:
        socket = Path(directory) / "socket"
        begun = time.monotonic()
        with subprocess.Popen(
            [str(program), "serve", "--uds", str(socket), "--database", f"sqlite:///{directory}/x.db"],
            cwd=directory,
            env={"TMPDIR": unpacked},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), trust_env=False) as client:
                    while True:
                        if process.poll() is not None:
                            sys.exit(f"{program} serve ended with {process.returncode}")
                        with suppress(httpx.HTTPError):
                            if socket.exists() and client.get("http://server/healthz").is_success:
                                break
                        time.sleep(0.002)
                seconds = time.monotonic() - begun
                first = psutil.Process(process.pid)
                family = [first, *first.children(recursive=True)]
                times = [one.cpu_times() for one in family]
                computing = sum(one.user + one.system for one in times)
                memory = sum(one.memory_full_info().uss for one in family) / 1e6
                return Start(seconds=seconds, computing=computing, memory=memory)
            finally:
                process.terminate()
                process.wait()


def _size(program: Path) -> float:
    """Return the size of a form: of the file, of its directory, or of the environment that it is installed in."""
    if (program.parent / "_internal").is_dir():
        places = [program.parent]
    elif program.parent.name == "bin":
        return _installed_size(program)
    else:
        places = [program]
    return sum(file.stat().st_size for place in places for file in _files(place)) / 1e6


def _installed_size(program: Path) -> float:
    """Return the size of what runs there: outreach and what it needs, without Python and the tools of the build."""
    code = (
        "import re, outreach, outreach_server\n"
        "from pathlib import Path\n"
        "from importlib.metadata import distribution\n"
        "todo, seen = ['outreach[server,providers]'], {}\n"
        "while todo:\n"
        "    text = todo.pop(); name, extras = re.match(r'([\\w.-]+)(?:\\[(.*?)\\])?', text).groups()\n"
        "    new = set((extras or '').split(',')) - seen.setdefault(name.lower(), set()) or {''}\n"
        "    if seen[name.lower()] >= new: continue\n"
        "    seen[name.lower()] |= new\n"
        "    for need in distribution(name).requires or ():\n"
        "        what, _, when = need.partition(';')\n"
        "        extra = re.search(r'extra == .([\\w-]+)', when)\n"
        "        if (extra is None and not when) or (extra and extra[1] in new): todo.append(what)\n"
        "files = {Path(str(distribution(one).locate_file(f))) for one in seen for f in distribution(one).files or ()}\n"
        "for package in (outreach, outreach_server): files |= set(Path(package.__file__).parent.rglob('*'))\n"
        "print(sum(f.stat().st_size for f in files if f.is_file()))\n"
    )
    python = program.with_name("python")
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1e6


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
