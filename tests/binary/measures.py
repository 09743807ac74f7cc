"""Size, start and memory of the executable beside those of the installed package."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs
import httpx
import psutil

ROUNDS: Final = 5
ALLOWED_SECONDS: Final = 0.7
"""How much later than the package the executable may answer first."""


@attrs.frozen(kw_only=True)
class Measured:
    """One form.

    Attributes:
        megabytes: Its size on disk.
        seconds: From its start to its first answer, the least of several: what else the machine does only adds.
        computing: The seconds that its processes computed until then, the least of several.
        memory: The megabytes of memory that are its own after that.
    """

    megabytes: float
    seconds: float
    computing: float
    memory: float


def measure(forms: Mapping[str, Path]) -> dict[str, Measured]:
    """Start each form several times, in turns, and print a table."""
    started: dict[str, list[tuple[float, float, float]]] = {name: [] for name in forms}
    for number in range(ROUNDS + 1):
        for name, program in forms.items():
            found = _start(program)
            if number:  # the first start reads from the disk, and writes bytecode
                started[name].append(found)
    table = {
        name: Measured(
            megabytes=_size(program),
            seconds=min(seconds for seconds, _, _ in started[name]),
            computing=min(computing for _, computing, _ in started[name]),
            memory=statistics.median(memory for _, _, memory in started[name]),
        )
        for name, program in forms.items()
    }
    print(f"{'':12}{'MB on disk':>12}{'s to first answer':>20}{'s of computing':>17}{'MB of memory':>15}")
    for name, one in table.items():
        print(f"{name:12}{one.megabytes:12.1f}{one.seconds:20.2f}{one.computing:17.2f}{one.memory:15.1f}")
    return table


def _start(program: Path) -> tuple[float, float, float]:
    """Return the seconds to the first answer, those of computing in them, and the megabytes of memory then."""
    with tempfile.TemporaryDirectory() as directory:
        socket = Path(directory) / "socket"
        begun = time.monotonic()
        with subprocess.Popen(
            [str(program), "serve", "--uds", str(socket), "--database", f"sqlite:///{directory}/x.db"],
            cwd=directory,
            env={"TMPDIR": directory},
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
                return seconds, computing, sum(one.memory_full_info().uss for one in family) / 1e6
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
