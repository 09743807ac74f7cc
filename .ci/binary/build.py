"""Build the executable of `outreach-server`, and what lies beside it, into dist: `make binary`.

The same commit gives the same bytes on the same machine; `--twice` builds again in another directory and compares.
Exit status 3: this machine lacks what a build needs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import one_file
from PyInstaller.depend.bindepend import get_python_library_path
from PyInstaller.exceptions import PythonLibraryNotFoundError

import outreach

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = "outreach-server"
LICENCES = "THIRD-PARTY.txt"


LACKING = 3


def lacking() -> str | None:
    """Return what this machine has not that a build needs, and where it comes from; None where it has all."""
    missing = [tool for tool in ("ldd", "objcopy", "objdump", "strip") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} missing: install binutils."
    if not one_file.can_compile():
        return "no compiler of C, or no headers of zlib. On Debian install gcc, libc6-dev and zlib1g-dev."
    try:
        found = get_python_library_path()
    except PythonLibraryNotFoundError:
        found = None
    if found is None:
        return (
            f"{sys.base_prefix} has no shared library of Python. On Debian install libpython3-dev; with pyenv install "
            "one with PYTHON_CONFIGURE_OPTS=--enable-shared. Then: make clean binary PYTHON=/path/to/python3"
        )
    return None


def git(*words: str) -> str | None:
    """Return what git says; None where this is no checkout, or git is missing."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def commit() -> str:
    """Return the commit, and whether the files differ from it."""
    found = git("rev-parse", "HEAD") if (ROOT / ".git").exists() else None
    if found is None:
        return "unknown"
    return f"{found} with changes" if git("status", "--porcelain", "--untracked-files=no") else found


def run(place: Path) -> None:
    """Have PyInstaller build into a directory.

    Raises:
        SystemExit: It failed.
    """
    # Without these the order of sets, and the times in archives, would differ from build to build.
    fixed = {"PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct") or "1700000000"}
    told = {"OUTREACH_BUILD_VERSION": outreach.__version__, "OUTREACH_BUILD_COMMIT": commit()}
    log = place / "build.log"
    place.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "PyInstaller", "--noconfirm", "--clean"),
                *("--distpath", str(place / "built"), "--workpath", str(place / "work")),
                str(HERE / f"{PROGRAM}.spec"),
            ],
            cwd=place,
            env={**os.environ, **fixed, **told, "PYINSTALLER_CONFIG_DIR": str(place / "cache")},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        sys.exit(f"{log.read_text('utf-8', errors='replace')}\nPyInstaller failed.")


def packed(place: Path, out: Path) -> list[Path]:
    """Put what was built into a directory: the one file, the zip of the other form, licences and checksums."""
    out.mkdir(parents=True, exist_ok=True)
    built = place / "built" / "directory"
    file = out / PROGRAM
    one_file.write(built, file)
    licences = out / LICENCES
    shutil.copyfile(place / "work" / PROGRAM / LICENCES, licences)
    name = f"{PROGRAM}-{outreach.__version__}-linux-{platform.machine()}"
    directory = out / f"{name}.zip"
    write_zip(built, directory, name)
    sums = out / "SHA256SUMS"
    files = [file, directory, licences]
    sums.write_text("".join(f"{digest(file)}  {file.name}\n" for file in files), "utf-8")
    return [*files, sums]


def write_zip(source: Path, target: Path, name: str) -> None:
    """Write a directory as a zip, in which order and times do not depend on the build."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for file in sorted(path for path in source.rglob("*") if path.is_file() or path.is_symlink()):
            entry = zipfile.ZipInfo(f"{name}/{file.relative_to(source).as_posix()}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            if file.is_symlink():
                entry.external_attr = 0o120777 << 16
                archive.writestr(entry, os.readlink(file))
            else:
                entry.external_attr = (0o100755 if os.access(file, os.X_OK) else 0o100644) << 16
                archive.writestr(entry, file.read_bytes())


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main() -> None:
    """Build, and compare with a second build where that is asked for."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--twice", action="store_true", help="build again elsewhere, and compare")
    twice = arguments.parse_args().twice
    problem = lacking()
    if problem is not None:
        print(f"The executable cannot be built here: {problem}", file=sys.stderr)
        sys.exit(LACKING)
    place, out = ROOT / "build" / "binary", ROOT / "dist"
    run(place)
    files = packed(place, out)
    if twice:
        with tempfile.TemporaryDirectory() as other:
            run(Path(other))
            again = packed(Path(other), Path(other) / "dist")
            differing = [file.name for file, second in zip(files, again, strict=True) if digest(file) != digest(second)]
        if differing:
            sys.exit(f"A second build differs in: {', '.join(differing)}")
        print("A second build, in another directory, has the same bytes.")
    for file in files:
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
