"""Try what `make binary` has built, where there is no Python: `python -m tests.binary`, by `make binary-check`."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.binary import measures, steps
from tests.binary.jail import Jail, build
from tests.binary.place import Place


def main() -> None:
    """Run every step, and say what was tried."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--dist", type=Path, default=steps.ROOT / "dist", help="what was built")
    arguments.add_argument("--installed", type=Path, help="the outreach-server of an environment, to compare with")
    arguments.add_argument("--quick", action="store_true", help="try the one file alone, by a few steps")
    given = arguments.parse_args()
    archive = check_sums(given.dist)
    left: set[str] = set()
    with tempfile.TemporaryDirectory() as work:
        unzipped = Path(work) / "unzipped"
        unzip(archive, unzipped)
        (in_directory,) = unzipped.glob("*/outreach-server")
        forms = {"one file": given.dist / "outreach-server", "directory": in_directory}
        for name, form in forms.items():
            place = Path(work) / name.replace(" ", "-")
            place.mkdir()
            Path(work).chmod(0o755)
            jail = build(place, form)
            try_out(name, jail, steps.ALL if name == "one file" and not given.quick else steps.SHORT)
            if "NOT CHECKED" in jail.words:
                left.add(jail.words)
            if given.quick:
                break
        if given.installed is not None:
            compare({measures.INSTALLED: given.installed.resolve().parent / given.installed.name, **forms})
    exposure()
    print("the executable works" + "".join(f"\n    but: {words}" for words in sorted(left)))


def check_sums(dist: Path) -> Path:
    """Hold every file against SHA256SUMS; return the zip among them, whatever zips of other builds lie beside it.

    Raises:
        SystemExit: Nothing was built there, or a file is missing or differs.
    """
    sums = dist / "SHA256SUMS"
    if not sums.is_file():
        sys.exit(f"There is no {sums}. Build the executable first: make binary")
    names = []
    for line in sums.read_text("utf-8").splitlines():
        digest, name = line.split()
        if not (dist / name).is_file():
            sys.exit(f"{name} of {sums} is not there. Build it again: make binary")
        if hashlib.sha256((dist / name).read_bytes()).hexdigest() != digest:
            sys.exit(f"{name} is not the file of {sums}. Build it again: make binary")
        names.append(name)
    zips = [name for name in names if name.endswith(".zip")]
    if len(zips) != 1:
        sys.exit(f"{sums} names {len(zips)} zips, and should name one. Build it again: make binary")
    return dist / zips[0]


def unzip(archive: Path, target: Path) -> None:
    """Unzip with the modes, as the usual tool does; that of Python leaves them out."""
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            path, mode = Path(opened.extract(entry, target)), entry.external_attr >> 16
            if mode & 0o170000 == 0o120000:
                where = path.read_text("utf-8")
                path.unlink()
                path.symlink_to(where)
            else:
                path.chmod(mode & 0o777)


def try_out(name: str, jail: Jail, tried: Sequence[Callable[[Place], None]]) -> None:
    """Run steps in a jail."""
    print(f"==> {name}, in {jail.words}")
    place = Place(jail=jail)
    for step in tried:
        begun = time.monotonic()
        step(place)
        print(f"    {step.__name__.replace('_', ' ')}: {time.monotonic() - begun:.1f} s", flush=True)


def exposure() -> None:
    """Print what systemd thinks of the unit that runs it, where this machine has its program."""
    program = shutil.which("systemd-analyze")
    if program is not None:
        unit = steps.ROOT / "examples" / "hosting" / "outreach.service"
        done = subprocess.run([program, "security", "--offline=yes", unit], capture_output=True, text=True, check=True)
        print(f"systemd-analyze security: {done.stdout.splitlines()[-1]}")


def compare(forms: dict[str, Path]) -> None:
    """Measure, and hold both forms to what their start may cost.

    Raises:
        SystemExit: One starts too late.
    """
    starts = measures.measure(forms)
    for sentence in measures.verdicts(starts).values():
        print(sentence)
    late = measures.too_late(starts)
    if late:
        sys.exit(f"too late to start: {', '.join(late)}")


if __name__ == "__main__":
    main()
